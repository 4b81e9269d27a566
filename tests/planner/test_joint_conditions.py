"""A list of rows in a condition leaves the groups of these rows, and an answer of one row multiplies none."""

import pytest

from rules.bind.inner_answers import keys
from rules.functions.coerce import number
from rules.mechanisms.release_plan import PublicGroups
from tests.planner.planned import Planner


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        ("(c.country, o.status) IN (('DE', 'paid'), ('FR', 'open'), ('AT', 'paid'))", 3),
        ("(c.country = 'DE' AND o.status = 'paid') OR ('open' = o.status AND c.country = 'FR' AND amount > 3)", 2),
        ("c.country = 'DE' AND o.status = 'paid'", 1),
        ("c.country = 'DE' AND o.status = 'paid' OR amount > 3", 16),
        ("NOT (c.country, o.status) IN (('DE', 'paid'), ('FR', 'open'))", 14),
    ],
)
def test_a_list_of_rows_leaves_their_groups(planner: Planner, condition: str, groups: int) -> None:
    sql = f"""SELECT c.country, o.status, count(*) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id
              WHERE {condition} GROUP BY 1, 2"""

    found = planner.block(sql).groups

    assert isinstance(found, PublicGroups)
    assert len(found.rows) == groups


def test_an_answer_of_one_row_multiplies_no_rows() -> None:
    one = (number("1"), number("2"))

    assert keys((one,), (7, 8)) == {frozenset()}
    assert keys((one, one), (7, 8)) == set()
