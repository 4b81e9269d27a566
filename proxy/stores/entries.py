"""What the ledger's jobs do inside one transaction."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from proxy.stores import kept
from proxy.stores.connection import Connection
from rules.ledger import chain
from rules.ledger.accountant import Limit, Totals, loss
from rules.ledger.book import Budgets, Change, check_faults, check_fits, period_of
from rules.ledger.chain import DATASET, LIFETIME, Account, account_of
from rules.ledger.store import Balance, Charge, KeptRelease, LedgerError, Receipt, Release
from rules.noise.cost import UPWARD, Mechanism


def charge(connection: Connection, charge: Charge, budgets: Budgets) -> Receipt:
    """Check faults and both budgets and append, or refuse."""
    if charge.faults_since is not None:
        check_faults(count_faults(connection, charge.analyst, charge.faults_since), charge.faults_allowed)
    period = running_period(connection, charge.time, budgets)
    account = account_of(charge.analyst)
    sights = kept.unpaid(connection, charge.sights, (account, period))
    cost = (*charge.mechanisms, *(sight.mechanism for sight in sights))
    shared = (*charge.mechanisms, *(sight.mechanism for sight in sights if sight.is_first))
    costs = {(name, each): paid for name, paid in ((DATASET, shared), (account, cost)) for each in (period, LIFETIME)}
    changes = _changes(connection, costs)
    dataset, analyst = (changes[name, chain.counted_in(period)] for name in (DATASET, account))
    check_fits(charge.analyst, analyst, dataset, budgets, reused=bool(sights))
    number = append(connection, chain.charge_entry(charge, period, sights))
    write_totals(connection, {name: change.after for name, change in changes.items()})
    kept.mark_paid(connection, (account, period), (sight.release for sight in sights), number)
    return Receipt(number, Totals().plus(cost), *balances(connection, charge.analyst, budgets, period))


def settle(
    connection: Connection, charge: int, releases: Sequence[Release], beside: datetime | None
) -> list[tuple[KeptRelease, ...]]:
    """Keep the noised measures of a charge, on the account that was charged; tell what else that has of each."""
    fields = _entry(connection, charge)
    account = account_of(fields["analyst"]), fields["period"]
    others = [() if beside is None else kept.find_alike(connection, each, account, beside) for each in releases]
    rows = kept.new_rows(connection, charge, fields["time"], releases)
    number = vouch(connection, charge, [(row[0], kept.seal_of(row)) for row in rows])
    kept.keep(connection, rows, number)
    kept.mark_paid(connection, account, (row[0] for row in rows), number)
    return others


def vouch(connection: Connection, charge: int, releases: Sequence[tuple[int, str]]) -> int:
    """Append that these releases, with their seals, were kept for a charge."""
    return append(connection, chain.settle_entry(charge, _entry(connection, charge), releases))


def fault(connection: Connection, charge: int, time: datetime) -> None:
    """Append that the real database failed after this charge."""
    append(connection, chain.fault_entry(charge, _entry(connection, charge)["analyst"], time))


def count_faults(connection: Connection, analyst: str, since: datetime) -> int:
    """How often the real database has failed after a charge of this analyst's."""
    (count,) = connection.execute(
        "SELECT count(*) FROM entries WHERE analyst = ? AND kind = 'fault' AND time >= ?",
        (analyst, chain.stamp(since)),
    ).fetchone()
    return int(count)


def balances(connection: Connection, analyst: str, budgets: Budgets, period: str) -> tuple[Balance, Balance]:
    """The analyst's balance and the dataset's in a period."""
    balances = []
    for account, limit in ((account_of(analyst), budgets.limit_of(analyst)), (DATASET, budgets.dataset)):
        lost = loss(spent(connection, account, period), limit)
        balances.append(Balance(lost, limit.epsilon, lifetime(connection, account, limit)))
    return balances[0], balances[1]


