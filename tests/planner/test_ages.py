"""Ages have the bounds of their moments, as PostgreSQL counts them: in years, months and days."""

from fractions import Fraction

import psycopg
import pytest

from rules.functions.coerce import find_span
from rules.mechanisms.noised_outputs import Average
from tests.planner.planned import Planner

DAY, YEAR = 86_400, 31_557_600  # seconds


def test_an_average_age_is_bounded_by_the_moments_that_it_lies_between(planner: Planner) -> None:
    (output,) = planner.block("SELECT avg(age(timestamptz '2025-01-01', birth_date)) FROM customers").outputs

    assert isinstance(output, Average)
    assert 11 * YEAR < output.low < 12.5 * YEAR
    assert 105 * YEAR <= output.high < 105.2 * YEAR


def test_an_interval_that_is_clamped_is_averaged_within_the_clamp(planner: Planner) -> None:
    """But for the 5.25 days by which a year is longer than twelve months when it is measured."""
    waited = "ordered_at - timestamptz '2025-01-01'"
    (output,) = planner.block(f"SELECT avg(greatest(least({waited}, '30 days'), '-1 day')) FROM orders").outputs

    assert isinstance(output, Average)
    assert -1.02 * DAY < output.low <= -DAY
    assert 30 * DAY <= output.high < 30.5 * DAY


@pytest.mark.parametrize("text", ["25 months -3 days 4 hours", "-13 months", "11 months 40 days", "-2 days 00:00:01"])
def test_an_interval_is_as_long_as_postgresql_has_it(planner: Planner, text: str) -> None:
    with psycopg.connect(planner.dsn) as connection:
        row = connection.execute(f"SELECT extract(epoch FROM interval '{text}')").fetchone()

    span = find_span(text)
    assert row is not None and span is not None
    assert span.length == 1_000_000 * Fraction(row[0])


def test_an_age_is_at_most_ten_days_and_a_forty_thousandth_off_the_time_between(planner: Planner) -> None:
    """All days of four centuries against each other's, some thousands of pairs, and some far apart."""
    off = """
    SELECT max(abs(extract(epoch FROM age(a, b)) - extract(epoch FROM a - b)) - abs(extract(epoch FROM a - b)) / 40000)
    FROM (SELECT timestamp '1800-01-01' + n * interval '37 days 5 hours',
                 timestamp '1801-03-01' + m * interval '811 days'
          FROM generate_series(0, 3900, 13) AS n, generate_series(0, 170) AS m
          UNION ALL SELECT timestamp '9999-12-31' - n * interval '1 day', timestamp '0001-01-01' + n * interval '3 days'
          FROM generate_series(0, 1500) AS n) AS pairs(a, b)
    """
    with psycopg.connect(planner.dsn) as connection:
        ((most,),) = connection.execute(off).fetchall()

    assert 0 < Fraction(most) <= 10 * 86_400
