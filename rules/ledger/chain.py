"""The ledger's entries as text, each sealed with the one before it, and all that follows from them.

An entry is canonical JSON. Its seal is SHA-256 over the seal before it and its own text, so that an entry that was
edited, cut out or put in breaks every seal after it. Entries say what was paid, and by their seals which releases were
kept; accounts, and who has seen what, are sums of entries.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rules.ledger.accountant import Totals
from rules.ledger.store import Charge
from rules.noise.cost import Mechanism

DATASET = "dataset"
EVER = "ever"  # the period of a budget that is never new
LIFETIME = "lifetime"  # of which all periods are parts
Account = tuple[str, str]  # whose, and in which period
Cost = list[str | None]
Fields = Mapping[str, Any]  # of an entry


def account_of(analyst: str) -> str:
    """An analyst's account. The prefix keeps an analyst called "dataset" apart."""
    return f"analyst:{analyst}"


@dataclass(frozen=True, slots=True)
class Sight:
    """A release shown again to an analyst who had not paid for it in this period."""

    release: int
    mechanism: Mechanism
    is_first: bool  # nobody had seen it in this period, so that the dataset pays for it too


def charge_entry(charge: Charge, period: str, sights: Sequence[Sight]) -> str:
    """The text of a charge."""
    return _canonical(
        {
            "kind": "charge",
            "time": stamp(charge.time),
            "period": period,
            "analyst": charge.analyst,
            "session": charge.session,
            "statement": charge.fingerprint,
            "unit": charge.unit,
            "tables": list(charge.tables),
            "mechanisms": [cost(mechanism) for mechanism in charge.mechanisms],
            "sights": [[sight.release, cost(sight.mechanism)] for sight in sights],
            "first": [sight.release for sight in sights if sight.is_first],
        }
    )


def settle_entry(charge: int, fields: Fields, releases: Sequence[tuple[int, str]]) -> str:
    """The text of what was kept for a charge with these fields: releases by their numbers, with their seals."""
    of_charge = {name: fields[name] for name in ("time", "period", "analyst")}
    return _canonical({"kind": "settle", "charge": charge, **of_charge, "releases": [list(each) for each in releases]})


def fault_entry(charge: int, analyst: str, time: datetime) -> str:
    """The text of a failure after a charge."""
    return _canonical({"kind": "fault", "time": stamp(time), "analyst": analyst, "charge": charge})


def heading(entry: str) -> tuple[str, str, str]:
    """Kind, time and analyst of an entry, by which it is found."""
    fields = json.loads(entry)
    return fields["kind"], fields["time"], fields["analyst"]


def stamp(time: datetime) -> str:
    """A moment as text, in one zone and with one precision, so that texts sort as moments do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def seal(previous: str, entry: str) -> str:
    """The seal of an entry."""
    return hashlib.sha256(f"{previous}\n{entry}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Replayed:
    """What follows from the entries alone."""

    accounts: dict[Account, Totals] = field(default_factory=dict)  # in every period that was charged, and in all
    sights: dict[tuple[str, str, int], int] = field(default_factory=dict)  # by account, period, release: the entry
    releases: dict[int, tuple[int, str]] = field(default_factory=dict)  # the entry, and the seal that it has


def replay(entries: Iterable[str]) -> Replayed:
    """All entries from the first to the last."""
    replayed = Replayed()
    for number, entry in enumerate(entries, start=1):
        fields = json.loads(entry)
        if fields["kind"] == "charge":
            _add(replayed.accounts, fields)
        replayed.sights.update(dict.fromkeys(seen_by(fields), number))
        replayed.releases.update({release: (number, sealed) for release, sealed in seals_in(fields).items()})
    return replayed


def _add(accounts: dict[Account, Totals], fields: Fields) -> None:
    paid = [mechanism(each) for each in fields["mechanisms"]]
    seen, first = sights_of(fields)
    for account, costs in ((DATASET, paid + first), (account_of(fields["analyst"]), paid + seen)):
        for period in (fields["period"], LIFETIME):
            accounts[account, period] = accounts.get((account, period), Totals()).plus(costs)


def counted_in(period: str) -> str:
    """Where the sum stands that a budget is held against: one for ever has what was paid by the month in it too."""
    return LIFETIME if period == EVER else period


def seen_by(fields: Fields) -> list[tuple[str, str, int]]:
    """Which releases come by this entry to be on whose account, and of which period."""
    shown = {"charge": "sights", "settle": "releases"}.get(fields["kind"])
    if shown is None:
        return []
    return [(account_of(fields["analyst"]), fields["period"], release) for release, _ in fields[shown]]


def seals_in(fields: Fields) -> dict[int, str]:
    """The seals of the releases that were kept by this entry."""
    return dict(fields["releases"]) if fields["kind"] == "settle" else {}


def sights_of(fields: Fields) -> tuple[list[Mechanism], list[Mechanism]]:
    """What a charge has for releases shown again, and for those of them that the dataset pays for too."""
    seen = {release: mechanism(each) for release, each in fields["sights"]}
    return list(seen.values()), [seen[release] for release in fields.get("first", ())]  # version 1 had none


def cost(mechanism: Mechanism) -> Cost:
    """A draw's cost as text, exactly."""
    epsilon = None if mechanism.epsilon is None else str(mechanism.epsilon)
    return [epsilon, str(mechanism.delta), str(mechanism.rho)]


def mechanism(cost: Cost) -> Mechanism:
    """A draw's cost from its text."""
    epsilon, delta, rho = cost
    return Mechanism(None if epsilon is None else Decimal(epsilon), Decimal(delta or 0), Decimal(rho or 0))


def _canonical(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
