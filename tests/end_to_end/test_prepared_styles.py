"""A prepared statement reads its literals by the settings under which it was prepared, as PostgreSQL does."""

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support.running import Noisegate

Rows = list[list[bytes | None]]

CASES = {
    "a date": (
        "SET DateStyle = 'ISO, DMY'", "SET DateStyle = 'ISO, MDY'",
        "SELECT count(*), date '01/12/1975' FROM customers WHERE birth_date < '01/12/1975'",
    ),
    "a date that is none any more": (
        "SET DateStyle = 'ISO, DMY'", "SET DateStyle = 'German'",
        "SELECT count(*), max(birth_date) > '1-2-1900', '13/10/2025'::date FROM customers"
        " WHERE birth_date < '13/10/1975'",
    ),
    "a date in an inner query": (
        "SET DateStyle = 'ISO, DMY'", "SET DateStyle = 'ISO, MDY'",
        "SELECT count(*) FROM customers WHERE birth_date < (SELECT date '01/12/1975')",
    ),
    "a moment": (
        "SET TimeZone = 'Asia/Tokyo'", "SET TimeZone = 'America/Los_Angeles'",
        "SELECT count(*), extract(epoch FROM timestamptz '2024-01-01'), timestamptz '2024-01-01'"
        " FROM customers WHERE joined < '2023-01-01 12:00'",
    ),
    "a moment beside the present zone": (
        "SET TimeZone = 'Asia/Tokyo'", "SET TimeZone = 'America/Los_Angeles'",
        "SELECT date_trunc('year', joined), count(*) FROM customers WHERE joined < '2021-01-01' GROUP BY 1 ORDER BY 1",
    ),
    "an interval": (
        "SET IntervalStyle = 'sql_standard'", "SET IntervalStyle = 'postgres'",
        "SELECT count(*), extract(epoch FROM interval '-1 2:03') FROM customers"
        " WHERE joined < timestamptz '2023-01-01 00:00+00' + interval '-300 240:00'",
    ),
}  # fmt: skip


@pytest.fixture
def plain(shop: RealDatabase) -> psycopg.Connection:
    """PostgreSQL without a proxy."""
    return psycopg.connect(shop.dsn, autocommit=True, prepare_threshold=None)


@pytest.fixture
def session(proxy: Noisegate) -> psycopg.Connection:
    return psycopg.connect(proxy.dsn(), autocommit=True, prepare_threshold=None)


def by_name(connection: psycopg.Connection, name: bytes) -> Rows:
    """The rows of a prepared statement in the extended protocol."""
    result = connection.pgconn.exec_prepared(name, [])
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    return [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]


def by_execute(connection: psycopg.Connection) -> Rows:
    result = connection.pgconn.exec_(b"EXECUTE q")
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
    return [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]


def styles(connection: psycopg.Connection) -> object:
    names = ("DateStyle", "IntervalStyle", "TimeZone")
    return [connection.execute(f"SHOW {name}").fetchone() for name in names]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["PREPARE", "Parse", "a transaction"])
def test_literals_keep_the_value_that_they_had_when_the_statement_was_prepared(
    plain: psycopg.Connection, session: psycopg.Connection, case: str, how: str
) -> None:
    """However it is run, and as often: the settings of the session are what they were."""
    before, after, sql = CASES[case]
    given = []
    for connection in (plain, session):
        connection.execute(before)
        if how == "Parse":
            connection.pgconn.prepare(b"q", sql.encode())
        else:
            connection.execute(f"PREPARE q AS {sql}")
        if how == "a transaction":
            connection.execute("BEGIN")
        connection.execute(after.replace("SET", "SET LOCAL" if how == "a transaction" else "SET"))
        held = styles(connection)
        connection.pgconn.prepare(b"around", b"EXECUTE q")
        given.append([by_execute(connection), by_name(connection, b"q"), by_name(connection, b"around")])
        assert styles(connection) == held
        names = connection.execute("SELECT name FROM pg_prepared_statements ORDER BY name").fetchall()
        assert names == [("around",), ("q",)]
        if how == "a transaction":
            connection.execute("COMMIT")
            held = styles(connection)
            connection.execute(before)
            assert styles(connection) == held

    exact, noised = given

    for rows, others in zip(exact, noised, strict=True):
        assert len(rows) == len(others)
        for row, other in zip(rows, others, strict=True):
            counts = [abs(int(one or 0) - int(two or 0)) for one, two in zip(row, other, strict=True) if one != two]
            assert len(counts) <= 1 and all(moved <= 3 for moved in counts)  # noise, at epsilon 10


