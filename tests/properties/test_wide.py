"""The wide world: what is believed of any relation is true, and one unit moves nothing further than is claimed."""

from collections import defaultdict

from hypothesis import event, given
from hypothesis import strategies as st

from rules.noise.measures import Block
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.rewrite.plan import Plan
from tests.properties import wide_rows as wide
from tests.properties.moved import broken_claims
from tests.properties.planning import Lab, thorough
from tests.properties.test_facts import lies_in, planned_relations
from tests.properties.wide_sources import statements

UNITS = sorted(wide.UNITS)


@thorough
@given(
    unit=st.sampled_from(UNITS),
    limits=wide.limits(),
    most=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    seed=st.integers(0, 2**20),
    asked=st.lists(statements(), min_size=1, max_size=6),
    leaver=st.integers(0, 2),
)
def test_no_relation_claims_what_its_rows_deny(
    worlds: dict[str, Lab],
    unit: str,
    limits: wide.Limits,
    most: tuple[int, int],
    seed: int,
    asked: list[str],
    leaver: int,
) -> None:
    with worlds[unit].connection.transaction(force_rollback=True):
        lab = Lab(worlds[unit].connection, limits.apply(worlds[unit].connection, worlds[unit].catalog))
        lab.script(wide.rows(unit, seed))
        for sql in asked:
            check_one(lab, sql, wide.rules(*most), wide.leave(unit, leaver))


@thorough
@given(
    limits=wide.limits(),
    seed=st.integers(0, 2**20),
    asked=st.lists(statements(by_row=True), min_size=1, max_size=6),
    leaver=st.integers(0, 100),
)
def test_no_relation_of_rows_as_units_claims_what_its_rows_deny(
    worlds: dict[str, Lab], limits: wide.Limits, seed: int, asked: list[str], leaver: int
) -> None:
    world = worlds["integer"]
    with world.connection.transaction(force_rollback=True):
        lab = Lab(world.connection, limits.apply(world.connection, world.catalog))
        lab.script(wide.rows("integer", seed))
        for sql in asked:
            check_one(lab, sql, wide.rules_by_row(), wide.leave_row(leaver), rows_per_unit=3)


def check_one(lab: Lab, sql: str, rules: Policy, leave: str, *, rows_per_unit: int | None = None) -> None:
    """One statement: every fact of every relation in it, and every measure with and without a unit."""
    if not lab.is_read(sql):
        event("not SQL")
        return
    plan: Plan | None = None
    with planned_relations() as planned:
        try:
            plan = lab.plan(sql, rules, rows_per_unit=rows_per_unit)
        except Refusal as refusal:
            event(f"refused: {refusal.message[:60]}")
    assert not (found := lies_in(lab, planned)), f"{sql}\n{found}"
    if plan is None:
        return
    event("answered")
    named: dict[str, list[Block]] = defaultdict(list)
    for block in plan.blocks:
        named[block.canonical].append(block)
        assert not (broken := broken_claims(lab, block, leave)), f"{sql}\n{block.sql}\n{broken}"
