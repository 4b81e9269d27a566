"""Constants beside what they are compared with, in one spelling for one value: so equal questions are equal.

Drivers send 50 as smallint, integer, numeric or text, and mean the same rows by it.
"""

from fractions import Fraction

from rules.relation import value
from rules.relation.expression import Constant, Expression
from rules.relation.functions.guard import Setting
from rules.relation.functions.moments import constant_beside
from rules.relation.types import INT4, INT8, NUMERIC, TEXT, integer_range


def beside(given: Expression, other: Expression, setting: Setting) -> Expression:
    """A constant as it is told beside another operand; anything else as it is."""
    if not isinstance(given, Constant) or given.text is None or isinstance(other, Constant):
        return given
    match given.type.kind, other.type.kind:
        case "integer", "integer":
            return _number(given, is_whole=True)
        case (("integer" | "numeric"), "numeric"):
            return _number(given, is_whole=False)
        case "text", "text" if given.type.base in ("text", "varchar") and other.type.base in ("text", "varchar"):
            return Constant(TEXT, given.text, given.value)
    return constant_beside(given, other, setting)


def _number(given: Constant, *, is_whole: bool) -> Constant:
    """The smallest type that holds a whole number; a numeric without zeros at its end."""
    if not isinstance(given.value, Fraction) or (shown := value.decimal_text(given.value)) is None:
        return given
    if not is_whole:
        return Constant(NUMERIC, shown, given.value)
    least, most = integer_range(INT4.base)
    return Constant(INT4 if least <= given.value <= most else INT8, shown, given.value)
