"""The aggregates of a block as recipes: which measures each needs, and what is shown of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from rules.aggregates.contributions import Recipe
from rules.aggregates.estimates import estimate
from rules.aggregates.recipes import split
from rules.algebra.nodes import Node
from rules.bind.expression import Binding
from rules.bind.from_clause import names_leaf
from rules.bind.scope import PlannerContext
from rules.bind.table import demand_bounds
from rules.bind.walk_syntax import is_estimate, is_typical
from rules.mechanisms.release_plan import Bar
from rules.planner.select_partitions import Keyed
from rules.refusal import NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values.expression import Expression


@dataclass(frozen=True, slots=True)
class BlockAggregates:
    """The different aggregates of a block, and which of them have error bars."""

    aggregates: tuple[s.Expression, ...]
    bars: tuple[Bar, ...] = ()


def recipes_of(
    asked: BlockAggregates, level: Decimal, keyed: Keyed, context: PlannerContext, rows: int, written: Node
) -> tuple[Recipe, ...]:  # fmt: skip
    node = keyed.source.node
    leaf = names_leaf(keyed.source.scope, {column.id: column for column in node.facts.columns})
    binding = Binding(leaf, context, context.setting())
    barred = {bar.output for bar in asked.bars}
    together = rows * context.policy.group_size  # noise has to be drawn for so many rows of units that go together
    demand_bounds(node, tuple(_summed(asked, binding)), context)
    found = []
    for place, each in enumerate(asked.aggregates):
        if not isinstance(each, s.Call):
            raise NotSupported("this aggregate is not supported")
        with pointing_at(each.name):
            if is_estimate(each):
                found.append(estimate(each, binding, written, keyed.keys))
                continue
            recipe = split(each, binding, node.facts, together)
            found.append(recipe.barred(level) if place in barred and recipe.barred else recipe)
    return tuple(found)


def _summed(asked: BlockAggregates, binding: Binding) -> Iterator[Expression]:
    """Find what aggregates look into, other than whether it is there; the arguments of a quantile are its fractions."""
    for each in asked.aggregates:
        if isinstance(each, s.Call) and each.name != "count" and not is_typical(each):
            with pointing_at(each.name):
                ordered = tuple(order.expression for order in each.within_group)
                yield from map(binding.bind, ordered or each.arguments)
