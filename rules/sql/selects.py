"""The SELECTs of PostgreSQL's tree, numbered as `parse` numbers them, their parts, and the names of their columns."""

from rules.sql.normalize import spelled
from rules.sql.normalize.spelling import grouping_sets
from rules.sql.tree import Json, Node, items, kind, strings

UNNAMED = "?column?"
FIXED = {
    "CoalesceExpr": "coalesce",
    "GroupingFunc": "grouping",
    "A_ArrayExpr": "array",
    "RowExpr": "row",
    "XmlSerialize": "xmlserialize",
    "JsonParseExpr": "json",
    "JsonScalarExpr": "json_scalar",
    "JsonSerializeExpr": "json_serialize",
    "JsonObjectConstructor": "json_object",
    "JsonArrayConstructor": "json_array",
    "JsonArrayQueryConstructor": "json_array",
    "JsonObjectAgg": "json_objectagg",
    "JsonArrayAgg": "json_arrayagg",
}
CLOCKS = {
    "SVFOP_CURRENT_DATE": "current_date",
    "SVFOP_CURRENT_TIME": "current_time",
    "SVFOP_CURRENT_TIMESTAMP": "current_timestamp",
    "SVFOP_LOCALTIME": "localtime",
    "SVFOP_LOCALTIMESTAMP": "localtimestamp",
    "SVFOP_CURRENT_USER": "current_user",
    "SVFOP_CURRENT_ROLE": "current_role",
    "SVFOP_SESSION_USER": "session_user",
    "SVFOP_USER": "user",
    "SVFOP_CURRENT_CATALOG": "current_catalog",
    "SVFOP_CURRENT_SCHEMA": "current_schema",
}


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
    nodes = grouping_sets(items(body, "groupClause"))
    if len(nodes) == 1 and kind(nodes[0])[0] == "GroupingSet":
        nodes = items(kind(nodes[0])[1], "content")
    return [column for node in nodes for column in _columns(node)]


def _columns(node: Json) -> list[Json]:
    match kind(node):
        case "RowExpr", body:
            return items(body, "args")
        case "GroupingSet", _:
            return []
    return [node]


def column_name(node: Json) -> str:
    """The name of an unaliased select item."""
    return _name(node)[0] or UNNAMED


def _name(node: Json) -> tuple[str, int]:
    """A name and how sure it is of itself: 2 for columns and functions, 1 for casts and CASE, 0 for none."""
    name, body = kind(node)
    match name:
        case "ColumnRef":
            fields = [field for field in strings(body.get("fields")) if field != "*"]
            return (fields[-1], 2) if fields else ("", 0)
        case "FuncCall":
            return strings(body.get("funcname"))[-1], 2
        case "A_Expr" if body.get("kind") == "AEXPR_NULLIF":
            return "nullif", 2
        case "A_Indirection":
            fields = [text for text in strings(body.get("indirection")) if text not in ("", "*")]
            return (fields[-1], 2) if fields else _name(body.get("arg"))
        case "CollateClause":
            return _name(body.get("arg"))
        case "TypeCast":
            return _cast(body.get("arg"), body.get("typeName"))
        case "CaseExpr":
            inner = _name(body.get("defresult"))
            return inner if inner[1] == 2 else ("case", 1)
        case "MinMaxExpr":
            return ("least" if body.get("op") == "IS_LEAST" else "greatest"), 2
        case "SQLValueFunction":
            return CLOCKS.get(str(body.get("op")).removesuffix("_N"), ""), 2
        case "XmlExpr" | "JsonFuncExpr" if body.get("op") != "IS_DOCUMENT":  # IS_XMLELEMENT, JSON_VALUE_OP
            return str(body.get("op")).removeprefix("IS_").removesuffix("_OP").lower(), 2
        case "SubLink":
            return _sublink(body.get("subLinkType"), body.get("subselect"))
    return (FIXED[name], 2) if name in FIXED else ("", 0)


def _cast(argument: Json, type_name: Json) -> tuple[str, int]:
    inner = _name(argument)
    if inner[1] == 2 or not isinstance(type_name, dict):
        return inner
    return strings(type_name.get("names"))[-1], 1


def _sublink(kind_name: Json, query: Json) -> tuple[str, int]:
    if kind_name == "EXISTS_SUBLINK":
        return "exists", 2
    if kind_name == "ARRAY_SUBLINK":
        return "array", 2
    if kind_name != "EXPR_SUBLINK":
        return "", 0
    body = kind(query)[1]
    while body.get("op") != "SETOP_NONE":
        left = body.get("larg")
        if not isinstance(left, dict):
            return "", 0
        body = left
    # VALUES, also once it is written as SELECT * FROM (VALUES …)
    sources = [kind(source)[1].get("alias") for source in items(body, "fromClause")]
    if "valuesLists" in body or sources == [{"aliasname": "*VALUES*"}]:
        return "column1", 2
    first = items(body, "targetList")[:1]
    if not first:
        return "", 0
    target = kind(first[0])[1]
    alias = target.get("name")
    return str(alias) if alias else column_name(target.get("val")), 2  # PostgreSQL has named it by then
