"""psycopg 3: simple and extended, text and binary, sync and async, pipelines, cursors, prepared statements."""

from collections.abc import Iterator
from threading import Timer

import psycopg
import pytest
from psycopg import sql

from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.support.running import Noisegate

Cities = dict[str | None, int]


@pytest.fixture
def connection(proxy: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_a_private_answer_is_the_same_in_text_and_binary(
    connection: psycopg.Connection, cities: Cities, *, binary: bool
) -> None:
    cursor = connection.execute(CITIES, binary=binary)

    assert cursor.description is not None
    assert [(column.name, column.type_code) for column in cursor.description] == [("city", 25), ("count", 20)]
    check_cities(cursor.fetchall(), cities)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_parameters_of_every_kind_reach_the_private_statement(connection: psycopg.Connection, *, binary: bool) -> None:
    statement = AMOUNTS.format("%s")

    with connection.cursor(binary=binary) as cursor:
        check_amounts(cursor.execute(statement, [50]).fetchall())
        check_amounts(cursor.execute(statement.replace("%s", "%b"), [50]).fetchall())
        check_amounts(cursor.execute(statement.replace("%s", "%t"), [50]).fetchall())


def test_a_statement_that_is_repeated_is_prepared_and_still_private(
    connection: psycopg.Connection, cities: Cities
) -> None:
    connection.prepare_threshold = 2

    answers = [connection.execute(CITIES + " LIMIT %s", [10]).fetchall() for _ in range(5)]

    check_cities(answers[0], cities)
    assert all(answer == answers[0] for answer in answers)
    prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '\\_pg3%'").fetchone()
    assert prepared == (1,)


def test_a_refusal_has_its_sqlstate_and_leaves_the_session_usable(
    connection: psycopg.Connection, cities: Cities
) -> None:
    for prepare in (False, True):
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refusal:
            connection.execute(ROWS, prepare=prepare)
        assert refusal.value.diag.message_hint

    check_cities(connection.execute(CITIES).fetchall(), cities)


def test_a_refusal_inside_a_transaction_aborts_it_as_postgresql_does(proxy: Noisegate, cities: Cities) -> None:
    with psycopg.connect(proxy.dsn()) as connection:
        check_cities(connection.execute(CITIES).fetchall(), cities)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(ROWS)
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(CITIES)
        connection.rollback()
        check_cities(connection.execute(CITIES).fetchall(), cities)


def test_a_savepoint_survives_a_refusal(proxy: Noisegate, cities: Cities) -> None:
    with psycopg.connect(proxy.dsn()) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(ROWS)
        check_cities(connection.execute(CITIES).fetchall(), cities)


def test_server_side_cursors_fetch_a_private_answer_in_pieces(proxy: Noisegate, cities: Cities) -> None:
    with psycopg.connect(proxy.dsn()) as connection:
        for scrollable in (None, True):
            with connection.cursor("answer", scrollable=scrollable) as cursor:
                cursor.execute(CITIES)
                check_cities([*cursor.fetchmany(2), *cursor.fetchall()], cities)
        with connection.cursor("answer", scrollable=True) as cursor:
            cursor.execute(CITIES)
            first = cursor.fetchone()
            cursor.scroll(0, mode="absolute")
            assert cursor.fetchone() == first


def test_a_cursor_with_hold_outlives_its_transaction(proxy: Noisegate, cities: Cities) -> None:
    with psycopg.connect(proxy.dsn()) as connection:
        cursor = connection.cursor("answer", withhold=True)
        cursor.execute(CITIES)
        connection.commit()
        check_cities(cursor.fetchall(), cities)


def test_a_pipeline_mixes_private_and_other_statements(connection: psycopg.Connection, cities: Cities) -> None:
    with connection.pipeline():
        one = connection.execute("SELECT 1")
        private = connection.execute(CITIES)
        again = connection.execute(AMOUNTS.format("%s"), [50])
        two = connection.execute("SELECT 2")

    assert (one.fetchone(), two.fetchone()) == ((1,), (2,))
    check_cities(private.fetchall(), cities)
    check_amounts(again.fetchall())


def test_a_refusal_in_a_pipeline_ends_what_follows_it_and_no_more(
    connection: psycopg.Connection, cities: Cities
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.pipeline() as pipeline:
        connection.execute(ROWS)
        skipped = connection.execute("SELECT 1")
        pipeline.sync()
    with pytest.raises(psycopg.ProgrammingError, match="no result"):
        skipped.fetchone()

    check_cities(connection.execute(CITIES).fetchall(), cities)


@pytest.mark.parametrize("style", ["(FORMAT text)", "(FORMAT csv, HEADER)", "(FORMAT binary)", "WITH CSV"])
def test_copy_of_a_private_answer_works_in_every_format(
    connection: psycopg.Connection, cities: Cities, style: str
) -> None:
    with connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT {}").format(sql.SQL(CITIES), sql.SQL(style))) as copy:
        if "binary" in style:
            copy.set_types(["text", "int8"])
            check_cities([(city, count) for city, count in copy.rows()], cities)
            return
        lines = b"".join(copy).decode().splitlines()
    separator = "," if "csv" in style.lower() else "\t"
    pairs = [line.split(separator) for line in lines[1 if "HEADER" in style else 0 :]]
    check_cities([(None if city in ("", "\\N") else city, int(count)) for city, count in pairs], cities)


def test_rows_cannot_be_copied(connection: psycopg.Connection) -> None:
    for statement in ("COPY customers TO STDOUT", "COPY (SELECT * FROM customers) TO STDOUT"):
        with pytest.raises(psycopg.Error) as refusal, connection.cursor().copy(statement) as copy:
            assert list(copy) == []
        assert refusal.value.sqlstate in ("42501", "0A000")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_several_statements_in_one_string_are_answered_each(connection: psycopg.Connection, cities: Cities) -> None:
    cursor = connection.execute(f"SELECT 1; {CITIES}; SELECT 2")

    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    check_cities(cursor.fetchall(), cities)
    assert cursor.nextset()
    assert cursor.fetchall() == [(2,)]


def test_sql_level_prepare_and_execute_are_private_too(connection: psycopg.Connection) -> None:
    connection.execute("PREPARE amounts(numeric) AS " + AMOUNTS.format("$1"))

    check_amounts(connection.execute("EXECUTE amounts(50)").fetchall())
    connection.execute("DEALLOCATE amounts")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        connection.execute("EXECUTE amounts(50)")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM customers LIMIT 0",
        "SELECT * FROM customers LIMIT 0",
        "SELECT * FROM customers WHERE 1 = 0",
        "SELECT true AS _ FROM public.customers WHERE 1 <> 1 LIMIT 0",
    ],
)
def test_probes_for_column_names_get_no_rows_and_cost_nothing(connection: psycopg.Connection, statement: str) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))

    cursor = connection.execute(statement)

    assert cursor.description
    assert cursor.fetchall() == []
    assert not any("spent" in notice for notice in notices)


