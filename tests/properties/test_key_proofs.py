"""What unique keys and conditions prove of the rows of a unit, on values that tempt to prove too much."""

from hypothesis import event, example, given
from hypothesis import strategies as st

from rules.refusal import Refusal
from tests.properties.marks import PEOPLE, RULES, TEMPTING, VALUES, Asked, asked, each_value, inserted, rows
from tests.properties.moved import broken_claims
from tests.properties.planning import Lab, thorough


@example(script=inserted(each_value(VALUES)), queries=[Asked(text, None) for text in TEMPTING])
@example(script=inserted(each_value(VALUES)), queries=[Asked(TEMPTING[-1], "m.first")])
@thorough
@given(script=rows(), queries=st.lists(asked(), min_size=3, max_size=10))
def test_a_person_has_no_more_rows_than_are_proved(marks: Lab, script: str, queries: list[Asked]) -> None:
    with marks.connection.transaction(force_rollback=True):
        marks.script(f"{PEOPLE}; {script}")
        for query in queries:
            check_one(marks, query.sql)


def check_one(marks: Lab, sql: str) -> None:
    try:
        plan = marks.plan(sql, RULES)
    except Refusal as refusal:
        event(f"refused: {refusal.message[:60]}")
        return
    event("answered")
    if not plan.blocks:
        return  # no group can have rows
    (block,) = plan.blocks
    leave = "DELETE FROM marks WHERE person_id = 1; DELETE FROM people WHERE id = 1"
    assert not broken_claims(marks, block, leave), f"{sql}\n{marks.sql(block.statement)}"
