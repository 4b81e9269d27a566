"""The heart of the guarantee: leaving out one person moves no measure further than its noise was made for."""

from hypothesis import event, given
from hypothesis import strategies as st

from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties.moved import broken_claims
from tests.properties.planning import Lab, thorough
from tests.support import lab as tables
from tests.support.lab import Data
from tests.support.strategies import Query, queries


@thorough
@given(
    schema=st.integers(0, len(tables.VARIANTS) - 1),
    rules=tables.any_rules(),
    rows=tables.data(),
    asked=st.lists(queries(), min_size=1, max_size=4),
    leaver=st.sampled_from("1234"),
)
def test_one_person_moves_no_measure_further_than_its_sensitivity(
    labs: tuple[Lab, ...], schema: int, rules: Policy, rows: Data, asked: list[Query], leaver: str
) -> None:
    """And no row makes the inner statement fail: the tables hold the worst values of every type."""
    lab = labs[schema]
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows, tables.VARIANTS[schema]))
        for query in asked:
            check_one(lab, query.sql, leaver, rules)


def check_one(lab: Lab, sql: str, leaver: str, rules: Policy) -> None:
    """One statement with and without a person; refusals are as good as answers here."""
    try:
        plan = lab.plan(sql, rules)
    except Refusal as refusal:
        event(f"refused: {refusal.message[:60]}")
        return
    event("answered")
    for block in plan.blocks:
        assert not broken_claims(lab, block, tables.delete(leaver)), f"{sql}\n{lab.sql(block.statement)}"
