"""The SELECTs of PostgreSQL's tree, numbered as `parse` numbers them, and the parts that a rewriting cares for."""

from collections.abc import Iterator

from rules.sql.grammar import Json, Node, items, kind

# The clauses of a SELECT in the order of its text, after its CTEs.
CLAUSES = (
    "distinctClause",
    "targetList",
    "fromClause",
    "whereClause",
    "groupClause",
    "havingClause",
    "windowClause",
    "sortClause",
    "limitCount",
    "limitOffset",
)


def query_of(tree: Node) -> Node | None:
    """The SELECT that a statement consists of or stands around; None for COPY of a table."""
    name, body = kind(tree)
    if name == "SelectStmt":
        return tree
    query = body.get("query")
    return query if isinstance(query, dict) else None


def numbered(query: Node) -> list[Node]:
    """The bodies of all plain SELECTs: each before its CTEs, then in the order of the text."""
    return list(_selects(query))


def _selects(node: Json) -> Iterator[Node]:
    if isinstance(node, list):
        for child in node:
            yield from _selects(child)
    if not isinstance(node, dict):
        return
    if "limitOption" in node and "op" in node:
        yield from _select(node)
        return
    for child in node.values():
        yield from _selects(child)


def _select(body: Node) -> Iterator[Node]:
    if body.get("op") != "SETOP_NONE":
        for part in ("withClause", "larg", "rarg", "sortClause", "limitCount", "limitOffset"):
            yield from _selects(body.get(part))
        return
    if "valuesLists" not in body:
        yield body
    for part in ("withClause", *CLAUSES, "valuesLists"):
        yield from _selects(body.get(part))


def target_value(body: Node, index: int) -> Json:
    """The expression of a select item."""
    return kind(items(body, "targetList")[index])[1].get("val")
