"""Canonical text to the planner's syntax tree: the one place that knows sqlglot.

The text comes from `rules.sql.canonical`: calls are plain calls, types and literals are explicit, no comments are left.
Every node and every argument of sqlglot's that is not consumed here is refused, so that nothing passes by being
overlooked; and what comes out is compared with PostgreSQL's own tree in `rules.sql.agree`.
"""

from rules.sql.parse.dialect import parsed
from rules.sql.parse.queries import Queries
from rules.sql.syntax import Expression, Query, Select

__all__ = ["parse_expression", "parse_query"]


def parse_query(text: str) -> Query:
    """A whole query.

    Example:
        >>> query = parse_query("SELECT count(*) FROM orders")
        >>> query.items[0].expression.name, query.items[0].expression.star
        ('count', True)
    """
    return Queries().query(parsed(text))


def parse_expression(text: str) -> Expression:
    """One expression, as it may stand in a select list."""
    select = parse_query(f"SELECT {text}")
    assert isinstance(select, Select)
    return select.items[0].expression
