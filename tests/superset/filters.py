"""Filters at the side of a dashboard, already set as a reader would set them."""

from collections.abc import Sequence

from tests.superset.api import Json

NO_OPTIONS: Json = {}


def of_values(dataset: int, column: str, chosen: Sequence[str]) -> Json:
    """A list of a column's values, of which some are chosen."""
    query = {"filters": [{"col": column, "op": "IN", "val": chosen}]}
    options = {"multiSelect": True, "enableEmptyFilter": False, "searchAllOptions": False, "inverseSelection": False}
    target = {"datasetId": dataset, "column": {"name": column}}
    return _filter("filter_select", column, target, query, chosen, options)


def of_range(dataset: int, column: str, low: int, high: int) -> Json:
    """A slider from the least to the greatest value, which Superset asks for."""
    bounds = [{"col": column, "op": ">=", "val": low}, {"col": column, "op": "<=", "val": high}]
    target = {"datasetId": dataset, "column": {"name": column}}
    return _filter("filter_range", column, target, {"filters": bounds}, [low, high])


def of_time(span: str) -> Json:
    """A span of time, of each chart's own time column."""
    return _filter("filter_time", "time", {}, {"time_range": span}, span)


def _filter(kind: str, name: str, target: Json, query: Json, value: object, options: Json = NO_OPTIONS) -> Json:
    return {
        "id": f"NATIVE_FILTER-{name}",
        "name": name,
        "type": "NATIVE_FILTER",
        "filterType": kind,
        "targets": [target],
        "controlValues": options,
        "defaultDataMask": {"extraFormData": query, "filterState": {"value": value}},
        "cascadeParentIds": [],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": []},
    }
