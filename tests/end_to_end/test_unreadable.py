"""Columns and tables of which a row can fail while it is read: not read, or only where the rules trust them."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase, make_shop
from tests.support import shop as shop_data
from tests.support.running import command, noisegate

VIRTUAL = """
ALTER TABLE orders ADD COLUMN inverse bigint GENERATED ALWAYS AS (1 / (id - 7)) VIRTUAL;
ALTER TABLE products ADD COLUMN inverse integer GENERATED ALWAYS AS (1 / (id - 7)) VIRTUAL;
"""
FAR = """
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE far_orders (id bigint NOT NULL, customer_id integer NOT NULL) SERVER elsewhere;
CREATE TABLE near_orders (id bigint NOT NULL, customer_id integer NOT NULL) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE near_orders_2 PARTITION OF near_orders FOR VALUES FROM (10) TO (20) SERVER elsewhere;
GRANT SELECT ON far_orders, near_orders TO noisegate_reader;
"""
ASKED_FOR = {
    "a column of the unit's own rows": "SELECT count(inverse) FROM orders",
    "a condition": "SELECT count(*) FROM orders WHERE inverse > 0",
    "a subquery's column": "SELECT sum(n) FROM (SELECT customer_id, max(inverse) AS n FROM orders GROUP BY 1) AS o",
    "a public column that protected rows choose": "SELECT count(p.inverse) FROM order_items i JOIN products p "
    "ON p.id = i.product_id JOIN orders o ON o.id = i.order_id",
    "a public column in a condition": "SELECT count(*) FROM order_items i JOIN products p ON p.id = i.product_id "
    "AND p.inverse > 0",
}


@pytest.fixture(scope="module")
def computed() -> Iterator[RealDatabase]:
    """A shop on PostgreSQL 18 with columns that are computed when they are read, and fail for one row."""
    cluster = Cluster.start(version=18)
    database = make_shop(cluster, "shop")
    with database.connect() as connection:
        connection.execute(VIRTUAL)
    yield database
    cluster.stop()


def test_columns_that_are_computed_when_they_are_read_are_not_read_over_protected_rows(
    computed: RealDatabase, tmp_path: Path
) -> None:
    with computed.connect() as real, pytest.raises(psycopg.errors.DivisionByZero):
        real.execute("SELECT count(inverse) FROM orders")
    with noisegate(tmp_path, computed.reader_dsn) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            assert session.execute("SELECT count(*), sum(amount) FROM orders").fetchone() is not None
            assert session.execute("SELECT count(*) FROM (SELECT * FROM orders) AS o").fetchone() is not None
            assert session.execute("SELECT inverse FROM products WHERE id = 8").fetchone() == (1,)
            columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'orders'"
            assert ("inverse",) not in session.execute(columns).fetchall()
            before = running.ledger_length()
            for what, sql in ASKED_FOR.items():
                with pytest.raises(psycopg.Error) as refusal:
                    session.execute(sql)
                assert refusal.value.sqlstate in ("42703", "42501", "0A000"), (what, refusal.value)
            assert running.ledger_length() == before
        assert running.events("fault") == []


def test_check_says_which_columns_are_computed_when_they_are_read(computed: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.rules_file(tmp_path)
    done = command("check", str(rules), database=computed.reader_dsn)

    assert done.returncode == 0
    assert 'warning: tables.orders: "inverse" is a virtual generated column, which can fail on a row' in done.stdout
    assert 'note: products: "inverse" is computed when it is read' in done.stdout


@pytest.fixture(scope="module")
def far(real_cluster: Cluster) -> RealDatabase:
    """A shop with tables whose rows, or some of them, are on another server."""
    database = make_shop(real_cluster, "far_shop")
    with database.connect() as connection:
        connection.execute(FAR)
    return database


@pytest.mark.parametrize("name", ["far_orders", "near_orders"])
def test_protected_rows_on_other_servers_are_read_only_where_the_rules_trust_them(
    far: RealDatabase, tmp_path: Path, name: str
) -> None:
    def checked(more: str) -> tuple[int, str]:
        text = shop_data.RULES.replace(
            "  products: public", f"  products: public\n  {name}: {{unit: customer_id, rows_per_unit: 9{more}}}"
        )
        done = command("check", str(shop_data.rules_file(tmp_path, text)), database=far.reader_dsn)
        return done.returncode, done.stdout

    closed, said = checked("")
    assert closed == 1
    assert f"error: tables.{name}: rows of it are on another server, where reading may fail" in said
    assert "foreign: trusted" in said
    trusted, said = checked(", foreign: trusted")
    assert trusted == 0
    assert f"warning: tables.{name}: foreign: trusted: if a row on the other server cannot be read" in said
