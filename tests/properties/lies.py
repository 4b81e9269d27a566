"""A planner that lies: whatever it infers of rows is at random replaced by something else.

Domains, NULLs, keys, how many rows a unit has, what follows from what, lists of groups, which conditions exclude each
other, bounds of sums, caps, totals, forms, by which columns rows are linked, which time it is elsewhere. What it then
plans may be nonsense; whether the kernel lets one unit move it further than it says, or an error out, is what the
test asks.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

from rules.algebra.nodes import Facts, Rows
from rules.kernel.bounded import Statement
from rules.kernel.forms import Form
from rules.kernel.keys import Listed
from rules.kernel.measures import Measure, Sum
from rules.values import value
from rules.values.domain import ANYTHING, ONE, Domain, Range, Values
from rules.values.expression import Column
from tests.support.kept import forgotten

FORMS: tuple[Form | None, ...] = (None, "one row", "corrected", "candidates", "pairs")
# Behind and ahead of all others, by quarters of an hour, with summers of other dates, and with none.
ZONES = ("Europe/Berlin", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC")
_FACTS, _FIND_ZONE = Facts.__init__, value.find_zone


class Liar:
    """Lies of one kind each, told with a chance of `rate`; `told` counts them."""

    def __init__(self, seed: int, rate: float) -> None:
        self._random, self._rate = Random(seed), rate
        self.told: Counter[str] = Counter()

    def lies(self, kind: str, times: int = 1) -> bool:
        if self._random.random() >= self._rate * times:
            return False
        self.told[kind] += 1
        return True

    def domain(self, column: Column) -> Domain:
        number = Fraction(self._random.choice((-1, 0, 1, 7, 2**31, 10**30)))
        some: list[Domain] = [ANYTHING, Values(())]
        if column.type.is_number or column.type.is_time:
            some += [Values((Fraction(0),)), Values((number,)), Range(number, number + 3, ONE)]
            some += [Range(Fraction(1), None, ONE), Range(Fraction(0), Fraction(10), ONE)]
        elif column.type.kind == "boolean":
            some += [Values((True,)), Values((False,))]
        else:
            some += [Values(("a",)), Values(("a", "b"))]
        return self._random.choice(some)

    def column(self, given: Column) -> Column:
        if self.lies("domain"):
            given = replace(given, domain=self.domain(given))
        if self.lies("declared"):
            given = replace(given, declared=self.domain(given))
        if self.lies("NULLs"):
            given = replace(given, nullable=not given.nullable)
        return given

    def facts(self, given: Facts) -> None:
        """Change what has just been made."""

        def change(name: str, lie: object) -> None:
            object.__setattr__(given, name, lie)

        change("columns", tuple(map(self.column, given.columns)))
        numbers = [column.id for column in given.columns]
        if not numbers:
            return
        some = frozenset(self._random.sample(numbers, self._random.randint(1, len(numbers))))
        if self.lies("keys"):
            change("keys", given.keys | {some})
        if self.lies("determined"):
            change("determined", given.determined | some)
        if self.lies("determinants"):
            change("determinants", given.determinants | {some})
        if given.unit is not None and self.lies("rows of a unit"):
            most = self._random.choice((1, 1, 2, 50))
            change("rows", Rows(most, self._random.choice((most, 7, None))))
        if given.unit is not None and self.lies("columns of the unit"):
            change("aliases", given.aliases | some)
        if self.lies("shares"):
            change("shares", given.shares | some)

    def statement(self, given: Statement) -> Statement:
        """Caps, forms and lists: what a planner says to the kernel, and needs no inference for."""
        if self.lies("form", 5):
            given = replace(given, form=self._random.choice(FORMS))
        if self.lies("cap of rows", 5):
            given = replace(given, rows_per_unit=self._random.choice((1, 2, 5, 1000)))
        if self.lies("cap of groups", 5):
            given = replace(given, groups_per_unit=self._random.choice((None, 1, 2, 1000)))
        measures = tuple(self.measure(measure) for measure in given.measures)
        return replace(given, keys=tuple(self.key(key) for key in given.keys), measures=measures)

    def measure(self, measure: Measure) -> Measure:
        """A unit's total of a sum, which is capped wherever anything is said of it."""
        if isinstance(measure, Sum) and self.lies("total of a unit", 3):
            return replace(measure, total=self._random.choice((None, 1, 1000)))
        return measure

    def key(self, key: Any) -> Any:
        if not isinstance(key, Listed) or not key.labels or not self.lies("list", 5):
            return key
        labels = list(key.labels)
        place = self._random.randrange(len(labels))
        match self._random.randrange(4):
            case 0:
                self._random.shuffle(labels)
            case 1:
                labels[place] = self._random.choice(labels)
            case 2:
                labels[place] = (None,) * len(key.expressions)
            case _:
                labels.reverse()
        return replace(key, labels=tuple(labels))

    def zone(self, name: str) -> ZoneInfo | None:
        """The table of another zone, or of one that is not known; UTC is UTC everywhere."""
        if name == "UTC" or not self.lies("zone", 3):
            return _FIND_ZONE(name)
        return self._random.choice((None, *map(ZoneInfo, ZONES)))

    def pairs(self, equal: tuple[tuple[int, int], ...], rest: Any) -> tuple[tuple[tuple[int, int], ...], Any]:
        """Leave an equality out, as if something else implied it."""
        if equal and self.lies("links", 3):
            equal = tuple(self._random.sample(equal, len(equal) - 1))
        return equal, rest


@contextmanager
def lying(seed: int, rate: float) -> Iterator[Counter[str]]:
    """The planner lies as long as this lasts; what it was made to say is counted."""
    liar = Liar(seed, rate)

    def facts(self: Facts, *args: Any, **named: Any) -> None:
        _FACTS(self, *args, **named)
        liar.facts(self)

    def wrapped(place: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
        module, name = place.rsplit(".", 1)
        original = getattr(__import__(module, fromlist=[name]), name)
        return patch(place, around(original))

    with ExitStack() as stack:
        stack.enter_context(patch.object(Facts, "__init__", facts))
        stack.enter_context(
            wrapped(
                "rules.planner.disjoint_measures._are_disjoint",
                lambda honest: lambda *a: liar.lies("disjoint") or honest(*a),
            )
        )
        stack.enter_context(
            wrapped("rules.planner.draft.statement_of", lambda honest: lambda *a: liar.statement(honest(*a)))
        )
        stack.enter_context(
            wrapped("rules.planner.to_script._split", lambda honest: lambda *a: liar.pairs(*honest(*a)))
        )
        stack.enter_context(
            wrapped("rules.aggregates.recipes.is_unit", lambda honest: lambda *a: liar.lies("unit") or honest(*a))
        )
        stack.enter_context(patch("rules.values.value.find_zone", liar.zone))
        stack.enter_context(forgotten(texts=False))
        yield liar.told


@contextmanager
def elsewhere(zone: str) -> Iterator[None]:
    """The planner's table of every time zone is that of this one, as if it were of another year."""

    def find_zone(name: str) -> ZoneInfo | None:
        return ZoneInfo(name if name == "UTC" else zone)

    with patch("rules.values.value.find_zone", find_zone), forgotten(texts=False):
        yield
