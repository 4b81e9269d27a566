"""Values and their texts mean to the planner what they mean to PostgreSQL."""

from datetime import datetime
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rules.functions.coerce import find_span
from rules.functions.datetime.truncation import truncate
from rules.values import value
from rules.values.types import DATE, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import Span
from tests.conftest import RealDatabase

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia")
MOMENTS = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2037, 12, 31))
thorough = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


def _ask(shop: RealDatabase, zone: str, sql: str, *arguments: str) -> tuple[str, ...]:
    with shop.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'; SET DateStyle = 'ISO, YMD'")
        row = connection.execute(sql, arguments).fetchone()
    assert row is not None
    return row


@thorough
@given(moment=MOMENTS, zone=st.sampled_from(ZONES))
def test_moments_are_read_and_printed_as_postgresql_does(shop: RealDatabase, moment: object, zone: str) -> None:
    """With clocks put forward and back; also the start of the month and a month later."""
    text = str(moment)
    sql = """
        SELECT %s::timestamp::text, %s::timestamptz::text, %s::date::text, date_trunc('month', %s::timestamp)::text,
               (%s::timestamp + interval '1 month 2 days 03:04:05')::text, date_trunc('week', %s::timestamp)::text
    """
    plain, zoned, day, month, later, week = _ask(shop, zone, sql, *[text] * 6)
    local = value.find_value(text, TIMESTAMP)
    assert isinstance(local, Fraction)
    assert value.text_of(local, TIMESTAMP) == plain
    instant = value.find_value(text, TIMESTAMPTZ, zone)
    assert isinstance(instant, Fraction)
    assert value.text_of(instant, TIMESTAMPTZ, zone) == zoned
    found_day = value.find_value(text, DATE)
    assert isinstance(found_day, Fraction)
    assert value.text_of(found_day, DATE) == day
    assert value.text_of(Fraction(truncate(int(local), "month")), TIMESTAMP) == month
    assert value.text_of(Fraction(truncate(int(local), "week")), TIMESTAMP) == week
    moved = value.add_span(int(local), find_span("1 month 2 days 03:04:05") or Span())
    assert moved is not None
    assert value.text_of(Fraction(moved), TIMESTAMP) == later


@thorough
@given(number=st.decimals(-(10**6), 10**6, places=4), scale=st.integers(0, 4))
def test_numbers_are_rounded_as_numeric_rounds_them(shop: RealDatabase, number: object, scale: int) -> None:
    (expected,) = _ask(shop, "UTC", f"SELECT (%s::numeric(12,{scale}))::text", str(number))
    given_type = Type("numeric", size=12, scale=scale)
    found = value.find_value(str(number), given_type)
    assert isinstance(found, Fraction)
    assert value.text_of(found, given_type) == expected


def test_what_is_no_value_is_not_guessed() -> None:
    for text in ("yesterday", "2024-02-30", "31/12/2024", "2024-01-01 25:00", "infinity", "0044-03-15 BC"):
        assert value.find_value(text, TIMESTAMP) is None
    assert value.find_value("1.5", Type("int4")) is None


def test_longer_numbers_than_python_reads_are_no_values() -> None:
    for text in ("9" * 5_000, f"0.{'0' * 5_000}1"):
        assert value.find_value(text, Type("numeric")) is None
