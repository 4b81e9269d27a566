"""Plans over the shop, written by hand, and a planner that hands them out."""

from decimal import Decimal
from fractions import Fraction

from rules.catalog import Catalog
from rules.noise.measures import Block, Count, Groups, KeyColumn, Measure, PrivateGroups, PublicGroups, Sum
from rules.policy.model import Policy
from rules.rewrite.plan import Plan, Request
from rules.sql.statement import Reading

CITIES = PublicGroups((("Berlin",), ("Lyon",), ("Atlantis",), (None,)))
FOUND = PrivateGroups(measure=0, delta=Decimal("1e-9"))
UNITS, IDS = Measure("units", 1, Decimal(1)), Measure("sum of id", 1000, Decimal(1))


def block_of(
    *measures: Measure, groups: Groups = CITIES, sql: str | None = None, canonical: str = "customers by city"
) -> Block:
    """Customers by city: how many, and the sum of their numbers, as far as asked for."""
    aggregates = {"units": "count(*)", "sum of id": "sum(least(id, 1000))"}
    asked = ", ".join(aggregates[measure.name] for measure in measures)
    return Block(
        canonical=canonical,
        sql=sql or f"SELECT city, {asked} FROM public.customers GROUP BY city",
        keys=(KeyColumn("text", "city"),),
        groups=groups,
        measures=measures,
        outputs=tuple(
            Count(index) if measure.name == "units" else Sum(index, Fraction(1), 0)
            for index, measure in enumerate(measures)
        ),
        output_types=("bigint",) * len(measures),
        tables=("customers",),
    )


def plan_of(*blocks: Block) -> Plan:
    epsilon = sum((measure.epsilon for block in blocks for measure in block.measures), Decimal(0))
    return Plan(blocks, ("SELECT 1",), 0, epsilon, Decimal(0))


class HandPlanner:
    """Plans are handed in: the real planner has tests of its own."""

    def __init__(self, *plans: Plan) -> None:
        self._plans = {str(number): plan for number, plan in enumerate(plans)}
        self.loaded: list[tuple[Policy, Catalog]] = []

    async def load(self, policy: Policy, catalog: Catalog) -> None:
        self.loaded.append((policy, catalog))

    async def read(self, text: str, analyst: str) -> Reading:
        return Reading()

    async def plan(self, request: Request, analyst: str) -> Plan:
        return self._plans[request.text]