def lifetime(connection: Connection, account: str, limit: Limit) -> Decimal:
    """The sum over all periods: of the charges' ε, or of what they come to by zCDP where some have no pure ε."""
    total = Decimal(0)
    query = "SELECT epsilon, delta, rho, pure FROM totals WHERE account = ? AND period <> ?"
    for totals in map(_totals, connection.execute(query, (account, LIFETIME))):
        total = UPWARD.add(total, totals.epsilon if totals.pure else loss(totals, limit))
    return total


def spent(connection: Connection, account: str, period: str) -> Totals:
    """What counts against the budget of a period."""
    return read_totals(connection, (account, chain.counted_in(period)))


def running_period(connection: Connection, time: datetime, budgets: Budgets) -> str:
    """The period of a moment, not before the latest one that was charged."""
    latest = ""
    for (period,) in connection.execute("SELECT period FROM totals WHERE account = ?", (DATASET,)):
        if period.partition(":")[0] == budgets.per:
            latest = max(latest, period)
    return period_of(time, budgets, latest)


def append(connection: Connection, entry: str) -> int:
    """Add an entry at the end of the chain."""
    number, seal = head(connection)
    kind, time, analyst = chain.heading(entry)
    connection.execute(
        "INSERT INTO entries (id, kind, time, analyst, entry, seal) VALUES (?, ?, ?, ?, ?, ?)",
        (number + 1, kind, time, analyst, entry, chain.seal(seal, entry)),
    )
    return number + 1


def head(connection: Connection) -> tuple[int, str]:
    """The last entry's number and seal. Before the first one the seal is the database's identity."""
    found = connection.execute("SELECT id, seal FROM entries ORDER BY id DESC LIMIT 1").fetchone()
    if found is None:
        found = connection.execute("SELECT 0, value FROM meta WHERE name = 'identity'").fetchone()
    return int(found[0]), str(found[1])


def read_totals(connection: Connection, account: Account) -> Totals:
    """What an account has paid in a period."""
    found = connection.execute(
        "SELECT epsilon, delta, rho, pure FROM totals WHERE account = ? AND period = ?", account
    ).fetchone()
    return Totals() if found is None else _totals(found)


def _totals(row: Sequence[Any]) -> Totals:
    epsilon, delta, rho, pure = row
    return Totals(Decimal(epsilon), Decimal(delta), Decimal(rho), bool(pure))


def write_totals(connection: Connection, totals: Mapping[Account, Totals]) -> None:
    """What accounts have paid now."""
    rows = [
        (*account, str(paid.epsilon), str(paid.delta), str(paid.rho), int(paid.pure))
        for account, paid in totals.items()
    ]
    connection.execute(
        "INSERT INTO totals (account, period, epsilon, delta, rho, pure) VALUES "
        f"{', '.join(['(?, ?, ?, ?, ?, ?)'] * len(rows))} ON CONFLICT (account, period) DO UPDATE SET"
        " epsilon = excluded.epsilon, delta = excluded.delta, rho = excluded.rho, pure = excluded.pure",
        [each for row in rows for each in row],
    )


def _changes(connection: Connection, costs: Mapping[Account, Sequence[Mechanism]]) -> dict[Account, Change]:
    """All accounts of a charge, read at once."""
    rows = connection.execute(
        "SELECT account, period, epsilon, delta, rho, pure FROM totals"
        f" WHERE (account, period) IN (VALUES {', '.join(['(?, ?)'] * len(costs))})",
        [each for account in costs for each in account],
    )
    before = {(account, period): _totals(numbers) for account, period, *numbers in rows}
    totals = {account: before.get(account, Totals()) for account in costs}
    return {account: Change(totals[account], totals[account].plus(cost)) for account, cost in costs.items()}


def _entry(connection: Connection, number: int) -> chain.Fields:
    found = connection.execute("SELECT entry FROM entries WHERE id = ?", (number,)).fetchone()
    if found is None:
        raise LedgerError("the privacy ledger does not hold this charge, so nothing is answered")
    fields: chain.Fields = json.loads(found[0])
    return fields
