"""Statements that have no row, or read none, whatever the data are: what tools send to learn the columns of a table.

They cost nothing. Every protected table in them becomes a sub-select of the same columns and no rows.
"""

from rules.planner.block_leaves import is_aggregate
from rules.planner.tables import Tables, replace_relations, source
from rules.sql.grammar import Json, Node, items, kind, strings, walk
from rules.sql.normalize.to_text import quoted
from rules.sql.selects import query_of

_ABOVE_WHERE = (
    "targetList", "havingClause", "sortClause", "distinctClause", "limitCount", "limitOffset", "groupClause",
)  # fmt: skip


def empty_queries(tree: Node, tables: Tables) -> Node:
    """Replace every protected table in a statement that has no row, or reads none."""
    query = query_of(tree)
    if query is None or not _has_no_rows(query):
        return tree

    def empty(schema: str | None, name: str) -> Node | None:
        columns = tables.find_columns(schema, name)
        if columns is None:
            return None
        nulls = ", ".join(f"NULL::{of} AS {quoted(column)}" for column, of in columns)
        return source(f"(SELECT {nulls} WHERE false) AS {quoted(name)}")

    return replace_relations(tree, empty)


def _has_no_rows(query: Node) -> bool:
    """Find LIMIT 0, or a WHERE that is false for every row, at the top of the statement."""
    name, body = kind(query)
    if name != "SelectStmt":
        return False
    if _integer(body.get("limitCount")) == 0:
        return True
    if body.get("op") != "SETOP_NONE" or not _is_never(body.get("whereClause")):
        return False
    above = [node for clause in _ABOVE_WHERE for node in walk(body.get(clause))]
    has_rows = any(is_aggregate(node) for node in above) or "groupClause" in body
    return not (has_rows and any("SubLink" in node for node in above))


def _is_never(node: Json) -> bool:
    """Return whether a condition is false for every row, from its constants alone."""
    name, body = kind(node)
    match name:
        case "A_Const":
            return "boolval" in body and not kind(node)[1]["boolval"]
        case "BoolExpr" if body.get("boolop") == "AND_EXPR":
            return any(map(_is_never, items(body, "args")))
        case "A_Expr" if body.get("kind") == "AEXPR_OP":
            return _differs(strings(body.get("name")), _integer(body.get("lexpr")), _integer(body.get("rexpr")))
    return False


def _differs(operator: tuple[str, ...], left: int | None, right: int | None) -> bool:
    if left is None or right is None:
        return False
    match operator:
        case ("=",):
            return left != right
        case ("<>",):
            return left == right
    return False


def _integer(node: Json) -> int | None:
    """An integer constant; the JSON leaves out a zero."""
    name, body = kind(node)
    value = body.get("ival") if name == "A_Const" else None
    if not isinstance(value, dict):
        return None
    number = value.get("ival", 0)
    return number if isinstance(number, int) else None
