"""Calls: their names and arguments, and the operators that the one spelling writes as calls."""

from collections.abc import Sequence

from sqlglot import exp

from rules.sql import syntax as s
from rules.sql.parse.dialect import identifier, listed, strange, take

SIGNS = frozenset(("<>", "<", "<=", ">", ">="))
Inside = tuple[Sequence[exp.Expression], bool, Sequence[exp.Ordered]]  # arguments, DISTINCT, ORDER BY


def bare_call(node: exp.Expression) -> tuple[str | None, str, Inside]:
    """Schema, name, and what stands in the brackets."""
    schema = None
    if isinstance(node, exp.Dot):
        owner, node = take(node, "this", "expression")
        schema = identifier(owner)
    if not isinstance(node, exp.Anonymous):
        raise strange(node)
    name, arguments = take(node, "this", "expressions")
    return schema, identifier(name), _inside(list(listed(arguments)))


def _inside(arguments: list[exp.Expression]) -> Inside:
    """sqlglot hangs ORDER BY on the last argument, and DISTINCT around all of them."""
    order: Sequence[exp.Ordered] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        last, order = take(arguments[-1], "this", "expressions")
        arguments[-1] = last
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        (inner,) = take(arguments[0], "expressions")
        return inner, True, order
    return arguments, False, order


def special(call: s.Call) -> s.Expression:
    """What is no function in PostgreSQL's grammar: parameters, casts, arrays, = ANY, other signs."""
    match call.name, call.arguments:
        case "$", (s.Constant("number", number),):
            return s.Parameter(int(number))
        case "cast", (argument, s.Constant("string", type_name)):
            return s.Cast(argument, type_name)
        case "array", items if not any(isinstance(item, s.ScalarQuery) for item in items):
            return s.Array(items)
    name, _, word = call.name.rpartition(" ")
    if word in ("any", "all") and name and len(call.arguments) == 2:
        argument, array = call.arguments
        if isinstance(array, s.ScalarQuery) and word == "any" and name in SIGNS:
            return s.InQuery(argument, array.query, sign=name)
        return s.Quantified(name, argument, array, all=word == "all")
    return s.Operator(call.name, call.arguments)
