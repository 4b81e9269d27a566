"""What the ledger's jobs do inside one transaction of SQLite."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from rules.ledger import chain
from rules.ledger.accountant import Totals, loss
from rules.ledger.book import Budgets, Change, check_faults, check_fits, period_of
from rules.ledger.chain import DATASET, Account, Sight, account_of
from rules.ledger.store import Balance, Charge, KeptRelease, LedgerError, Receipt, Release, Wanted
from rules.noise.cost import UPWARD, Mechanism


def charge(connection: sqlite3.Connection, charge: Charge, budgets: Budgets) -> Receipt:
    """Check faults and both budgets and append, or refuse."""
    if charge.faults_since is not None:
        check_faults(count_faults(connection, charge.analyst, charge.faults_since), charge.faults_allowed)
    period = running_period(connection, charge.time, budgets)
    account = account_of(charge.analyst)
    sights = _unpaid(connection, charge.sights, account, period)
    cost = (*charge.mechanisms, *(sight.mechanism for sight in sights))
    dataset = _change(connection, (DATASET, period), charge.mechanisms)
    analyst = _change(connection, (account, period), cost)
    check_fits(charge.analyst, analyst, dataset, budgets, reused=bool(sights))
    number = append(connection, chain.charge_entry(charge, period, sights))
    write_totals(connection, (DATASET, period), dataset.after)
    write_totals(connection, (account, period), analyst.after)
    _mark_paid(connection, account, period, (sight.release for sight in sights))
    spent = Totals().plus(cost).epsilon
    return Receipt(number, spent, *balances(connection, charge.analyst, budgets, period))


def settle(connection: sqlite3.Connection, charge: int, releases: Sequence[Release]) -> None:
    """Keep the noised measures of a charge, paid for by the one who was charged."""
    entry = _entry(connection, charge)
    for release in releases:
        groups = _text(release.groups)
        cost, numbers = _text(chain.cost(release.mechanism)), _text(release.values)
        cursor = connection.execute(
            "INSERT INTO releases (charge, time, block, measure, cost, groups, numbers, list)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (charge, entry["time"], release.block, release.measure, cost, groups, numbers, _digest(groups)),
        )
        _mark_paid(connection, account_of(entry["analyst"]), entry["period"], [cursor.lastrowid or 0])


def fault(connection: sqlite3.Connection, charge: int, time: datetime) -> None:
    """Append that the real database failed after this charge."""
    append(connection, chain.fault_entry(charge, _entry(connection, charge)["analyst"], time))


def count_faults(connection: sqlite3.Connection, analyst: str, since: datetime) -> int:
    """How often the real database has failed after a charge of this analyst's."""
    (count,) = connection.execute(
        "SELECT count(*) FROM entries WHERE json_extract(entry, '$.kind') = 'fault'"
        " AND json_extract(entry, '$.analyst') = ? AND json_extract(entry, '$.time') >= ?",
        (analyst, chain.stamp(since)),
    ).fetchone()
    return int(count)


def find_release(
    connection: sqlite3.Connection, wanted: Wanted, analyst: str, period: str, since: datetime
) -> KeptRelease | None:
    """The release that may serve: one that the analyst has paid for, else the cheapest, else the newest."""
    row = connection.execute(
        "SELECT id, r.time, block, measure, cost, groups, numbers, s.release IS NOT NULL AS paid FROM releases r"
        " LEFT JOIN sights s ON s.release = r.id AND s.account = :account AND s.period = :period"
        " WHERE block = :block AND measure = :measure AND r.time >= :since AND (:list IS NULL OR list = :list)"
        " AND at_least(json_extract(cost, '$[0]'), :epsilon)"
        " ORDER BY paid DESC, CAST(json_extract(cost, '$[0]') AS REAL), id DESC LIMIT 1",
        {
            "account": account_of(analyst),
            "period": period,
            "block": wanted.block,
            "measure": wanted.measure,
            "since": chain.stamp(since),
            "list": None if wanted.groups is None else _digest(_text(wanted.groups)),
            "epsilon": str(wanted.epsilon),
        },
    ).fetchone()
    return None if row is None else _kept_release(*row)


def at_least(epsilon: str | None, wanted: str) -> bool:
    """Compares exactly, as a function of SQL's."""
    return epsilon is not None and Decimal(epsilon) >= Decimal(wanted)


