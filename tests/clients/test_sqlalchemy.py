"""SQLAlchemy, by three drivers: the inspector that BI tools build on, and expressions over private tables."""

import pytest
from sqlalchemy import Engine, MetaData, Table, create_engine, func, inspect, select, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from tests.clients.questions import CITIES, ROWS, check_amounts, check_cities
from tests.support import shop
from tests.support.running import Noisegate

Cities = dict[str | None, int]


@pytest.fixture(params=["psycopg", "psycopg2", "pg8000"])
def engine(request: pytest.FixtureRequest, proxy: Noisegate) -> Engine:
    secure = {} if request.param == "pg8000" else {"sslmode": "require"}
    url = f"postgresql+{request.param}://ada:{shop.PASSWORDS['ada']}@127.0.0.1:{proxy.port}/{proxy.database}"
    return create_engine(url, connect_args=secure, poolclass=NullPool, pool_pre_ping=True)


def test_the_inspector_lists_what_analysts_may_see(engine: Engine) -> None:
    seen = inspect(engine)

    assert "public" in seen.get_schema_names()
    assert sorted(seen.get_table_names()) == ["customers", "order_items", "orders", "products"]
    assert "email" not in {column["name"] for column in seen.get_columns("customers")}
    columns = {column["name"]: column for column in seen.get_columns("orders")}
    assert str(columns["amount"]["type"]) == "NUMERIC(10, 2)"
    assert columns["customer_id"]["nullable"] is False


def test_the_inspector_finds_keys_comments_and_enums(engine: Engine) -> None:
    seen = inspect(engine)

    assert seen.get_pk_constraint("order_items")["constrained_columns"] == ["order_id", "product_id"]
    assert {key["referred_table"] for key in seen.get_foreign_keys("order_items")} == {"orders", "products"}
    assert seen.get_table_comment("customers")["text"] == "people who buy here"
    comments = {column["name"]: column["comment"] for column in seen.get_columns("customers")}
    assert comments["city"] == "where they live"
    assert seen.get_indexes("orders") is not None
    assert seen.get_unique_constraints("customers") == []  # that of email is hidden with it
    assert {enum["name"]: enum["labels"] for enum in seen.get_enums()}["status"] == [  # type: ignore[attr-defined]
        "open",
        "paid",
        "sent",
        "returned",
    ]


def test_reflected_tables_are_asked_privately(engine: Engine, cities: Cities) -> None:
    tables = MetaData()
    orders = Table("orders", tables, autoload_with=engine)
    with engine.connect() as connection:
        check_cities([(city, count) for city, count in connection.execute(text(CITIES))], cities)
        statement = (
            select(orders.c.status, func.count(), func.avg(orders.c.amount), func.sum(orders.c.amount))
            .where(orders.c.amount > 50)
            .group_by(orders.c.status)
        )
        check_amounts([tuple(row) for row in connection.execute(statement)])


def test_a_refusal_is_an_error_of_the_statement_alone(engine: Engine, cities: Cities) -> None:
    with engine.connect() as connection:
        with pytest.raises(ProgrammingError, match="rows"):
            connection.execute(text(ROWS))
        connection.rollback()
        check_cities([(city, count) for city, count in connection.execute(text(CITIES))], cities)
