"""Two parsers, one meaning: what sqlglot made of a text must be what PostgreSQL's own grammar made of it.

The planner's tree is printed and read by PostgreSQL's grammar; the result must equal the tree that the text was made
of. A misreading of sqlglot's, or of ours, thus ends in a refusal.
"""

from rules.refusal import NotSupported
from rules.sql.grammar import Json, Unreadable, parse, same
from rules.sql.print import print_query
from rules.sql.syntax import Query


def check_agreement(tree: Json, query: Query) -> None:
    """Refuse a query that the two parsers read differently."""
    try:
        (piece,) = parse(print_query(query))
    except (Unreadable, ValueError):
        raise _disagreement() from None
    if not same(piece.tree, tree):
        raise _disagreement()


def _disagreement() -> NotSupported:
    return NotSupported("this spelling cannot be planned safely", hint="Write the same question in simpler SQL.")
