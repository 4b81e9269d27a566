"""count(DISTINCT (a, b)): a row as one text that no other row has, each value with its length before it.

A row of NULLs is a value of its own, so the text is never NULL.
"""

from rules.bind.expression import Binding
from rules.functions.guard import EvalContext, as_value, short
from rules.kernel.canonical import canonical
from rules.refusal import NotSupported
from rules.sql import syntax as s
from rules.values.expression import Apply, Column, Expression
from rules.values.types import KEY_KINDS, TEXT


def distinct_argument(binding: Binding, expression: s.Expression) -> Expression:
    """What DISTINCT compares: the value, or the row of several as a text."""
    if not (isinstance(expression, s.Operator) and expression.name == "row" and expression.arguments):
        return binding.bind(expression)
    parts = tuple(_part(binding.bind(each), binding.setting) for each in expression.arguments)
    lengths = (f"coalesce(char_length({{{place}}}) || ':' || {{{place}}}, '-')" for place in range(len(parts)))
    return Apply("row", f"({' || '.join(lengths)})", parts, TEXT, nullable=False, strict=False)


def _part(expression: Expression, setting: EvalContext) -> Expression:
    if expression.type.kind not in KEY_KINDS:
        hint = "Cast it to a type such as text or numeric."
        raise NotSupported(f"count(DISTINCT …) of {expression.type.sql} is not supported", hint=hint)
    key = short(as_value(expression, setting)) if expression.type.kind == "text" else expression
    one = canonical(key.type, "{0}", is_column=isinstance(key, Column))
    return Apply("text", f"({one})::text", (key,), TEXT, nullable=key.nullable)