@pytest.mark.parametrize("side", ["plain", "session"])
def test_a_literal_is_read_by_what_was_set_earlier_in_the_same_pipeline(
    side: str, request: pytest.FixtureRequest
) -> None:
    """The server has reported none of it when the statement is prepared."""
    connection = request.getfixturevalue(side).pgconn
    connection.enter_pipeline_mode()
    connection.send_query_params(b"SET DateStyle = 'ISO, DMY'", None)
    connection.send_prepare(
        b"q", b"SELECT date '01/02/2025', count(*) > 9 FROM customers WHERE birth_date > '1/2/1970'"
    )
    connection.send_query_params(b"SET DateStyle = 'ISO, MDY'", None)
    connection.send_query_prepared(b"q", None)
    connection.pipeline_sync()

    results = []
    while (result := connection.get_result()) is None or result.status != psycopg.pq.ExecStatus.PIPELINE_SYNC:
        results += [] if result is None else [result]

    assert [result.error_message for result in results if result.error_message] == []
    assert (results[-1].get_value(0, 0), results[-1].get_value(0, 1)) == (b"2025-02-01", b"t")


def test_parameters_are_read_by_the_settings_of_their_execution(session: psycopg.Connection) -> None:
    session.execute("SET DateStyle = 'ISO, DMY'")
    session.execute("PREPARE q(date) AS SELECT $1, date '01/02/2025', count(*) FROM customers WHERE birth_date < $1")
    session.execute("SET DateStyle = 'ISO, MDY'")

    row = session.execute("EXECUTE q('01/02/2025')").fetchone()

    assert row is not None and [str(day) for day in row[:2]] == ["2025-01-02", "2025-02-01"]


def test_what_is_no_literal_is_read_in_the_zone_of_the_execution(session: psycopg.Connection) -> None:
    session.execute("SET TimeZone = 'Asia/Tokyo'")
    session.execute(
        "PREPARE q AS SELECT count(*) FROM customers WHERE joined > '2021-01-01' AND"
        " joined < '2022-01-01'::text::timestamptz AND joined < to_timestamp('2023-01-01', 'YYYY-MM-DD')"
    )
    session.execute("SET TimeZone = 'America/Los_Angeles'")

    asked = " ".join(str(line) for (line,) in session.execute("EXPLAIN EXECUTE q"))

    zones = {"2021": "+09", "2022": "-08", "2023": "-08"}
    assert [year for year, zone in zones.items() if f"'{year}-01-01 00:00:00{zone}'" not in asked] == []


def test_a_text_that_is_cast_under_another_style_is_refused(session: psycopg.Connection) -> None:
    session.execute("PREPARE q AS SELECT count(*) FROM customers WHERE birth_date < '01/12/1975'::text::date")
    session.execute("SET DateStyle = 'ISO, DMY'")

    with pytest.raises(psycopg.errors.FeatureNotSupported, match="prepared under other settings"):
        session.execute("EXECUTE q")


def test_the_literals_of_a_temporary_view_are_those_that_it_was_made_with(session: psycopg.Connection) -> None:
    """Whatever is set when a statement over it is prepared, and when that is executed."""
    session.execute("SET DateStyle = 'SQL, DMY'")
    session.execute("CREATE TEMP VIEW v AS SELECT count(*) FROM customers WHERE birth_date < '01/12/1975'")
    session.execute("PREPARE q AS SELECT * FROM v")
    session.execute("SET DateStyle = 'SQL, MDY'")

    prepared = session.execute("EXECUTE q").fetchone()

    assert prepared == session.execute("SELECT * FROM v").fetchone()
    assert prepared == session.execute("SELECT count(*) FROM customers WHERE birth_date < '12/01/1975'").fetchone()
