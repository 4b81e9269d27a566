"""Parentheses that libpg_query forgets as it prints: (a AND b) IS NULL comes out as a AND b IS NULL.

A condition inside an operator gets a cast to boolean, which it has already and which is printed in parentheses.
"""

from rules.sql.tree import TREES, Json, Node, items, kind, strings

_COMPARISONS = frozenset(("=", "<>", "<", ">", "<=", ">="))
_OPERANDS = {
    "A_Expr": ("lexpr", "rexpr"),
    "NullTest": ("arg",),
    "BooleanTest": ("arg",),
    "SubLink": ("testexpr",),
    "CollateClause": ("arg",),
    "A_Indirection": ("arg",),
}
_BOOLEAN: Node = {"names": [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": "bool"}}], "typemod": -1}

_TRUE: Node = {"A_Const": {"boolval": {"boolval": True}}}


def fenced(node: Json) -> Json:
    """The tree with every condition that is an operand in a cast."""
    if isinstance(node, list):
        return [fenced(child) for child in node]
    if not isinstance(node, dict):
        return node
    made = {key: fenced(value) if isinstance(value, TREES) else value for key, value in node.items()}
    name, body = kind(made)
    if name in _OPERANDS:
        made[name] = body | {key: _cast(body[key]) for key in _OPERANDS[name] if key in body}
    return made


def _cast(operand: Json) -> Json:
    name, body = kind(operand)
    if isinstance(operand, list):
        return [_cast(each) for each in operand]
    if name == "List":
        return {"List": body | {"items": [_cast(each) for each in items(body, "items")]}}
    if name == "SubLink" and _is_condition(name, body):  # a cast of it is printed without parentheses too
        operand = {"BoolExpr": {"boolop": "AND_EXPR", "args": [operand, _TRUE]}}
    return {"TypeCast": {"arg": operand, "typeName": _BOOLEAN}} if _is_condition(name, body) else operand


def _is_condition(name: str, body: Node) -> bool:
    """What binds no closer than an operator around it."""
    if name == "A_Expr" and body.get("kind") == "AEXPR_OP":
        return strings(body.get("name"))[-1:] != () and strings(body.get("name"))[-1] in _COMPARISONS
    if name == "A_Expr":
        return body.get("kind") != "AEXPR_NULLIF"
    if name == "SubLink":
        return body.get("subLinkType") in ("ANY_SUBLINK", "ALL_SUBLINK")
    return name in ("BoolExpr", "NullTest", "BooleanTest")
