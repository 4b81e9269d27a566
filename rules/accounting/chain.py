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

from rules.accounting.accountant import Totals
from rules.accounting.store import BudgetRequest, Charge, Grant, KeptBounds
from rules.frozen import frozen
from rules.mechanisms.cost import Mechanism

DATASET = "dataset"
NOBODY = ""  # whose entries are the DBA's
EVER = "ever"  # the period of a budget that is never new
LIFETIME = "lifetime"  # of which all periods are parts
CHECKPOINT = "checkpoint"
BEGIN = "begin"
SUMMED = frozenset({"charge", "settle", CHECKPOINT})  # kinds of entries that a checkpoint holds as numbers alone
Account = tuple[str, str]  # whose, and in which period
Cost = list[str | None]
Fields = Mapping[str, Any]  # of an entry


def account_of(analyst: str) -> str:
    """An analyst's account. The prefix keeps an analyst called "dataset" apart."""
    return f"analyst:{analyst}"


def account_of_role(role: str) -> str:
    """The account of all analysts of a role."""
    return f"role:{role}"


@frozen
class Sight:
    """A release shown again that the analyst, or the analyst's role, had not paid for in this period."""

    release: int
    mechanism: Mechanism
    is_first: bool  # nobody had seen it in this period, so that the dataset pays for it too
    is_first_of_role: bool = False  # nobody of the analyst's role had, so that the role pays for it too
    is_own: bool = True  # the analyst pays; not who had paid already, and has another role since


def charge_entry(
    charge: Charge, period: str, sights: Sequence[Sight], role: str | None = None, also: Sequence[str] = ()
) -> str:
    """The text of a charge; with the analyst's role, if there is one, as it was then.

    `also` names running periods of other kinds, which rules before or other proxies have begun: it counts in these.
    """
    of_role = {"role": role, "first_of_role": [sight.release for sight in sights if sight.is_first_of_role]}
    if role_alone := [sight.release for sight in sights if not sight.is_own]:
        of_role["role_alone"] = role_alone
    return canonical(
        {
            **({} if role is None else of_role),
            **({"also": list(also)} if also else {}),
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
            "fingerprint": charge.statement,
            "shape": charge.shape,
        }
    )


def settle_entry(
    charge: int, fields: Fields, releases: Sequence[tuple[int, str]], vectors: Sequence[Sequence[int]] = ()
) -> str:
    """The text of what was kept for a charge with these fields: releases by their numbers, with their seals.

    With it stands which of them were drawn for one price.
    """
    of_charge = {name: fields[name] for name in ("time", "period", "also", "analyst", "role") if name in fields}
    kept: dict[str, object] = {"releases": [list(release) for release in releases]}
    kept |= {"vectors": [list(vector) for vector in vectors]} if vectors else {}
    return canonical({"kind": "settle", "charge": charge, **of_charge, **kept})


def fault_entry(charge: int, analyst: str, time: datetime, *, cause: str, stops: bool) -> str:
    """The text of a failure after a charge. One that stops its analyst is of a kind of its own."""
    kind = "stop" if stops else "fault"
    return canonical({"kind": kind, "time": stamp(time), "analyst": analyst, "charge": charge, "cause": cause})


def forgive_entry(analyst: str, time: datetime) -> str:
    """The text of a DBA's word that an analyst may ask again."""
    return canonical({"kind": "forgive", "time": stamp(time), "analyst": analyst})


def grant_entry(grant: Grant, period: str) -> str:
    """The text of an operator's word that an analyst may spend more in a period, within the budget of all."""
    about = {"kind": "grant", "time": stamp(grant.time), "analyst": grant.analyst}
    answers = {} if grant.request is None else {"request": grant.request, "answer": grant.answer}
    return canonical({**about, "period": period, "epsilon": str(grant.epsilon), "operator": grant.operator, **answers})


def grant_of(fields: Fields) -> Grant:
    """The grant of an entry."""
    about = datetime.fromisoformat(fields["time"]), fields["analyst"], Decimal(fields["epsilon"]), fields["operator"]
    return Grant(*about, fields.get("request"), fields.get("answer", ""))


def request_entry(analyst: str, time: datetime, *, period: str, terms: BudgetRequest, number: int | None = None) -> str:
    """The text of a request for more budget; with its number where that is not the entry's own."""
    about = {"kind": "request", "time": stamp(time), "analyst": analyst, "period": period}
    own = {} if number is None else {"request": number}
    return canonical({**about, "epsilon": str(terms.epsilon), "reason": terms.reason, **own})


