"""What the ledger's jobs do inside one transaction."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from proxy.stores import kept
from proxy.stores.connection import Connection
from rules.ledger import chain
from rules.ledger.accountant import Limit, Totals, loss
from rules.ledger.book import Budgets, Change, check_faults, check_fits, period_of
from rules.ledger.chain import DATASET, Account, Sight, account_of
from rules.ledger.store import Balance, Charge, KeptRelease, LedgerError, Receipt, Release
from rules.noise.cost import UPWARD, Mechanism


def charge(connection: Connection, charge: Charge, budgets: Budgets) -> Receipt:
    """Check faults and both budgets and append, or refuse."""
    if charge.faults_since is not None:
        check_faults(count_faults(connection, charge.analyst, charge.faults_since), charge.faults_allowed)
    period = running_period(connection, charge.time, budgets)
    account = account_of(charge.analyst)
    sights = _unpaid(connection, charge.sights, account, period)
    cost = (*charge.mechanisms, *(sight.mechanism for sight in sights))
    first = (sight.mechanism for sight in sights if sight.is_first)
    dataset = _change(connection, (DATASET, period), (*charge.mechanisms, *first))
    analyst = _change(connection, (account, period), cost)
    check_fits(charge.analyst, analyst, dataset, budgets, reused=bool(sights))
    number = append(connection, chain.charge_entry(charge, period, sights))
    write_totals(connection, (DATASET, period), dataset.after)
    write_totals(connection, (account, period), analyst.after)
    _mark_paid(connection, account, period, (sight.release for sight in sights))
    return Receipt(number, Totals().plus(cost), *balances(connection, charge.analyst, budgets, period))


def settle(
    connection: Connection, charge: int, releases: Sequence[Release], beside: datetime | None
) -> list[tuple[KeptRelease, ...]]:
    """Keep the noised measures of a charge, on the account that was charged; tell what else that has of each."""
    entry = _entry(connection, charge)
    account = account_of(entry["analyst"]), entry["period"]
    others = [() if beside is None else kept.find_alike(connection, each, account, beside) for each in releases]
    _mark_paid(connection, *account, kept.keep(connection, charge, entry["time"], releases))
    return others


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
        spent = loss(read_totals(connection, (account, period)), limit)
        balances.append(Balance(spent, limit.epsilon, lifetime(connection, account, limit)))
    return balances[0], balances[1]


def lifetime(connection: Connection, account: str, limit: Limit) -> Decimal:
    """The sum over all periods: of the charges' ε, or of what they come to by zCDP where some have no pure ε."""
    total = Decimal(0)
    periods = connection.execute("SELECT epsilon, delta, rho, pure FROM accounts WHERE account = ?", (account,))
    for totals in map(_totals, periods):
        total = UPWARD.add(total, totals.epsilon if totals.pure else loss(totals, limit))
    return total


def running_period(connection: Connection, time: datetime, budgets: Budgets) -> str:
    """The period of a moment, not before the latest one that was charged."""
    latest = ""
    for (period,) in connection.execute("SELECT period FROM accounts WHERE account = ?", (DATASET,)):
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
        "SELECT epsilon, delta, rho, pure FROM accounts WHERE account = ? AND period = ?", account
    ).fetchone()
    return Totals() if found is None else _totals(found)


def _totals(row: tuple[str, str, str, int]) -> Totals:
    epsilon, delta, rho, pure = row
    return Totals(Decimal(epsilon), Decimal(delta), Decimal(rho), bool(pure))


def write_totals(connection: Connection, account: Account, totals: Totals) -> None:
    """What an account has paid now."""
    numbers = (str(totals.epsilon), str(totals.delta), str(totals.rho), int(totals.pure))
    connection.execute(
        "INSERT INTO accounts (account, period, epsilon, delta, rho, pure) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (account, period) DO UPDATE SET"
        " epsilon = excluded.epsilon, delta = excluded.delta, rho = excluded.rho, pure = excluded.pure",
        (*account, *numbers),
    )


def _change(connection: Connection, account: Account, cost: Sequence[Mechanism]) -> Change:
    before = read_totals(connection, account)
    return Change(before, before.plus(cost))


def _unpaid(connection: Connection, sights: Iterable[int], account: str, period: str) -> list[Sight]:
    """The releases among these that the analyst has not paid for in this period, with their full cost.

    One that was made in an earlier period is not on the dataset's account of this one before somebody has seen it.
    """
    unpaid = []
    for release in dict.fromkeys(sights):
        found = connection.execute(
            "SELECT cost, EXISTS (SELECT 1 FROM sights WHERE release = releases.id AND period = ?) FROM releases"
            " WHERE id = ? AND NOT EXISTS"
            " (SELECT 1 FROM sights WHERE account = ? AND period = ? AND release = releases.id)",
            (period, release, account, period),
        ).fetchone()
        if found is not None:
            cost, is_shared = found
            unpaid.append(Sight(release, chain.mechanism(json.loads(cost)), is_first=not is_shared))
    return unpaid


def _mark_paid(connection: Connection, account: str, period: str, releases: Iterable[int]) -> None:
    for release in releases:
        connection.execute("INSERT INTO sights VALUES (?, ?, ?)", (account, period, release))


def _entry(connection: Connection, number: int) -> dict[str, str]:
    found = connection.execute("SELECT entry FROM entries WHERE id = ?", (number,)).fetchone()
    if found is None:
        raise LedgerError("the privacy ledger does not hold this charge, so nothing is answered")
    fields: dict[str, str] = json.loads(found[0])
    return fields
