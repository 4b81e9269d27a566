"""Averages and sums of intervals: bounded branch by branch, and shown with the days and months of PostgreSQL's own."""

from fractions import Fraction

import psycopg
import pytest

from rules.mechanisms.noised_outputs import Average, Sum
from rules.planner.arrays import justified, of_seconds
from rules.refusal import NotAllowed
from rules.values.types import SpanForm
from tests.planner.planned import Planner

SPAN = "ordered_at - timestamptz '2024-01-01'"
DAY = 86_400


@pytest.mark.parametrize(
    ("argument", "form"),
    [
        (SPAN, "days"),
        (f"CASE WHEN status = 'paid' THEN {SPAN} END", "days"),
        (f"CASE status WHEN 'paid' THEN {SPAN} ELSE interval '2 days' END", "days"),
        (f"coalesce({SPAN}, interval '0')", "days"),
        ("CASE WHEN amount > 3 THEN age(ordered_at, timestamptz '2024-01-01') END", "months"),
        (f"CASE WHEN amount > 3 THEN age(ordered_at, timestamptz '2024-01-01') ELSE {SPAN} END", "months"),
    ],
)
def test_intervals_are_bounded_in_each_branch(planner: Planner, argument: str, form: SpanForm) -> None:
    block = planner.block(f"SELECT avg({argument}) FROM orders")
    (output,) = block.outputs

    assert isinstance(output, Average)
    assert -10 * DAY <= output.low <= 0
    assert 1_090 * DAY <= output.high <= 1_110 * DAY
    assert block.spans == (form,)


def test_a_branch_has_the_seconds_of_its_interval(planner: Planner) -> None:
    argument = f"CASE WHEN status = 'paid' THEN {SPAN} WHEN status = 'open' THEN interval '36 hours' END"
    few = "FROM orders WHERE customer_id IN (1, 2, 3)"
    ((truth,),) = planner.truth(f"SELECT sum(extract(epoch FROM {argument})) {few}")
    sql = f"SELECT sum({argument}) {few}"
    (output,) = planner.block(sql).outputs
    assert isinstance(output, Sum)

    ((total,),) = planner.run(sql)

    assert truth > 0
    assert abs(total * output.step - Fraction(truth)) < 1


def test_the_hint_names_what_is_summed_and_a_range_of_it(planner: Planner) -> None:
    sql = "SELECT avg(CASE WHEN is_vip THEN joined - timestamptz '2024-01-01' END) FROM customers"
    with pytest.raises(NotAllowed, match='"joined" has no bounds') as refusal:
        planner.block(sql)
    condition = refusal.value.hint.partition("select a range: ")[2].removesuffix(".")
    assert planner.block(f"{sql} {condition}")


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        ("1234567.5 seconds", "", "342:56:07.5"),
        ("1234567.5 seconds", "days", "14 days 06:56:07.5"),
        ("-1234567.5 seconds", "days", "-14 days -06:56:07.5"),
        ("1115683200 seconds", "months", "35 years 4 mons 7 days 12:00:00"),
        ("86400 seconds", "months", "1 day"),
        ("-63115200 seconds", "months", "-2 years"),
    ],
)
def test_an_interval_of_seconds_is_shown_with_days_and_months(
    planner: Planner, value: str, form: SpanForm, shown: str
) -> None:
    written = justified(f"interval '{value}'", form)
    with psycopg.connect(planner.dsn) as connection:
        ((made,),) = connection.execute(f"SELECT ({written})::text").fetchall()
    assert made == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        ("'-90061.5'", "-25:01:01.5"),
        ("'56779439939510.3'", "657169443 days 17:51:50.3"),
        ("'-56779439939510.3'", "-657169443 days -17:51:50.3"),
        ("'999999999999999999'", None),
        ("NULL", None),
    ],
)
def test_a_sum_of_intervals_is_shown_however_long_it_is(planner: Planner, seconds: str, shown: str | None) -> None:
    """More seconds than an interval can have failed after the charge."""
    with psycopg.connect(planner.dsn) as connection:
        row = connection.execute(
            f"SELECT ({of_seconds('a.m1')})::text FROM (SELECT {seconds}::text) AS a(m1)"
        ).fetchone()
    assert row == (shown,)


def test_an_average_age_is_shown_within_a_week_of_postgresqls_own(planner: Planner) -> None:
    """PostgreSQL averages months and days by themselves; here they come from the seconds that it counts of ages."""
    until = "timestamptz '2025-01-01'"
    sql = f"SELECT avg(age({until}, birth_date)), avg({until} - birth_date) FROM customers"
    with psycopg.connect(planner.dsn) as connection:
        shown = connection.execute(
            "WITH a AS (SELECT avg(age(timestamptz '2025-01-01', birth_date)) AS own,"
            " avg(extract(epoch FROM age(timestamptz '2025-01-01', birth_date))) * interval '1 second' AS seconds"
            f" FROM customers) SELECT own::text, abs(extract(epoch FROM own - {justified('seconds', 'months')})) FROM a"
        ).fetchone()

    assert planner.block(sql).spans == ("months", "days")
    assert shown is not None
    assert shown[1] < 7 * DAY