def refuse_entry(analyst: str, time: datetime, *, request: int, operator: str, answer: str) -> str:
    """The text of an operator's word that a request is not granted."""
    about = {"kind": "refuse", "time": stamp(time), "analyst": analyst, "request": request}
    return canonical({**about, "operator": operator, "answer": answer})


def bounds_entry(kept: KeptBounds) -> str:
    """The text of what a look of the DBA has found of a column; the newest of a column counts."""
    about = {"kind": "bounds", "time": stamp(kept.time), "analyst": NOBODY, "table": kept.table, "column": kept.column}
    return canonical({**about, "lower": kept.lower, "upper": kept.upper, "epsilon": str(kept.epsilon)})


def bounds_of(fields: Fields) -> KeptBounds:
    """The bounds of an entry."""
    place, ends = (fields["table"], fields["column"]), (fields["lower"], fields["upper"])
    return KeptBounds(datetime.fromisoformat(fields["time"]), *place, *ends, Decimal(fields["epsilon"]))


def move_entry(time: datetime, *, before: str, after: str) -> str:
    """The text of a DBA's word that the ledger is that of another database from now on."""
    return canonical({"kind": "move", "time": stamp(time), "analyst": NOBODY, "from": before, "identity": after})


def restore_entry(time: datetime, *, number: int, seal: str, missing: int) -> str:
    """The text of a restore: from which entry on, and how many the anchor knew that the copy did not have."""
    fields = {"number": number, "seal": seal, "missing": missing}
    return canonical({"kind": "restore", "time": stamp(time), "analyst": NOBODY, **fields})


def begin_entry(time: datetime, period: str, carried: "Carried") -> str:
    """The text by which a period of a kind that is new to the ledger begins: with what was spent in its time before."""
    sums = [
        [account, str(paid.epsilon), str(paid.delta), str(paid.rho), paid.pure]
        for account, paid in sorted(carried.accounts.items())
    ]
    about = {"kind": BEGIN, "time": stamp(time), "analyst": NOBODY, "period": period}
    return canonical({**about, "accounts": sums, "sights": [list(sight) for sight in sorted(carried.sights)]})


def carried_by(fields: Fields) -> "Carried":
    """The spending with which the period of an entry began."""
    accounts = {
        account: Totals(Decimal(epsilon), Decimal(delta), Decimal(rho), pure)
        for account, epsilon, delta, rho, pure in fields["accounts"]
    }
    return Carried(accounts, {(account, release) for account, release in fields["sights"]})


def heading(entry: str) -> tuple[str, str, str]:
    """Kind, time and analyst of an entry, by which it is found."""
    return heading_of(json.loads(entry))


def heading_of(fields: Fields) -> tuple[str, str, str]:
    return fields["kind"], fields["time"], fields["analyst"]


