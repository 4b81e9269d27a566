"""Superset's datasets, charts, dashboards, filters and SQL Lab over a running proxy."""

import pytest

from tests.superset.api import Api, ApiError, rows, texts
from tests.superset.charts import DASHBOARDS, Chart
from tests.superset.conftest import FILTERED, Proxy, Shown
from tests.superset.dashboard import Reader

pytestmark = pytest.mark.superset

UNANSWERED = "Without an answer"
ANSWERED = [title for title in DASHBOARDS if title != UNANSWERED]
CHARTS = [pytest.param(title, chart, id=chart.name) for title in ANSWERED for chart in DASHBOARDS[title]]
CITIES = ["Berlin", "Bremen", "Graz", "Hamburg", "Lisbon", "Lyon", "Nantes", "Porto", "Vienna"]


def test_datasets_have_the_columns_that_analysts_may_use(api: Api, datasets: dict[str, int]) -> None:
    columns = {str(column["column_name"]): column["type"] for column in api.sync_columns(datasets["customers"])}

    assert columns == {
        "id": "INTEGER", "city": "TEXT", "birth_date": "DATE", "segment": "SEGMENT", "newsletter": "BOOLEAN",
        "joined_on": "DATE",
    }  # fmt: skip


@pytest.mark.parametrize(("title", "chart"), CHARTS)
def test_a_chart_is_answered(title: str, chart: Chart, dashboards: dict[str, Shown]) -> None:
    drawn = dashboards[title].drawn[chart.name]

    assert not drawn.message
    assert drawn.counts
    assert all(count > 0 for count in drawn.counts), drawn.queries


@pytest.mark.parametrize("title", ANSWERED)
def test_every_chart_of_a_dashboard_is_drawn(title: str, dashboards: dict[str, Shown]) -> None:
    assert dashboards[title].faults == []


@pytest.mark.parametrize("title", DASHBOARDS)
def test_refreshing_a_dashboard_costs_nothing_and_changes_nothing(title: str, dashboards: dict[str, Shown]) -> None:
    shown = dashboards[title]
    before, after = shown.spent

    once, twice = ({name: drawn.data for name, drawn in drawns.items()} for drawns in shown.again)
    assert before == after
    assert once == twice
    assert {name: drawn.counts for name, drawn in shown.again[0].items()} == {
        n: d.counts for n, d in shown.drawn.items()
    }


def test_charts_of_rows_stay_empty_and_refusals_say_what_to_do(dashboards: dict[str, Shown]) -> None:
    shown = dashboards[UNANSWERED]

    assert shown.drawn["Rows"].counts == shown.drawn["Histogram of rows"].counts == [0]
    assert '"id" has no bounds' in shown.drawn["Refused"].message
    assert any('"id" has no bounds' in fault and "Ask your DBA" in fault for fault in shown.faults)


def test_the_filters_of_a_dashboard_narrow_all_its_charts(dashboards: dict[str, Shown]) -> None:
    drawn = dashboards[FILTERED].drawn
    months = [str(row["ordered_at"]) for row in rows(drawn["Orders by month"].data[0])]
    cities = {row["city"] for row in rows(drawn["Mean amount by city"].data[0])}

    assert cities == {"Berlin", "Lyon"}
    assert len(months) == 12
    assert all("amount <= 300" in query for each in drawn.values() for query in each.queries)


def test_a_filter_lists_declared_values_for_free(api: Api, datasets: dict[str, int], proxy: Proxy) -> None:
    spent = proxy.spent()

    found = api.get(f"datasource/table/{datasets['customers']}/column/city/values/")

    assert sorted(texts(found["result"])) == CITIES
    assert proxy.spent() == spent


def test_sql_lab_shows_answers_with_their_types(api: Api, database: int) -> None:
    sql = "SELECT segment, count(*), avg(extract(year FROM birth_date)) AS born FROM customers GROUP BY segment"

    answer = api.run_sql(database, sql)

    kinds = [(column["column_name"], column["type"]) for column in rows(answer["columns"])]
    assert kinds == [("segment", "STRING"), ("count", "LONGINTEGER"), ("born", "DECIMAL")]
    assert [row["segment"] for row in rows(answer["data"])] == ["consumer", "business", "school"]


def test_sql_lab_shows_refusals_with_their_hints(api: Api, database: int) -> None:
    with pytest.raises(ApiError, match=r"array_agg.*Group by the values instead"):
        api.run_sql(database, "SELECT array_agg(city) FROM customers")


def test_sql_lab_lists_tables_and_their_columns(api: Api, database: int) -> None:
    tables = api.get(f"database/{database}/tables/?q=(schema_name:public)")
    described = api.get(f"database/{database}/table_metadata/?name=orders&schema=public")

    assert {table["value"] for table in rows(tables["result"])} == {"customers", "orders", "order_items", "products"}
    assert [key["column_names"] for key in rows(described["foreignKeys"])] == [["customer_id"]]
    assert {"ordered_at", "amount"} <= {str(column["name"]) for column in rows(described["columns"])}


def test_a_preview_of_a_protected_table_is_empty(api: Api, database: int) -> None:
    answer = api.run_sql(database, "SELECT * FROM public.orders LIMIT 100")

    assert answer["data"] == []
    assert "amount" in [column["column_name"] for column in rows(answer["columns"])]


def test_a_dashboard_over_a_synopsis_is_drawn_at_no_charge(
    api: Api, database: int, window: Reader, proxy: Proxy
) -> None:
    """Rows, windows and joins of the analyst's own SQL too, which the tables themselves refuse."""
    spent, entries = proxy.spent(), proxy.running.ledger_length()
    joined = (
        "SELECT c.segment, o.channel, o.amount, rank() OVER (PARTITION BY c.id ORDER BY o.amount DESC) AS place"
        " FROM explore.orders AS o JOIN explore.customers AS c ON c.id = o.customer_id"
    )
    customers, orders = (  # in SQLite Superset cannot have two tables of one name, whatever their schemas
        api.add_query(database, f"synthetic {name}", f"SELECT * FROM explore.{name}")
        for name in ("customers", "orders")
    )
    largest = api.add_query(database, "largest", joined)
    mean = {"expressionType": "SIMPLE", "label": "mean", "aggregate": "AVG", "column": {"column_name": "amount"}}
    by_month = {"x_axis": "ordered_at", "time_grain_sqla": "P1M", "metrics": ["count"], "row_limit": 10000}
    charts = [
        api.add_chart("Synthetic rows", customers, "table", {"query_mode": "raw", "all_columns": ["id", "city"]}),
        api.add_chart("Synthetic cities", customers, "pie", {"groupby": ["city"], "metric": "count"}),
        api.add_chart("Synthetic months", orders, "echarts_timeseries_line", by_month),
        api.add_chart("Largest orders", largest, "table", {"groupby": ["segment", "place"], "metrics": [mean]}),
    ]

    drawn = window.open(api.add_dashboard("A synopsis", charts), {chart: str(chart) for chart in charts})

    assert not window.faults()
    assert not any(each.message for each in drawn.values()), drawn
    assert all(count > 0 for each in drawn.values() for count in each.counts[:1])
    assert (proxy.spent(), proxy.running.ledger_length()) == (spent, entries)
