"""Choose bounds privately where nobody has declared them, or the rules or the session ask for it.

Three kinds of totals of a unit have ladders: its rows, which bound all measures of rows alike, so that means are not
bent; the groups that it is in, where units are counted; and what it adds to one sum, which bounds that sum alone.

A cap times the largest value of a row is far more than most units add to a sum. So a sum has a ladder by default where
its declared bound is many times the largest value; with a count beside it, from which half of that bound is known
already, it has to be more. Only public numbers decide it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from functools import partial

from rules.aggregates.contributions import Contribution, Recipe, Typical
from rules.algebra.nodes import Facts, Node, scans_in
from rules.bind.scope import PlannerContext
from rules.frozen import frozen, replace
from rules.kernel.measures import Sum, Units
from rules.mechanisms.noised_outputs import Average, CentredSum
from rules.mechanisms.noised_outputs import Sum as SumOutput
from rules.mechanisms.release_plan import Ladder
from rules.planner.bound_contributions import Bounding
from rules.planner.plan import Request
from rules.release.bound_ladder import LEAST_CEILING, Noisy, rungs_to, thresholds_of
from rules.values.expression import Apply, Column, Expression, columns_in

_FOUND = 8  # groups, as a rule, where they are found and the choice cannot wait for their list
CLASSES = tuple(4**power for power in range(9))  # of lists that are found: a bound is chosen for about so many groups
_FINEST = 64  # of a sum's reach in one row: the part of it that the lowest rung is
_LEAST_OF_DECLARED = 4  # the same below a declared bound: fewer units are cut where ε is too small for a choice
_PAYS = 8  # times the largest value of a row: a declared bound of a unit's total from which a choice pays
_PAYS_WITH_COUNT = 20  # the same where the sum would be made from centred halves and a count


def weight_of_ladder(groups: int | None, least: Fraction) -> Fraction:
    """The weight of a choice beside measures, the least of which has this one: a third to a tenth of their ε.

    With few groups there is little noise, and a bound that is too low or too high is most of the error.
    """
    if groups is None or 4 <= groups < 25:
        return least / 4
    return least * 3 / 7 if groups < 4 else least / 9


@frozen
class Auto:
    """The bounds that are to be chosen."""

    rows: bool
    sums: bool | None  # all sums, or none; None: those whose columns or whose declared bounds say so
    rows_counted: int  # of a unit, by the declared cap
    columns: Mapping[int, bool] = field(default_factory=dict)  # what the rules say of columns

    @classmethod
    def of(
        cls, node: Node, request: Request, context: PlannerContext, rows_counted: int, *, is_declared: bool
    ) -> "Auto":
        """By the session, or else by the rules of the tables that are read; rows also where nothing bounds them."""
        scans = [(scan, context.policy.find_table(scan.table)) for scan in scans_in(node)]
        rules = [table for _, table in scans if table is not None]
        rows = any(table.rows_auto for table in rules) if request.rows_auto is None else request.rows_auto
        rows = rows or not is_declared
        if request.sums_auto is not None:
            return cls(rows, request.sums_auto, rows_counted)
        words = [table.sum_per_unit for table in rules]
        sums = True if "auto" in words else False if "off" in words or rows else None
        named = ((number, table.columns.get(name)) for scan, table in scans if table for number, name in scan.names)
        columns = {number: column.sum_per_unit for number, column in named if column is not None}
        said = {number: word == "auto" for number, word in columns.items() if word is not None}
        return cls(rows, sums, rows_counted, said)

    def with_own_bounds(self, recipes: tuple[Recipe, ...]) -> tuple[Recipe, ...]:
        """Sums whose total is to be bounded by itself stay sums of their own, and means lie around zero for it."""
        needed = {part for recipe in recipes if recipe.centred is None for part in recipe.parts}
        return tuple(self._with_own_bound(recipe, needed) for recipe in recipes)

    def _with_own_bound(self, recipe: Recipe, needed: Set[Contribution]) -> Recipe:
        if recipe.around_zero is not None and self._is_own(recipe.around_zero):
            return recipe.around_zero
        has_count = recipe.centred is not None and recipe.centred.parts[1] in needed
        return replace(recipe, centred=None) if self._is_own(recipe, has_count=has_count) else recipe

    def bounding(
        self,
        declared: Bounding,
        recipes: Sequence[Recipe],
        parts: Sequence[Contribution],
        facts: Facts,
        groups: int | None,
        *,
        finds_first: bool,
    ) -> Bounding:
        """The bounding with ladders, where lower bounds can pay and rows have a unit to be bounded by.

        Of `groups` that are listed, or found first, a unit may be in all; of others that are found, in as many as their
        threshold counts.
        """
        own = dict.fromkeys(_total(recipe) for recipe in recipes if self._is_own(recipe))
        sums = tuple(part for part in own if part is not None and declared.rows * part.reach >= LEAST_CEILING)
        by_rows = any(part not in own and not isinstance(part, Units | Typical) for part in parts)
        is_chosen = self.rows and by_rows and declared.rows >= LEAST_CEILING
        counts_units = any(isinstance(part, Units) for part in parts)
        by_groups = counts_units and not declared.limits_groups and (finds_first or (self.rows and groups is not None))
        most = declared.groups if groups is None else min(declared.groups, groups)
        chooses_groups = by_groups and most >= LEAST_CEILING
        if declared.is_single:
            return replace(declared, own=sums)
        has_identity = facts.unit is not None and facts.unit.column is not None
        if not has_identity:
            return declared
        return replace(declared, is_chosen=is_chosen, chooses_groups=chooses_groups, own=sums)

    def _is_own(self, recipe: Recipe, *, has_count: bool = False) -> bool:
        total = _total(recipe)
        if total is None:
            return False
        said = {self.columns[column.id] for column in columns_in(total.summand.expression) if column.id in self.columns}
        if said or self.sums is not None:
            return True in said or (not said and self.sums is True)
        least = _PAYS_WITH_COUNT if has_count or total.centred else _PAYS
        return self.rows_counted >= least


def _total(recipe: Recipe) -> Sum | None:
    """The sum that a plain sum, or a mean around zero, is made of."""
    match recipe.parts:
        case (Sum(centred=False) as total,):
            return total
        case (Sum(centred=True) as halves, _) if halves.summand.lattice.low == -halves.summand.lattice.high:
            return halves
    return None


@frozen
class Shares:
    """All that the ladders of a block depend on besides its bounding: it is known without the data."""

    vectors: Sequence[Decimal]  # the ε of each vector of measures
    ladders: Sequence[Decimal]  # and of each ladder
    groups: int | None  # None: they are found in the data
    group_size: int
    is_pure: bool


def find_ladders(
    bounding: Bounding,
    recipes: Sequence[Recipe],
    shares: Shares,
    name: Callable[[Sum], str],
    *,
    is_declared: bool,
) -> tuple[Ladder, ...]:
    """The block's ladders: of the rows first, then of groups, then of each sum that has its own."""
    ladders_of_measures: list[tuple[str, str, tuple[int, ...], Fraction]] = []
    if bounding.is_chosen:
        ladders_of_measures.append(("rows", "rows", rungs_to(bounding.rows), Fraction(1)))
    if bounding.chooses_groups:
        ladders_of_measures.append(
            ("groups", "groups", rungs_to(min(bounding.groups, shares.groups or bounding.groups)), Fraction(1))
        )
    first_sum = len(ladders_of_measures)
    for total in bounding.own:
        most = bounding.rows * total.reach if total.total is None else total.total
        rungs = rungs_to(most, -(-total.reach // (_LEAST_OF_DECLARED if is_declared else _FINEST)))
        ladders_of_measures.append((name(total), _words(total.summand.expression), rungs, _step(total, recipes)))
    ladders = []
    for number, (called, what, rungs, step) in enumerate(ladders_of_measures):
        epsilon, measures = shares.ladders[number], tuple(_bounded_by(number, bounding, shares))
        high = is_declared and number >= first_sum
        priced = partial(
            thresholds_of, rungs, measures=measures, epsilon=epsilon, group_size=shares.group_size, favours_height=high
        )
        classes = () if shares.groups else tuple((most, priced(max(1, most // 2))) for most in CLASSES)
        thresholds = priced(shares.groups or _FOUND)
        ladders.append(Ladder(called, what, epsilon, rungs, thresholds, step, is_declared, high, classes))
    return tuple(ladders)


def vectors_bounded_by(ladder: int, bounding: Bounding) -> tuple[int, ...]:
    """The numbers of the vectors for which a ladder is there."""
    return tuple(
        number
        for number, vector in enumerate(bounding.vectors)
        if any(bounding.find_ladder(part) == ladder for part in vector)
    )


def _bounded_by(ladder: int, bounding: Bounding, shares: Shares) -> Iterator[Noisy]:
    for number in vectors_bounded_by(ladder, bounding):
        by_root = not shares.is_pure and all(isinstance(part, Units) for part in bounding.vectors[number])
        yield Noisy(shares.vectors[number], by_root)


def _words(summed: Expression) -> str:
    columns = ", ".join(dict.fromkeys(column.name for column in columns_in(summed) if column.name))
    match summed:
        case Column() | Apply(name="clamp", arguments=(Column(), *_)):
            return f"sum({columns})"
    return f"sum over {columns}" if columns else "sum"


def _step(total: Sum, recipes: Sequence[Recipe]) -> Fraction:
    output = next(recipe.output((0, 1)) for recipe in recipes if _total(recipe) == total)
    assert isinstance(output, SumOutput | CentredSum | Average), "a sum or a mean is bounded by itself"
    return output.step if isinstance(output, SumOutput) else output.step / 2
