"""PostgreSQL's tree to the planner's syntax: the one place that knows sqlglot.

sqlglot reads the tree's one spelling (`rules.sql.normalize`): names are quoted, operations bracketed, calls are plain
calls. Every node and every argument of sqlglot's that is not consumed here is refused, so that nothing
passes by being overlooked. And what comes out is printed, read by PostgreSQL's grammar, and must equal the tree that
the text was made of: a misreading of sqlglot's, or of ours, ends in a refusal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rules.refusal import NotSupported
from rules.sql.deparse import print_query
from rules.sql.grammar import Unreadable, parse
from rules.sql.lower.expressions import parsed
from rules.sql.lower.queries import Queries
from rules.sql.normalize import spelled
from rules.sql.normalize.to_text import spell_query
from rules.sql.syntax import Expression, Query, Select
from rules.sql.tree import Json, Node, items, kind, same

__all__ = [
    "check_agreement",
    "expression_from",
    "expressions_from",
    "lowered",
    "parse_expression",
    "parse_query",
    "query_from",
]


@dataclass(frozen=True, slots=True)
class Lowered:
    """The syntax of a query's tree, and the SELECTs of that tree by their numbers in the syntax."""

    query: Query
    selects: Sequence[Node]


def lowered(tree: Node) -> Lowered:
    """The syntax of a query's tree, a wrapped SelectStmt, and where its SELECTs came from."""
    spelling = spelled(tree)
    query, again = _lower(spell_query(spelling.tree))
    _check_same(again, spelling.tree)
    return Lowered(query, spelling.selects)


def query_from(tree: Node) -> Query:
    """The syntax of a query's tree alone."""
    return lowered(tree).query


def expressions_from(nodes: Sequence[Json]) -> tuple[Expression, ...]:
    """The syntax of some expressions' trees. Statements of one dashboard share them, so they are remembered."""
    targets: list[Json] = [{"ResTarget": {"val": node}} for node in nodes]
    canonical = spelled({"SelectStmt": {"targetList": targets, "op": "SETOP_NONE"}}).tree
    select, again = _lower_again(spell_query(canonical))
    _check_same(again, canonical)
    assert isinstance(select, Select)
    return tuple(item.expression for item in select.items)


def _lower(text: str) -> tuple[Query, Json]:
    """The syntax of a spelled text, and the tree that PostgreSQL's grammar makes of that syntax."""
    query = Queries().query(parsed(text))
    return query, _read_again(query)


_lower_again = lru_cache(maxsize=256)(_lower)


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
    _check_same(_read_again(query), tree)


def _read_again(query: Query) -> Json:
    try:
        (piece,) = parse(print_query(query))
    except (Unreadable, ValueError):
        raise _disagreement() from None
    return piece.tree


def _check_same(again: Json, tree: Json) -> None:
    if not same(again, tree):
        raise _disagreement()


def _disagreement() -> NotSupported:
    return NotSupported(
        "the statement uses syntax that cannot be planned safely", hint="Rewrite the statement in simpler SQL."
    )
