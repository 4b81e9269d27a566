"""The inner statement: what all rows of one unit add to each measure is bounded, in the cheapest way that is sound.

Where a unique key proves that a unit has few enough rows, a plain GROUP BY will do. Otherwise rows are first summed by
unit and group, and what a unit adds to a group is scaled down by the share of its rows that is counted there, all its
measures alike, so that means and shares are not bent (soundness, finding 18).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from rules.noise.ladder import hole
from rules.noise.measures import Bound
from rules.relation.expression import TRUE, Expression, ids_in
from rules.relation.functions.comparison import is_null
from rules.relation.functions.guard import Setting
from rules.relation.nodes import Node
from rules.relation.privacy import filtered
from rules.relation.render import Renderer, expression_sql
from rules.rewrite.contributions import Contribution, DistinctCount, Pick, RowCount, RowSum, UnitCount, ValueCount
from rules.rewrite.hide_groups import canonical_key

SATURATION = 2**62

Form = Literal["plain", "by unit", "ranked"]


@dataclass(frozen=True, slots=True)
class Bounding:
    """How many rows and groups of a unit are counted, and which form keeps to it."""

    form: Form
    rows: int  # m: rows of a unit in the whole answer
    groups: int  # K: groups that a unit appears in
    limits_groups: bool  # whether K has to be enforced, being less than m
    is_chosen: bool = False  # whether m is only the ceiling of a ladder, the block's first

    @property
    def limit(self) -> str:
        """m as it stands in SQL."""
        return hole(0) if self.is_chosen else str(self.rows)

    def sensitivity(self, part: Contribution) -> int:
        """How far one unit moves the measure, over all groups together."""
        match part:
            case RowCount() | ValueCount() | DistinctCount() | Pick():
                return self.rows
            case RowSum(reach=reach):
                return self.rows * reach
            case UnitCount():
                return self.groups

    def bounds(self, part: Contribution) -> tuple[Bound, ...]:
        """By which the sensitivity is less once m is chosen. A unit is in no more groups than it has rows."""
        if not self.is_chosen:
            return ()
        return (Bound(0, part.reach if isinstance(part, RowSum) else 1),)


Summed = RowCount | ValueCount | RowSum | UnitCount | DistinctCount  # a Pick has a statement of its own


def inner_sql(node: Node, keys: tuple[Expression, ...], parts: tuple[Contribution, ...], bounding: Bounding) -> str:
    """A statement whose rows are the keys as text and then the measures as bigint."""
    return _Inner(node, keys, tuple(part for part in parts if not isinstance(part, Pick))).sql(bounding)


def histogram_sql(node: Node, keys: tuple[Expression, ...], pick: Pick, bounding: Bounding) -> str:
    """A statement whose rows are the keys as text, a candidate's number, and how many rows have it.

    The candidate is one more key: a unit's rows over all groups and candidates together are bounded by m.
    """
    source = filtered(node, is_null(pick.candidate, Setting(), negated=True)) if pick.candidate.nullable else node
    form: Form = "plain" if bounding.form == "plain" else "ranked"
    joint = replace(bounding, form=form, groups=bounding.rows, limits_groups=False)
    return _Inner(source, (*keys, pick.candidate), (RowCount(),)).sql(joint)


def tally_sql(node: Node, keys: tuple[Expression, ...], bounding: Bounding, rungs: tuple[int, ...]) -> str:
    """A statement whose rows are a ladder's number, a rung's, and the units whose rows need that rung."""
    inner = _Inner(node, keys if bounding.limits_groups else (), ())
    thresholds = f"ARRAY[{', '.join(str(rung + 1) for rung in rungs)}]::int8[]"
    needed = f"width_bucket(total, {thresholds})"  # how many rungs a total is above
    return f"SELECT 0, {needed} AS rung, count(*) FROM ({inner.totals(bounding)}) AS t GROUP BY rung"


@dataclass(frozen=True)
class _Inner:
    node: Node
    keys: tuple[Expression, ...]
    parts: tuple[Summed, ...]

    def sql(self, bounding: Bounding) -> str:
        match bounding.form:
            case "plain":
                return self._plain()
            case "by unit":
                kept = f"SELECT *, least(c, {bounding.limit}) AS t{self._remainder()} FROM per_unit"
                return self._grouped([("per_unit", self._per_unit()), ("kept", kept)], bounding.limit)
            case "ranked":
                return self._ranked(bounding)

    def totals(self, bounding: Bounding) -> str:
        """The rows of each unit in the groups that count."""
        if not bounding.limits_groups:
            return f"SELECT c AS total FROM ({self._per_unit()}) AS p"
        return (
            f"WITH per_unit AS ({self._per_unit()}), ranked AS ({self._in_order()}) "
            f"SELECT sum(c)::int8 AS total FROM ranked WHERE rn <= {bounding.groups} GROUP BY u"
        )

    def _ranked(self, bounding: Bounding) -> str:
        """Groups of a unit, as many as m and K allow."""
        few = f" AND rn <= {bounding.groups}" if bounding.limits_groups else ""
        kept = (
            f"SELECT *, least(c, {bounding.limit} - before) AS t{self._remainder()} "
            f"FROM ranked WHERE before < {bounding.limit}{few}"
        )
        steps = [("per_unit", self._per_unit()), ("ranked", self._in_order()), ("kept", kept)]
        return self._grouped(steps, bounding.limit)

    def _in_order(self) -> str:
        """The groups of each unit in an order that depends on the unit and the group alone."""
        order = f"PARTITION BY u ORDER BY {_hash(self._own())}, {', '.join(self._own())}"
        return (
            "SELECT *, coalesce(sum(c) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before, "
            f"row_number() OVER w AS rn FROM per_unit WINDOW w AS ({order})"
        )

    def _names(self) -> list[str]:
        return [f"g{place}" for place in range(1, len(self.keys) + 1)]

    def _own(self) -> list[str]:
        """The unit, then the keys: what tells a unit's groups apart."""
        return ["u", *self._names()]

    def _rows(self) -> str:
        """The rows with their unit (u), keys (g…), integers and conditions (v…), each written once."""
        unit = self.node.facts.unit
        used = ids_in(*self.keys, *(_held(part) for part in self.parts))
        own = frozenset() if unit is None or unit.column is None else frozenset([unit.column])
        source = Renderer().render(self.node, used | own)
        items = [
            f"{expression_sql(canonical_key(self.node.facts.column(number)), source.names)} AS u" for number in own
        ]
        items += [
            f"{expression_sql(key, source.names)} AS {name}" for key, name in zip(self.keys, self._names(), strict=True)
        ]
        items += [f"{expression_sql(each, source.names)} AS v{place}" for each, place in self._values.items()]
        return f"SELECT {', '.join(items)} {source.clause()}"

    @cached_property
    def _values(self) -> dict[Expression, int]:
        """What the measures are made of, numbered from 1."""
        held = dict.fromkeys(_held(part) for part in self.parts)
        held.pop(TRUE, None)
        return {each: place for place, each in enumerate(held, start=1)}

    def _place(self, part: Summed) -> int:
        return self._values.get(_held(part), 0)

    def _plain(self) -> str:
        measures = [_saturated(self._plain_measure(self._place(part), part)) for part in self.parts]
        return f"SELECT {', '.join([*self._shown(), *measures])} FROM ({self._rows()}) AS r{self._group_by()}"

    def _plain_measure(self, place: int, part: Summed) -> str:
        match part:
            case RowCount(condition=condition):
                return f"count(*){_filter(condition, place)}"
            case ValueCount():
                return f"count(v{place})"
            case DistinctCount():
                return f"count(DISTINCT v{place})"
            case RowSum(centre=None):
                return f"sum(v{place})"
            case RowSum(centre=centre):
                return f"2 * sum(v{place})::numeric - {centre} * count(v{place})::numeric"
            case UnitCount(condition=condition):
                # Without identity every row is a unit of its own.
                unit = self.node.facts.unit
                of = "*" if unit is None or unit.column is None else "DISTINCT u"
                return f"count({of}){_filter(condition, place)}"

    def _per_unit(self) -> str:
        """One row for each unit and group: its rows (c), and what they add to each measure (s…)."""
        own = ", ".join(self._own())
        sums = {"count(*) AS c": None}
        for part in self.parts:
            sums.update(dict.fromkeys(_sums(part, self._place(part))))
        return f"SELECT {own}, {', '.join(sums)} FROM ({self._rows()}) AS r GROUP BY {own}"

    def _remainder(self) -> str:
        """0 ≤ h < c: rounds shares up for some units and groups and down for others, always alike for the same."""
        if not any(_is_rounded(part) for part in self.parts):
            return ""
        return f", mod(abs({_hash(self._own(), 'r')}::numeric), c) AS h"

    def _grouped(self, steps: Sequence[tuple[str, str]], rows: str) -> str:
        """The kept rows of all units, summed by group; different values come in rows of their own, to be added."""
        measures = [_saturated(_scaled(self._place(part), part)) for part in self.parts]
        steps_sql = ", ".join(f"{name} AS ({sql})" for name, sql in steps)
        selects = [f"SELECT {', '.join([*self._shown(), *measures])} FROM kept{self._group_by()}"]
        selects += [self._distinct(part, rows) for part in self.parts if isinstance(part, DistinctCount)]
        return f"WITH {steps_sql} {' UNION ALL '.join(selects)}"

    def _distinct(self, counted: DistinctCount, rows: str) -> str:
        """At most m triples of unit, group and value of each unit, whichever groups they are in (finding 5)."""
        value = f"v{self._place(counted)}"
        names = [*self._names(), value]
        order = f"PARTITION BY u ORDER BY {_hash(['u', *names])}, {', '.join(names)}"
        triples = f"SELECT DISTINCT u, {', '.join(names)} FROM ({self._rows()}) AS r WHERE {value} IS NOT NULL"
        ranked = f"SELECT {', '.join(names)}, row_number() OVER ({order}) AS rn FROM ({triples}) AS d"
        measures = [f"count(DISTINCT {value})" if part == counted else "0::int8" for part in self.parts]
        return (
            f"SELECT {', '.join([*self._shown(), *measures])} FROM ({ranked}) AS e WHERE rn <= {rows}{self._group_by()}"
        )

    def _shown(self) -> list[str]:
        return [f"{name}::text" for name in self._names()]

    def _group_by(self) -> str:
        return f" GROUP BY {', '.join(self._names())}" if self.keys else ""


