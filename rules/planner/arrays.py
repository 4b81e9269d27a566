"""What stands in a block's place: a sub-select over arrays, which the block's answer fills. It is made as text.

A text is not read and printed once more, as a tree would be. Where the statement around it has a hole for it, its parts
are put.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from rules.frozen import frozen
from rules.mechanisms.release_plan import Block
from rules.planner.find_blocks import BlockSite, Leaves
from rules.planner.key_columns import named_below
from rules.planner.results import Marked
from rules.sql.normalize.to_text import quoted
from rules.sql.tree import Node
from rules.values.types import SpanForm

Parts = tuple[str | int, ...]  # texts, and numbers of holes

_OWN: Final = re.compile(r"[kmrsx][0-9]+")  # columns of the arrays
_MOST_SECONDS: Final = 9 * 10**12  # of an interval without days: a bigint of microseconds
_MOST_DAYS: Final = 2**31
_MONTH: Final = 2_629_800  # seconds of a twelfth of the year that extract(epoch FROM …) counts


@frozen
class Arrays:
    """The columns of one block's answer, and the number of the first."""

    block: Block
    first_column: int


@frozen
class Place:
    """One block in the text, or one for each of its grouping sets, which have equal outputs."""

    body: Node  # its SELECT in PostgreSQL's tree
    leaves: Leaves
    arrays: tuple[Arrays, ...]
    site: BlockSite
    name: str  # of the sub-select: _ng1
    outputs: tuple[int, ...]  # which output of the block each aggregate is
    bare: frozenset[int]  # items of its select list that the client sees as they are: an output, cast or rounded
    marked: Marked | None = None  # the items of it that are NULL where noise could have made them

    @property
    def block(self) -> Block:
        """Any of them: what is the same of all is read from it."""
        return self.arrays[0].block

    @property
    def has_levels(self) -> bool:
        """Whether each grouping set is a block of its own, with its own keys alone."""
        return len(self.arrays) > 1 or bool(self.site.sets and not self.block.sets)

    @property
    def key_types(self) -> Mapping[int, str]:
        """The type of each key of the SELECT, as any block says that has it."""
        sets = self.site.sets if self.has_levels else (tuple(range(len(self.site.keys))),)
        pairs = zip(self.arrays, sets, strict=True)
        return {key: column.type for each, own in pairs for key, column in zip(own, each.block.keys, strict=True)}


@frozen
class Naming:
    """The names of the arrays' columns in the statement around them.

    Keys stand there once more under the names by which subqueries mean them. Where such a name is that of another
    column of ours, as m1, ours have a prefix.
    """

    keys: Mapping[str, int]
    prefix: str

    @classmethod
    def of(cls, body: Node, leaves: Leaves) -> "Naming":
        named = named_below(body, leaves)
        apart = {name: number for name, number in named.items() if name != f"k{number + 1}"}
        return cls(named, "_ng") if any(map(_OWN.fullmatch, apart)) else cls(apart, "")


def select_of(place: Place, naming: Naming) -> Parts:
    """a.k1::text AS k1, … FROM unnest($3::text[], …) AS a(k1, …), or UNION ALL of several: what comes after SELECT"""
    if place.has_levels:
        types = place.key_types
        levels = enumerate(zip(place.arrays, place.site.sets, strict=True), start=1)
        selects = [_array_select(arrays, own, types, naming, level=number) for number, (arrays, own) in levels]
        rows = _separated(selects, " UNION ALL SELECT ")
    else:
        (only,), keys = place.arrays, range(len(place.site.keys))
        rows = _array_select(only, keys, {}, naming, has_set=bool(place.block.sets), marked=place.marked)
    more = [f", u.{naming.prefix}k{number + 1} AS {quoted(name)}" for name, number in naming.keys.items()]
    return (f"u.*{''.join(more)} FROM (SELECT ", *rows, ") AS u") if more else rows


