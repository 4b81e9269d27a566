"""How ε is shared, and what a statement costs, does not depend on rows: the same over two databases of one schema."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase, make_shop
from tests.support.running import noisegate

# Other people, other totals, other numbers of rows, one city, one person with nearly all orders; then statistics of it.
OTHERS = """
TRUNCATE orders, order_items;
DELETE FROM customers WHERE id > 40;
UPDATE customers SET city = 'Porto', birth_date = '1999-12-31', is_vip = true;
INSERT INTO orders (customer_id, ordered_at, status, amount)
SELECT CASE WHEN i % 50 = 0 THEN i / 50 ELSE 7 END, timestamptz '2026-12-01' + i * interval '1 minute', 'open', 499.99
FROM generate_series(1, 2000) AS i;
INSERT INTO order_items SELECT id, 1 + id % 30, 99, 0.01 FROM orders;
ANALYZE;
"""
ASKED = """
SET noisegate.reuse = off
SELECT count(*), avg(amount), sum(amount) FROM orders
SELECT status, count(*), avg(amount), stddev(amount) FROM orders GROUP BY status
SELECT count(DISTINCT customer_id), count(*) FILTER (WHERE amount > 100) FROM orders
SELECT (SELECT avg(amount) FROM orders WHERE status = 'paid'), count(*), sum(quantity) FROM order_items
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), max(amount) FROM orders
SELECT avg(amount), noisegate.low(avg(amount)), noisegate.high(avg(amount)) FROM orders
SELECT corr(unit_price, quantity), regr_slope(unit_price, quantity) FROM order_items
SELECT note, count(*), sum(amount) FROM orders GROUP BY note
SELECT city, date_trunc('year', birth_date), count(*) FROM customers GROUP BY ROLLUP (1, 2)
SELECT count(*), sum(amount) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)
SET noisegate.rows_per_unit = auto
SELECT status, count(*), sum(amount) FROM orders GROUP BY status
SET noisegate.sum_per_unit = auto
SELECT sum(amount), avg(amount) FROM orders
"""


@pytest.fixture(scope="module", params=["one row more or less", "all others"])
def pair(request: pytest.FixtureRequest, real_cluster: Cluster) -> tuple[RealDatabase, RealDatabase]:
    """Two shops whose rows differ, by one order or in all that can differ."""
    name = f"weights_{request.param.partition(' ')[0]}"
    first, second = make_shop(real_cluster, name), make_shop(real_cluster, f"{name}_more")
    with second.connect() as connection:
        connection.execute("DELETE FROM order_items WHERE order_id = 1" if "one" in request.param else OTHERS.encode())
        connection.execute("ANALYZE")
    return first, second


def charged(database: RealDatabase, home: Path) -> list[object]:
    """What each statement has cost, draw by draw, as the ledger has it."""
    home.mkdir()
    with noisegate(home, database.reader_dsn, name=database.name) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            for sql in ASKED.strip().splitlines():
                session.execute(sql.encode())
        with closing(sqlite3.connect(running.rules.with_suffix(".ledger"))) as ledger:
            entries = ledger.execute("SELECT entry FROM entries WHERE kind = 'charge' ORDER BY id").fetchall()
    return [json.loads(entry)["mechanisms"] for (entry,) in entries]


def test_what_is_charged_draw_by_draw_does_not_depend_on_rows(
    pair: tuple[RealDatabase, RealDatabase], tmp_path: Path
) -> None:
    first, second = (charged(database, tmp_path / database.name) for database in pair)

    assert len(first) >= len([line for line in ASKED.strip().splitlines() if line.startswith("SELECT")])
    assert first == second
