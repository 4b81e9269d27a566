"""Synopses as a DBA and analysts meet them: made and charged once, free to read, kept by a restart."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import Noisegate, command, noisegate, start

SYNOPSES = """\
synopses:
  explore:
    epsilon: 20
    tables:
      customers: [city, segment, is_vip, birth_date by year, count(orders) by 8]
      orders: [customers.city, customers.segment, status, ordered_at by quarter, amount by 10]
      order_items: [orders.status, quantity by 5, unit_price by 5]
  lonely:
    epsilon: 600
    analysts: [bob]
    tables: {customers: [country]}
"""
SYNOPSES = f"previews: synopsis\n{SYNOPSES}"
RULES = shop_data.RULES.replace("lower: 1920-01-01", "lower: 1950-01-01") + SYNOPSES
RULES = RULES.replace("orders: [customers.city,", "orders: [count(order_items) by 4, customers.city,")


@pytest.fixture(scope="module")
def proxy(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    with noisegate(tmp_path_factory.mktemp("synopses"), shop.reader_dsn, rules=RULES) as running:
        running.wait_for("synopsis_shown", count=2)
        yield running


@pytest.fixture
def ada(proxy: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(proxy.dsn("ada"), autocommit=True) as connection:
        yield connection


def test_rows_of_a_synopsis_are_free_and_any_sql_reads_them(proxy: Noisegate, ada: psycopg.Connection) -> None:
    before = proxy.ledger_length()

    rows = ada.execute("SELECT * FROM explore.customers LIMIT 5").fetchall()
    ranked = ada.execute(
        "SELECT city, rank() OVER (ORDER BY count(*) DESC), array_agg(DISTINCT o.status::text) "
        "FROM explore.customers c JOIN explore.orders o ON o.customer_id = c.id GROUP BY city"
    ).fetchall()
    ada.execute("SET search_path = explore, public")
    ((number,),) = ada.execute("SELECT count(*) FROM customers WHERE city = 'Berlin'").fetchall()

    assert len(rows) == 5
    assert ranked
    assert 100 < number < 250  # 160 of 400
    assert proxy.ledger_length() == before, "it was charged"


def test_keys_and_constraints_hold(ada: psycopg.Connection) -> None:
    def one(query: str) -> int:
        return int(ada.execute(query.encode()).fetchall()[0][0])

    missing = "SELECT count(*) FROM explore.{} AS c LEFT JOIN explore.{} AS p ON p.id = c.{} WHERE p.id IS NULL"
    assert one(missing.format("orders", "customers", "customer_id")) == 0
    assert one(missing.format("order_items", "orders", "order_id")) == 0
    assert one("SELECT count(*) FROM explore.order_items WHERE NOT quantity BETWEEN 1 AND 100") == 0
    assert one("SELECT count(*) - count(segment) - count(is_vip) + count(*) FROM explore.customers") == 0
    assert one("SELECT max(n) FROM (SELECT count(*) AS n FROM explore.orders GROUP BY customer_id) AS t") <= 40
    kinds = ada.execute("SELECT contype::text FROM pg_constraint WHERE conrelid = 'explore.orders'::regclass")
    assert {"p", "f"} <= {kind for (kind,) in kinds}
    assert one("SELECT count(*) FROM explore.orders WHERE pg_typeof(status)::text <> 'status'") == 0
    columns = ada.execute("SELECT * FROM explore.customers LIMIT 0").description or []
    assert [column.name for column in columns] == ["id", "city", "birth_date", "is_vip", "segment"]


def test_what_was_paid_is_on_the_ledger_once_for_each(
    proxy: Noisegate, shop: RealDatabase, ada: psycopg.Connection
) -> None:  # fmt: skip
    ((cost, rho, state, tables),) = ada.execute("SELECT epsilon, rho, state, tables FROM noisegate.synopses").fetchall()
    told = command("ledger", "show", str(proxy.rules), "--json", "--charges", database=shop.reader_dsn)
    charged = [load for load in json.loads(told.stdout)["charges"] if load["shape"] == "synopsis explore"]
    first = {each["analyst"]: each for each in charged[:3]}

    assert (float(cost), state, tables) == (20.0, "ready", ["customers", "orders", "order_items"])
    assert 0 < rho < 10
    assert set(first) == {"synopsis explore", "ada", "bob"}
    assert len({(each["epsilon"], each["rho"]) for each in charged}) == 1


def test_who_cannot_pay_for_it_cannot_see_it(proxy: Noisegate, ada: psycopg.Connection) -> None:
    ((mine,),) = ada.execute("SELECT array_agg(name) FROM noisegate.synopses").fetchall()

    assert mine == ["explore"]
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob:
        assert bob.execute("SELECT name FROM noisegate.synopses").fetchall() == [("explore",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute("SELECT * FROM lonely.customers")


def test_who_may_not_read_it_learns_no_number_of_its_rows(ada: psycopg.Connection) -> None:
    counters = (
        "SELECT n_tup_ins + n_live_tup + coalesce(seq_tup_read, 0), pg_stat_get_live_tuples(relid),"
        " pg_relation_size(relid), pg_relation_size(relid, 'main'), pg_table_size(relid),"
        " pg_total_relation_size(relid) - pg_indexes_size(relid), pg_indexes_size(relid) % 8192"
        " FROM pg_stat_all_tables WHERE schemaname = '{}' AND relname = 'customers'"
    )
    (oid,) = ada.execute("SELECT relid FROM pg_stat_all_tables WHERE schemaname = 'lonely'").fetchone() or ()

    assert ada.execute(counters.format("lonely")).fetchall() == [(0,) * 7]
    sizes = "SELECT max(pg_relation_size(indexrelid)) FROM pg_index WHERE indrelid = %s"
    assert ada.execute(sizes, [oid]).fetchall() == [(0,)]
    assert ada.execute("SELECT reltuples <= 0 FROM pg_class WHERE oid = %s", [oid]).fetchall() == [(True,)]
    sums = "tup_inserted + tup_returned + tup_fetched + blks_read + blks_hit"
    assert ada.execute(f"SELECT sum({sums}) FROM pg_stat_database").fetchall() == [(0,)]
    sizes = "SELECT count(DISTINCT size) FROM (SELECT pg_database_size(oid) FROM pg_database) AS d(size)"
    assert ada.execute(f"{sizes} WHERE size = pg_database_size(current_database())").fetchall() == [(1,)]
    ((rows, *_, size, _),) = ada.execute(counters.format("explore")).fetchall()
    assert rows > 0 and size > 0
    for renamed in ("noisegate_pg_relation_size", "noisegate_pg_stat_get_live_tuples"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ada.execute(f"SELECT pg_catalog.{renamed}({oid})")


def test_a_restart_and_an_export_charge_nothing_and_show_the_same_rows(
    shop: RealDatabase, tmp_path: Path
) -> None:  # fmt: skip
    query = "SELECT * FROM explore.customers ORDER BY id"
    with noisegate(tmp_path, shop.reader_dsn, rules=RULES.partition("  lonely")[0]) as running:
        running.wait_for("synopsis_shown")
        with psycopg.connect(running.dsn("ada"), autocommit=True) as ada:
            before = ada.execute(query).fetchall()
        length, rules = running.ledger_length(), running.rules
        folder = tmp_path / "out"
        assert (
            command("synopsis", "export", str(rules), "explore", str(folder), database=shop.reader_dsn).returncode == 0
        )
    again = start(
        rules,
        shop.reader_dsn,
        name="shop",
        arguments=("--tls-certificate", str(tmp_path / "server.crt"), "--tls-key", str(tmp_path / "server.key")),
    )
    try:
        again.wait_for("synopsis_shown")
        with psycopg.connect(again.dsn("ada"), autocommit=True) as ada:
            after = ada.execute(query).fetchall()
        assert again.ledger_length() == length
    finally:
        again.stop()

    assert after == before
    lines = (folder / "customers.csv").read_text().splitlines()
    assert lines[0] == "id,city,birth_date,is_vip,segment"
    assert len(lines) - 1 == len(before)
    assert json.loads((folder / "synopsis.json").read_text())["noise"] == "discrete Gaussian"


def test_a_new_make_takes_the_place_of_the_rows_while_somebody_reads(proxy: Noisegate, shop: RealDatabase) -> None:
    with psycopg.connect(proxy.dsn("ada")) as reading:
        reading.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = reading.execute("SELECT * FROM explore.customers ORDER BY id").fetchall()
        shown = len(proxy.events("synopsis_shown"))
        made = command("synopsis", "make", str(proxy.rules), "explore", database=shop.reader_dsn)
        assert made.returncode == 0, made.stderr
        proxy.wait_for("synopsis_shown", count=shown + 1)
        assert reading.execute("SELECT * FROM explore.customers ORDER BY id").fetchall() == before
        reading.commit()
        time.sleep(0.1)
        assert reading.execute("SELECT * FROM explore.customers ORDER BY id").fetchall() != before


def test_a_session_is_told_once_what_it_reads(proxy: Noisegate) -> None:
    told: list[str] = []
    with psycopg.connect(proxy.dsn("ada"), autocommit=True) as ada:
        ada.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        ada.execute("SELECT count(*) FROM explore.orders")
        ada.execute("SET search_path = explore, public")
        ada.execute("SELECT count(*) FROM orders WHERE amount > %s", (10,))
        ada.execute("SELECT count(*) FROM public.products")

    assert [text.partition(",")[0] for text in told] == ['"explore" holds synthetic rows']


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("SELECT * FROM lonely.customers", "42501", 'permission denied for synopsis "lonely"'),
        ("SELECT noisegate.margin(count(*)) FROM explore.orders", "0A000", "synthetic rows have no error bars"),
        (
            "SELECT count(*) FROM orders AS o JOIN explore.customers AS c ON c.id = o.customer_id",
            "0A000",
            "synthetic rows cannot be joined with protected rows",
        ),
        ("CREATE TABLE explore.mine (a integer)", "25006", ""),
        ("DELETE FROM explore.orders", "25006", ""),
    ],
)
def test_what_synthetic_rows_cannot_do_is_refused(
    ada: psycopg.Connection, statement: str, sqlstate: str, message: str
) -> None:
    with pytest.raises(psycopg.Error) as found:
        ada.execute(statement.encode())

    assert found.value.sqlstate == sqlstate
    assert message in (found.value.diag.message_primary or "")


def test_a_table_of_a_synopsis_hides_a_real_one_beside_protected_rows_too(
    proxy: Noisegate, ada: psycopg.Connection
) -> None:
    ada.execute("SET search_path = explore, public")
    before = proxy.ledger_length()

    for customers in ("explore.customers", "customers"):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="synthetic rows cannot be joined"):
            joined = f"SELECT count(*) FROM public.orders AS o JOIN {customers} AS c ON c.id = o.customer_id"
            ada.execute(joined.encode())

    assert proxy.ledger_length() == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT (SELECT count(*) FROM public.customers WHERE city = 'Berlin'), (SELECT count(*) FROM {customers})",
        "SELECT count(*) FROM public.orders WHERE customer_id IN (SELECT id FROM {customers} WHERE id < 60)",
        "WITH c AS (SELECT id FROM {customers}) SELECT count(*) FROM public.orders AS o JOIN c ON c.id = o.customer_id",
    ],
)
def test_a_name_means_the_same_rows_written_out_and_found_by_the_search_path(
    ada: psycopg.Connection, statement: str
) -> None:
    ada.execute("SET search_path = explore, public")

    written = ada.execute(statement.format(customers="explore.customers").encode()).fetchall()
    found = ada.execute(statement.format(customers="customers").encode()).fetchall()

    assert written == found


def test_beside_a_private_answer_synthetic_rows_are_any_table(ada: psycopg.Connection) -> None:
    ((real, synthetic),) = ada.execute(
        "SELECT (SELECT count(*) FROM public.customers), (SELECT count(*) FROM explore.customers)"
    ).fetchall()

    assert abs(int(real) - int(synthetic)) < 60


def test_a_preview_shows_rows_of_the_synopsis_under_the_columns_of_the_table(
    proxy: Noisegate, shop: RealDatabase, ada: psycopg.Connection
) -> None:
    before, told = proxy.ledger_length(), list[str]()
    ada.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

    found = ada.execute("SELECT * FROM customers LIMIT 3")
    with shop.connect() as real:
        columns = [column.name for column in real.execute("SELECT * FROM customers LIMIT 0").description or []]
    rows = found.fetchall()
    synthetic = ada.execute("SELECT id, city, segment FROM explore.customers ORDER BY id LIMIT 3").fetchall()

    assert [column.name for column in found.description or []] == [column for column in columns if column != "email"]
    assert [(row[0], row[2], row[6]) for row in rows] == synthetic
    assert {row[1] for row in rows} == {None}, "names were not measured"
    assert len(ada.execute("SELECT o.id FROM orders AS o LIMIT 1000").fetchall()) == 100
    assert any("synthetic" in text for text in told)
    assert proxy.ledger_length() == before
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute("SELECT * FROM customers")