def test_a_notice_tells_what_an_answer_cost(connection: psycopg.Connection) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))

    connection.execute("SELECT is_vip, count(*) FROM customers GROUP BY is_vip")

    assert any(notice.startswith("ε ") and " left" in notice for notice in notices)


def test_an_unknown_column_is_told_with_its_position(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn) as error:
        connection.execute("SELECT nobody FROM customers")

    assert error.value.diag.statement_position == "8"


def test_hidden_columns_and_unnamed_tables_do_not_exist(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT count(email) FROM customers")
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT count(*) FROM staff")


def test_public_tables_are_answered_exactly(connection: psycopg.Connection) -> None:
    assert connection.execute("SELECT count(*), min(name) FROM products").fetchone() == (30, "Product 1")


async def test_the_async_connection_asks_and_is_refused_alike(proxy: Noisegate, cities: Cities) -> None:
    async with await psycopg.AsyncConnection.connect(proxy.dsn(), autocommit=True) as connection:
        cursor = await connection.execute(CITIES)
        check_cities(await cursor.fetchall(), cities)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute(ROWS)
        cursor = await connection.execute(AMOUNTS.format("%s"), [50], binary=True)
        check_amounts(await cursor.fetchall())


def test_a_statement_is_cancelled_and_the_session_goes_on(connection: psycopg.Connection) -> None:
    timer = Timer(0.3, connection.cancel_safe)
    timer.start()
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SELECT pg_sleep(20)")

    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_channel_binding_can_be_demanded(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn(channel_binding="require")) as connection:
        assert connection.execute("SELECT current_user, session_user").fetchone() == ("ada", "ada")


def test_what_was_prepared_in_another_encoding_is_answered(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("PREPARE named AS SELECT count(*) FROM customers WHERE name <> 'Ж' OR id < 0 /* 🙂 */")
        connection.execute("SET client_encoding = 'LATIN1'")

        ((count,),) = connection.execute("EXECUTE named").fetchall()

    assert abs(count - 400) < 100
