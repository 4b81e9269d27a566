"""A statement none of whose groups can have rows, as WHERE city = 'Atlantis' GROUP BY city: it costs nothing.

That follows from the text, the rules and public rows, like any list of groups: there is no number to noise.
"""

from decimal import Decimal
from typing import Final

from rules.frozen import replace
from rules.mechanisms.release_plan import Block, PublicGroups
from rules.planner.plan import Plan

_NOTICE: Final = "no listed group can have rows under these conditions: nothing is charged"


def without_empty_blocks(plan: Plan, columns: int) -> Plan:
    """The plan with empty arrays in place of the blocks' columns, so many, if none of the blocks has a group."""
    if not plan.blocks or not all(map(_is_empty, plan.blocks)):
        return plan
    last = plan.parameters + columns
    outer = tuple(
        part if isinstance(part, str) or part <= plan.parameters else "'{}'" if part <= last else part - columns
        for part in plan.outer
    )
    free = replace(plan, blocks=(), outer=outer, epsilon=Decimal(0), delta=Decimal(0), notices=(_NOTICE,))
    return replace(free, spoken=(), results=(), marks=())


def _is_empty(block: Block) -> bool:
    """With grouping sets there are totals of no groups, too."""
    return isinstance(block.groups, PublicGroups) and not block.groups.rows and not block.sets
