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
from rules.relation.order_of_conditions import must_wait
from rules.relation.privacy import filtered
from rules.relation.render import Renderer, expression_sql
from rules.rewrite.contributions import (
    Contribution,
    DistinctCount,
    DistinctSum,
    Pick,
    RowCount,
    RowSum,
    UnitCount,
    ValueCount,
)
from rules.rewrite.hide_groups import canonical_key
from rules.rewrite.shares import (
    Distinct,
    Summed,
    clipped,
    counted,
    filter_of,
    hash_of,
    held,
    is_rounded,
    of_different,
    saturated,
    scaled,
    shared,
    sums_of,
)
from rules.rewrite.vectors import Vector

Form = Literal["plain", "by unit", "ranked"]


@dataclass(frozen=True, slots=True)
class Bounding:
    """How many rows and groups of a unit are counted, and which form keeps to it."""

    form: Form
    rows: int  # m: rows of a unit in the whole answer
    groups: int  # K: groups that a unit appears in
    limits_groups: bool  # whether K has to be enforced, being less than m
    is_chosen: bool = False  # whether m is only the ceiling of a ladder, the block's first
    own: tuple[RowSum, ...] = ()  # sums of which a unit's total has a ladder of its own
    vectors: tuple[Vector, ...] = ()  # the measures, those together of which a row is in at most one

    @property
    def limit(self) -> str:
        """m as it stands in SQL."""
        return hole(0) if self.is_chosen else str(self.rows)

    @property
    def ladders(self) -> int:
        """How many bounds are chosen."""
        return self.is_chosen + len(self.own)

    def find_ladder(self, part: Contribution) -> int | None:
        """The number of a sum's own ladder, after that of the rows."""
        return self.is_chosen + self.own.index(part) if isinstance(part, RowSum) and part in self.own else None

    def sensitivity(self, part: Contribution) -> int:
        """How far one unit moves the measure, over all groups together."""
        match part:
            case RowCount() | ValueCount() | DistinctCount() | Pick():
                return self.rows
            case RowSum(reach=reach) | DistinctSum(reach=reach):
                return self.rows * reach
            case UnitCount():
                return self.groups

    def bounds(self, part: Contribution) -> tuple[Bound, ...]:
        """By which the sensitivity is less once they are chosen. A unit is in no more groups than it has rows."""
        ladder = self.find_ladder(part)
        by_rows = (Bound(0, part.reach if isinstance(part, RowSum | DistinctSum) else 1),) if self.is_chosen else ()
        return by_rows if ladder is None else (*by_rows, Bound(ladder))


def inner_sql(node: Node, keys: tuple[Expression, ...], parts: tuple[Contribution, ...], bounding: Bounding) -> str:
    """A statement whose rows are the keys as text and then the measures as bigint."""
    return _Inner(node, keys, tuple(part for part in parts if not isinstance(part, Pick)), bounding).sql()


def histogram_sql(node: Node, keys: tuple[Expression, ...], pick: Pick, bounding: Bounding) -> str:
    """A statement whose rows are the keys as text, a candidate's number, and how many rows have it.

    The candidate is one more key: a unit's rows over all groups and candidates together are bounded by m.
    """
    source = filtered(node, is_null(pick.candidate, Setting(), negated=True)) if pick.candidate.nullable else node
    form: Form = "plain" if bounding.form == "plain" else "ranked"
    joint = replace(bounding, form=form, groups=bounding.rows, limits_groups=False, own=())
    return _Inner(source, (*keys, pick.candidate), (RowCount(),), joint).sql()


def tally_sql(
    node: Node, keys: tuple[Expression, ...], bounding: Bounding, ladders: Sequence[tuple[int, ...]]
) -> str:  # fmt: skip
    """A statement whose rows are a ladder's number, a rung's, and the units whose total needs that rung."""
    splits = bounding.limits_groups or (bounding.groups > 1 and bool(bounding.own))
    inner = _Inner(node, keys if splits else (), bounding.own, bounding)
    needed = (
        f"({number}, width_bucket(t{number}, ARRAY[{', '.join(str(rung + 1) for rung in rungs[:-1])}]::int8[]))"
        for number, rungs in enumerate(ladders)
    )
    return (
        f"SELECT ladder, rung, count(*) FROM ({inner.totals()}) AS t "
        f"CROSS JOIN LATERAL (VALUES {', '.join(needed)}) AS n (ladder, rung) GROUP BY ladder, rung"
    )