def _held(part: Summed) -> Expression:
    match part:
        case RowCount(condition=condition) | UnitCount(condition=condition):
            return condition
        case RowSum(integer=integer) | ValueCount(integer=integer):
            return integer
        case DistinctCount(value=value):
            return value


def _sums(part: Summed, place: int) -> tuple[str, ...]:
    """What one unit's rows of one group add up to: conditions (f), sums (s) and values that are there (n)."""
    match part:
        case RowCount(condition=condition) | UnitCount(condition=condition):
            return () if condition == TRUE else (f"count(*) FILTER (WHERE v{place}) AS f{place}",)
        case ValueCount():
            return (f"count(v{place}) AS n{place}",)
        case DistinctCount():
            return ()
        case RowSum(centre=None):
            return (f"coalesce(sum(v{place}), 0) AS s{place}",)
        case RowSum():
            return (f"coalesce(sum(v{place}), 0) AS s{place}", f"count(v{place}) AS n{place}")


def _is_rounded(part: Summed) -> bool:
    return isinstance(part, ValueCount) or (isinstance(part, RowCount) and part.condition != TRUE)


def _filter(condition: Expression, place: int) -> str:
    return "" if condition == TRUE else f" FILTER (WHERE v{place})"


def _scaled(place: int, part: Summed) -> str:
    """A unit's share of a measure in a group: t of its c rows are counted, so t/c of what they add."""
    match part:
        case RowCount(condition=condition) if condition == TRUE:
            return "sum(t)"
        case RowCount():
            return _share(f"f{place}", " + h")
        case ValueCount():
            return _share(f"n{place}", " + h")
        case DistinctCount():
            return "0::int8"
        case RowSum(centre=None):
            return _share(f"s{place}")
        case RowSum(centre=centre):
            return _share(f"(2 * s{place}::numeric - {centre} * n{place}::numeric)")
        case UnitCount(condition=condition):
            return "count(*)" if condition == TRUE else f"count(*) FILTER (WHERE f{place} > 0)"


def _share(total: str, rounding: str = "") -> str:
    """div() is exact where / is not: 0 ≤ div(n·t + h, c) ≤ t for 0 ≤ n ≤ c and 0 ≤ h < c, |div(s·t, c)| ≤ t·M."""
    return f"sum(CASE WHEN c = t THEN {total}::int8 ELSE div({total}::numeric * t{rounding}, c)::int8 END)"


def _saturated(measure: str) -> str:
    """A sum of any size as bigint: saturation moves no difference further."""
    if measure.startswith(("count(", "0::")):
        return measure
    return f"least(greatest(coalesce({measure}, 0), -{SATURATION}), {SATURATION})::int8"


def _hash(names: Sequence[str], *more: str) -> str:
    """A hash of canonical texts, each with its length before it, so that no two lists look alike."""
    parts = [f"coalesce(length({name}::text) || ':' || {name}::text, 'N')" for name in names]
    parts += [f"'{each}'" for each in more]
    return f"hashtextextended({' || '.join(parts)}, 0)"
