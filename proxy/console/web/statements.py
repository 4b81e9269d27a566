"""Statements: the ledger as an operator searches it, and what was refused. Shapes and fingerprints, never constants."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from proxy.console.web.pages import Page
from proxy.ledger.review import Wish
from proxy.session.recent_refusals import RecentRefusal
from rules.accounting.accountant import Totals
from rules.accounting.store import PastCharge
from rules.refusal import Refusal

_MOST: Final = 100  # charges of a page
_MOST_READ: Final = 20_000  # charges that a search looks through
_MOST_HINTS: Final = 3  # of a kind
_STATES: Final = {
    "settled": "answered",
    "charged": "no answer was kept",
    "failed": "failed after the charge",
}


class BadSearch(Refusal):
    """A search field that cannot be read."""

    sqlstate = "22023"  # invalid_parameter_value


@dataclass(frozen=True, slots=True)
class Charged:
    """One charge as the page shows it."""

    number: int
    time: str
    analyst: str
    cost: str
    drawn: int
    reused: int
    state: str
    statement: str
    shape: str


@dataclass(frozen=True, slots=True)
class RefusedKind:
    """All refusals of one kind that are remembered."""

    kind: str
    sqlstate: str
    count: int
    last: str
    analysts: str
    hints: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]  # fingerprint and shape


async def show(page: Page) -> Response:
    vitals = page.house.console.vitals
    filters = {name: page.parameter(name) for name in ("analyst", "words", "statement", "since", "until")}
    wish = Wish(
        analyst=filters["analyst"] or None,
        since=_moment(filters["since"]),
        until=_moment(filters["until"]),
        statement=filters["statement"] or None,
        most=_MOST_READ,
    )
    history = await vitals.ledger.history(wish)
    past_charges = [charge for charge in reversed(history.charges) if _has(charge, filters["words"])]
    analysts = sorted({*history.analysts, *vitals.service.rulebook.budgets.analysts})
    older = past_charges[_MOST:]
    return page.render(
        "statements.html",
        charges=[charged(charge) for charge in past_charges[:_MOST]],
        asked=filters,
        analysts=analysts,
        older=urlencode({**filters, "until": past_charges[_MOST - 1].time.isoformat()}) if older else "",
        more=len(older),
        total=str(
            Totals()
            .plus(mechanism for charge in past_charges for mechanism in (*charge.fresh, *charge.seen))
            .epsilon.normalize()
        ),
        closed=history.closed,
        refused=refused_kinds(page.house.refusals.newest()),
    )


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadSearch(f'"{text[:40]}" is no date', hint="Write it as 2027-01-31 or 2027-01-31 18:00.") from None


def _has(charge: PastCharge, words: str) -> bool:
    """Return whether all of the words stand in the shape or among the tables."""
    text = f"{charge.shape} {' '.join(charge.tables)}".lower()
    return all(word in text for word in words.lower().split())


def charged(charge: PastCharge) -> Charged:
    """A charge in words."""
    paid = Totals().plus((*charge.fresh, *charge.seen))
    cost = f"ε {paid.epsilon.normalize():f}" if paid.pure else f"ρ {float(paid.rho):.4g}"
    return Charged(
        charge.number,
        f"{charge.time.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
        charge.analyst,
        cost,
        len(charge.fresh),
        len(charge.seen),
        _STATES[charge.state],
        charge.statement,
        charge.shape or ", ".join(charge.tables),
    )


def refused_kinds(newest: Iterable[RecentRefusal]) -> Sequence[RefusedKind]:
    """The most frequent kind first."""
    by_kind: dict[tuple[str, str], list[RecentRefusal]] = {}
    for refusal in newest:
        by_kind.setdefault((refusal.kind, refusal.sqlstate), []).append(refusal)
    kinds = [_kind(kind, sqlstate, alike) for (kind, sqlstate), alike in by_kind.items()]
    return sorted(kinds, key=lambda kind: -kind.count)


def _kind(kind: str, sqlstate: str, alike: Sequence[RecentRefusal]) -> RefusedKind:
    hints = Counter(refusal.hint for refusal in alike if refusal.hint)
    examples = dict.fromkeys((refusal.statement, refusal.shape) for refusal in alike if refusal.statement)
    return RefusedKind(
        kind,
        sqlstate,
        len(alike),
        f"{alike[0].time:%Y-%m-%d %H:%M:%S}",
        ", ".join(sorted({refusal.analyst for refusal in alike})),
        tuple(hint for hint, _ in hints.most_common(_MOST_HINTS)),
        tuple(examples)[:_MOST_HINTS],
    )


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/statements": show}
