"""The SELECTs of PostgreSQL's tree, numbered as `parse` numbers them, and the parts that a rewriting cares for."""

from rules.sql.grammar import Json, Node, items, kind
from rules.sql.spelled import spelled
from rules.sql.spelled.group_clause import grouping_sets


def query_of(tree: Node) -> Node | None:
    """The SELECT that a statement consists of or stands around; None for COPY of a table."""
    name, body = kind(tree)
    if name == "SelectStmt":
        return tree
    query = body.get("query")
    return query if isinstance(query, dict) else None


def numbered(query: Node) -> list[Node]:
    """The bodies of all plain SELECTs, by their numbers in the planner's syntax."""
    return spelled(query).selects


def target_value(body: Node, index: int) -> Json:
    """The expression of a select item."""
    return kind(items(body, "targetList")[index])[1].get("val")


def group_columns(body: Node) -> list[Json]:
    """The expressions of GROUP BY one by one: (a, b) is two, and those of grouping sets may come again."""
    found = grouping_sets(items(body, "groupClause"))
    if len(found) == 1 and kind(found[0])[0] == "GroupingSet":
        found = items(kind(found[0])[1], "content")
    return [column for each in found for column in _columns(each)]


def _columns(node: Json) -> list[Json]:
    match kind(node):
        case "RowExpr", body:
            return items(body, "args")
        case "GroupingSet", _:
            return []
    return [node]
