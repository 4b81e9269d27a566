"""PostgreSQL's tree to the planner's syntax: the one place that knows sqlglot.

sqlglot reads the tree's one spelling (`rules.sql.spelled`, `rules.sql.spell`): names are quoted, operations bracketed,
calls are plain calls. Every node and every argument of sqlglot's that is not consumed here is refused, so that nothing
passes by being overlooked; and what comes out is compared with PostgreSQL's own tree.
"""

from collections.abc import Sequence

from rules.sql.agree import check_agreement
from rules.sql.grammar import Json, Node, items, kind, parse
from rules.sql.parse.dialect import parsed
from rules.sql.parse.queries import Queries
from rules.sql.spell import spell_query
from rules.sql.spelled import spelled
from rules.sql.syntax import Expression, Query, Select

__all__ = ["expression_from", "expressions_from", "parse_expression", "parse_query", "query_from"]


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
