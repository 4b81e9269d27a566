"""Divisions above the groups of an answer: by a constant 0 they are refused, and by an answer of 0 they are NULL."""

from typing import Final

from rules.refusal import DividesByZero
from rules.sql.tree import Json, Node, bodies, items, kind, strings

DIVISIONS: Final = frozenset(("/", "%", "mod", "div"))  # operators, and functions


def null_at_zero(tree: Node) -> None:
    """Make quotients NULL where the divisor is 0, as they are of rows: noise makes 0 of it in a group of nobody, say,
    and an error would take all of an answer that is paid."""
    for body in bodies(tree, "A_Expr"):
        if body.get("kind") == "AEXPR_OP" and "lexpr" in body and strings(body.get("name"))[-1] in DIVISIONS:
            body["rexpr"] = _not_zero(body.get("rexpr"))
    for body in bodies(tree, "FuncCall"):
        match strings(body.get("funcname"))[-1], items(body, "args"):
            case (("mod" | "div"), [dividend, divisor]):
                body["args"] = [dividend, _not_zero(divisor)]


def _not_zero(divisor: Json) -> Json:
    """A divisor that is no 0; a constant is left as it is."""
    name, body = kind(divisor)
    while name == "TypeCast":
        name, body = kind(body.get("arg"))
    if name == "A_Const" or body.get("kind") == "AEXPR_NULLIF":
        return divisor
    zero: Node = {"A_Const": {"ival": {}, "location": -1}}
    equals: Node = {"String": {"sval": "="}}
    return {"A_Expr": {"kind": "AEXPR_NULLIF", "name": [equals], "lexpr": divisor, "rexpr": zero, "location": -1}}


def check_divisors(tree: Node) -> None:
    """Refuse what the twin would fail to compute of every answer, before the answer is paid."""
    operations = [(body.get("name"), [body.get("lexpr"), body.get("rexpr")]) for body in bodies(tree, "A_Expr")]
    operations += [(body.get("funcname"), items(body, "args")) for body in bodies(tree, "FuncCall")]
    for name, operands in operations:
        if (called := strings(name)[-1]) not in DIVISIONS or len(operands) != 2:
            continue
        if _is_zero(operands[1]) and not _is_null(operands[0]):
            hint = "Nothing was charged. Where a divisor may be 0, nullif(divisor, 0) makes the result NULL."
            raise DividesByZero("division by zero", hint=hint, about=called)


def _is_null(node: Json) -> bool:
    """Return whether it is NULL as written, be it cast or not: PostgreSQL divides it by anything."""
    name, body = kind(node)
    return _is_null(body.get("arg")) if name == "TypeCast" else body.get("isnull") is True


def _is_zero(node: Json) -> bool:
    """Return whether it is a constant 0, be it cast or not; PostgreSQL's tree leaves out a zero."""
    name, body = kind(node)
    if name == "TypeCast":
        return _is_zero(body.get("arg"))
    match body:
        case {"ival": dict() as whole}:
            return not whole.get("ival")
        case {"fval": {"fval": str() as written}}:
            return not written.lower().partition("e")[0].strip("0.")
    return False
