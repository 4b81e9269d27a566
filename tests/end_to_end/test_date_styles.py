"""Dates and times mean what PostgreSQL reads in them under the session's own styles."""

import re
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support.running import Noisegate

STYLES = ("ISO, MDY", "ISO, DMY", "ISO, YMD", "German", "SQL, MDY", "SQL, DMY", "Postgres, DMY", "Postgres, MDY")
DAYS = (
    "2023-12-31", "31.12.2023", "12/31/2023", "31/12/2023", "1/2/2023", "01-02-23", "Sun 31 Dec 2023", "31-Dec-2023",
    "Dec 31, 2023", "December 31 2023", "20231231", "2023.365", "J2460310", "99-01-08", "today", "yesterday",
    "tomorrow", "epoch", "infinity", "-infinity", "allballs", "0099-01-01", "99-Feb-08", "no day", "", "32.12.2023",
)  # fmt: skip
MOMENTS = (
    *DAYS, "31.12.2023 13:45", "12/31/2023 1:45 PM", "Sun Dec 31 13:45:06.789 2023 CET", "20231231T134506",
    "31/12/2023 13:45:06 Europe/Berlin", "2023-12-31 13:45:06.1234567", "2023-10-29 02:30", "1/2/2023 00:00 EST",
    "2023-12-31 13:45 America/New_York", "2023-12-31T13:45:06Z", "2024-02-29 24:00:00", "2023-12-31 25:00",
)  # fmt: skip
SPANS = ("1-2", "P1Y2M3DT4H", "@ 1 day ago", "1 day -2:03", "-1 day 2:03", "3 d 4 h", "1.5 days", "90 min", "-1-2")
READ = {
    "date": ("birth_date", "::date", DAYS),
    "timestamp with time zone": ("joined", "::timestamp with time zone", MOMENTS),
    "timestamp without time zone": ("joined::timestamp", "::timestamp without time zone", MOMENTS),
    "timestamp(0) without time zone": ("joined::timestamp", r"::timestamp\(0\) without time zone", MOMENTS),
}


@pytest.fixture(autouse=True)
def one_day() -> None:
    """No test begins so late in Berlin that its today is another's yesterday."""
    now = datetime.now(ZoneInfo("Europe/Berlin"))
    left = (now.replace(hour=23, minute=59, second=59) - now).total_seconds()
    if left < 60:
        time.sleep(left + 2)


@pytest.fixture
def plain(shop: RealDatabase) -> psycopg.Connection:
    """PostgreSQL without a proxy."""
    return psycopg.connect(shop.dsn, autocommit=True, options="-c TimeZone=Europe/Berlin")


@pytest.fixture
def session(proxy: Noisegate) -> psycopg.Connection:
    return psycopg.connect(proxy.dsn(), autocommit=True, options="-c TimeZone=Europe/Berlin")


def inner(session: psycopg.Connection, condition: str) -> str:
    """What is asked of the real database about customers, as EXPLAIN shows it."""
    lines = session.execute(f"EXPLAIN SELECT count(*) FROM customers WHERE {condition}").fetchall()
    _, _, found = " ".join(str(line).strip() for (line,) in lines).partition("inner SQL")
    return found


def is_read(session: psycopg.Connection, literal: str, type_name: str) -> bool:
    try:
        session.execute(f"SELECT '{literal}'::{type_name}")
    except psycopg.DataError:
        return False
    return True


def are_equal(plain: psycopg.Connection, literal: str, shown: str, type_name: str) -> bool:
    return plain.execute(f"SELECT '{literal}'::{type_name} = '{shown}'::{type_name}").fetchone() == (True,)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("type_name", READ)
def test_a_literal_is_the_value_that_postgresql_reads_under_the_style(
    plain: psycopg.Connection, session: psycopg.Connection, style: str, type_name: str
) -> None:
    column, cast, spellings = READ[type_name]
    for each in (plain, session):
        each.execute(f"SET DateStyle = '{style}'")
    known = [literal for literal in spellings if is_read(plain, literal, type_name)]

    branches = " ".join(f"WHEN {column} = '{literal}'::{type_name} THEN 1" for literal in known)  # in this order

    asked = inner(session, f"CASE {branches} END = 1")

    shown = re.findall(f"'([^']*)'{cast}", asked)
    assert len(shown) == len(known) > 10
    plain.execute("SET DateStyle = 'ISO, YMD'")
    iso = [are_equal(plain, each, each, type_name) for each in shown]
    plain.execute(f"SET DateStyle = '{style}'")
    pairs = list(zip(known, shown, strict=True))
    assert all(iso) and [pair for pair in pairs if not are_equal(plain, *pair, type_name)] == []
    assert [spelling for spelling in spellings if is_read(session, spelling, type_name)] == known


