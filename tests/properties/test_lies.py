"""A lying planner costs meaning, never privacy: the kernel enforces all that it says, and fails on no row."""

from collections import Counter

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.kernel.relation import Relation
from rules.kernel.render import Renderer
from rules.mechanisms.release_plan import Block
from rules.planner.plan import Plan
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties import wide_rows as wide
from tests.properties.lies import ZONES, elsewhere, lying
from tests.properties.moved import all_numbers, broken_claims, left_out
from tests.properties.planning import EXAMPLES, Lab, thorough
from tests.properties.wide_sources import statements

PLANS = (
    "",
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_hashagg = off",
    "SET LOCAL enable_mergejoin = off; SET LOCAL enable_sort = off; SET LOCAL enable_nestloop = off",
    "SET LOCAL work_mem = '64kB'; SET LOCAL enable_material = off",
    "SET LOCAL debug_parallel_query = on; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0",
)
NO_LIMITS = wide.Limits((), (), (), (), inherited=False)
# How code ends that was told what cannot be: the planner's process answers with a refusal then. PostgreSQL's own errors
# are of lists that are read from public tables before anything is charged, as with a constant that no integer holds.
CONFUSED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, psycopg.Error)
KINDS = (
    "domain",
    "declared",
    "NULLs",
    "keys",
    "determined",
    "rows of a unit",
    "form",
    "cap of rows",
    "list",
    "links",
    "zone",
)


def test_whatever_a_planner_believes_one_unit_moves_nothing_further_than_the_kernel_says(
    worlds: dict[str, Lab],
) -> None:
    seen: Counter[str] = Counter()

    @thorough
    @given(
        unit=st.sampled_from(sorted(wide.UNITS)),
        limits=wide.limits(),
        rows=st.integers(0, 2**20),
        asked=statements(),
        leaver=st.sampled_from((0, 0, 0, 1, 2)),
        lie=st.integers(0, 2**20),
        rate=st.sampled_from((0.02, 0.1, 0.3)),
        setting=st.sampled_from(PLANS),
    )
    def check(
        unit: str,
        limits: wide.Limits,
        rows: int,
        asked: tuple[str, ...],
        leaver: int,
        lie: int,
        rate: float,
        setting: str,
    ) -> None:
        with worlds[unit].connection.transaction(force_rollback=True):
            lab = Lab(worlds[unit].connection, limits.apply(worlds[unit].connection, worlds[unit].catalog))
            lab.script(wide.rows(unit, rows, limits))
            for sql in asked:
                if lab.is_read(sql):
                    check_lies(lab, sql, wide.rules(3, 3), wide.leave(unit, leaver), lie, rate, setting, seen)

    check()
    # A test whose lies change nothing, or of which most are refused, would say nothing.
    assert seen["answered"] >= EXAMPLES // 10, seen
    assert seen["another statement"] >= seen["answered"] // 4, seen
    assert seen["failed in planning"] <= seen["answered"] // 10, seen
    assert seen["confused"] <= seen["answered"] // 10, seen
    if EXAMPLES >= 100:  # a dozen, as the default run tries, need not meet each kind
        assert all(seen[f"lies about {kind}"] for kind in KINDS), seen


# Hours around the night in which a clock is put forward, days, and moments that are added up.
NIGHT = "UPDATE visits SET at = '2024-03-30 20:00+00'::timestamptz + id::text::integer * interval '35 minutes'"
BY_THE_CLOCK = (
    "SELECT date_trunc('hour', at) AS hour, count(*), sum(n) FROM visits WHERE at >= '2024-03-30' AND at < '2024-04-02'"
    " GROUP BY 1",
    "SELECT at::date AS day, count(*), count(DISTINCT kind) FROM visits GROUP BY 1",
    "SELECT (at AT TIME ZONE 'America/New_York')::date AS day, count(DISTINCT person_id) FROM visits GROUP BY 1",
    "SELECT avg(extract(epoch FROM date_trunc('hour', at))), max(at), min(at::date) FROM visits",
)