def stamp(time: datetime) -> str:
    """A moment as text, in one zone and with one precision, so that texts sort as moments do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def seal(previous: str, entry: str) -> str:
    """The seal of an entry."""
    return hashlib.sha256(f"{previous}\n{entry}".encode()).hexdigest()


@frozen
class Closed:
    """The beginning of a chain as one sum: what follows from all entries up to one, which need not be kept."""

    number: int = 0  # of the last entry that is closed
    seal: str = ""  # its seal; before the first entry the identity of the database that the ledger was made for
    identity: str = ""  # of the database that the ledger belonged to then
    charges: int = 0
    release: int = 0  # the last release that an entry up to there vouches for: none of these is kept
    accounts: Mapping[Account, Totals] = field(default_factory=dict)

    def entry(self, time: datetime) -> str:
        """The text by which the chain vouches for the sum. The newest such entry counts.

        Example:
            >>> paid = {("dataset", "month:2026-10"): Totals(Decimal("0.5"), Decimal(0), Decimal("0.125"))}
            >>> closed = Closed(7, "5ea1", "1/shop", 3, 2, paid)
            >>> closed_by(json.loads(closed.entry(datetime(2026, 11, 1, tzinfo=UTC)))) == closed
            True
        """
        return canonical({"kind": "close", "time": stamp(time), "analyst": NOBODY, **self.fields()})

    def fields(self) -> Fields:
        """Return what an entry says of the sum."""
        sums = [
            [*account, str(paid.epsilon), str(paid.delta), str(paid.rho), paid.pure]
            for account, paid in sorted(self.accounts.items())
        ]
        numbers = {"number": self.number, "charges": self.charges, "release": self.release}
        return {"seal": self.seal, "identity": self.identity, **numbers, "accounts": sums}


def closed_by(fields: Fields) -> Closed:
    """The sum that an entry vouches for."""
    accounts = {
        (account, period): Totals(Decimal(epsilon), Decimal(delta), Decimal(rho), pure)
        for account, period, epsilon, delta, rho, pure in fields["accounts"]
    }
    numbers = fields["number"], fields["seal"], fields["identity"], fields["charges"], fields["release"]
    return Closed(*numbers, accounts)


@frozen
class Checkpoint:
    """A sum in the middle of the chain, of which nothing is deleted: an opening adds up what follows it.

    Entries that are words of their own (grants, stops, moves) are read one by one, now and later, so there is a seal
    over these too.
    """

    sum: Closed
    base: int  # the last entry that was closed when this was made: sum and seal begin after it
    words: str = ""

    def entry(self, time: datetime) -> str:
        """The text by which the chain vouches for the sum.

        Example:
            >>> made = Checkpoint(Closed(7, "5ea1", "1/shop", 3, 2), 0, "77aa")
            >>> checkpoint_by(json.loads(made.entry(datetime(2026, 11, 1, tzinfo=UTC)))) == made
            True
        """
        about = {"kind": CHECKPOINT, "time": stamp(time), "analyst": NOBODY, "base": self.base, "words": self.words}
        return canonical({**about, **self.sum.fields()})


def checkpoint_by(fields: Fields) -> Checkpoint:
    """The checkpoint that an entry is."""
    return Checkpoint(closed_by(fields), fields["base"], fields["words"])


def word_seal(previous: str, number: int, heading: Sequence[str], entry: str) -> str:
    """The seal over the words of a checkpoint, with one more."""
    return seal(previous, canonical({"number": number, "heading": list(heading), "entry": entry}))


@dataclass(slots=True)
class Carried:
    """What accounts have paid in the time of a period, under periods of other kinds, and what they may see for it."""

    accounts: dict[str, Totals] = field(default_factory=dict)
    sights: set[tuple[str, int]] = field(default_factory=set)  # account and release

    def add(self, account: str, paid: Iterable[Mechanism]) -> None:
        self.accounts[account] = self.accounts.get(account, Totals()).plus(paid)

    def note(self, fields: Fields) -> None:
        """Count an entry. What cost nothing by an earlier sight of its vector is paid when it is seen again."""
        if fields["kind"] == "charge":
            for account, paid in _paid_in_full(fields):
                self.add(account, paid)
        free = {release for release, price in fields.get("sights", ()) if not mechanism(price).rho}
        self.sights |= {(account, release) for account, _, release in seen_by(fields) if release not in free}


@dataclass(slots=True)
class Replayed:
    """The state that follows from the entries alone."""

    identity: str
    charges: int = 0
    accounts: dict[Account, Totals] = field(default_factory=dict)  # in every period that was charged, and in all
    sights: dict[tuple[str, str, int], int] = field(default_factory=dict)  # by account, period, release: the entry
    releases: dict[int, tuple[int, str]] = field(default_factory=dict)  # the entry, and the seal that it has
    last_release: int = 0
    stops: dict[str, tuple[int, Fields]] = field(default_factory=dict)  # by analyst: the last word, and its entry
    grants: list[Fields] = field(default_factory=list)
    requests: dict[int, Fields] = field(default_factory=dict)  # that are open
    bounds: dict[tuple[str, str], KeptBounds] = field(default_factory=dict)  # by table and column, the newest


def replay(entries: Iterable[tuple[int, Fields]], closed: Closed, kept_after: int | None = None) -> Replayed:
    """All entries after a sum, by their numbers. Releases up to a number are not kept: by default those of the sum."""
    kept_after = closed.release if kept_after is None else kept_after
    replayed = Replayed(closed.identity, closed.charges, dict(closed.accounts), last_release=closed.release)
    for number, fields in entries:
        match fields["kind"]:
            case "charge" | "begin":
                replayed.charges += fields["kind"] == "charge"
                _add(replayed.accounts, fields)
            case "stop" | "forgive":
                replayed.stops[fields["analyst"]] = number, fields
            case "bounds":
                kept = bounds_of(fields)
                replayed.bounds[kept.table, kept.column] = kept
            case "request":
                replayed.requests[fields.get("request", number)] = fields
            case "grant":
                replayed.grants.append(fields)
                replayed.requests.pop(fields.get("request", 0), None)
            case "refuse":
                replayed.requests.pop(fields["request"], None)
            case "move":
                replayed.identity = fields["identity"]
        for sight in seen_by(fields):
            if sight[2] > kept_after:
                replayed.sights[sight] = number
        for release, sealed in seals_in(fields).items():
            replayed.releases[release] = number, sealed
            replayed.last_release = max(replayed.last_release, release)
    return replayed


def _add(accounts: dict[Account, Totals], fields: Fields) -> None:
    if fields["kind"] == BEGIN:  # nothing was charged in this period yet
        carried = carried_by(fields).accounts
        accounts |= {(account, fields["period"]): paid for account, paid in carried.items()}
        return
    paid = [mechanism(field) for field in fields["mechanisms"]]
    seen, first = sights_of(fields)
    payers = [(DATASET, paid + first), (account_of(fields["analyst"]), paid + seen)]
    if (role := fields.get("role")) is not None:
        costs = {release: mechanism(sight) for release, sight in fields["sights"]}
        payers.append((account_of_role(role), paid + [costs[release] for release in fields["first_of_role"]]))
    for account, costs_of in payers:
        for period in (fields["period"], LIFETIME):
            accounts[account, period] = accounts.get((account, period), Totals()).plus(costs_of)
    for period in fields.get("also", ()):
        for account, costs_of in _paid_in_full(fields):
            accounts[account, period] = accounts.get((account, period), Totals()).plus(costs_of)


def _paid_in_full(fields: Fields) -> list[tuple[str, list[Mechanism]]]:
    """What a charge costs each of its accounts in a period of another kind, where nobody has seen anything before."""
    role = fields.get("role")
    accounts = [DATASET, account_of(fields["analyst"]), *([] if role is None else [account_of_role(role)])]
    paid = [*map(mechanism, fields["mechanisms"]), *(mechanism(price) for _, price in fields["sights"])]
    return [(account, paid) for account in accounts]


def kind_of(period: str) -> str:
    """Name the kind of a period: "month" of month:2026-11."""
    return period.partition(":")[0]


def counted_in(period: str) -> str:
    """Return the sum that a budget is held against: one for ever has what was paid by the month in it too."""
    return LIFETIME if period == EVER else period


def seen_by(fields: Fields) -> list[tuple[str, str, int]]:
    """Return which releases come by this entry to be on whose account, and of which period."""
    if fields["kind"] == BEGIN:
        return [(account, fields["period"], release) for account, release in fields["sights"]]
    shown = {"charge": "sights", "settle": "releases"}.get(fields["kind"])
    if shown is None:
        return []
    releases, role = [release for release, _ in fields[shown]], fields.get("role")
    own = [release for release in releases if release not in fields.get("role_alone", ())]
    shown_releases = [(account_of(fields["analyst"]), fields["period"], release) for release in own]
    if role is not None:
        of_role = fields.get("first_of_role", releases)
        shown_releases += [(account_of_role(role), fields["period"], release) for release in of_role]
    if fields["kind"] == "settle":  # a sight is paid in each period in which it is seen again
        also = [(account, release) for account, _, release in shown_releases]
        shown_releases += [(account, period, release) for period in fields.get("also", ()) for account, release in also]
    return shown_releases


def seals_in(fields: Fields) -> dict[int, str]:
    """The seals of the releases that were kept by this entry."""
    return dict(fields["releases"]) if fields["kind"] == "settle" else {}


def sights_of(fields: Fields) -> tuple[list[Mechanism], list[Mechanism]]:
    """Return what the analyst pays for releases shown again, and what the dataset pays for some of them too."""
    alone = fields.get("role_alone", ())
    seen = {release: mechanism(sight) for release, sight in fields["sights"] if release not in alone}
    return list(seen.values()), [seen[release] for release in fields.get("first", ())]  # version 1 had none


def cost(mechanism: Mechanism) -> Cost:
    """A draw's cost as text, exactly."""
    epsilon = None if mechanism.epsilon is None else str(mechanism.epsilon)
    return [epsilon, str(mechanism.delta), str(mechanism.rho)]


def mechanism(cost: Cost) -> Mechanism:
    """A draw's cost from its text."""
    epsilon, delta, rho = cost
    return Mechanism(None if epsilon is None else Decimal(epsilon), Decimal(delta or 0), Decimal(rho or 0))


def canonical(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