@dataclass(frozen=True)
class _Inner:
    node: Node
    keys: tuple[Expression, ...]
    parts: tuple[Summed, ...]
    bounding: Bounding

    def sql(self) -> str:
        match self.bounding.form:
            case "plain":
                return self._plain()
            case "by unit":
                kept = f"SELECT *, least(c, {self.bounding.limit}) AS t{self._remainder()} FROM per_unit"
                return self._grouped([("per_unit", self._per_unit()), ("kept", kept)])
            case "ranked":
                return self._ranked()

    def totals(self) -> str:
        """One row for each unit: its rows, if their bound is to be chosen, and the totals of sums with a ladder."""
        if self.bounding.form == "plain":
            return f"SELECT {self._totals('abs(v{}::int8)')} FROM ({self._rows()}) AS r"
        if not self.keys:
            return f"SELECT {self._totals('abs(s{})', 'c')} FROM ({self._per_unit()}) AS p"
        steps = f"per_unit AS ({self._per_unit()})"
        source = "per_unit"
        if self.bounding.limits_groups:
            steps, source = f"{steps}, ranked AS ({self._in_order()})", f"ranked WHERE rn <= {self.bounding.groups}"
        return f"WITH {steps} SELECT {self._totals('sum(abs(s{}))', 'sum(c)')} FROM {source} GROUP BY u"

    def _totals(self, total: str, rows: str = "1") -> str:
        found = [rows] * self.bounding.is_chosen + [total.format(self._place(part)) for part in self.bounding.own]
        return ", ".join(f"{saturated(each)} AS t{number}" for number, each in enumerate(found))

    def _ranked(self) -> str:
        """Groups of a unit, as many as m and K allow."""
        few = f" AND rn <= {self.bounding.groups}" if self.bounding.limits_groups else ""
        kept = (
            f"SELECT *, least(c, {self.bounding.limit} - before) AS t{self._remainder()} "
            f"FROM ranked WHERE before < {self.bounding.limit}{few}"
        )
        return self._grouped([("per_unit", self._per_unit()), ("ranked", self._in_order()), ("kept", kept)])

    def _in_order(self) -> str:
        """The groups of each unit in an order that depends on the unit and the group alone."""
        order = f"PARTITION BY u ORDER BY {hash_of(self._own())}, {', '.join(self._own())}"
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
        used = ids_in(*self.keys, *(held(part) for part in self.parts))
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
        values = dict.fromkeys(held(part) for part in self.parts)
        values.pop(TRUE, None)
        return {each: place for place, each in enumerate(values, start=1)}

    def _place(self, part: Summed) -> int:
        return self._values.get(held(part), 0)

    def _plain(self) -> str:
        measures = [saturated(self._plain_measure(self._place(part), part)) for part in self.parts]
        return f"SELECT {', '.join([*self._shown(), *measures])} FROM ({self._rows()}) AS r{self._group_by()}"

    def _plain_measure(self, place: int, part: Summed) -> str:
        match part:
            case RowCount(condition=condition):
                return f"count(*){filter_of(condition, place)}"
            case ValueCount():
                return f"count(v{place})"
            case DistinctCount() | DistinctSum():
                return of_different(place, part)
            case RowSum(centre=None):
                ladder = self.bounding.find_ladder(part)
                return f"sum(v{place})" if ladder is None else f"sum({clipped(f'v{place}', hole(ladder))})"
            case RowSum(centre=centre):
                return f"2 * sum(v{place})::numeric - {centre} * count(v{place})::numeric"
            case UnitCount(condition=condition):
                # Without identity every row is a unit of its own.
                unit = self.node.facts.unit
                of = "*" if unit is None or unit.column is None else "DISTINCT u"
                return f"count({of}){filter_of(condition, place)}"

    def _per_unit(self) -> str:
        """One row for each unit and group: its rows (c), and what they add to each measure (s…)."""
        own = ", ".join(self._own())
        sums = {"count(*) AS c": None}
        for part in self.parts:
            sums.update(dict.fromkeys(sums_of(part, self._place(part))))
        return f"SELECT {own}, {', '.join(sums)} FROM ({self._rows()}) AS r GROUP BY {own}"

    def _remainder(self) -> str:
        """0 ≤ h < c: rounds shares up for some units and groups and down for others, always alike for the same."""
        if not any(is_rounded(part) for part in self.parts):
            return ""
        return f", mod(abs({hash_of(self._own(), 'r')}::numeric), c) AS h"

    def _grouped(self, steps: Sequence[tuple[str, str]]) -> str:
        """The kept rows of all units, summed by group; different values come in rows of their own, to be added."""
        different = dict.fromkeys(self._place(part) for part in self.parts if isinstance(part, Distinct))
        apart = [self._different(place) for place in different]
        if apart and all(isinstance(part, Distinct) for part in self.parts):
            return " UNION ALL ".join(apart)
        steps = [*steps, *self._clipping()]
        measures = [saturated(self._measure(part)) for part in self.parts]
        steps_sql = ", ".join(f"{name} AS ({sql})" for name, sql in steps)
        first = f"SELECT {', '.join([*self._shown(), *measures])} FROM {steps[-1][0]}{self._group_by()}"
        return f"WITH {steps_sql} {' UNION ALL '.join([first, *apart])}"

    def _clipping(self) -> list[tuple[str, str]]:
        """What is kept of sums with a ladder (x…), and the total of that over all groups of a unit (y…)."""
        places = {part: self._place(part) for part in self.bounding.own}
        if not places:
            return []
        shares = "".join(f", {shared(place, part)} AS x{place}" for part, place in places.items())
        steps = [("shared", f"SELECT *{shares} FROM kept")]
        if self.bounding.form == "ranked":
            totals = "".join(f", sum(abs(x{place})) OVER (PARTITION BY u) AS y{place}" for place in places.values())
            steps.append(("totalled", f"SELECT *{totals} FROM shared"))
        return steps

    def _measure(self, part: Summed) -> str:
        """A unit's share of a measure in a group, and no more of a sum with a ladder than the bound chosen on it."""
        place, ladder = self._place(part), self.bounding.find_ladder(part)
        if ladder is None:
            return scaled(place, part, self._before(part))
        if self.bounding.form == "by unit":
            return f"sum({clipped(f'x{place}', hole(ladder))})"
        in_proportion = f"div(x{place}::numeric * {hole(ladder)}, y{place})::int8"
        return f"sum(CASE WHEN y{place} <= {hole(ladder)} THEN x{place} ELSE {in_proportion} END)"

    def _before(self, part: Summed) -> list[str]:
        """What the counts before this one in its vector have of a unit's rows."""
        vector = next((each for each in self.bounding.vectors if part in each), (part,))
        earlier = vector[: vector.index(part)]
        return [counted(self._place(each), each) for each in earlier if isinstance(each, RowCount | ValueCount)]

    def _different(self, place: int) -> str:
        """At most m triples of unit, group and value of each unit, whichever groups they are in (finding 5)."""
        value = f"v{place}"
        names = [*self._names(), value]
        order = f"PARTITION BY u ORDER BY {hash_of(['u', *names])}, {', '.join(names)}"
        given = next(each for each, known in self._values.items() if known == place)
        fence = " OFFSET 0" if must_wait(given, self.node) else ""
        rows = f"({self._rows()}{fence}) AS r"
        triples = f"SELECT DISTINCT u, {', '.join(names)} FROM {rows} WHERE {value} IS NOT NULL"
        ranked = f"SELECT {', '.join(names)}, row_number() OVER ({order}) AS rn FROM ({triples}) AS d"
        measures = [
            saturated(of_different(place, part))
            if isinstance(part, Distinct) and self._place(part) == place
            else "0::int8"
            for part in self.parts
        ]
        return (
            f"SELECT {', '.join([*self._shown(), *measures])} FROM ({ranked}) AS e "
            f"WHERE rn <= {self.bounding.limit}{self._group_by()}"
        )

    def _shown(self) -> list[str]:
        return [f"{name}::text" for name in self._names()]

    def _group_by(self) -> str:
        return f" GROUP BY {', '.join(self._names())}" if self.keys else ""
