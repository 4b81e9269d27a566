"""Where a bound is chosen privately: the rules or the session say so, and some measure could have less noise by it."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from rules.noise.ladder import LEAST_CEILING, price_of, rungs_to
from rules.noise.measures import Choice, Ladder, Measure
from rules.relation.nodes import Facts, Node, scans_in
from rules.relation.scope import World
from rules.rewrite.bound_units import Bounding, Form
from rules.rewrite.contributions import Contribution, UnitCount
from rules.rewrite.plan import Request

WEIGHT = Fraction(1, 4)  # of a choice's ε, where each measure has 1


def is_auto(node: Node, request: Request, world: World) -> bool:
    """Whether it is chosen how many rows of a unit count: by the session, else by the rules of a table that is read."""
    if request.rows_auto is not None:
        return request.rows_auto
    tables = (world.policy.find_table(scan.table) for scan in scans_in(node))
    return any(rules is not None and rules.rows_auto for rules in tables)


def with_choice(bounding: Bounding, parts: Sequence[Contribution], facts: Facts) -> Bounding:
    """The bounding with m as a ceiling, where a lower bound can pay and rows have a unit to be bounded by."""
    is_bounded_by_rows = any(bounding.groups > 1 or not isinstance(part, UnitCount) for part in parts)
    has_identity = facts.unit is not None and facts.unit.column is not None
    if bounding.rows < LEAST_CEILING or not is_bounded_by_rows or not has_identity:
        return bounding
    by_unit: Form = "by unit" if bounding.groups == 1 else "ranked"
    return replace(bounding, form=by_unit if bounding.form == "plain" else bounding.form, is_chosen=True)


def find_ladders(
    bounding: Bounding, measures: Sequence[Measure | Choice], epsilons: Sequence[Decimal], *, groups: int
) -> tuple[Ladder, ...]:
    """The block's ladders, with their shares of ε."""
    least = min((measure.epsilon for measure in measures), default=Decimal(1))
    return tuple(
        Ladder("rows of a unit", "rows", epsilon, rungs_to(bounding.rows), price_of(groups, least, epsilon))
        for epsilon in epsilons
    )