def _array_select(
    arrays: Arrays,
    keys: Sequence[int],
    types: Mapping[int, str],
    naming: Naming,
    *,
    has_set: bool = False,
    level: int | None = None,
    marked: Marked | None = None,
) -> Parts:
    """The columns of one block; as a level of grouping sets with NULL for keys that it has not, and its number."""
    columns = _column_types(arrays.block, has_set=has_set)
    holes = [arrays.first_column + number for number in range(len(columns))]
    if marked is not None:
        columns |= {f"x{item + 1}": "boolean" for item in marked.holes}
        holes += marked.holes.values()
    casts = {
        name: of_seconds(f"a.{name}") if of == "interval" and name[0] != "k" else f"a.{name}::{of}"
        for name, of in columns.items()
    }
    for place, form in enumerate(arrays.block.spans, start=1):
        casts |= {name: justified(casts[name], form) for name in (f"m{place}", f"s{place}") if name in casts}
    if level is not None:
        own = {key: casts.pop(f"k{place}") for place, key in enumerate(keys, start=1)}
        levelled = {f"k{key + 1}": own.get(key, f"NULL::{of}") for key, of in sorted(types.items())}
        casts = {**levelled, f"k{len(types) + 1}": str(level), **casts}
    listed = ", ".join(f"{value} AS {naming.prefix}{name}" for name, value in casts.items())
    if not columns:  # the total of a query without aggregates: always one row
        return (listed,)
    texts = _separated([(hole, "::text[]") for hole in holes], ", ")
    return (f"{listed} FROM unnest(", *texts, f") AS a({', '.join(columns)})")


def of_seconds(text: str) -> str:
    """An interval of so many seconds: with days where PostgreSQL reads no more, NULL where it has not even these."""
    seconds = f"{text}::numeric"
    days = f"pg_catalog.trunc({seconds} / 86400)"
    long = f"pg_catalog.make_interval(days => {days}::integer, secs => ({seconds} - {days} * 86400)::double precision)"
    return (
        f"CASE WHEN abs({seconds}) < {_MOST_SECONDS} THEN {text}::interval"
        f" WHEN abs({days}) < {_MOST_DAYS} THEN {long} END"
    )


def justified(seconds: str, form: SpanForm) -> str:
    """An interval of seconds alone as PostgreSQL shows one of its kind: with days, and an age with months of a year."""
    if not form:
        return seconds
    if form == "days":
        return f"pg_catalog.justify_hours({seconds})"
    months = f"pg_catalog.trunc(extract(epoch FROM {seconds}) / {_MONTH})"
    days = f"pg_catalog.justify_hours({seconds} - {months}::double precision * interval '{_MONTH} seconds')"
    return f"(pg_catalog.make_interval(months => {months}::integer) + {days})"


def _column_types(block: Block, *, has_set: bool) -> dict[str, str]:
    """The types of a block's arrays, in their order: keys, outputs, error bars, and what is shown of outputs."""
    types = {f"k{place}": column.type for place, column in enumerate(block.keys, start=1)}
    if has_set:
        types[f"k{len(block.keys) + 1}"] = "integer"
    types |= {f"m{place}": output_type for place, output_type in enumerate(block.output_types, start=1)}
    for place, bar in enumerate(block.bars, start=1):
        types[f"r{place}"] = block.output_types[bar.output] + "[]" * (bar.end is None)
    return types | {f"s{output + 1}": block.output_types[output] for output in block.shown}


def _separated(parts: Sequence[Parts], by: str) -> Parts:
    return tuple(chain.from_iterable((by, *part) if number else part for number, part in enumerate(parts)))


def joined(parts: Iterable[str | int]) -> Parts:
    """The same parts, with a text between any two holes, before the first and after the last."""
    made: list[str | int] = [""]
    for part in parts:
        if isinstance(part, int):
            made += [part, ""]
        else:
            made[-1] = f"{made[-1]}{part}"
    return tuple(made)
