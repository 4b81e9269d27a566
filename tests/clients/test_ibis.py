"""ibis: tables by their schema, expressions that become SQL of many levels."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.installed import module
from tests.clients.questions import check_cities
from tests.support import shop
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def ibis() -> Any:
    return module("ibis")


@pytest.fixture(scope="module")
def connection(ibis: Any, proxy: Noisegate) -> Iterator[Any]:
    made = ibis.postgres.connect(
        host="127.0.0.1",
        port=proxy.port,
        user="ada",
        password=shop.PASSWORDS["ada"],
        database="shop",
        sslmode="require",
    )
    yield made
    made.disconnect()


def test_tables_have_their_schema(connection: Any) -> None:
    assert connection.list_tables() == ["customers", "order_items", "orders", "products"]
    assert "email" not in connection.table("customers").schema()
    assert str(connection.table("orders").schema()["amount"]) == "!decimal(10, 2)"  # ! is NOT NULL


def test_grouped_counts_are_near_the_truth(connection: Any, cities: dict[str | None, int]) -> None:
    customers = connection.table("customers")
    frame = customers.group_by("city").agg(n=customers.count()).order_by("city").execute()
    rows = [(city if isinstance(city, str) else None, int(n)) for city, n in frame.itertuples(index=False)]
    check_cities(rows, cities)


def test_joins_filters_and_top_n(ibis: Any, connection: Any) -> None:
    orders, customers = connection.table("orders"), connection.table("customers")
    joined = orders.filter(orders.amount > 50).join(customers, orders.customer_id == customers.id)
    best = joined.group_by("country").agg(total=joined.amount.sum()).order_by(ibis.desc("total")).limit(2).execute()
    assert len(best) == 2
    assert list(best["total"]) == sorted(best["total"], reverse=True)
    assert 200 < int(orders.filter(orders.amount > 50).count().execute()) < 4000


def test_a_temporary_view_has_a_schema_and_is_a_table(connection: Any, cities: dict[str | None, int]) -> None:
    """As con.sql learns the columns of raw SQL: it makes a view of it for a moment."""
    connection.raw_sql(
        "CREATE TEMPORARY VIEW by_city AS SELECT city, count(*) AS n FROM customers GROUP BY city"
    ).close()
    assert list(connection.get_schema("by_city")) == ["city", "n"]
    frame = connection.sql("SELECT * FROM by_city", schema={"city": "string", "n": "int64"}).order_by("city").execute()
    check_cities(
        [(city if isinstance(city, str) else None, int(n)) for city, n in frame.itertuples(index=False)], cities
    )
    connection.raw_sql("DROP VIEW by_city").close()


def test_raw_sql_tells_its_schema(
    connection: Any, monkeypatch: pytest.MonkeyPatch, cities: dict[str | None, int]
) -> None:
    """ibis makes a temporary view and drops it; with sqlglot from 30.19 on it forgets the name in the DROP."""
    expressions = importlib.import_module("sqlglot.expressions")
    made = expressions.Drop
    monkeypatch.setattr(expressions, "Drop", lambda this, **rest: made(tables=[this], **rest))

    asked = connection.sql("SELECT city, count(*) AS n FROM customers GROUP BY city")
    assert list(asked.schema()) == ["city", "n"]
    frame = asked.order_by("city").execute()
    check_cities(
        [(city if isinstance(city, str) else None, int(n)) for city, n in frame.itertuples(index=False)], cities
    )
    assert not [name for name in connection.list_tables() if name.startswith("ibis_")]


def test_rows_are_refused(connection: Any) -> None:
    customers = connection.table("customers")
    for rows in (customers.limit(3), customers):
        with pytest.raises(Exception, match="protected table"):
            rows.execute()
    assert len(connection.table("products").execute()) == 30
