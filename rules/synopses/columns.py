"""Columns of a synthetic table: the bins of those that are listed, and primary keys that are made up.

Bins are numbers that the database gives to every row; something stands for each of them in the end. Keys are never
taken from data.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from rules.aggregates.sums import find_lattice
from rules.catalog import Table
from rules.frozen import frozen
from rules.kernel.special.marginals import ColumnBins, EdgeBins, LabelBins
from rules.kernel.summand import Lattice, Summand
from rules.planner.to_script import bare
from rules.policy.synopses import Listed
from rules.refusal import NotAllowed
from rules.synthesis.model import Between, Bin, KeyPart, Label, Lost
from rules.values import domain
from rules.values.domain import Range, Values
from rules.values.expression import Column, Expression
from rules.values.types import INT8, type_of
from rules.values.value import DAY, day_at, days_of, text_of

MOST_BINS = 64
MOST_LABELS = MOST_BINS - 2  # that are found in the data: others, and NULL, have bins too
_OTHER = "other"
_SECOND = 1_000_000
_BY_VALUE = ("text", "enum", "boolean", "uuid")
_TIMES = ("date", "timestamp", "timestamptz")


@frozen
class Binned:
    """A column in bins: `kept` are the database's numbers of those that a row can be in, `shown` what they become."""

    bins: ColumnBins
    numbers: tuple[int, ...]
    shown: tuple[Bin, ...]

    @property
    def count(self) -> int:
        return len(self.numbers)


_KINDS: dict[str, Literal["number", "text", "uuid"]] = {
    "integer": "number", "numeric": "number", "text": "text", "uuid": "uuid",
}  # fmt: skip


def is_open(column: Column) -> bool:
    """Tell whether it is text whose values nobody lists: its labels are found in the data, for a price of their own."""
    known = domain.intersect(column.domain, column.declared)
    return column.type.kind == "text" and isinstance(known, domain.Anything)


def binned(column: Column, listed: Listed, rows: int, labels: Sequence[str] | None = None) -> Binned:
    """The bins of a column, whose NULLs and other values have bins of their own; raises NotAllowed with the reason.

    Of an open column `labels` are its values, or None where they cannot be found.
    """
    known = domain.intersect(column.domain, column.declared)
    if labels is not None and is_open(column):
        return _labels(column, Values(tuple(labels) or (_OTHER,)))
    if column.type.kind in _TIMES:
        return _calendar(column, listed, domain.range_of(known))
    items = domain.items_of(known, MOST_BINS) if not listed.by else None
    if items and column.type.kind != "float":
        return _labels(column, Values(items))
    if column.type.kind in _BY_VALUE:
        raise NotAllowed("its values are not known", hint=f"list at most {MOST_BINS} of them: values: [a, b, c]")
    if column.type.kind not in ("integer", "numeric", "float"):
        raise NotAllowed(f"columns of type {column.type.sql} have no bins", hint="leave it out")
    return _widths(column, listed, domain.range_of(known), rows)


def _labels(column: Column, known: Values) -> Binned:
    proved = domain.items_of(column.domain, 10 * MOST_BINS)
    texts = [text for item in known.items if (text := text_of(item, column.type)) is not None]
    bins = LabelBins(bare(column), tuple(texts))
    has_others = proved is None or not set(proved) <= set(known.items)
    return _possible(bins, [*map(Label, texts)], column, others=_other(column) if has_others else None)


def _other(column: Column) -> Bin:
    """Choose what stands for unlisted values: a word, if the column takes any; NULL, if it may be missing."""
    is_text = column.type.kind == "text" and isinstance(column.domain, domain.Anything)
    if is_text and (column.type.size is None or column.type.size >= len(_OTHER)):
        return Label(_OTHER)
    return Label(None) if column.nullable else Lost()


def _possible(bins: ColumnBins, shown: list[Bin], column: Column, *, others: Bin | None) -> Binned:
    """Only the bins that a row can be in; the last two of the database's are those of other values and of NULL."""
    kept = list(range(len(shown)))
    if others is not None:
        kept.append(len(kept))
        shown.append(others)
    if column.nullable:
        kept.append(bins.count - 1)
        shown.append(Label(None))
    if len(kept) > MOST_BINS + 2:
        raise NotAllowed(f"it has {len(kept)} bins, and a column may have {MOST_BINS}", hint="take fewer bins")
    return Binned(bins, tuple(kept), tuple(shown))


