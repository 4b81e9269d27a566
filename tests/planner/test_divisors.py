"""What divides every answer by zero is refused before anything is paid; what may be answered is not."""

import pytest

from tests.planner.planned import Planner


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) / 0 FROM customers",
        "SELECT city, 1 + sum(1) % 0 FROM customers GROUP BY city",
        "SELECT avg(amount) / 0.00 FROM orders",
        "SELECT mod(count(*), 0) FROM customers",
        "SELECT n / 0::numeric FROM (SELECT count(*) AS n FROM customers) AS t",
        "SELECT count(*) FROM customers HAVING count(*) / 0e3 > 1",
    ],
)
def test_a_constant_zero_below_an_answer_is_refused(planner: Planner, text: str) -> None:
    assert planner.refusal(text).sqlstate == "22012"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(id / 0) FROM customers",
        "SELECT count(*) FROM orders WHERE amount / 0 > 1",
        "SELECT amount % 0, count(*) FROM orders GROUP BY 1",
        "SELECT 0 / count(*), count(*) / 0.001, count(*) / 10, count(*) * 0 FROM customers",
        "SELECT count(*) / nullif(0, 0) FROM customers",
        "SELECT NULL / 0, NULL::int % 0, count(*) FROM customers",
        "SELECT count(*) FROM orders WHERE amount > NULL / 0 OR amount / NULL > 1",
    ],
)
def test_rows_have_null_there_and_other_divisors_are_as_they_are(planner: Planner, text: str) -> None:
    assert planner.plan(text).blocks


@pytest.mark.parametrize(
    ("text", "divided"),
    [
        ("SELECT city, sum(1) / count(*) FROM customers GROUP BY city", "/ (NULLIF(_ng1.m2, 0))"),
        ("SELECT mod(count(*), sum(1)) FROM customers", ", NULLIF(_ng1.m2, 0))"),
        ("WITH a AS (SELECT sum(1) AS s, count(*) AS n FROM customers) SELECT s % n FROM a", "% (NULLIF(n, 0))"),
        ("SELECT 1 FROM orders HAVING sum(amount) / (count(*) - 1) > 2", "/ (NULLIF(_ng1.m2 - 1, 0))"),
    ],
)
def test_what_is_divided_by_an_answer_of_zero_is_null(planner: Planner, text: str, divided: str) -> None:
    """Noise makes a zero of it where a group has nobody, and an error would take an answer that is paid."""
    assert divided in "".join(map(str, planner.plan(text).outer))
