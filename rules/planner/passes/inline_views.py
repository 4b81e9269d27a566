"""Views that the rules name: read as the queries that define them, so that they prove no more than their tables do."""

import re
from collections.abc import Callable

from rules.catalog import Catalog, Table, TableName
from rules.kernel.render import qualified
from rules.planner.tables import Tables, replace_relations, source, tables_in
from rules.policy.model import Policy
from rules.refusal import TooComplex
from rules.sql.grammar import Node, parse
from rules.sql.tree import canonical_tree

FindView = Callable[[str | None, str], Table | None]
_MOST_NESTED = 32
_END = re.compile(r"[;\s]*$")


def inline_views(tree: Node, tables: Tables) -> Node:
    """Replace every view by its definition, under the view's name or alias."""
    return _inlined(tree, tables.find_view)


def _inlined(tree: Node, find_view: FindView, depth: int = 0) -> Node:
    if all(find_view(schema, name) is None for schema, name in tables_in(tree)):
        return tree

    def instead(schema: str | None, name: str) -> Node | None:
        view = find_view(schema, name)
        if view is None:
            return None
        if depth == _MOST_NESTED:
            raise TooComplex(f"views are nested more than {_MOST_NESTED} levels deep")
        return _inlined(defined(view), find_view, depth + 1)

    return replace_relations(tree, instead)


def count_over(view: Table, policy: Policy, catalog: Catalog) -> Node:
    """SELECT count(*) FROM a view, as the query over its tables that it is."""

    def find_view(schema: str | None, name: str) -> Table | None:
        named = TableName(str(schema), name)
        rules = policy.find_table(named)
        return catalog.find_table(named) if rules is not None and rules.view else None

    (piece,) = parse(f"SELECT count(*) FROM {qualified(view.name)}")
    return _inlined(canonical_tree(piece.tree), find_view)


def defined(view: Table) -> Node:
    """FROM (the view's query) AS its name. PostgreSQL printed the query with every name in full."""
    assert view.definition is not None
    name = view.name.name.replace('"', '""')
    return canonical_tree(source(f'({_END.sub("", view.definition)}) AS "{name}"'))
