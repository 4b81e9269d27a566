"""Plans over the shop, written by hand, and a planner that hands them out."""

from decimal import Decimal
from fractions import Fraction

from rules.catalog import Catalog
from rules.kernel import measures as kernel
from rules.kernel.summand import Lattice, Summand
from rules.mechanisms.noised_outputs import Count, Sum
from rules.mechanisms.release_plan import Block, Groups, KeyColumn, Measure, PrivateGroups, PublicGroups
from rules.planner.plan import Plan, Request
from rules.policy.model import Policy
from rules.release.margins import Result, Value
from rules.sql.statement import Reading
from rules.values.expression import Column
from rules.values.types import INT4
from tests.support.written import FOUND_KEY, LISTED_KEY, statement_of

CITIES = PublicGroups((("Berlin",), ("Lyon",), ("Atlantis",), (None,)))
FAULTY = "SELECT city, (1 / (id - 7))::int FROM public.customers"  # of one row, which the planner does not meet
FOUND = PrivateGroups(measure=0, delta=Decimal("1e-9"))
UNITS, IDS = Measure("units", 1, Decimal(1)), Measure("sum of id", 1000, Decimal(1))
COUNTED: dict[str, kernel.Measure] = {
    "units": kernel.Count(),
    "sum of id": kernel.Sum(Summand(Column(1, INT4), Lattice(Fraction(1), 0, 1000))),
}


def block_of(
    *measures: Measure,
    groups: Groups = CITIES,
    sql: str | None = None,
    canonical: str = "customers by city",
    rows_per_unit: int = 1,
) -> Block:
    """Customers by city: how many, and the sum of their numbers, as far as asked for."""
    aggregates = {"units": "count(*)", "sum of id": "sum(least(id, 1000))"}
    asked = ", ".join(aggregates[measure.name] for measure in measures)
    return Block(
        canonical=canonical,
        statement=statement_of(
            sql or f"SELECT city, {asked} FROM public.customers GROUP BY city",
            [COUNTED[measure.name] for measure in measures],
            keys=(FOUND_KEY if isinstance(groups, PrivateGroups) else LISTED_KEY,),
            rows_per_unit=rows_per_unit,
        ),
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
    results = tuple(
        Result(f"m{output + 1}", number, Value(output))
        for number, block in enumerate(blocks)
        for output in range(len(block.outputs))
    )
    return Plan(blocks, ("SELECT 1",), 0, epsilon, Decimal(0), results=results)


class HandPlanner:
    """Plans are handed in: the real planner has tests of its own."""

    def __init__(self, *plans: Plan) -> None:
        self._plans = {str(number): plan for number, plan in enumerate(plans)}
        self.loaded: list[tuple[Policy, Catalog]] = []
        self.asked: list[Request] = []

    async def load(self, policy: Policy, catalog: Catalog) -> None:
        self.loaded.append((policy, catalog))

    async def read(self, text: str, analyst: str) -> Reading:
        return Reading()

    async def plan(self, request: Request, analyst: str) -> tuple[Plan, int]:
        self.asked.append(request)
        return self._plans[request.text], 1
