"""Write VALUES as SELECT * FROM (VALUES …) wherever they are more than a list of rows in FROM, or the whole statement.

As a side of UNION, as a subquery of IN, or with ORDER BY and LIMIT they are queries, which the planner knows by SELECT.
"""

from rules.planner.tables import Tables
from rules.sql.tree import Index, Json, Node, bodies, copied, holders, kind

_AROUND = frozenset(("sortClause", "limitOffset", "limitCount", "withClause"))


def select_from_values(index: Index, _: Tables) -> Node:
    """Rewrite each list of rows that is used as a query."""
    if not _queries(index.tree):
        return index.tree
    made = copied(index.tree)
    for body in _queries(made):
        rows: Json = {"SelectStmt": {"valuesLists": body.pop("valuesLists"), "op": "SETOP_NONE"}}
        body["targetList"] = [{"ResTarget": {"val": {"ColumnRef": {"fields": [{"A_Star": {}}]}}}}]
        body["fromClause"] = [{"RangeSubselect": {"subquery": rows, "alias": {"aliasname": "*VALUES*"}}}]
    return made


def _queries(tree: Node) -> list[Node]:
    """The bodies of such lists."""
    sides = [part.get(side) for part in holders(tree, "larg") for side in ("larg", "rarg")]
    nested = [kind(link.get("subselect"))[1] for link in bodies(tree, "SubLink")]
    limited = [body for body in holders(tree, "valuesLists") if not _AROUND.isdisjoint(body)]
    found = [body for body in (*sides, *nested, *limited) if isinstance(body, dict) and "valuesLists" in body]
    return list({id(body): body for body in found}.values())
