"""The standard charts, read from charts.yaml."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.superset.api import Json, mapping, part, text


@dataclass(frozen=True)
class Chart:
    """A chart: its name, its dataset, Superset's name for its kind, and what its form says."""

    name: str
    dataset: str
    kind: str
    form: Json


def _dashboards(read: Json) -> Iterator[tuple[str, tuple[Chart, ...]]]:
    for title, charts in part(read, "dashboards").items():
        made = ((name, mapping(chart)) for name, chart in mapping(charts).items())
        yield title, tuple(Chart(name, text(of["dataset"]), text(of["kind"]), part(of, "form")) for name, of in made)


_READ = mapping(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text()))

DATASETS: Mapping[str, str | None] = {
    name: None if sql is None else text(sql) for name, sql in part(_READ, "datasets").items()
}
"""Datasets by their names: tables, or queries."""

DASHBOARDS: Mapping[str, tuple[Chart, ...]] = dict(_dashboards(_READ))
"""Charts that stand together, by the dashboard's title."""
