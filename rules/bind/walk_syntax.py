"""Looking through the analyst's expressions: the aggregates, windows and subqueries in them."""

from collections.abc import Iterator

from rules.sql import syntax as s
from rules.sql.normalize.nodes import AGGREGATES, ESTIMATE, TYPICAL

_QUERIES = (s.Select, s.SetOperation, s.Values)


def is_aggregate(part: object) -> bool:
    return is_plain_aggregate(part) or is_typical(part) or is_estimate(part)


def is_plain_aggregate(part: object) -> bool:
    """One of PostgreSQL's own."""
    return isinstance(part, s.Call) and part.over is None and part.schema is None and part.name in AGGREGATES


def is_typical(part: object) -> bool:
    """noisegate.typical, which is a function to PostgreSQL and an aggregate here: what it is made of is its own."""
    return _is_ours(part, TYPICAL)


def is_estimate(part: object) -> bool:
    """noisegate.estimate of a column that people randomized."""
    return _is_ours(part, ESTIMATE)


def _is_ours(part: object, name: str) -> bool:
    if not isinstance(part, s.Call) or part.over is not None:
        return False
    return part.schema in ("noisegate", None) and part.name == name


def made_of(call: s.Call) -> tuple[s.Call, ...]:
    """PostgreSQL's aggregates that an aggregate is, or is made of."""
    return aggregates(call.arguments) if is_typical(call) else (call,)


def parts(part: object, *, above_aggregates: bool = False) -> Iterator[object]:
    """Everything inside an expression, itself first; subqueries are given but not entered, aggregates if told so."""
    waiting = [part]
    while waiting:
        tree = waiting.pop()
        yield tree
        if isinstance(tree, _QUERIES) or (above_aggregates and is_aggregate(tree)):
            continue
        if isinstance(tree, tuple):
            waiting.extend(reversed(tree))
        elif type(tree) in s.FIELDS:
            waiting.extend([getattr(tree, name) for name in reversed(s.FIELDS[type(tree)])])


def aggregates(*trees: object) -> tuple[s.Call, ...]:
    """The distinct aggregate calls, in the order of the text; none lies in another."""
    calls: dict[s.Call, None] = {}

    def look(inside: object) -> None:
        if isinstance(inside, s.Call) and is_aggregate(inside):
            calls.setdefault(inside)
        elif isinstance(inside, tuple):
            for part in inside:
                look(part)
        elif type(inside) in s.FIELDS and not isinstance(inside, _QUERIES):
            for name in s.FIELDS[type(inside)]:
                look(getattr(inside, name))

    look(trees)
    return tuple(calls)


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


def word_of(expression: s.Expression) -> str:
    """The first name, function or constant that stands in an expression."""
    for part in parts(expression):
        match part:
            case s.Name(parts=(*_, name)) | s.Call(name=name):
                return name
            case s.Constant(text=text) if text:
                return text
    return ""


def above(keys: tuple[s.Expression, ...], *trees: object) -> Iterator[object]:
    """Yield what is computed from a block's keys and aggregates: these themselves are left out."""
    return _above(keys, tuple(unnumbered(key) for key in keys if any(subqueries(key))), trees)


def _above(keys: tuple[s.Expression, ...], with_queries: tuple[s.Expression, ...], tree: object) -> Iterator[object]:
    if tree in keys or is_aggregate(tree):
        return
    if isinstance(tree, tuple):
        for part in tree:
            yield from _above(keys, with_queries, part)
    elif isinstance(tree, _QUERIES) or type(tree) not in s.FIELDS:
        yield tree
    elif not with_queries or _unnumbered(tree) not in with_queries:
        yield from _above(keys, with_queries, tuple(getattr(tree, name) for name in s.FIELDS[type(tree)]))


def has_window(*trees: object) -> bool:
    return any(isinstance(part, s.Call) and part.over is not None for part in parts(trees))


def windows(*trees: object) -> tuple[s.Call, ...]:
    """The distinct window calls, in the order of the text."""
    calls = (part for part in parts(trees) if isinstance(part, s.Call) and part.over is not None)
    return tuple(dict.fromkeys(calls))


def subqueries(*trees: object) -> Iterator[s.Query]:
    for part in parts(trees):
        if isinstance(part, _QUERIES):
            yield part


def unnumbered(expression: s.Expression) -> s.Expression:
    """An expression without the numbers of its SELECTs, which are others wherever it is read again."""
    rebuilt = _unnumbered(expression)
    assert isinstance(rebuilt, type(expression))
    return rebuilt


def _unnumbered(part: object) -> object:
    if isinstance(part, tuple):
        return tuple(map(_unnumbered, part))
    kind = type(part)
    if kind not in s.FIELDS:
        return part
    held = {name: _unnumbered(getattr(part, name)) for name in s.FIELDS[kind]}
    return kind(**(held | ({"index": 0} if isinstance(part, s.Select) else {})))


def conjuncts(expression: s.Expression | None) -> Iterator[s.Expression]:
    """The conditions of a WHERE that must all hold."""
    match expression:
        case None:
            return
        case s.Operator(name="and", arguments=arguments):
            for argument in arguments:
                yield from conjuncts(argument)
        case _:
            yield expression


def column_name(expression: s.Expression) -> str:
    """The name of a select item without alias (FigureColname in PostgreSQL's parse_target.c)."""
    return _named(expression)[0] or "?column?"


def _named(expression: s.Expression | None) -> tuple[str, int]:
    """A name and how sure it is of itself: 2 for columns and functions, 1 for casts and CASE, 0 for none."""
    match expression:
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
