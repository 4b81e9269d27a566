"""What stands in an array of plain values: whether it has some, one of them by its place, and how many there are."""

import re
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation.domain import ONE, Range
from rules.relation.expression import Apply, Constant, Expression, Literal, Operand, condition
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting
from rules.relation.functions.text import constant_text, text, whole_constant
from rules.relation.types import INT4, TEXT, Type, find_type

Operands = tuple[Operand, ...]
SIGNS = frozenset(("@>", "<@", "&&"))
_ARRAY_ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,"{}\\]+))\s*(,|$)')
_MOST = 1 << 27  # items: an array has fewer than a gigabyte of octets


def element_of(operand: Operand) -> Type | None:
    """The type of an array's items; None of what is no array of plain values."""
    if isinstance(operand, Literal) or operand.type.kind != "other" or not operand.type.name.endswith("[]"):
        return None
    found = find_type(operand.type.name.removesuffix("[]"))
    return None if found is None or found.kind in ("other", "unknown", "interval") or found.base == "name" else found


def meets(name: str, left: Operand, right: Operand) -> Expression:
    """a @> b, a <@ b and a && b of arrays of one type."""
    assert not isinstance(left, Literal) and not isinstance(right, Literal)
    if left.type.name != right.type.name:
        raise NotSupported(f"the operator {left.type.sql} {name} {right.type.sql} is not supported")
    return condition(name, f"({{0}} {name} {{1}})", left, right)


def listed(items: tuple[Operand, ...], element: Type, setting: Setting) -> Expression:
    """A constant array beside a column of arrays."""
    found = tuple(typed(each, setting, element) for each in items)
    if not all(isinstance(each, Constant) and _fits(each.type, element) for each in found):
        raise NotSupported("an array that is no constant is not supported over protected rows")
    holes = ", ".join(f"{{{place}}}" for place in range(len(found)))
    kind = Type("other", name=f"{element.sql}[]")
    return Apply("array", f"ARRAY[{holes}]::{kind.sql}", found, kind, nullable=False)


def _fits(given: Type, element: Type) -> bool:
    return given.kind == element.kind or given.kind == "unknown" or (given.kind == "integer" and element.is_number)


def compared(operand: Operand, sign: str, array: Expression, setting: Setting, *, every: bool) -> Expression:
    """x = ANY (column) and its kin."""
    element = element_of(array)
    assert element is not None, "others are not compared"
    given = typed(operand, setting, element)
    if given.type.base != element.base and not (given.type.kind == element.kind in ("text", "integer")):
        hint = f"Cast it: x::{element.sql}."
        raise NotSupported(f"{given.type.sql} {sign} ANY ({array.type.sql}) is not supported", hint=hint)
    word = "ALL" if every else "ANY"
    return condition(f"{sign} {word.lower()}", f"({{0}} {sign} {word} ({{1}}))", given, array, nullable=True)


def item(array: Expression, place: Operand, setting: Setting) -> Expression:
    """array[n]; NULL where it has no such item."""
    element = element_of(array)
    assert element is not None, "others have no items here"
    at = whole_constant("the place of an item", place, setting, most=_MOST)
    sql = '(({0})[{1}] COLLATE "default")' if element.kind == "text" else "({0})[{1}]"
    return Apply("subscript", sql, (array, at), element.plain(), nullable=True)


def piece(given: Operands, place: Operand, setting: Setting) -> Expression:
    """(string_to_array(x, ','))[n]; NULL where there are not so many."""
    delimiter = constant_text("string_to_array", given[1], setting)
    at = whole_constant("the place of an item", place, setting, most=_MOST)
    arguments = (text(given[0], setting), delimiter, at)
    return Apply("subscript", "(string_to_array({0}, {1}))[{2}]", arguments, TEXT, nullable=True)


def length(name: str, operands: Operands, setting: Setting) -> Expression:
    """cardinality(array), and array_length(array, 1), which is NULL of an empty one."""
    array = operands[0]
    if isinstance(array, Literal) or element_of(array) is None:
        raise NotSupported(f"{name} is known for arrays of plain values over protected rows")
    found = Range(Fraction(0), Fraction(_MOST), ONE)
    if name == "cardinality":
        return Apply(name, "cardinality({0})", (array,), INT4, found, array.nullable)
    dimension = whole_constant(name, operands[1], setting, least=1, most=6)
    return Apply(name, "array_length({0}, {1})", (array, dimension), INT4, found, nullable=True)


def items_of(text: str) -> tuple[str | None, ...]:
    """The items of a one-dimensional array as PostgreSQL writes it.

    Example:
        >>> items_of('{a,NULL,"b, c"}')
        ('a', None, 'b, c')
    """
    inside = text.strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise NotSupported(f"'{text[:60]}' is not read as an array here", hint="Write it as '{a,b}'.")
    inside, found, at = inside[1:-1], list[str | None](), 0
    while at < len(inside):
        item = _ARRAY_ITEM.match(inside, at)
        if item is None:
            raise NotSupported(f"'{text[:60]}' is not read as an array here", hint="Write it as '{a,b}'.")
        plain = item[2].strip() if item[2] is not None else re.sub(r"\\(.)", r"\1", item[1])
        found.append(None if item[2] is not None and plain.upper() == "NULL" else plain)
        at = item.end()
    return tuple(found)
