"""Superset's datasets, charts, dashboards and SQL Lab over a running proxy."""

import pytest

from tests.superset.api import Api
from tests.superset.charts import DASHBOARDS, Chart
from tests.superset.conftest import Proxy, Shown
from tests.superset.dashboard import Reader

pytestmark = pytest.mark.superset

CHARTS = [(title, chart) for title, charts in DASHBOARDS.items() for chart in charts]


def test_datasets_have_the_columns_that_analysts_may_use(api: Api, datasets: dict[str, int]) -> None:
    columns = {str(column["column_name"]): column["type"] for column in api.sync_columns(datasets["customers"])}

    assert columns == {
        "id": "INTEGER", "city": "TEXT", "birth_date": "DATE", "segment": "SEGMENT", "newsletter": "BOOLEAN",
        "joined_on": "DATE",
    }  # fmt: skip


@pytest.mark.parametrize(("title", "chart"), CHARTS, ids=lambda given: given.name if isinstance(given, Chart) else "")
def test_a_chart_is_answered(title: str, chart: Chart, dashboards: dict[str, Shown]) -> None:
    drawn = dashboards[title].drawn[chart.name]

    assert not drawn.message
    assert drawn.counts
    assert all(count > 0 for count in drawn.counts), drawn.queries


@pytest.mark.parametrize("title", DASHBOARDS)
def test_refreshing_a_dashboard_costs_nothing_and_changes_nothing(
    title: str, dashboards: dict[str, Shown], window: Reader, proxy: Proxy
) -> None:
    shown = dashboards[title]
    window.open(shown.number, shown.charts)
    spent = proxy.spent()

    again = window.refresh(shown.charts)

    assert proxy.spent() == spent
    assert {name: drawn.data for name, drawn in again.items()} == {n: d.data for n, d in shown.drawn.items()}
