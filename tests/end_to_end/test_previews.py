"""Previews through a running proxy: names and types are the table's own, and nothing is paid."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.clients.questions import RULES
from tests.conftest import RealDatabase, make_shop
from tests.support.running import Noisegate, noisegate

TABLES = ("customers", "orders", "order_items")


@pytest.fixture(scope="module", params=["empty", "synthetic"])
def previewing(
    request: pytest.FixtureRequest, shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Noisegate]]:
    mode = str(request.param)
    directory: Path = tmp_path_factory.mktemp(mode)
    with noisegate(directory, shop.reader_dsn, rules=RULES.replace("budget:", f"previews: {mode}\nbudget:")) as running:
        yield mode, running


def test_tables_can_be_previewed_at_no_cost(previewing: tuple[str, Noisegate], shop: RealDatabase) -> None:
    mode, running = previewing
    with psycopg.connect(running.dsn(), autocommit=True) as connection, shop.connect() as real:
        told: list[str] = []
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        for table in TABLES:
            rows = connection.execute(f"SELECT * FROM {table} LIMIT 7")
            true = real.execute(f"SELECT * FROM {table} LIMIT 0")
            assert rows.description and true.description
            assert [column.name for column in rows.description] == [
                column.name for column in true.description if column.name != "email"
            ]
            found = rows.fetchall()
            assert len(found) == (0 if mode == "empty" else 7)
            assert not {tuple(map(str, row)) for row in found} & {
                tuple(map(str, row)) for row in real.execute(f"SELECT * FROM {table}").fetchall()
            }
        assert len(told) == len(TABLES)
        assert not any("spent" in text for text in told)


def test_previews_by_cursor_copy_and_with_parameters(previewing: tuple[str, Noisegate]) -> None:
    mode, running = previewing
    count = 0 if mode == "empty" else 3
    with psycopg.connect(running.dsn(), autocommit=True) as connection:
        with connection.transaction(), connection.cursor("preview") as cursor:
            assert len(cursor.execute("SELECT * FROM orders LIMIT 3").fetchall()) == count
        with connection.cursor().copy("COPY (SELECT id FROM orders LIMIT 3) TO STDOUT") as copy:
            assert len(list(copy.rows())) == count
        assert len(connection.execute("SELECT id FROM orders LIMIT %s", (3,)).fetchall()) == count


def test_all_rows_stay_refused(previewing: tuple[str, Noisegate]) -> None:
    with psycopg.connect(previewing[1].dsn(), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM customers")
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_each_analyst_and_each_connection_may_have_previews_of_its_own(
    shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rules = RULES.replace("  ada:\n", "  ada:\n    previews: empty\n").replace("  bob:\n", "  bob:\n    role: bi\n")
    rules += "roles:\n  bi: {epsilon: 100, previews: synthetic}\n"
    ask = "SELECT * FROM customers LIMIT 5"
    with noisegate(tmp_path_factory.mktemp("each"), shop.reader_dsn, rules=rules) as running:
        for analyst, options, rows in (
            ("ada", "", 0),
            ("bob", "", 5),
            ("ada", "-c noisegate.previews=synthetic", 5),
            ("bob", "-c noisegate.previews=refuse", None),
        ):
            with psycopg.connect(running.dsn(analyst), options=options, autocommit=True) as session:
                shown = "SELECT setting FROM noisegate.settings WHERE name = 'noisegate.previews'"
                assert (session.execute(shown).fetchone() or ("",))[0] in (
                    options.rpartition("=")[2] or "empty synthetic"
                )
                if rows is None:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        session.execute(ask)
                else:
                    assert len(session.execute(ask).fetchall()) == rows
                session.execute("SET noisegate.previews = 'empty'")
                assert session.execute(ask).fetchall() == []
        with (
            psycopg.connect(running.dsn(), autocommit=True) as session,
            pytest.raises(psycopg.errors.InvalidParameterValue),
        ):
            session.execute("SET noisegate.previews = 'rows'")


def test_a_column_of_a_type_that_the_twin_lacks_is_text_there_and_has_no_value(
    real_cluster: Cluster, tmp_path: Path
) -> None:
    composites = make_shop(real_cluster, "composites")
    with composites.connect() as owner:
        owner.execute("CREATE TYPE address AS (street text, number integer); CREATE DOMAIN home AS address")
        owner.execute("ALTER TABLE customers ADD place address, ADD places address[], ADD home home")
    rules = RULES.replace("budget:", "previews: synthetic\nbudget:")
    with (
        noisegate(tmp_path, composites.reader_dsn, rules=rules, name="composites") as running,
        psycopg.connect(running.dsn(), autocommit=True) as ada,
    ):
        for rows in (0, 7):
            found = ada.execute(f"SELECT place, places, home FROM customers LIMIT {rows}")
            assert found.description and {column.type_code for column in found.description} == {25}
            assert found.fetchall() == [(None, None, None)] * rows
        assert len(ada.execute("SELECT * FROM customers LIMIT 7").fetchall()) == 7
