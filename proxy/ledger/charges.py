"""Do the work of the ledger's jobs, inside one transaction."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from proxy.ledger import sights as first_sights
from proxy.ledger import stored_releases
from proxy.ledger.connection import Connection
from proxy.ledger.integrity import append
from proxy.ledger.periods import also_running, running_period
from proxy.ledger.totals import read_totals, totals_of, write_totals
from rules.accounting import chain
from rules.accounting.accountant import Limit, Totals, loss
from rules.accounting.budgets import Budgets, Change, check_fits
from rules.accounting.chain import DATASET, LIFETIME, Account, Sight, account_of, account_of_role
from rules.accounting.store import (
    Balance,
    Balances,
    Charge,
    Grant,
    KeptBounds,
    KeptRelease,
    LedgerError,
    Receipt,
    Release,
    Stop,
)
from rules.mechanisms.cost import UPWARD, Mechanism
from rules.refusal import ChargedSince, stopped

_TRIAL_BYTES: Final = 64 * 1024  # as much as a charge with many releases


def charge(connection: Connection, charge: Charge, budgets: Budgets) -> Receipt:
    """Check that nothing stops the analyst, and both budgets, and append, or refuse."""
    if not all(mechanism.is_valid for mechanism in charge.mechanisms):
        raise LedgerError("the price of this statement is invalid, so it is not answered", reason="invalid_charge")
    check_not_stopped(connection, charge.analyst)
    _check_once(connection, charge)
    period, also = running_period(connection, charge.time, budgets), also_running(connection, charge.time, budgets)
    granted = with_grants(connection, budgets, charge.analyst, period)
    account, role = account_of(charge.analyst), budgets.role_of(charge.analyst)
    of_role = None if role is None else account_of_role(role)
    sights = first_sights.unpaid(connection, charge.sights, (account, period), of_role)
    cost = (*charge.mechanisms, *(sight.mechanism for sight in sights if sight.is_own))
    shared = (*charge.mechanisms, *(sight.mechanism for sight in sights if sight.is_first))
    payers = [(DATASET, shared), (account, cost)]
    if of_role is not None:
        payers.append((of_role, (*charge.mechanisms, *(sight.mechanism for sight in sights if sight.is_first_of_role))))
    in_full = (*charge.mechanisms, *(sight.mechanism for sight in sights))
    costs: dict[Account, Sequence[Mechanism]] = {(name, other): in_full for name, _ in payers for other in also}
    costs |= {(name, counted_period): paid for name, paid in payers for counted_period in (period, LIFETIME)}
    changes = _changes(connection, costs)
    counted = {name: changes[name, chain.counted_in(period)] for name, _ in payers}
    role_change = None if of_role is None else counted[of_role]
    check_fits(charge.analyst, counted[account], counted[DATASET], granted, reused=bool(sights), role=role_change)
    number = append(connection, chain.charge_entry(charge, period, sights, role, also))
    write_totals(connection, {name: change.after for name, change in changes.items()})
    for name, releases in _shown_to(account, of_role, sights):
        first_sights.mark_paid(connection, (name, period), releases, number)
    return Receipt(number, Totals().plus(cost), *balances(connection, charge.analyst, budgets, period))


def _check_once(connection: Connection, charge: Charge) -> None:
    """Refuse what is charged once where it was charged: of two proxies that find it due at once one is late."""
    if charge.once_since is None:
        return
    since = charge.analyst, chain.stamp(charge.once_since)
    query = "SELECT 1 FROM entries WHERE analyst = ? AND kind = 'charge' AND time >= ? LIMIT 1"
    if connection.execute(query, since).fetchone() is not None:
        raise ChargedSince("it was charged by another proxy meanwhile")


def _shown_to(account: str, of_role: str | None, sights: Sequence[Sight]) -> Iterator[tuple[str, list[int]]]:
    """Note which releases come to be on which account."""
    yield account, [sight.release for sight in sights if sight.is_own]
    if of_role is not None:
        yield of_role, [sight.release for sight in sights if sight.is_first_of_role]


def settle(
    connection: Connection,
    charge: int,
    releases: Sequence[Release],
    beside: datetime | None,
    lasting: Sequence[int] = (),
) -> list[tuple[KeptRelease, ...]]:
    """Keep the noised measures of a charge, on the account that was charged; tell what else that has of each.

    What ran while a fault stopped its analyst is not told: that it did not fail would be a word about rows too.
    """
    fields = _entry(connection, charge)
    check_not_stopped(connection, fields["analyst"])
    role = fields.get("role")
    accounts = [(name, fields["period"]) for name in names_of(fields["analyst"], role)]
    age = None if beside is None else stored_releases.Age(beside, tuple(lasting))
    others = [
        () if age is None else stored_releases.find_alike(connection, release, accounts, age) for release in releases
    ]
    rows = stored_releases.new_rows(connection, charge, fields["time"], releases)
    seals = [(row[0], stored_releases.seal_of(row)) for row in rows]
    number = vouch(connection, charge, seals, _vectors(releases, [row[0] for row in rows]))
    stored_releases.keep(connection, rows, number)
    for name, _ in accounts:
        for period in (fields["period"], *fields.get("also", ())):
            first_sights.mark_paid(connection, (name, period), (row[0] for row in rows), number)
    return others


def names_of(analyst: str, role: str | None) -> list[str]:
    """Name the accounts on which a release has to be before an analyst sees it for nothing: the own one, the role's."""
    return [account_of(analyst), *([] if role is None else [account_of_role(role)])]