@pytest.mark.parametrize("style", ["postgres", "sql_standard", "iso_8601", "postgres_verbose"])
@pytest.mark.parametrize("span", SPANS)
def test_an_interval_is_the_one_that_postgresql_reads_under_the_style(
    plain: psycopg.Connection, session: psycopg.Connection, style: str, span: str
) -> None:
    for each in (plain, session):
        each.execute(f"SET IntervalStyle = '{style}'")
    if not is_read(plain, span, "interval"):
        assert not is_read(session, span, "interval")
        return

    (shown,) = re.findall("'([^']*)'::interval", inner(session, f"joined + '{span}' > '2023-01-01'"))

    assert are_equal(plain, span, shown, "interval")


def test_what_is_equal_is_answered_once_whatever_the_style(session: psycopg.Connection) -> None:
    """And what is not is not: the second of January is not the first of February."""
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    asked = "SELECT count(*) FROM customers WHERE birth_date > '{}'"
    answers = []
    for style, literal in [("ISO, DMY", "1/2/1970"), ("ISO, MDY", "2/1/1970"), ("German", "01.02.1970")]:
        session.execute(f"SET DateStyle = '{style}'")
        answers.append(session.execute(asked.format(literal)).fetchone())
    assert len(set(answers)) == 1
    assert [text.split(" spent")[0] for text in told if " spent" in text] == ["ε 10", "ε 0", "ε 0"]

    told.clear()
    session.execute("SET DateStyle = 'ISO, MDY'")
    session.execute(asked.format("1/2/1970"))
    assert [text.split(" spent")[0] for text in told if " spent" in text] == ["ε 10"]


def test_a_statement_that_was_prepared_reads_its_literals_too(session: psycopg.Connection) -> None:
    session.execute("SET DateStyle = 'SQL, DMY'; SET noisegate.epsilon = 5")
    asked = "SELECT count(*) > 100 FROM customers WHERE birth_date BETWEEN '31/12/1939' AND %s"
    for _ in range(3):
        assert session.execute(asked, ["31/12/2020"], prepare=True).fetchone() == (True,)
    with session.transaction():
        days = "DATE '31/12/1939' AND DATE '31/12/2020'"
        session.execute(f"DECLARE c CURSOR FOR SELECT count(*) > 100 FROM customers WHERE birth_date BETWEEN {days}")
        assert session.execute("FETCH c").fetchone() == (True,)
    session.execute(
        "PREPARE p(date) AS SELECT count(*) > 100 FROM customers WHERE birth_date BETWEEN '31/12/1939' AND $1"
    )
    assert session.execute("EXECUTE p('31/12/2020')").fetchone() == (True,)
    inner_query = "(SELECT avg(amount) FROM orders WHERE ordered_at > '31/12/2023')"
    assert session.execute(f"SELECT count(*) > 10 FROM orders WHERE amount > {inner_query}").fetchone() == (True,)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT count(*) FROM customers WHERE birth_date > '0044-03-15 BC'", "outside the supported years 1 to 9999"),
        ("SELECT count(*) FROM customers WHERE birth_date - date 'infinity' > 3", "can only be used in comparisons"),
        ("SELECT birth_date::text, count(*) FROM customers GROUP BY 1", "needs DateStyle ISO"),
    ],
)
def test_what_is_not_read_is_refused_in_words(session: psycopg.Connection, sql: str, words: str) -> None:
    session.execute("SET DateStyle = 'German'")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=words):
        session.execute(sql)
    session.execute("SET DateStyle = 'ISO, DMY'")
    assert session.execute("SELECT birth_date::text, count(*) FROM customers GROUP BY 1 LIMIT 1").fetchall()


def test_a_double_that_the_session_writes_shorter_is_no_text_over_protected_rows(session: psycopg.Connection) -> None:
    sql = "SELECT (amount::float8 / 3)::text = '1', count(*) FROM orders GROUP BY 1"
    assert session.execute(sql).fetchall()
    session.execute("SET extra_float_digits = 0")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="needs extra_float_digits 1 or more"):
        session.execute(sql)
    assert session.execute("SELECT count(*) FROM orders").fetchone()
