"""psqlODBC, through which Tableau and Excel come: its catalog functions, both ways of fetching, both protocols."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.installed import module
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.support import shop
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients
DRIVER = "PostgreSQL Unicode"
WAYS = ["", "UseDeclareFetch=1;Fetch=3", "UseServerSidePrepare=0", "UseDeclareFetch=1;Fetch=1;Protocol=7.4-2"]


@pytest.fixture(scope="module")
def pyodbc() -> Any:
    return module("pyodbc")


@pytest.fixture(params=WAYS, ids=lambda way: way or "as installed")
def connection(pyodbc: Any, request: pytest.FixtureRequest, proxy: Noisegate) -> Iterator[Any]:
    if DRIVER not in pyodbc.drivers():
        pytest.skip("psqlODBC is not here: install odbc-postgresql")
    target = f"SERVER=127.0.0.1;PORT={proxy.port};DATABASE={proxy.database};UID=ada;PWD={shop.PASSWORDS['ada']}"
    made = pyodbc.connect(f"DRIVER={{{DRIVER}}};{target};SSLmode=require;{request.param}", autocommit=True)
    yield made
    made.close()


def test_catalog_functions_tell_tables_columns_and_keys(connection: Any) -> None:
    cursor = connection.cursor()
    assert [row.table_name for row in cursor.tables(schema="public")] == [
        "customers", "order_items", "orders", "products",
    ]  # fmt: skip
    columns = {row.column_name: row.type_name for row in cursor.columns("orders")}
    assert (columns["id"], columns["amount"]) == ("int8", "numeric")
    assert "email" not in {row.column_name for row in cursor.columns("customers")}
    assert "orders_pkey" in {row.index_name for row in cursor.statistics("orders", unique=True)}
    assert [row.column_name for row in cursor.primaryKeys("order_items")] == ["order_id", "product_id"]
    assert [row.pktable_name for row in cursor.foreignKeys(foreignTable="orders")] == ["customers"]


def test_answers_with_and_without_parameters(connection: Any, cities: dict[str | None, int]) -> None:
    cursor = connection.cursor()
    check_cities([tuple(row) for row in cursor.execute(CITIES).fetchall()], cities)
    check_amounts([tuple(row) for row in cursor.execute(AMOUNTS.format("?"), 50).fetchall()])
    assert [column[0] for column in cursor.description] == ["status", "count", "avg", "sum"]


def test_refusals_have_their_sqlstate_and_leave_the_connection(pyodbc: Any, connection: Any) -> None:
    cursor = connection.cursor()
    with pytest.raises(pyodbc.Error) as caught:
        cursor.execute(ROWS).fetchall()
    assert caught.value.args[0] == "42501"
    assert cursor.execute("SELECT 1").fetchone()[0] == 1


def test_a_refusal_inside_a_transaction_can_be_gone_on_from(
    pyodbc: Any, connection: Any, cities: dict[str | None, int]
) -> None:
    connection.autocommit = False
    cursor = connection.cursor()
    with pytest.raises(pyodbc.Error):
        cursor.execute(ROWS).fetchall()
    connection.rollback()
    check_cities([tuple(row) for row in cursor.execute(CITIES).fetchall()], cities)
    connection.commit()