def balances(connection: sqlite3.Connection, analyst: str, budgets: Budgets, period: str) -> tuple[Balance, Balance]:
    """The analyst's balance and the dataset's in a period."""
    balances = []
    for account, limit in ((account_of(analyst), budgets.limit_of(analyst)), (DATASET, budgets.dataset)):
        lifetime = Decimal(0)
        for (epsilon,) in connection.execute("SELECT epsilon FROM accounts WHERE account = ?", (account,)):
            lifetime = UPWARD.add(lifetime, Decimal(epsilon))
        balances.append(Balance(loss(read_totals(connection, (account, period)), limit), limit.epsilon, lifetime))
    return balances[0], balances[1]


def running_period(connection: sqlite3.Connection, time: datetime, budgets: Budgets) -> str:
    """The period of a moment, not before the latest one that was charged."""
    (latest,) = connection.execute(
        "SELECT max(period) FROM accounts WHERE account = ? AND period GLOB ?", (DATASET, f"{budgets.per}*")
    ).fetchone()
    return period_of(time, budgets, latest or "")


def append(connection: sqlite3.Connection, entry: str) -> int:
    """Add an entry at the end of the chain."""
    number, seal = head(connection)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number + 1, entry, chain.seal(seal, entry)))
    return number + 1


def head(connection: sqlite3.Connection) -> tuple[int, str]:
    """The last entry's number and seal. Before the first one the seal is the database's identity."""
    found = connection.execute("SELECT id, seal FROM entries ORDER BY id DESC LIMIT 1").fetchone()
    if found is None:
        found = connection.execute("SELECT 0, value FROM meta WHERE name = 'identity'").fetchone()
    return int(found[0]), str(found[1])


def read_totals(connection: sqlite3.Connection, account: Account) -> Totals:
    """What an account has paid in a period."""
    found = connection.execute(
        "SELECT epsilon, delta, rho, pure FROM accounts WHERE account = ? AND period = ?", account
    ).fetchone()
    if found is None:
        return Totals()
    return Totals(Decimal(found[0]), Decimal(found[1]), Decimal(found[2]), bool(found[3]))


def write_totals(connection: sqlite3.Connection, account: Account, totals: Totals) -> None:
    """What an account has paid now."""
    numbers = (str(totals.epsilon), str(totals.delta), str(totals.rho), int(totals.pure))
    connection.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?, ?)", (*account, *numbers))


def _change(connection: sqlite3.Connection, account: Account, cost: Sequence[Mechanism]) -> Change:
    before = read_totals(connection, account)
    return Change(before, before.plus(cost))


def _unpaid(connection: sqlite3.Connection, sights: Iterable[int], account: str, period: str) -> list[Sight]:
    """The releases among these that the analyst has not paid for in this period, with their full cost."""
    unpaid = []
    for release in dict.fromkeys(sights):
        found = connection.execute(
            "SELECT cost FROM releases WHERE id = ? AND NOT EXISTS"
            " (SELECT 1 FROM sights WHERE account = ? AND period = ? AND release = releases.id)",
            (release, account, period),
        ).fetchone()
        if found is not None:
            unpaid.append(Sight(release, chain.mechanism(json.loads(found[0]))))
    return unpaid


def _mark_paid(connection: sqlite3.Connection, account: str, period: str, releases: Iterable[int]) -> None:
    connection.executemany("INSERT INTO sights VALUES (?, ?, ?)", [(account, period, each) for each in releases])


def _entry(connection: sqlite3.Connection, number: int) -> dict[str, str]:
    found = connection.execute("SELECT entry FROM entries WHERE id = ?", (number,)).fetchone()
    if found is None:
        raise LedgerError("the privacy ledger does not hold this charge, so nothing is answered")
    fields: dict[str, str] = json.loads(found[0])
    return fields


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(groups: str) -> str:
    return hashlib.sha256(groups.encode()).hexdigest()


def _kept_release(
    number: int, time: str, block: str, measure: str, cost: str, groups: str, numbers: str, paid: int
) -> KeptRelease:
    keys = tuple(tuple(group) for group in json.loads(groups))
    release = Release(block, measure, chain.mechanism(json.loads(cost)), keys, tuple(json.loads(numbers)))
    return KeptRelease(number, datetime.fromisoformat(time), release, bool(paid))