@pytest.mark.parametrize("sql", BY_THE_CLOCK)
def test_a_wrong_table_of_time_zones_moves_nothing_further_than_the_kernel_says(
    worlds: dict[str, Lab], sql: str
) -> None:
    unit = sorted(wide.UNITS)[0]
    plans = set()
    with worlds[unit].connection.transaction(force_rollback=True):
        lab = Lab(worlds[unit].connection, worlds[unit].catalog)
        lab.script(f"{wide.rows(unit, 7, NO_LIMITS)}; {NIGHT}")
        rules = wide.rules(3, 3)
        for zone in ZONES:
            with elsewhere(zone):
                plan = lab.plan(sql, rules, rows_per_unit=2)
            lab.plan_kernel(rules)
            plans.add(str(_statements(lab, plan)))
            for leaver in range(3):
                for block in plan.blocks:
                    check_block(lab, sql, block, wide.leave(unit, leaver))
    assert len(plans) > 1, "no table of zones was used"


def check_lies(
    lab: Lab, sql: str, rules: Policy, leave: str, lie: int, rate: float, setting: str, seen: Counter[str]
) -> None:
    plan: Plan | None = None
    with lying(lie, rate) as told:
        try:
            with lab.connection.transaction():
                plan = lab.plan(sql, rules, rows_per_unit=2)
        except Refusal:
            seen["refused"] += 1
        except CONFUSED:
            seen["confused"] += 1
    seen.update(f"lies about {kind}" for kind in told)
    if plan is None:
        return
    seen["answered"] += 1
    seen["another statement"] += _statements(lab, plan) != _statements(lab, _honest(lab, sql, rules))
    lab.plan_kernel(rules)
    with lab.connection.transaction(force_rollback=True):
        known = lab.connection.info.server_version >= 160_000  # as debug_parallel_query
        set_up = setting if known else setting.replace("debug_parallel_query", "force_parallel_mode")
        lab.connection.execute(f"{set_up}; SELECT 1" if set_up else "SELECT 1")
        for block in plan.blocks:
            if _fails_without_rows(lab, block):
                seen["failed in planning"] += 1  # before anything is charged, whatever the rows are
            else:
                check_block(lab, sql, block, leave)


def _fails_without_rows(lab: Lab, block: Block) -> bool:
    """Whether a constant that was made up, as a label that an enum does not have, is what fails."""
    tables = ", ".join(str(table.name) for table in lab.catalog.tables if "table" in table.kind)
    try:
        with left_out(lab, f"TRUNCATE {tables} CASCADE"):
            all_numbers(lab, block)
    except psycopg.Error:
        return True
    return False


def check_block(lab: Lab, sql: str, block: Block, leave: str) -> None:
    """No number moves further than is claimed, no row of another unit changes, and nothing fails."""
    text = f"{sql}\n{lab.sql(block.statement)}"
    try:
        assert not (broken := broken_claims(lab, block, leave)), f"{text}\n{broken}"
        relation = lab.kernel.relation(block.statement.rows)
        whole = _rows(lab, relation)
        with left_out(lab, leave):
            without = _rows(lab, relation)
        assert not without - whole, f"{text}\nrows that only come when another unit leaves: {without - whole}"
        assert len({row[0] for row in whole - without}) <= 1, f"{text}\nrows of several units leave with one"
    except psycopg.Error as error:
        raise AssertionError(f"{error}\n{text}") from error


def _rows(lab: Lab, relation: Relation) -> Counter[tuple[str | None, ...]]:
    """All rows as texts, the unit first."""
    assert relation.unit is not None
    unit = relation.unit.column
    numbers = [number for number in relation.types if number != unit]
    source = Renderer().render(relation, frozenset(relation.types))
    first = "NULL" if unit is None else f"({source.names[unit]})::text"
    columns = ", ".join([first, *(f"({source.names[number]})::text" for number in numbers)])
    return Counter(lab.connection.execute(f"SELECT {columns} {source.clause()}").fetchall())


def _honest(lab: Lab, sql: str, rules: Policy) -> Plan | None:
    try:
        return lab.plan(sql, rules, rows_per_unit=2)
    except Refusal:
        return None


def _statements(lab: Lab, plan: Plan | None) -> list[str]:
    return [] if plan is None else [lab.sql(block.statement) for block in plan.blocks]