def accounts_of(connection: Connection, analyst: str, budgets: Budgets, now: datetime) -> list[Account]:
    """The same accounts in the running period."""
    period = running_period(connection, now, budgets)
    return [(name, period) for name in names_of(analyst, budgets.role_of(analyst))]


def _vectors(releases: Sequence[Release], numbers: Sequence[int]) -> list[list[int]]:
    """The numbers of releases that were drawn for one price, of several each."""
    vectors: dict[tuple[str, int], list[int]] = {}
    for release, number in zip(releases, numbers, strict=True):
        if release.vector is not None:
            vectors.setdefault((release.block, release.vector), []).append(number)
    return [vector for vector in vectors.values() if len(vector) > 1]


def vouch(
    connection: Connection, charge: int, releases: Sequence[tuple[int, str]], vectors: Sequence[Sequence[int]] = ()
) -> int:
    """Append that these releases, with their seals, were kept for a charge."""
    return append(connection, chain.settle_entry(charge, _entry(connection, charge), releases, vectors))


def fault(connection: Connection, charge: int, time: datetime, *, cause: str, stops: bool) -> None:
    """Append that the real database failed after this charge: once, also where nobody heard of the commit.

    Said again it would stop an analyst whom the DBA has forgiven meanwhile.
    """
    analyst = _entry(connection, charge)["analyst"]
    entry = chain.fault_entry(charge, analyst, time, cause=cause, stops=stops)
    query = "SELECT 1 FROM entries WHERE analyst = ? AND kind IN ('fault', 'stop') AND time = ? AND entry = ?"
    if connection.execute(query, (analyst, chain.stamp(time), entry)).fetchone() is None:
        append(connection, entry)


def forgive(connection: Connection, analyst: str, time: datetime) -> bool:
    """Append that an analyst may ask again, where one is stopped."""
    if not is_stopped(connection, analyst):
        return False
    append(connection, chain.forgive_entry(analyst, time))
    return True


def grant(connection: Connection, grant: Grant, budgets: Budgets) -> Balance:
    """Append that an analyst may spend more in the running period; returns the new balance."""
    if not (grant.epsilon.is_finite() and grant.epsilon > 0):
        raise LedgerError("a grant is of a number above zero", reason="invalid_charge")
    period = running_period(connection, grant.time, budgets)
    append(connection, chain.grant_entry(grant, period))
    return balances(connection, grant.analyst, budgets, period)[0]


def with_grants(connection: Connection, budgets: Budgets, analyst: str, period: str) -> Budgets:
    """The budgets with what operators have granted to an analyst for a period; the budget of all stays as it is."""
    cursor = connection.execute("SELECT entry FROM entries WHERE analyst = ? AND kind = 'grant'", (analyst,))
    grants = [Decimal(fields["epsilon"]) for fields in map(_fields, cursor) if fields["period"] == period]
    if not grants or analyst not in budgets.analysts:
        return budgets
    limit = budgets.limit_of(analyst)
    more = replace(limit, epsilon=sum(grants, limit.epsilon))
    return replace(budgets, analysts={**budgets.analysts, analyst: more})


def _fields(row: Sequence[Any]) -> chain.Fields:
    fields: chain.Fields = json.loads(row[0])
    return fields


