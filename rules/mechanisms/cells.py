"""Groups as cells of a relation that other questions have too, so that an answer can be a sum of released numbers.

Two questions over one relation, bounded alike, differ in their keys and in the conditions on these. A condition that
selects whole groups of a key is taken out of the relation's text and kept as a span of that key: so a question finds
the releases whose cells it is made of, whatever else they held.
"""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, Literal, get_args

from rules.frozen import frozen, replace
from rules.values.types import Type
from rules.values.value import Value

_LONGEST = 2_000  # characters of what a release is kept under

Json = None | bool | int | str | list["Json"]
# A moment cut to its day, week …, or one number of its clock: that of its year, its quarter, its month, its weekday.
Field = Literal["day", "week", "month", "quarter", "year", "of year", "of quarter", "of month", "of isodow", "of dow"]
PARTS: Final[Mapping[Field, tuple[Field, ...]]] = {  # of which each is made
    "of year": ("day", "month", "quarter", "year"),
    "of quarter": ("day", "month", "quarter"),
    "of month": ("day", "month"),
    "of isodow": ("day",),
    "of dow": ("day",),
    "day": ("day",),
    "week": ("day", "week"),
    "month": ("day", "month"),
    "quarter": ("day", "month", "quarter"),
    "year": ("day", "month", "quarter", "year"),
}
_FIELDS: Final[Mapping[str, Field]] = {get_arg: get_arg for get_arg in get_args(Field)}


