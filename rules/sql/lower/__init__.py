"""PostgreSQL's tree to the planner's syntax: the one place that knows sqlglot.

sqlglot reads the tree's one spelling (`rules.sql.normalize`): names are quoted, operations bracketed, calls are plain
calls. Its constants and names are lifted out: stand-ins take their places, so that a statement that differs from an
earlier one in nothing else need not be read again. Every node and every argument of sqlglot's that is not consumed here
is refused, so that nothing passes by being overlooked. And what comes out, with its stand-ins, is printed, read by
PostgreSQL's grammar, and must equal the tree that the text was made of: a misreading of sqlglot's, or of ours, ends in
a refusal. Names and constants are put in by their numbers, and pass no parser.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from rules.frozen import frozen, replace
from rules.refusal import NotSupported
from rules.sql import syntax as s
from rules.sql.deparse import print_query
from rules.sql.grammar import Unreadable, parse, trees_without_places
from rules.sql.lower.from_sqlglot import Queries, parsed
from rules.sql.normalize import RESERVED, Spelled, spelled
from rules.sql.normalize.to_text import spell_query
from rules.sql.syntax import Expression, Query, Select
from rules.sql.tree import Json, Node, items, kind, same, text_of

Constants = Mapping[s.Constant, s.Constant]

_NAMES: Final[dict[type[Any], frozenset[str]]] = {
    s.Name: frozenset(["parts"]),
    s.Star: frozenset(["qualifier"]),
    s.Call: frozenset(["name", "schema"]),
    s.TableSource: frozenset(["name", "schema", "alias", "columns"]),
    s.QuerySource: frozenset(["alias", "columns"]),
    s.FunctionSource: frozenset(["alias", "columns"]),
    s.Join: frozenset(["using"]),
    s.Item: frozenset(["alias"]),
    s.Cte: frozenset(["name", "columns"]),
}  # the fields that hold names
_FIELDS: Final = {kind: [(name, name in _NAMES.get(kind, ())) for name in names] for kind, names in s.FIELDS.items()}


def named(query: s.Query, names: Sequence[str], constants: Constants = MappingProxyType({})) -> s.Query:
    """The query with each name, and each of these constants, in place of what stands for it."""
    made: s.Query = _named(query, {f"${number}": name for number, name in enumerate(names)}, constants)
    return made


def _named(part: Any, names: Mapping[str, str], constants: Constants) -> Any:
    if isinstance(part, tuple):
        return tuple([_named(child, names, constants) for child in part])
    kind = type(part)
    fields = _FIELDS.get(kind)
    if fields is None:
        return part
    if kind is s.Constant:
        return constants.get(part, part)
    if kind is s.Call and part.schema == RESERVED:  # an operation, whose name is ours
        return replace(part, arguments=tuple([_named(argument, names, constants) for argument in part.arguments]))
    return kind(
        *[
            _name(getattr(part, name), names) if is_name else _named(getattr(part, name), names, constants)
            for name, is_name in fields
        ]
    )


def _name(written: object, names: Mapping[str, str]) -> object:
    """A name, or several; what has no stand-in is a word of ours."""
    if isinstance(written, tuple):
        return tuple([names.get(name, name) for name in written])
    return names.get(written, written) if isinstance(written, str) else written


@frozen
class Template:
    """A query with stand-ins for its constants, and its nodes that hold any of them, by identity."""

    query: s.Query
    holding: frozenset[int]

    @classmethod
    def of(cls, query: s.Query) -> "Template":
        holding: set[int] = set()
        _note(query, holding)
        return cls(query, frozenset(holding))

    def filled(self, constants: Constants) -> s.Query:
        """The query with each constant in place of what stands for it."""
        made = self._filled(self.query, constants)
        assert isinstance(made, s.Query)
        return made

    def _filled(self, part: object, constants: Constants) -> object:
        if isinstance(part, s.Constant):
            return constants.get(part, part)
        if id(part) not in self.holding:
            return part
        if isinstance(part, tuple):
            return tuple([self._filled(child, constants) for child in part])
        kind = type(part)
        return kind(*[self._filled(getattr(part, name), constants) for name in s.FIELDS[kind]])


def _note(part: object, holding: set[int]) -> bool:
    """Note the nodes that hold a constant, and return whether this one does."""
    if isinstance(part, s.Constant):
        return True
    names = s.FIELDS.get(type(part), ())
    parts = part if isinstance(part, tuple) else [getattr(part, name) for name in names]
    holds = True in [_note(child, holding) for child in parts]  # all of them are to be noted
    if holds:
        holding.add(id(part))
    return holds


Key = TypeVar("Key")
Value = TypeVar("Value")

__all__ = [
    "check_agreement",
    "expression_from",
    "expressions_from",
    "lowered",
    "parse_expression",
    "parse_query",
    "query_from",
]


@frozen
class Lowered:
    """The syntax of a query's tree, and the SELECTs of that tree by their numbers in the syntax."""

    query: Query
    selects: Sequence[Node]


