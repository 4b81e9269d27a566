"""The totals that accounts have paid, by period: sums of the entries, kept beside them."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from proxy.ledger.connection import Connection
from rules.accounting.accountant import Totals
from rules.accounting.chain import Account


def read_totals(connection: Connection, account: Account) -> Totals:
    """Sum up what an account has paid in a period."""
    row = connection.execute(
        "SELECT epsilon, delta, rho, pure FROM totals WHERE account = ? AND period = ?", account
    ).fetchone()
    return Totals() if row is None else totals_of(row)


def totals_of(row: Sequence[Any]) -> Totals:
    epsilon, delta, rho, pure = row
    return Totals(Decimal(epsilon), Decimal(delta), Decimal(rho), bool(pure))


def write_totals(connection: Connection, totals: Mapping[Account, Totals]) -> None:
    """Write down what accounts have paid now."""
    rows = [
        (*account, str(paid.epsilon), str(paid.delta), str(paid.rho), int(paid.pure))
        for account, paid in totals.items()
    ]
    connection.execute(
        "INSERT INTO totals (account, period, epsilon, delta, rho, pure) VALUES "
        f"{', '.join(['(?, ?, ?, ?, ?, ?)'] * len(rows))} ON CONFLICT (account, period) DO UPDATE SET"
        " epsilon = excluded.epsilon, delta = excluded.delta, rho = excluded.rho, pure = excluded.pure",
        [total for row in rows for total in row],
    )