@frozen
class Span:
    """Say which values a key has in the rows: those listed, or all between two ends; and whether NULL is one."""

    items: tuple[Value, ...] | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    above: bool = False  # the low end itself is left out
    below: bool = False  # the high end is
    null: bool = True

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing is left out."""
        return self == WHOLE

    def holds(self, value: Value | None) -> bool:
        """Tell whether rows of this value are in."""
        if value is None:
            return self.null
        if self.items is not None and value not in self.items:
            return False
        if self.low is None and self.high is None:
            return True
        if isinstance(value, str):
            return False
        is_above = self.low is None or value > self.low or (value == self.low and not self.above)
        return is_above and (self.high is None or value < self.high or (value == self.high and not self.below))

    def met(self, other: "Span") -> "Span":
        """Take what is in both."""
        lows = [(span.low, span.above) for span in (self, other) if span.low is not None]
        highs = [(span.high, not span.below) for span in (self, other) if span.high is not None]
        low, above = max(lows, default=(None, False))
        high, within = min(highs, default=(None, True))
        span = Span(None, low, high, above, not within, self.null and other.null)
        listed = [set(side.items) for side in (self, other) if side.items is not None]
        if not listed:
            return span
        items = (value for value in set.intersection(*listed) if span.holds(value))
        return Span(tuple(sorted(items, key=str)), null=span.null)

    def is_within(self, other: "Span") -> bool:
        """Tell whether the other one surely has all that is in this."""
        if self.null and not other.null:
            return False
        if self.items is not None:
            return all(map(other.holds, self.items))
        if other.items is not None:
            return False
        low = other.low is None or (
            self.low is not None and (self.low > other.low or (self.low == other.low and self.above >= other.above))
        )
        high = other.high is None or (
            self.high is not None
            and (self.high < other.high or (self.high == other.high and self.below >= other.below))
        )
        return low and high

    def plain(self) -> Json:
        """As JSON; equal spans are equal texts."""
        items: Json = None if self.items is None else [[type(item).__name__, str(item)] for item in self.items]
        ends: list[Json] = [None if end is None else str(end) for end in (self.low, self.high)]
        return None if self.is_whole else [items, *ends, self.above, self.below, self.null]


WHOLE = Span()


def _span(plain: Json) -> Span:
    match plain:
        case None:
            return WHOLE
        case [items, low, high, bool() as above, bool() as below, bool() as null]:
            listed = None if not isinstance(items, list) else tuple(map(_value, items))
            return Span(listed, _end(low), _end(high), above, below, null)
    raise ValueError("no span")


def _end(plain: Json) -> Fraction | None:
    return None if plain is None else Fraction(str(plain))


def _value(plain: Json) -> Value:
    match plain:
        case ["Fraction", str() as text]:
            return Fraction(text)
        case ["str", str() as text]:
            return text
        case ["bool", str() as text]:
            return text == "True"
    raise ValueError("no value")


@frozen
class Finer:
    """A key whose values tell that of another one: the day of a month."""

    name: str
    type: Type


@frozen
class Clock:
    """Say what a key is of a moment: of which column, and how that is cut. Keys of one column tell coarser ones."""

    column: str  # canonical
    field: Field
    type: Type

    def tells(self, other: "Clock") -> bool:
        """Tell whether each value of this one is within a single one of the other."""
        return self.column == other.column and self.field in PARTS[other.field]


@frozen
class Way:
    """A key by whose labels the value of a column is told: of a moment this much."""

    key: str  # canonical
    type: Type
    field: Field | None = None


@frozen
class Axis:
    """A column of a table: the values that it was evaluated for, which of a moment are days."""

    labels: tuple[str | None, ...]
    ways: tuple[Way, ...]  # the finest first
    is_exact: bool  # no row that is asked for has another value
    span: Span = WHOLE  # which values such rows have


@frozen
class Table:
    """A condition, or a key, as a function of columns with few values: it was evaluated for each combination of them.

    `status = 'open' OR city LIKE 'B%'` is such a condition, and `CASE status WHEN …` such a key.
    """

    axes: tuple[Axis, ...]
    rows: tuple[tuple[tuple[str | None, ...], str | None], ...]  # the label of a key; where a condition is true


@frozen
class CellKey:
    """A key of cells: what it is called, and which of its values the block has."""

    name: str  # canonical
    type: Type
    is_complete: bool  # all values within the span that rows can have are listed
    span: Span = WHOLE
    clock: Clock | None = None
    finer: tuple[Finer, ...] = ()
    table: Table | None = None


@frozen
class Test:
    """A condition on a column, as one on the values of a key."""

    key: str
    type: Type
    span: Span
    field: Field | None = None  # the condition is on this of a value of the key


@frozen
class View:
    """A block as sums of cells of a relation with less conditions: what each of these is on keys of the cells."""

    family: str  # stands for the relation, and how its rows are bounded
    left_out: tuple[int, ...]  # conditions on columns, by their place among the tests of the cells
    tables: tuple[Table, ...] = ()  # of conditions that are left out besides


@frozen
class Halves:
    """Two measures that tell a sum: it is half of the centred sum and of `middle` times the count."""

    centred: str
    count: str
    middle: int


@frozen
class Cells:
    """Say how the groups of a block are cells, and of which cells they may be sums."""

    family: str
    keys: tuple[CellKey, ...]
    tests: tuple[tuple[Test, ...], ...]  # for each condition on a column the keys that tell it
    views: tuple[View, ...]
    adds_up: tuple[bool, ...]  # by measure: whether sums of cells are the same measure
    units: tuple[bool, ...]  # by measure: whether it counts units, which adds up where each is in one cell
    is_in_one: bool  # each unit is in one cell at most
    time_zone: str
    halves: tuple[Halves | None, ...]  # by measure: what tells it besides

    def __post_init__(self) -> None:
        """Raises ValueError where a view leaves out a condition that is none."""
        places = range(len(self.tests))
        if not all(place in places for view in self.views for place in view.left_out):
            raise ValueError("no such condition")

    def left_out(self, view: View) -> tuple[tuple[Test, ...], ...]:
        """The conditions without which the cells of a view are, as tests of their keys."""
        return tuple(self.tests[place] for place in view.left_out)

    def text(self, *, is_chosen: bool = False) -> str | None:
        """Write what releases of the block are kept under, besides the family and the block itself.

        Groups that were `chosen` tell which are the largest: nobody is to learn from a price which these are.
        """
        keys: Json = [_key_plain(key) for key in self.keys]
        written = json.dumps([self.is_in_one, keys, *([True] if is_chosen else [])], separators=(",", ":"))
        return written if len(written) <= _LONGEST else None

    def bounded_by(self, words: str) -> "Cells":
        """The same with bounds that were chosen."""
        views = tuple(replace(view, family=f"{view.family}{words}") for view in self.views)
        return replace(self, family=f"{self.family}{words}", views=views)


def _key_plain(key: CellKey) -> Json:
    plains: list[Json] = [key.name, key.is_complete, key.span.plain()]
    clock = key.clock
    return [*plains, clock.column, clock.field, clock.type.base] if clock is not None else plains


@frozen
class ReleasedKey:
    """A key of released cells: its name, whether its list is complete, and which of its values the rows have."""

    name: str
    is_complete: bool
    span: Span
    clock: Clock | None = None

    @classmethod
    def read(cls, plain: Json) -> "ReleasedKey":
        """Read what `_key_plain` has written."""
        match plain:
            case [str() as name, bool() as complete, span]:
                return cls(name, complete, _span(span))
            case [str() as name, bool() as complete, span, str() as column, str() as field, str() as base]:
                return cls(name, complete, _span(span), Clock(column, _FIELDS[field], Type(base)))
        raise ValueError("no key")


@frozen
class ReleasedCells:
    """Hold what a release says of its cells."""

    is_in_one: bool
    keys: tuple[ReleasedKey, ...]
    is_chosen: bool = False  # the groups are those that a private choice named

    @classmethod
    def read(cls, text: str) -> "ReleasedCells | None":
        """Read what `Cells.text` has written; None for anything else."""
        try:
            match json.loads(text):
                case [bool() as is_in_one, list() as keys]:
                    return cls(is_in_one, tuple(map(ReleasedKey.read, keys)))
                case [bool() as is_in_one, list() as keys, True]:
                    return cls(is_in_one, tuple(map(ReleasedKey.read, keys)), is_chosen=True)
        except (ValueError, KeyError):
            return None
        return None