def kept_bounds(connection: Connection, *, after: int = 0) -> list[KeptBounds]:
    """Read what looks of the DBA have found, of each column the newest, by entries after a number."""
    rows = connection.execute(
        "SELECT entry FROM entries WHERE analyst = ? AND kind = 'bounds' AND id > ? ORDER BY id", (chain.NOBODY, after)
    )
    kept_boundses = {(bounds.table, bounds.column): bounds for bounds in map(chain.bounds_of, map(_fields, rows))}
    return list(kept_boundses.values())


def check_not_stopped(connection: Connection, analyst: str) -> None:
    """Refuse an analyst whom a fault has stopped."""
    if is_stopped(connection, analyst):
        raise stopped()


def stops(connection: Connection) -> tuple[Stop, ...]:
    """The fault of each analyst who is stopped now."""
    last: dict[str, chain.Fields] = {}
    for (entry,) in connection.execute("SELECT entry FROM entries WHERE kind IN ('stop', 'forgive') ORDER BY id"):
        fields = json.loads(entry)
        last[fields["analyst"]] = fields
    return tuple(
        Stop(analyst, datetime.fromisoformat(fields["time"]), fields["charge"], fields["cause"])
        for analyst, fields in sorted(last.items())
        if fields["kind"] == "stop"
    )


def is_stopped(connection: Connection, analyst: str) -> bool:
    """Tell whether the last word on an analyst is a stop: asked by kind, which the index has, not by the newest id."""
    last: dict[str, int] = dict(
        connection.execute(
            "SELECT kind, max(id) FROM entries WHERE analyst = ? AND kind IN ('stop', 'forgive') GROUP BY kind",
            (analyst,),
        )
    )
    return last.get("stop", 0) > last.get("forgive", 0)


def balances(connection: Connection, analyst: str, budgets: Budgets, period: str) -> Balances:
    """The analyst's balance, the dataset's and that of the role, in a period."""
    budgets = with_grants(connection, budgets, analyst, period)
    own, role = balance(connection, account_of(analyst), budgets.limit_of(analyst), period), budgets.role_of(analyst)
    of_role = None if role is None else balance(connection, account_of_role(role), budgets.roles[role], period)
    return own, balance(connection, DATASET, budgets.dataset, period), of_role


def balance(connection: Connection, account: str, limit: Limit, period: str) -> Balance:
    """One account in a period."""
    lost = loss(spent(connection, account, period), limit)
    return Balance(lost, limit.epsilon, lifetime(connection, account, limit))


def lifetime(connection: Connection, account: str, limit: Limit) -> Decimal:
    """The sum over all periods: of the charges' ε, or of what they come to by zCDP where some have no pure ε.

    Where the kind of the periods was changed, the second counts in both kinds what was charged in both.
    """
    whole, total = read_totals(connection, (account, LIFETIME)), Decimal(0)
    if whole.pure:
        return whole.epsilon
    query = "SELECT epsilon, delta, rho, pure FROM totals WHERE account = ? AND period <> ?"
    for totals in map(totals_of, connection.execute(query, (account, LIFETIME))):
        total = UPWARD.add(total, totals.epsilon if totals.pure else loss(totals, limit))
    return total


def spent(connection: Connection, account: str, period: str) -> Totals:
    """Sum up what counts against the budget of a period."""
    return read_totals(connection, (account, chain.counted_in(period)))


def write_trial(connection: Connection) -> None:
    """Write what no entry vouches for and nobody reads, to see whether a charge could be written."""
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('trial', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (secrets.token_hex(_TRIAL_BYTES // 2),),
    )


def delete_trial(connection: Connection) -> None:
    connection.execute("DELETE FROM meta WHERE name = 'trial'")


def _changes(connection: Connection, costs: Mapping[Account, Sequence[Mechanism]]) -> dict[Account, Change]:
    """All accounts of a charge, read at once."""
    rows = connection.execute(
        "SELECT account, period, epsilon, delta, rho, pure FROM totals"
        f" WHERE (account, period) IN (VALUES {', '.join(['(?, ?)'] * len(costs))})",
        [part for account in costs for part in account],
    )
    before = {(account, period): totals_of(numbers) for account, period, *numbers in rows}
    totals = {account: before.get(account, Totals()) for account in costs}
    return {account: Change(totals[account], totals[account].plus(cost)) for account, cost in costs.items()}


def _entry(connection: Connection, number: int) -> chain.Fields:
    row = connection.execute("SELECT entry FROM entries WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise LedgerError(
            "the charge is missing from the privacy ledger, so the statement is not answered", reason="charge_missing"
        )
    fields: chain.Fields = json.loads(row[0])
    return fields
