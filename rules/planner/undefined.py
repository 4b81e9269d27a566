"""Values above the groups of an answer that are not defined: quotients by 0, roots of what is below it, and the like.

A constant 0 that divides is refused. Elsewhere they are NULL, as they are of rows: noise makes a 0 of the count of
nobody, and takes sums and variances below 0, and an error would take all of an answer that is paid. Functions of the
twin do it (`proxy/twin/own_objects`), one around each argument: they keep its type, whatever it is.
"""

from typing import Final

from rules.refusal import NOTHING_CHARGED, DividesByZero
from rules.sql.tree import Json, Node, bodies, items, kind, strings

_DIVISIONS: Final = frozenset(("/", "%", "mod", "div"))  # operators, and functions
_POWERS: Final = frozenset(("^", "power", "pow"))
# Functions and operators of one argument: what the twin calls those for which they are defined.
_OF_ONE: Final = {
    **dict.fromkeys(("sqrt", "|/"), "not_negative"),
    **dict.fromkeys(("ln", "log", "log10"), "positive"),
    **dict.fromkeys(("asin", "asind", "acos", "acosd", "atanh"), "within_one"),
    "acosh": "from_one",
    "exp": "exponent",
}
UNDEFINED: Final = frozenset((*_DIVISIONS, *_POWERS, *_OF_ONE))
"""The words of which a tree must have one."""


def null_where_undefined(tree: Node) -> None:
    """Make NULL of the arguments of operators and functions where these are not defined."""
    operators, calls = bodies(tree, "A_Expr"), bodies(tree, "FuncCall")
    for body in operators:
        name, left, right = strings(body.get("name"))[-1], body.get("lexpr"), body.get("rexpr")
        if body.get("kind") == "AEXPR_OP" and name in UNDEFINED:
            arguments = _defined(name, [right] if left is None else [left, right])
            body["rexpr"] = arguments[-1]
            if len(arguments) > 1:
                body["lexpr"] = arguments[0]
    for body in calls:
        if (name := strings(body.get("funcname"))[-1]) in UNDEFINED and "args" in body:
            body["args"] = _defined(name, items(body, "args"))


def _defined(name: str, arguments: list[Json]) -> list[Json]:
    match arguments:
        case [dividend, divisor] if name in _DIVISIONS:
            return [dividend, _not_zero(divisor)]
        case [base, exponent] if name in _POWERS and not _has_power(exponent):  # which is written twice
            return [_call("base_of_power", base, exponent), exponent]
        case [base, number] if name == "log":
            return [_call("base_of_log", base), _call("positive_numeric", number)]
        case [only] if name in _OF_ONE:
            return [_call(_OF_ONE[name], only)]
    return arguments


def _has_power(node: Json) -> bool:
    names = [body.get("name") for body in bodies(node, "A_Expr")] + [
        body.get("funcname") for body in bodies(node, "FuncCall")
    ]
    return any(strings(name)[-1] in _POWERS for name in names)


def _not_zero(divisor: Json) -> Json:
    """A divisor that is no 0; a constant is left as it is."""
    name, body = kind(divisor)
    while name == "TypeCast":
        name, body = kind(body.get("arg"))
    if name == "A_Const" or body.get("kind") == "AEXPR_NULLIF":
        return divisor
    return _call("divisor", divisor)


def _call(name: str, *arguments: Json) -> Json:
    names: list[Json] = [{"String": {"sval": part}} for part in ("pg_catalog", f"noisegate_{name}")]
    body: Node = {"funcname": names, "args": [*arguments], "funcformat": "COERCE_EXPLICIT_CALL", "location": -1}
    return {"FuncCall": body}


def check_divisors(tree: Node) -> None:
    """Refuse what the twin would fail to compute of every answer, before the answer is paid."""
    operations = [(body.get("name"), [body.get("lexpr"), body.get("rexpr")]) for body in bodies(tree, "A_Expr")]
    operations += [(body.get("funcname"), items(body, "args")) for body in bodies(tree, "FuncCall")]
    for name, operands in operations:
        if (called := strings(name)[-1]) not in _DIVISIONS or len(operands) != 2:
            continue
        if _is_zero(operands[1]) and not _is_null(operands[0]):
            hint = f"{NOTHING_CHARGED} Where a divisor may be 0, nullif(divisor, 0) makes the result NULL."
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
            return not written.lower().partition("e")[0].strip("0._")
    return False
