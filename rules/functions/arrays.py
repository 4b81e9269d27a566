"""Functions of arrays of plain values: whether it has some, one of them by its place, and how many there are."""

import re
from fractions import Fraction

from rules.functions.coerce import typed
from rules.functions.function import EvalContext, Operands, function_of_name
from rules.functions.guard import read
from rules.functions.text.strings import constant_text, text, whole_constant
from rules.refusal import NotSupported
from rules.values.domain import ONE, Range
from rules.values.expression import Apply, Constant, Expression, Literal, Operand, condition
from rules.values.types import INT4, TEXT, Type, find_type

SIGNS = frozenset(("@>", "<@", "&&"))
_ARRAY_ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,"{}\\]+))\s*(,|$)')
_MOST = 1 << 27  # items: an array has fewer than a gigabyte of octets


def element_of(operand: Operand) -> Type | None:
    """The type of an array's items; None of what is no array of plain values."""
    if isinstance(operand, Literal) or operand.type.kind != "other" or not operand.type.name.endswith("[]"):
        return None
    sql_type = find_type(operand.type.name.removesuffix("[]"))
    return (
        None
        if sql_type is None or sql_type.kind in ("other", "unknown", "interval") or sql_type.base == "name"
        else sql_type
    )


def meets(name: str, left: Operand, right: Operand) -> Expression:
    """a @> b, a <@ b and a && b of arrays of one type."""
    assert not isinstance(left, Literal) and not isinstance(right, Literal)
    if left.type.name != right.type.name:
        raise NotSupported(f"the operator {left.type.sql} {name} {right.type.sql} is not supported")
    return condition(name, f"({{0}} {name} {{1}})", left, right)


def listed(items: tuple[Operand, ...], element: Type, setting: EvalContext) -> Expression:
    """A constant array beside a column of arrays."""
    arguments = tuple(typed(item, setting, element) for item in items)
    if not all(isinstance(argument, Constant) and _fits(argument.type, element) for argument in arguments):
        raise NotSupported("an array that is not constant is not supported over protected rows")
    holes = ", ".join(f"{{{place}}}" for place in range(len(arguments)))
    kind = Type("other", name=f"{element.sql}[]")
    return Apply("array", f"ARRAY[{holes}]::{kind.sql}", arguments, kind, nullable=False, strict=False)


def _fits(sql_type: Type, element: Type) -> bool:
    return (
        sql_type.kind == element.kind
        or sql_type.kind == "unknown"
        or (sql_type.kind == "integer" and element.is_number)
    )


def compared(operand: Operand, sign: str, array: Expression, setting: EvalContext, *, every: bool) -> Expression:
    """x = ANY (column) and its kin."""
    element = element_of(array)
    assert element is not None, "others are not compared"
    argument = typed(operand, setting, element)
    if argument.type.base != element.base and not (argument.type.kind == element.kind in ("text", "integer")):
        hint = f"Cast it: x::{element.sql}."
        raise NotSupported(f"{argument.type.sql} {sign} ANY ({array.type.sql}) is not supported", hint=hint)
    word = "ALL" if every else "ANY"
    return condition(
        f"{sign} {word.lower()}", f"({{0}} {sign} {word} ({{1}}))", argument, array, nullable=True, strict=False
    )


def item(array: Expression, place: Operand, setting: EvalContext) -> Expression:
    """array[n]; NULL where it has no such item."""
    element = element_of(array)
    assert element is not None, "others have no items here"
    at = whole_constant("the place of an item", place, setting, most=_MOST)
    sql = '(({0})[{1}] COLLATE "default")' if element.kind == "text" else "({0})[{1}]"
    return read(Apply("subscript", sql, (array, at), element.plain(), nullable=True))


def piece(operands: Operands, place: Operand, setting: EvalContext) -> Expression:
    """(string_to_array(x, ','))[n]; NULL where there are not so many."""
    delimiter = constant_text("string_to_array", operands[1], setting)
    at = whole_constant("the place of an item", place, setting, most=_MOST)
    arguments = (text(operands[0], setting), delimiter, at)
    return Apply("subscript", "(string_to_array({0}, {1}))[{2}]", arguments, TEXT, nullable=True)


@function_of_name("cardinality", arguments=1, examples="cardinality(ta)")
@function_of_name("array_length", arguments=2, examples="array_length(ia, 1) | array_length(ta, 2)")
def length(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """cardinality(array), and array_length(array, 1), which is NULL of an empty one."""
    array = operands[0]
    if isinstance(array, Literal) or element_of(array) is None:
        raise NotSupported(f"{name} over protected rows is not supported for arrays of this type")
    image = Range(Fraction(0), Fraction(_MOST), ONE)
    if name == "cardinality":
        return Apply(name, "cardinality({0})", (array,), INT4, image, array.nullable)
    dimension = whole_constant(name, operands[1], setting, least=1, most=6)
    return Apply(name, "array_length({0}, {1})", (array, dimension), INT4, image, nullable=True)


def items_of(text: str) -> tuple[str | None, ...]:
    """The items of a one-dimensional array as PostgreSQL writes it.

    Example:
        >>> items_of('{a,NULL,"b, c"}')
        ('a', None, 'b, c')
    """
    inside = text.strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise NotSupported(f"'{text[:60]}' is not a supported array literal", hint="Write it as '{a,b}'.")
    inside, items, at = inside[1:-1], list[str | None](), 0
    while at < len(inside):
        item = _ARRAY_ITEM.match(inside, at)
        if item is None:
            raise NotSupported(f"'{text[:60]}' is not a supported array literal", hint="Write it as '{a,b}'.")
        plain = item[2].strip() if item[2] is not None else re.sub(r"\\(.)", r"\1", item[1])
        items.append(None if item[2] is not None and plain.upper() == "NULL" else plain)
        at = item.end()
    return tuple(items)
