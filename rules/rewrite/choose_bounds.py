"""Where bounds are chosen privately: the rules or the session say so, and some measure could have less noise by it.

Two kinds of totals of a unit have ladders: its rows, which bound all measures alike, so that means are not bent; and
what it adds to one sum, which bounds that sum alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from rules.noise.ladder import LEAST_CEILING, enough_for, price_of, rungs_to
from rules.noise.measures import Ladder, Sum
from rules.relation.expression import Apply, Column, Expression, columns_in
from rules.relation.nodes import Facts, Node, scans_in
from rules.relation.scope import World
from rules.rewrite.bound_units import Bounding, Form
from rules.rewrite.contributions import Contribution, Recipe, RowSum, UnitCount
from rules.rewrite.plan import Request

WEIGHT = Fraction(1, 4)  # of a choice's ε, where each measure has 1


@dataclass(frozen=True, slots=True)
class Auto:
    """Which bounds are to be chosen."""

    rows: bool
    sums: bool
    summed: frozenset[int] = frozenset()  # or the sums of these columns

    @classmethod
    def of(cls, node: Node, request: Request, world: World) -> "Auto":
        """By the session, or else by the rules of the tables that are read."""
        scans = [(scan, world.policy.find_table(scan.table)) for scan in scans_in(node)]
        rules = [table for _, table in scans if table is not None]
        rows = any(table.rows_auto for table in rules) if request.rows_auto is None else request.rows_auto
        if request.sums_auto is not None:
            return cls(rows, request.sums_auto)
        named = ((number, table.columns.get(name)) for scan, table in scans if table for number, name in scan.names)
        columns = frozenset(number for number, column in named if column is not None and column.sum_per_unit)
        return cls(rows, any(table.sum_per_unit for table in rules), columns)

    def with_own_bounds(self, recipes: tuple[Recipe, ...]) -> tuple[Recipe, ...]:
        """Sums whose total is to be bounded by itself stay sums of their own."""
        return tuple(replace(recipe, centred=None) if self._is_own(recipe) else recipe for recipe in recipes)

    def bounding(
        self, declared: Bounding, recipes: Sequence[Recipe], parts: Sequence[Contribution], facts: Facts
    ) -> Bounding:
        """The bounding with ladders, where lower bounds can pay and rows have a unit to be bounded by."""
        own = dict.fromkeys(_total(recipe) for recipe in recipes if self._is_own(recipe))
        sums = tuple(part for part in own if part is not None and declared.rows * part.reach >= LEAST_CEILING)
        by_rows = any(part not in own and (declared.groups > 1 or not isinstance(part, UnitCount)) for part in parts)
        is_chosen = self.rows and by_rows and declared.rows >= LEAST_CEILING
        if declared.rows == 1 and declared.form == "plain":
            return replace(declared, own=sums)
        has_identity = facts.unit is not None and facts.unit.column is not None
        if not has_identity or not (is_chosen or sums):
            return declared
        by_unit: Form = "by unit" if declared.groups == 1 else "ranked"
        form = by_unit if declared.form == "plain" else declared.form
        return replace(declared, form=form, is_chosen=is_chosen, own=sums)

    def _is_own(self, recipe: Recipe) -> bool:
        total = _total(recipe)
        if total is None:
            return False
        return self.sums or any(column.id in self.summed for column in columns_in(total.integer))


def _total(recipe: Recipe) -> RowSum | None:
    """The sum that a plain sum is made of."""
    match recipe.parts:
        case (RowSum(centre=None) as total,):
            return total
    return None


@dataclass(frozen=True, slots=True)
class Shares:
    """What the ladders of a block depend on besides its bounding: all of it known without the data."""

    ladders: Sequence[Decimal]  # the ε of each
    least: Decimal  # the least ε of a measure
    groups: int


def find_ladders(
    bounding: Bounding, recipes: Sequence[Recipe], shares: Shares, name: Callable[[RowSum], str]
) -> tuple[Ladder, ...]:
    """The block's ladders: of the rows first, then of each sum that has its own."""
    found: list[tuple[str, str, int, Fraction]] = []
    if bounding.is_chosen:
        found.append(("rows", "rows", bounding.rows, Fraction(1)))
    for total in bounding.own:
        found.append((name(total), _words(total.integer), bounding.rows * total.reach, _step(total, recipes)))
    ladders = []
    for (called, what, ceiling, step), epsilon in zip(found, shares.ladders, strict=True):
        rungs, price = rungs_to(ceiling), price_of(shares.groups, shares.least, epsilon)
        ladders.append(Ladder(called, what, epsilon, rungs, price, enough_for(rungs, epsilon), step))
    return tuple(ladders)


def _words(summed: Expression) -> str:
    columns = ", ".join(dict.fromkeys(column.name for column in columns_in(summed) if column.name))
    match summed:
        case Column() | Apply(name="lattice", arguments=(Column(), *_)):
            return f"sum({columns})"
    return f"sum over {columns}" if columns else "sum"


def _step(total: RowSum, recipes: Sequence[Recipe]) -> Fraction:
    output = next(recipe.output((0,)) for recipe in recipes if _total(recipe) == total)
    assert isinstance(output, Sum)
    return output.step
