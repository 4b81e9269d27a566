"""Planning and running blocks on the laboratory's database, exactly: the noise is left out."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis.vendor.pretty import RepresentationPrinter

from proxy.twin.own_objects import create_defined
from rules.bind.inner_answers import InnerAnswer
from rules.catalog import Catalog
from rules.kernel.bounded import Statement
from rules.kernel.ground import Ground
from rules.kernel.special.blocks import BlockStatement
from rules.mechanisms.draw import in_whole
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block, GroupsFoundFirst, Measure, PublicGroups
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.release.bound_ladder import tallies
from rules.release.empty_groups import shown_groups
from rules.release.release import Noised, columns
from rules.release.sensitivity import over, settled
from rules.replay import Kernel
from tests.mechanisms.sent import sent
from tests.planner.planned import groups_by_cells, public_groups

Group = tuple[Text, ...]
Exact = Mapping[Group, tuple[int, ...]]

PINNED = """
SET search_path = ''; SET TimeZone = 'Europe/Berlin'; SET DateStyle = 'ISO, YMD'; SET extra_float_digits = 1;
SET client_min_messages = error
"""

PARALLEL = (
    "SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; "
    "SET LOCAL max_parallel_workers_per_gather = 2"
)

# Ways to have PostgreSQL evaluate a query in another order.
FORCED = (
    "",
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off",
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off; SET LOCAL enable_hashagg = off",
    "SET LOCAL enable_mergejoin = off; SET LOCAL enable_nestloop = off; SET LOCAL enable_sort = off",
    PARALLEL,
    "SET LOCAL join_collapse_limit = 1; SET LOCAL from_collapse_limit = 1; SET LOCAL work_mem = '64kB'",
)

# A few of each property for every change; CI asks for hundreds.
EXAMPLES = int(os.environ.get("NOISEGATE_EXAMPLES", "12"))
# Of lists of lies and constants so many are tried: all of them where examples are many.
DEPTH = max(1, EXAMPLES // 50)
# While the planner changes: NOISEGATE_QUICK shows the first counter-example without making it small.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, *([] if "NOISEGATE_QUICK" in os.environ else [Phase.shrink])]
thorough = settings(max_examples=EXAMPLES, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True, repr=False)
class Lab:
    """An open transaction over the laboratory's tables, and what a planner knows of them."""

    connection: psycopg.Connection
    catalog: Catalog
    kernels: list[Kernel] = field(default_factory=list, compare=False)  # the last is that of the last plan

    @property
    def kernel(self) -> Kernel:
        return self.kernels[-1]

    def plan_kernel(self, policy: Policy) -> None:
        """Replay by a kernel of its own, which was there for none of the planning."""
        self.kernels[:] = [Kernel(Ground(policy, self.catalog))]

    def sql(self, statement: Statement | BlockStatement) -> str:
        """The text of a statement over the tables of the last plan."""
        return self.kernel.bounded(statement).sql

    def tally_sql(self, block: Block) -> str:
        return "" if block.tally is None else self.kernel.tally(block.tally).sql

    def settled(self, block: Block, bounds: Sequence[int]) -> Block:
        """The block with these bounds on its ladders."""
        return settled(block, bounds, self.kernel, 1)

    def __repr__(self) -> str:
        return "lab"

    def _repr_pretty_(self, printer: RepresentationPrinter, is_cycle: bool) -> None:
        """As Hypothesis shows it: a catalog is long."""
        printer.text("lab")

    def script(self, text: str) -> None:
        """Change the tables, whose names need no schema there."""
        if self.catalog.version < 140000:  # whose numeric has no infinities
            text = text.replace("-Infinity", "NaN").replace("Infinity", "NaN")
        try:
            self.connection.execute(f"SET LOCAL search_path = public; {text}; SET LOCAL search_path = ''")
        except psycopg.Error as error:
            raise AssertionError(text) from error

    def is_read(self, sql: str) -> bool:
        """Whether PostgreSQL itself can parse a statement: the twin refuses others before they are planned."""
        try:
            with self.connection.transaction(force_rollback=True):
                self.connection.execute("SET LOCAL search_path = public")
                self.connection.execute(f"PREPARE asked AS {sql}", prepare=False)
                self.connection.execute("DEALLOCATE asked")
        except psycopg.Error:
            return False
        return True

    def plan(
        self,
        sql: str,
        policy: Policy,
        *,
        rows_per_unit: int | None = None,
        groups_per_unit: int | None = None,
        is_auto: bool | None = None,
        sums_auto: bool | None = None,
        time_zone: str = "Europe/Berlin",
    ) -> Plan:
        """With bounds as the rules declare, or chosen: of rows and sums alike, unless said otherwise of sums."""
        request = Request(
            text=sql,
            search_path=("pg_catalog", "public"),
            epsilon=Decimal(1),
            delta=Decimal("1e-9"),
            rows_per_unit=rows_per_unit,
            groups_per_unit=groups_per_unit,
            rows_auto=is_auto,
            sums_auto=is_auto if sums_auto is None else sums_auto,
            time_zone=time_zone,
            now="2024-02-15 12:00:00+00:00",
        )
        kernel = Kernel(Ground(policy, self.catalog))
        self.kernels[:] = [kernel]
        while isinstance(made := plan(request, policy, self.catalog, kernel), NeedsInner):
            request = replace(request, released=(*request.released, self._answered(made, request, policy)))
        return replace(made, blocks=tuple(map(self._over_found, made.blocks)))

    def _over_found(self, block: Block) -> Block:
        """The block over all groups that its rows have now, where another one finds them first."""
        if not isinstance(block.groups, GroupsFoundFirst):
            return block
        return over(block, tuple(self.exact(block.groups.finder)), self.kernel, 1)

    def _answered(self, first: NeedsInner, request: Request, policy: Policy) -> InnerAnswer:
        """The rows of an inner query, exactly."""
        if first.inner.use in ("groups", "bounds"):
            return public_groups(self.connection, first, request.time_zone)
        made = self.plan(first.text, policy, groups_per_unit=request.groups_per_unit)
        outer = self.outer(made)
        found = self.run(f"SELECT * FROM ({outer}) AS a LIMIT 0", made)
        names = tuple(column.name for column in found.description or ())
        types = self.connection.execute(
            "SELECT pg_catalog.format_type(t, NULL) FROM pg_catalog.unnest(%s::oid[]) AS t",
            [[column.type_code for column in found.description or ()]],
        ).fetchall()
        columns = [f"c{place}" for place in range(len(names))]
        shown = ", ".join(f"a.{column}::text" for column in columns)
        rows = self.run(f"SELECT {shown} FROM ({outer}) AS a({', '.join(columns)})", made).fetchall()
        return InnerAnswer(first.inner, names, tuple(name for (name,) in types), tuple(rows))

    @staticmethod
    def outer(made: Plan) -> str:
        """The outer statement as psycopg reads it."""
        return "".join(part.replace("%", "%%") if isinstance(part, str) else f"%(a{part})s" for part in made.outer)

    def run(self, text: str, made: Plan, *, hides_empty: bool = False) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run an outer statement, or something around it, over the exact answers of its blocks."""
        answered: list[tuple[Block, Noised]] = []
        for block in made.blocks:
            exact = self.exact(block)
            numbers = {
                index: tuple(in_whole(numbers[index], measure.factor) for numbers in exact.values())
                for index, measure in enumerate(block.measures)
            }
            answered.append((block, Noised(tuple(exact), numbers)))
        kept = [shown.kept if hides_empty else None for shown in shown_groups(answered)]
        arrays = [list(column) for pair, own in zip(answered, kept, strict=True) for column in columns(*pair, own)]
        with self.connection.transaction(force_rollback=True):
            if "noisegate_" in text:
                self.connection.execute("; ".join(step.sql for step in create_defined("pg_catalog.noisegate_")))
            self.connection.execute("SET LOCAL search_path = public")
            return self.connection.execute(text, {f"a{place}": array for place, array in enumerate(arrays, start=1)})

    def tallies(self, block: Block) -> tuple[list[int], ...]:
        """The true numbers of units by ladder and rung."""
        if not block.ladders:
            return ()
        rows = self.connection.execute(self.tally_sql(block)).fetchall()
        return tallies(block, sent(rows))

    def exact(self, block: Block) -> Exact:
        """The true integers by group: of all listed groups, or of all that are found."""
        width = block.key_cells
        rows: dict[Group, tuple[int, ...]] = {}
        group_at = groups_by_cells(block)
        for row in self.connection.execute(self.sql(block.statement)).fetchall():
            group, numbers = group_at(row[:width]), tuple(row[width:])
            if group is not None:
                rows[group] = tuple(map(int.__add__, rows[group], numbers)) if group in rows else numbers
        if isinstance(block.groups, PublicGroups):
            nothing = (0,) * len(block.measures)
            return {group: rows.get(group, nothing) for group in block.groups.rows}
        return rows


def distance(one: Exact, other: Exact, measure: int) -> int:
    """How far two answers are apart in one measure, over all groups together."""
    groups = one.keys() | other.keys()
    return sum(abs(_number(one, group, measure) - _number(other, group, measure)) for group in groups)


def squared_distance(one: Exact, other: Exact, measure: int) -> int:
    """The square of their distance in L2, over all groups together."""
    groups = one.keys() | other.keys()
    return sum((_number(one, group, measure) - _number(other, group, measure)) ** 2 for group in groups)


def overmoved(block: Block, one: Exact, other: Exact) -> list[str]:
    """The measures that are further apart than their noise was made for, Laplace's by L1 and Gaussian by L2."""
    found = []
    for place, measure in enumerate(measure for measure in block.measures if isinstance(measure, Measure)):
        if (moved := distance(one, other, place)) > measure.sensitivity:
            found.append(f"{measure.name}: {moved} > {measure.sensitivity}")
        if (squared := squared_distance(one, other, place)) > measure.squared:
            found.append(f"{measure.name} squared: {squared} > {measure.squared}")
    return found


def _number(exact: Exact, group: Group, measure: int) -> int:
    return exact[group][measure] if group in exact else 0
