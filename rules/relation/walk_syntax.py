"""Looking through the analyst's expressions: the aggregates, windows and subqueries in them."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from rules.sql import syntax as s
from rules.sql.aggregate_names import AGGREGATES

_QUERIES = (s.Select, s.SetOperation, s.Values)


def is_aggregate(given: object) -> bool:
    return isinstance(given, s.Call) and given.over is None and given.schema is None and given.name in AGGREGATES


def parts(given: object, *, above_aggregates: bool = False) -> Iterator[object]:
    """Everything inside an expression, itself first; subqueries are given but not entered, aggregates if told so."""
    yield given
    if isinstance(given, _QUERIES) or (above_aggregates and is_aggregate(given)):
        return
    if isinstance(given, tuple):
        for each in given:
            yield from parts(each, above_aggregates=above_aggregates)
    elif is_dataclass(given):
        for field in fields(given):
            yield from parts(getattr(given, field.name), above_aggregates=above_aggregates)


def aggregates(*given: object) -> tuple[s.Call, ...]:
    """The distinct aggregate calls, in the order of the text; none lies in another."""
    found: dict[s.Call, None] = {}

    def look(inside: object) -> None:
        if isinstance(inside, s.Call) and is_aggregate(inside):
            found.setdefault(inside)
        elif isinstance(inside, tuple):
            for each in inside:
                look(each)
        elif is_dataclass(inside) and not isinstance(inside, _QUERIES):
            for field in fields(inside):
                look(getattr(inside, field.name))

    look(given)
    return tuple(found)


def first_table(query: s.Query) -> str:
    """The name of the first table that a query reads; "" if it reads none by name."""
    match query:
        case s.SetOperation(left=left):
            return first_table(left)
        case s.Select(source=source):
            return _first_table(source)
    return ""


def _first_table(source: s.Source | None) -> str:
    match source:
        case s.TableSource(name=name):
            return name
        case s.QuerySource(query=query):
            return first_table(query)
        case s.Join(left=left, right=right):
            return _first_table(left) or _first_table(right)
    return ""


def word_of(given: s.Expression) -> str:
    """The first name, function or constant that stands in an expression."""
    for part in parts(given):
        match part:
            case s.Name(parts=(*_, name)) | s.Call(name=name):
                return name
            case s.Constant(text=text) if text:
                return text
    return ""


def above(keys: tuple[s.Expression, ...], *given: object) -> Iterator[object]:
    """What is computed from a block's keys and aggregates: these themselves are left out."""
    for each in given:
        if each in keys or is_aggregate(each):
            continue
        if isinstance(each, _QUERIES) or not (isinstance(each, tuple) or is_dataclass(each)):
            yield each
        elif isinstance(each, tuple):
            yield from above(keys, *each)
        else:
            yield from above(keys, *(getattr(each, field.name) for field in fields(each)))


def has_window(*given: object) -> bool:
    return any(isinstance(part, s.Call) and part.over is not None for part in parts(given))


def windows(*given: object) -> tuple[s.Call, ...]:
    """The distinct window calls, in the order of the text."""
    calls = (part for part in parts(given) if isinstance(part, s.Call) and part.over is not None)
    return tuple(dict.fromkeys(calls))


def subqueries(*given: object) -> Iterator[s.Query]:
    for part in parts(given):
        if isinstance(part, _QUERIES):
            yield part


def unnumbered(given: s.Expression) -> s.Expression:
    """An expression without the numbers of its SELECTs, which are others wherever it is read again."""
    found = _unnumbered(given)
    assert isinstance(found, type(given))
    return found


def _unnumbered(given: object) -> object:
    if isinstance(given, tuple):
        return tuple(map(_unnumbered, given))
    if not is_dataclass(given) or isinstance(given, type):
        return given
    held = {field.name: _unnumbered(getattr(given, field.name)) for field in fields(given)}
    return type(given)(**(held | ({"index": 0} if isinstance(given, s.Select) else {})))


def conjuncts(given: s.Expression | None) -> Iterator[s.Expression]:
    """The conditions of a WHERE that must all hold."""
    match given:
        case None:
            return
        case s.Operator(name="and", arguments=arguments):
            for each in arguments:
                yield from conjuncts(each)
        case _:
            yield given


def column_name(given: s.Expression) -> str:
    """The name of a select item without alias (FigureColname in PostgreSQL's parse_target.c)."""
    return _named(given)[0] or "?column?"


def _named(given: s.Expression | None) -> tuple[str, int]:
    """A name and how sure it is of itself: 2 for columns and functions, 1 for casts and CASE, 0 for none."""
    match given:
        case s.Name(parts=names):
            return names[-1], 2
        case s.Call(name=name):
            return name, 2
        case s.Cast(argument=argument, type=written):
            inner = _named(argument)
            return inner if inner[1] == 2 else (_TYPE_NAMES.get(written.partition("(")[0], written), 1)
        case s.Case(default=default):
            inner = _named(default)
            return inner if inner[1] == 2 else ("case", 1)
        case s.Exists():
            return "exists", 2
        case s.ScalarQuery(query=s.Select(items=(first, *_))):
            return (first.alias, 2) if first.alias else _named(first.expression)
        case s.Array():
            return "array", 2
    return "", 0


_TYPE_NAMES = {
    "integer": "int4", "bigint": "int8", "smallint": "int2", "double precision": "float8", "real": "float4",
    "boolean": "bool", "character varying": "varchar", "character": "bpchar",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz",
}  # fmt: skip
