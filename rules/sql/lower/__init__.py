"""PostgreSQL's tree to the planner's syntax: the one place that knows sqlglot.

sqlglot reads the tree's one spelling (`rules.sql.normalize`): names are quoted, operations bracketed, calls are plain
calls. Every node and every argument of sqlglot's that is not consumed here is refused, so that nothing
passes by being overlooked. And what comes out is printed, read by PostgreSQL's grammar, and must equal the tree that
the text was made of: a misreading of sqlglot's, or of ours, ends in a refusal.
"""

from collections.abc import Sequence

from rules.refusal import NotSupported
from rules.sql.deparse import print_query
from rules.sql.grammar import Unreadable, parse
from rules.sql.lower.expressions import parsed
from rules.sql.lower.queries import Queries
from rules.sql.normalize import spelled
from rules.sql.normalize.to_text import spell_query
from rules.sql.syntax import Expression, Query, Select
from rules.sql.tree import Json, Node, items, kind, same

__all__ = ["check_agreement", "expression_from", "expressions_from", "parse_expression", "parse_query", "query_from"]


def query_from(tree: Node) -> Query:
    """The syntax of a query's tree, a wrapped SelectStmt."""
    canonical = spelled(tree).tree
    query = Queries().query(parsed(spell_query(canonical)))
    check_agreement(canonical, query)
    return query


def expressions_from(nodes: Sequence[Json]) -> tuple[Expression, ...]:
    """The syntax of some expressions' trees."""
    targets: list[Json] = [{"ResTarget": {"val": node}} for node in nodes]
    select = query_from({"SelectStmt": {"targetList": targets, "op": "SETOP_NONE"}})
    assert isinstance(select, Select)
    return tuple(item.expression for item in select.items)


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
        (piece,) = parse(print_query(query))
    except (Unreadable, ValueError):
        raise _disagreement() from None
    if not same(piece.tree, tree):
        raise _disagreement()


def _disagreement() -> NotSupported:
    return NotSupported(
        "the statement uses syntax that cannot be planned safely", hint="Rewrite the statement in simpler SQL."
    )