def _widths(column: Column, listed: Listed, known: Range, rows: int) -> Binned:
    """Equally wide bins; values outside of the bounds are in the bins at the ends."""
    if known.low is None or known.high is None:
        raise NotAllowed("it has no bounds", hint="give it lower and upper")
    if listed.bins is None:
        raise NotAllowed("nobody says into how many bins it is divided", hint=f'write "{listed.text} by 20"')
    if not 2 <= listed.bins <= MOST_BINS:
        raise NotAllowed(f"a column has 2 to {MOST_BINS} bins", hint=f'write "by 20" in place of "by {listed.bins}"')
    lattice = find_lattice(known.low, known.high, known.step, rows, binary=column.type.kind == "float")
    if lattice is None:
        raise NotAllowed("no value lies within its bounds", hint="give it wider bounds")
    size = lattice.high - lattice.low + 1
    starts = sorted({lattice.low + size * place // listed.bins for place in range(listed.bins)})
    if len(starts) < 2:
        raise NotAllowed("its bounds leave it one value", hint="leave it out, or give it wider bounds")
    bins = EdgeBins(Summand(bare(column), lattice), tuple(starts[1:]))
    ends = [*(start - 1 for start in starts[1:]), lattice.high]
    shown: list[Bin] = [Between(low, high, lattice.step, column.type) for low, high in zip(starts, ends, strict=True)]
    return _possible(bins, shown, column, others=None)


def _calendar(column: Column, listed: Listed, known: Range) -> Binned:
    """Steps of the calendar in UTC between the bounds; values outside are in a bin of their own."""
    if known.low is None or known.high is None:
        raise NotAllowed("it has no bounds", hint="give it lower and upper")
    if not listed.grain:
        raise NotAllowed("nobody says by which step of the calendar", hint=f'write "{listed.text} by month"')
    scale = 1 if column.type.kind == "date" else DAY
    low, high = int(known.low), int(known.high)
    starts = _starts(low // scale, high // scale, listed.grain)
    if len(starts) > MOST_BINS:
        raise NotAllowed(
            f"it has more than {MOST_BINS} bins",
            hint="take a coarser step, or closer bounds",
        )
    edges = (low, *(start * scale for start in starts[1:]), high + 1)
    bins = EdgeBins(Summand(bare(column), Lattice(Fraction(1), low - 1, high + 1)), edges, outside=True)
    every = 1 if column.type.kind == "date" else _SECOND
    shown: list[Bin] = [
        Between(first, following - 1, Fraction(1), column.type, every) for first, following in pairwise(edges)
    ]
    proved = domain.range_of(column.domain)
    is_proved = proved.low is not None and proved.high is not None and low <= proved.low and proved.high <= high
    others: Bin = Label(None) if column.nullable else Lost()
    return _possible(bins, shown, column, others=None if is_proved else others)


def _starts(first: int, last: int, grain: str) -> list[int]:
    """The first day, and each day on which a step begins up to the last one."""
    starts, day = [first], _following(day_at(first), grain)
    while day is not None and days_of(day) <= last and len(starts) <= MOST_BINS:
        starts.append(days_of(day))
        day = _following(day, grain)
    return starts


def _following(day: date, grain: str) -> date | None:
    """The beginning of the step after that of a day; None where the calendar ends."""
    try:
        match grain:
            case "year":
                return date(day.year + 1, 1, 1)
            case "quarter" | "month":
                months = 3 if grain == "quarter" else 1
                year, month = divmod(day.year * 12 + (day.month - 1) // months * months + months, 12)
                return date(year, month + 1, 1)
            case "week":
                return day + timedelta(days=7 - day.weekday())
            case _:
                return day + timedelta(days=1)
    except (ValueError, OverflowError):
        return None


def counted(number: Expression, most: int, buckets: int) -> Binned:
    """The bins of a number of rows: 0, 1, 2, and from there on wider ones, up to the most that count."""
    starts = sorted({0, 1, *(_bucket(place, most, buckets) for place in range(1, buckets - 1))} - {most + 1})
    starts = [start for start in starts if start <= most]
    lattice = Lattice(Fraction(1), 0, most)
    bins = EdgeBins(Summand(number, lattice), tuple(starts[1:]))
    ends = [*(start - 1 for start in starts[1:]), most]
    shown = tuple(Between(low, high, Fraction(1), INT8) for low, high in zip(starts, ends, strict=True))
    return Binned(bins, tuple(range(len(starts))), shown)


def _bucket(place: int, most: int, buckets: int) -> int:
    """The least number of a bucket: 2, and then in equal ratios."""
    root = Fraction(most) ** Fraction(place, max(1, buckets - 2))
    whole = int(root)
    return max(2, whole if whole >= root else whole + 1)


def keys_of(table: Table, link: str | None) -> tuple[KeyPart, ...]:
    """The parts of a primary key that can be made up; nothing where it refers to what is not there."""
    primary = next((key for key in table.keys if key.primary), None)
    if primary is None:
        return ()
    if len(primary.columns) == 1 and primary.columns[0] != link:
        return _alone(table, primary.columns[0])
    if link not in primary.columns or len(primary.columns) > 2:
        return ()
    if any(name != link and (_kind(table, name) != "number" or _refers(table, name)) for name in primary.columns):
        return ()
    return tuple(KeyPart(name, "parent" if name == link else "place") for name in primary.columns)


def _alone(table: Table, name: str) -> tuple[KeyPart, ...]:
    kind = _kind(table, name)
    return () if kind is None or _refers(table, name) else (KeyPart(name, kind),)


def _refers(table: Table, name: str) -> bool:
    return any(name in key.columns for key in table.foreign_keys)


def _kind(table: Table, name: str) -> Literal["number", "text", "uuid"] | None:
    column = table.find_column(name)
    return None if column is None or column.generated else _KINDS.get(type_of(column).kind)
