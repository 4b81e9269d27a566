"""Views that the rules name: read as the queries that define them, so that they prove no more than their tables do."""

import re
from collections.abc import Callable

from rules.catalog import Catalog, Table, TableName
from rules.policy.model import Policy
from rules.refusal import TooComplex
from rules.relation.render import qualified
from rules.rewrite.relations import replace_relations, source
from rules.sql.canonical import canonical_tree
from rules.sql.grammar import Node, parse

FindView = Callable[[str | None, str], Table | None]
_MOST_NESTED = 32
_END = re.compile(r"[;\s]*$")


def with_views(tree: Node, find_view: FindView, depth: int = 0) -> Node:
    """A tree with every view replaced by its definition, under the view's name or alias."""

    def instead(schema: str | None, name: str) -> Node | None:
        view = find_view(schema, name)
        if view is None:
            return None
        if depth == _MOST_NESTED:
            raise TooComplex(f"views stand in more than {_MOST_NESTED} views")
        return with_views(defined(view), find_view, depth + 1)

    return replace_relations(tree, instead)


def count_over(view: Table, policy: Policy, catalog: Catalog) -> Node:
    """SELECT count(*) FROM a view, as the query over its tables that it is."""

    def find_view(schema: str | None, name: str) -> Table | None:
        named = TableName(str(schema), name)
        rules = policy.find_table(named)
        return catalog.find_table(named) if rules is not None and rules.view else None

    (piece,) = parse(f"SELECT count(*) FROM {qualified(view.name)}")
    return with_views(canonical_tree(piece.tree), find_view)


def defined(view: Table) -> Node:
    """FROM (the view's query) AS its name. PostgreSQL printed the query with every name in full."""
    assert view.definition is not None
    name = view.name.name.replace('"', '""')
    return canonical_tree(source(f'({_END.sub("", view.definition)}) AS "{name}"'))
