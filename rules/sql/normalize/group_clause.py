"""GROUP BY with ROLLUP, CUBE and GROUPING SETS, as the one list of sets that they all stand for."""

from itertools import product

from rules.refusal import NotSupported
from rules.sql.grammar import Json, Node, items, kind

MOST_SETS = 64

Sets = list[list[Json]]


def grouping_sets(elements: list[Json]) -> list[Json]:
    """The elements as they are, or one GROUPING SETS: the product of all of them (SQL:1999, 7.9).

    Elements are spelled but for GroupingSet and RowExpr nodes.
    """
    if not any(kind(element)[0] == "GroupingSet" for element in elements):
        return [column for element in elements for column in _columns(element)]
    sets: Sets = [[]]
    for element in elements:
        sets = _bounded([left + right for left, right in product(sets, _sets(element))])
    return [{"GroupingSet": {"kind": "GROUPING_SET_SETS", "content": [_set(nodes) for nodes in sets]}}]


def _sets(element: Json) -> Sets:
    name, body = kind(element)
    if name != "GroupingSet":
        return [_columns(element)]
    content = items(body, "content")
    match body.get("kind"):
        case "GROUPING_SET_EMPTY":
            return [[]]
        case "GROUPING_SET_ROLLUP":
            return _bounded([_all_columns(content[:length]) for length in range(len(content), -1, -1)])
        case "GROUPING_SET_CUBE":
            return _cube(content)
    return _bounded([nodes for inner in content for nodes in _sets(inner)])


def _cube(content: list[Json]) -> Sets:
    if 2 ** len(content) > MOST_SETS:
        raise _too_many()
    choices = product((True, False), repeat=len(content))
    return [_all_columns([part for part, taken in zip(content, choice, strict=True) if taken]) for choice in choices]


def _all_columns(parts: list[Json]) -> list[Json]:
    return [column for part in parts for column in _columns(part)]


def _columns(element: Json) -> list[Json]:
    """A column, or the columns of `(a, b)`."""
    name, body = kind(element)
    return items(body, "args") if name == "RowExpr" else [element]


def _set(columns: list[Json]) -> Node:
    """One set as PostgreSQL writes it down: (), (a), (a, b)."""
    if not columns:
        return {"GroupingSet": {"kind": "GROUPING_SET_EMPTY"}}
    if len(columns) == 1:
        (only,) = columns
        assert isinstance(only, dict)
        return only
    return {"RowExpr": {"args": columns, "row_format": "COERCE_IMPLICIT_CAST"}}


def _bounded(sets: Sets) -> Sets:
    if len(sets) > MOST_SETS:
        raise _too_many()
    return sets


def _too_many() -> NotSupported:
    return NotSupported(f"more than {MOST_SETS} grouping sets are not supported", hint="Use fewer grouping sets.")
