"""What divides every answer by zero is refused before anything is paid; other undefined values are NULL."""

import pytest

from tests.planner.planned import Planner


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) / 0 FROM customers",
        "SELECT city, 1 + sum(1) % 0 FROM customers GROUP BY city",
        "SELECT avg(amount) / 0.00 FROM orders",
        "SELECT avg(amount) / 0_0.0_0 FROM orders",
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
    ("text", "guarded"),
    [
        ("SELECT city, sum(1) / count(*) FROM customers GROUP BY city", "/ pg_catalog.noisegate_divisor(_ng1.m2)"),
        ("SELECT mod(count(*), sum(1)) FROM customers", ", pg_catalog.noisegate_divisor(_ng1.m2))"),
        (
            "WITH a AS (SELECT sum(1) AS s, count(*) AS n FROM customers) SELECT s % n FROM a",
            "% pg_catalog.noisegate_divisor(n)",
        ),
        ("SELECT 1 FROM orders HAVING sum(amount) / (count(*) - 1) > 2", "noisegate_divisor(_ng1.m2 - 1)"),
        ("SELECT sqrt(n) FROM (SELECT count(*) AS n FROM orders) t", "sqrt(pg_catalog.noisegate_not_negative(n))"),
        ("SELECT sqrt(ln(count(*))) FROM orders", "not_negative(ln(pg_catalog.noisegate_positive(_ng1.m1)))"),
        ("SELECT (sum(1) / 2.0) ^ (1.0 / 3) FROM orders", "noisegate_base_of_power(_ng1.m1 / 2.0, 1.0 / 3)"),
        ("SELECT log(2, count(*)) FROM orders", "noisegate_base_of_log(2), pg_catalog.noisegate_positive_numeric("),
    ],
)
def test_what_is_undefined_of_an_answer_is_null(planner: Planner, text: str, guarded: str) -> None:
    """Noise makes a zero of it where a group has nobody, and an error would take an answer that is paid."""
    assert guarded in "".join(map(str, planner.plan(text).outer))


def test_powers_of_powers_are_not_written_out_again_and_again(planner: Planner) -> None:
    tower = "2 ^ (" * 20 + "count(*)" + ")" * 20
    assert len("".join(map(str, planner.plan(f"SELECT {tower} FROM orders").outer))) < 5_000
