"""Superset's REST API, as far as somebody needs it who connects a database and makes charts."""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.error import HTTPError

Json = Mapping[str, object]
USER, PASSWORD = "admin", "admin"
ANSWER_SECONDS = 120
A_ROW = 3  # charts beside each other on a dashboard


class ApiError(Exception):
    """What Superset says when it does not do as asked."""


@dataclass(frozen=True)
class Api:
    """One login."""

    url: str
    token: str

    @classmethod
    def login(cls, url: str) -> "Api":
        asked = {"username": USER, "password": PASSWORD, "provider": "db", "refresh": True}
        return cls(url, text(cls(url, "").post("security/login", asked)["access_token"]))

    def get(self, path: str) -> Json:
        return self._ask("GET", path, None)

    def post(self, path: str, body: Json) -> Json:
        return self._ask("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        return self._ask("PUT", path, body)

    def add_database(self, uri: str) -> int:
        """Connect a database, by SQLAlchemy's URI, as its form "Connect a database" does."""
        options = {"expose_in_sqllab": True, "extra": json.dumps({"allows_virtual_table_explore": True})}
        made = self.post("database/", {"database_name": "shop", "sqlalchemy_uri": uri} | options)
        return number(made["id"])

    def add_table(self, database: int, name: str, schema: str = "public") -> int:
        """A dataset of a table; Superset reads its columns."""
        return self._add_dataset({"database": database, "schema": schema, "table_name": name})

    def add_query(self, database: int, name: str, sql: str) -> int:
        """A dataset of a query."""
        return self._add_dataset({"database": database, "schema": "public", "table_name": name, "sql": sql})

    def sync_columns(self, dataset: int) -> list[Json]:
        """Read a dataset's columns again; what is known of them then."""
        self.put(f"dataset/{dataset}/refresh", {})
        return rows(part(self.get(f"dataset/{dataset}"), "result")["columns"])

    def add_chart(self, name: str, dataset: int, kind: str, form: Json) -> int:
        """A chart as the editor saves it: the browser makes its query from the form."""
        params = {"viz_type": kind, "datasource": f"{dataset}__table", **form}
        body = {"slice_name": name, "viz_type": kind, "datasource_id": dataset, "datasource_type": "table"}
        return number(self.post("chart/", body | {"params": json.dumps(params)})["id"])

    def add_dashboard(self, title: str, charts: Sequence[int], filters: Sequence[Json] = ()) -> int:
        """A dashboard of these charts, three in a row, with filters at its side."""
        settings = {"native_filter_configuration": filters, "cross_filters_enabled": True}
        place = json.dumps(_grid(charts))
        body = {
            "dashboard_title": title,
            "position_json": place,
            "json_metadata": json.dumps(settings),
            "published": True,
        }
        made = number(self.post("dashboard/", body)["id"])
        for chart in charts:
            self.put(f"chart/{chart}", {"dashboards": [made]})
        return made

    def run_sql(self, database: int, sql: str) -> Json:
        """Run a statement in SQL Lab, which waits for its answer."""
        client = {"client_id": f"{abs(hash(sql)) % 10**10}", "runAsync": False, "queryLimit": 1000, "schema": "public"}
        return self.post("sqllab/execute/", {"database_id": database, "sql": sql} | client)

    def _add_dataset(self, body: Json) -> int:
        return number(self.post("dataset/", body)["id"])

    def _ask(self, method: str, path: str, body: Json | None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return mapping(json.load(answer))
        except HTTPError as error:
            raise ApiError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None

    @property
    def _headers(self) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return token | {"Content-Type": "application/json", "Accept": "application/json"}


def _grid(charts: Sequence[int]) -> Json:
    """Where each chart stands: Superset's tree of rows, twelve columns wide."""
    lines = [charts[first : first + A_ROW] for first in range(0, len(charts), A_ROW)]
    names = [f"ROW-{number}" for number in range(len(lines))]
    grid: dict[str, object] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": _place("ROOT", "ROOT_ID", ["GRID_ID"]),
        "GRID_ID": _place("GRID", "GRID_ID", names, ["ROOT_ID"]),
    }
    for name, line in zip(names, lines, strict=True):
        children = [f"CHART-{chart}" for chart in line]
        grid[name] = _place("ROW", name, children, ["ROOT_ID", "GRID_ID"], background="BACKGROUND_TRANSPARENT")
        for chart in line:
            above = ["ROOT_ID", "GRID_ID", name]
            size = {"chartId": chart, "width": 12 // A_ROW, "height": 42}
            grid[f"CHART-{chart}"] = _place("CHART", f"CHART-{chart}", [], above, **size)
    return grid


def _place(kind: str, name: str, children: Sequence[str], parents: Sequence[str] = (), **meta: object) -> Json:
    return {"type": kind, "id": name, "children": children, "parents": parents, "meta": meta}


def part(of: Json, name: str) -> Json:
    """A mapping inside of one."""
    return mapping(of[name])


def mapping(value: object) -> Json:
    assert isinstance(value, dict), value
    return value


def rows(value: object) -> list[Json]:
    """A list of mappings."""
    assert isinstance(value, list), value
    return [mapping(row) for row in value]


def number(value: object) -> int:
    assert isinstance(value, int), value
    return value


def text(value: object) -> str:
    assert isinstance(value, str), value
    return value


def texts(value: object) -> Sequence[str]:
    assert isinstance(value, list), value
    return [text(item) for item in value]
