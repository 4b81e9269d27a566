"""count(DISTINCT (a, b)): a row as one text that no other row has, each value with its length before it.

A row of NULLs is a value of its own, so the text is never NULL.
"""

from rules.refusal import NotSupported
from rules.relation.bind_expression import Binding
from rules.relation.expression import Apply, Expression
from rules.relation.functions.guard import Setting, as_value, short
from rules.relation.types import TEXT
from rules.rewrite.hide_groups import KEY_KINDS, canonical_key
from rules.sql import syntax as s


def distinct_argument(binding: Binding, given: s.Expression) -> Expression:
    """What DISTINCT compares: the value, or the row of several as a text."""
    if not (isinstance(given, s.Operator) and given.name == "row" and given.arguments):
        return binding.bind(given)
    parts = tuple(_part(binding.bind(each), binding.setting) for each in given.arguments)
    lengths = (f"coalesce(char_length({{{place}}}) || ':' || {{{place}}}, '-')" for place in range(len(parts)))
    return Apply("row", f"({' || '.join(lengths)})", parts, TEXT, nullable=False)


def _part(given: Expression, setting: Setting) -> Expression:
    if given.type.kind not in KEY_KINDS:
        hint = "Cast it to a plain type, such as text or numeric."
        raise NotSupported(f"count(DISTINCT …) of {given.type.sql} is not supported", hint=hint)
    key = canonical_key(short(as_value(given, setting)) if given.type.kind == "text" else given)
    return Apply("text", "({0})::text", (key,), TEXT, nullable=key.nullable)
