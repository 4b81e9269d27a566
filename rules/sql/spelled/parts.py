"""What an expression that the planner has no word for is made of."""

from collections.abc import Iterator

from rules.sql.grammar import Json, Node, kind

EXPRESSIONS = frozenset(
    (
        "ColumnRef A_Const ParamRef TypeCast FuncCall A_Expr SubLink CaseExpr BoolExpr NullTest BooleanTest "
        "CoalesceExpr MinMaxExpr GroupingFunc SQLValueFunction A_ArrayExpr RowExpr CollateClause A_Indirection"
    ).split()
)


def parts(node: Json) -> Iterator[Node]:
    """The outermost expressions and queries inside a node."""
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        name, body = kind(child)
        if name in EXPRESSIONS and isinstance(child, dict):
            yield child
        elif name == "SelectStmt":
            yield {"SubLink": {"subLinkType": "EXPR_SUBLINK", "subselect": {"SelectStmt": body}}}
        else:
            yield from parts(child)


POSITIONS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


def positional(name: str, arguments: list[Json]) -> list[Json] | None:
    """Arguments in their places; None where names are used that only PostgreSQL knows. make_interval is usual."""
    named = {
        str(body.get("name")): body.get("arg")
        for each in arguments
        for kind_, body in [kind(each)]
        if kind_ == "NamedArgExpr"
    }
    if not named:
        return arguments
    plain = len(arguments) - len(named)
    if name != "make_interval" or not named.keys() <= set(POSITIONS[plain:]):
        return None
    zero: Json = {"A_Const": {"ival": {}}}
    last = max(map(POSITIONS.index, named))
    return arguments[:plain] + [named.get(each, zero) for each in POSITIONS[plain : last + 1]]