def lowered(tree: Node) -> Lowered:
    """The syntax of a query's tree, a wrapped SelectStmt, and where its SELECTs came from."""
    spelling = spelled(tree, lifts=True)
    return Lowered(_syntax(spelling), spelling.selects)


def query_from(tree: Node) -> Query:
    """The syntax of a query's tree alone."""
    return lowered(tree).query


def expressions_from(nodes: Sequence[Json]) -> tuple[Expression, ...]:
    """The syntax of some expressions' trees."""
    targets: list[Json] = [{"ResTarget": {"val": node}} for node in nodes]
    query: Node = {"SelectStmt": {"targetList": targets, "op": "SETOP_NONE"}}
    select = _syntax(spelled(query, lifts=True))
    assert isinstance(select, Select)
    return tuple(item.expression for item in select.items)


@frozen
class _Structure:
    """What was read of a query without names and constants, and templates of the statements that have it."""

    query: Query
    templates: dict[Sequence[str], Template | None]  # by the names; None where these came once

    def filled(self, names: Sequence[str], constants: Constants) -> Query:
        """The statement with these names and constants. Names that come once are not worth a template."""
        if names not in self.templates:
            _keep(self.templates, names, None, _MOST_NAMED)
            return named(self.query, names, constants)
        template = self.templates[names]
        if template is None:
            template = self.templates[names] = Template.of(named(self.query, names))
        return template.filled(constants)


def _syntax(spelling: Spelled) -> Query:
    """The syntax of a query in its one spelling; it is kept without its names and constants."""
    key = text_of(spelling.tree)
    known = _KEPT.get(key)
    if known is None:
        query = Queries().query(parsed(spell_query(spelling.tree)))
        check_agreement(spelling.tree, query)
        known = _Structure(query, {})
        if len(key) <= _LONGEST:
            if sum(map(len, _KEPT)) > _ROOM:
                _KEPT.clear()
            _keep(_KEPT, key, known, _MOST_KEPT)
    return known.filled(spelling.names, spelling.constants)


def _keep(kept: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    if len(kept) >= most:
        kept.clear()
    kept[key] = value


_LONGEST: Final = 200_000  # characters
_ROOM: Final = 4_000_000  # characters of all keys: each has some five times as many bytes around it
_MOST_KEPT: Final = 256
_MOST_NAMED: Final = 8  # templates of one structure
_KEPT: dict[str, _Structure] = {}


def expression_from(node: Json) -> Expression:
    """The syntax of one expression's tree."""
    return expressions_from([node])[0]


def parse_query(text: str) -> Query:
    """The syntax of a query's text.

    Example:
        >>> query = parse_query("SELECT count(*) FROM orders")
        >>> query.items[0].expression.name, query.items[0].expression.star
        ('count', True)
    """
    (piece,) = parse(text)
    return query_from(piece.tree)


def parse_expression(text: str) -> Expression:
    """The syntax of one expression's text."""
    (piece,) = parse(f"SELECT {text}")
    (target,) = items(kind(piece.tree)[1], "targetList")
    return expression_from(kind(target)[1].get("val"))


def check_agreement(tree: Json, query: Query) -> None:
    """Refuse a query that the two parsers read differently."""
    try:
        (read,) = trees_without_places(print_query(query))
    except (Unreadable, ValueError):
        read = None
    if read != tree and not same(read, tree):  # trees may hold null, or a place that was left
        message = "the statement uses syntax that cannot be planned safely"
        raise NotSupported(message, hint="Rewrite the statement in simpler SQL.")
