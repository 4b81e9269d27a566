"""The wide world: what is believed of any relation is true, and one unit moves nothing further than is claimed."""

from dataclasses import dataclass

import psycopg
from hypothesis import event, given
from hypothesis import strategies as st

from rules.planner.plan import Plan
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties import wide_rows as wide
from tests.properties.moved import broken_choices, broken_claims, told_by_place
from tests.properties.planning import FORCED, Lab, thorough
from tests.properties.test_facts import lies_in, planned_relations
from tests.properties.wide_sources import statements

UNITS = sorted(wide.UNITS)


@dataclass(frozen=True)
class How:
    """What a session says: how many rows and groups of a unit count, and whether bounds are chosen; on which rungs."""

    rows: int | None = None
    groups: int | None = None
    is_auto: bool | None = None
    forced: str = ""  # settings by which PostgreSQL chooses other plans
    places: tuple[float, ...] = (0.0,) * 8


how_asked = st.builds(
    How,
    rows=st.sampled_from((None, None, None, 1, 2)),
    groups=st.sampled_from((None, None, 1, 2)),
    is_auto=st.sampled_from((None, None, True)),
    forced=st.sampled_from(FORCED),
    places=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 8),
)


@thorough
@given(
    unit=st.sampled_from(UNITS),
    limits=wide.limits(),
    most=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    how=how_asked,
    seed=st.integers(0, 2**20),
    asked=statements(),
    leaver=st.sampled_from((0, 0, 0, 1, 2)),
)
def test_no_relation_claims_what_its_rows_deny(
    worlds: dict[str, Lab],
    unit: str,
    limits: wide.Limits,
    most: tuple[int, int],
    how: How,
    seed: int,
    asked: tuple[str, ...],
    leaver: int,
) -> None:
    with worlds[unit].connection.transaction(force_rollback=True):
        worlds[unit].connection.execute(how.forced or "SELECT")
        lab = Lab(worlds[unit].connection, limits.apply(worlds[unit].connection, worlds[unit].catalog))
        lab.script(wide.rows(unit, seed, limits))
        for sql in asked:
            check_one(lab, sql, wide.rules(*most), wide.leave(unit, leaver), how)


@thorough
@given(
    limits=wide.limits(),
    seed=st.integers(0, 2**20),
    asked=statements(by_row=True),
    leaver=st.integers(0, 100),
)
def test_no_relation_of_rows_as_units_claims_what_its_rows_deny(
    worlds: dict[str, Lab], limits: wide.Limits, seed: int, asked: tuple[str, ...], leaver: int
) -> None:
    world = worlds["integer"]
    with world.connection.transaction(force_rollback=True):
        lab = Lab(world.connection, limits.apply(world.connection, world.catalog))
        lab.script(wide.rows("integer", seed, limits))
        for sql in asked:
            check_one(lab, sql, wide.rules_by_row(), wide.leave_row(leaver), How(rows=3))


def check_one(lab: Lab, sql: str, rules: Policy, leave: str, how: How) -> None:
    """One statement, which fails on no row."""
    if not lab.is_read(sql):
        event("not SQL")
        return
    try:
        check_claims(lab, sql, rules, leave, how)
    except psycopg.Error as error:
        raise AssertionError(sql) from error


def check_claims(lab: Lab, sql: str, rules: Policy, leave: str, how: How) -> None:
    """Every fact of every relation in a statement, and every measure with and without a unit."""
    plan: Plan | None = None
    with planned_relations() as planned:
        try:
            plan = lab.plan(sql, rules, rows_per_unit=how.rows, groups_per_unit=how.groups, is_auto=how.is_auto)
        except Refusal as refusal:
            event(f"refused: {refusal.message[:60]}")
    assert not (found := lies_in(lab, planned)), f"{sql}\n{found}"
    event("answered" if plan is not None else "refused")
    for block in () if plan is None else plan.blocks:
        if block.ladders:
            event("with bounds that are chosen")
            assert not (broken := broken_choices(lab, block, leave)), f"{sql}\n{lab.tally_sql(block)}\n{broken}"
        rungs = [
            ladder.rungs[int(place * len(ladder.rungs))]
            for ladder, place in zip(block.ladders, how.places, strict=False)
        ]
        chosen = lab.settled(block, rungs)
        assert not (broken := broken_claims(lab, chosen, leave)), f"{sql}\n{lab.sql(chosen.statement)}\n{broken}"
        assert not told_by_place(lab, chosen, wide.TABLES), f"{sql}\n{lab.sql(chosen.statement)}"
