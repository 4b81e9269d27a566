"""Texts taken apart and filled up: split_part, translate, lpad, repeat … with constants for all but the text."""

from fractions import Fraction

from rules.functions.function import EvalContext, Operands, check_unicode, function, function_of_name
from rules.functions.guard import LONGEST_TEXT
from rules.functions.text.strings import constant_text, text, text_of_first, whole_constant
from rules.values.domain import Range
from rules.values.expression import Apply, Expression, Operand
from rules.values.types import INT4

_MOST_COPIES = 100


@function("reverse", arguments=1, examples="reverse(t) | reverse(m::text)")
def reverse(operands: Operands, setting: EvalContext) -> Expression:
    return text_of_first("reverse", "reverse({0})", (text(operands[0], setting),), lambda text: text[::-1])


@function(
    "split_part",
    arguments=3,
    examples="""
    split_part(t, '-', 2) | split_part(m::text, 'a', 1) | split_part(t, '', 1)
    """,
)
def split_part(operands: Operands, setting: EvalContext) -> Expression:
    """split_part(x, ',', n): older servers know no n below zero, and none knows 0."""
    argument, delimiter = text(operands[0], setting), constant_text("split_part", operands[1], setting)
    place = whole_constant("split_part", operands[2], setting, least=1)
    index = int(place.text or 1) - 1

    def change(item: str) -> str:
        parts = item.split(delimiter.text) if delimiter.text else [item]
        return parts[index] if index < len(parts) else ""

    return text_of_first("split_part", "split_part({0}, {1}, {2})", (argument, delimiter, place), change)


@function("translate", arguments=3, examples="translate(t, 'aba', 'xy') | translate(m::text, 'adda', 'x')")
def translate(operands: Operands, setting: EvalContext) -> Expression:
    """translate(x, 'abc', 'AB'): a sign without partner is taken out; of a sign that comes twice the first counts."""
    argument = text(operands[0], setting)
    old, new = (constant_text("translate", operand, setting) for operand in operands[1:])
    partners = dict(reversed([*zip(old.text or "", [*(new.text or ""), *[""] * len(old.text or "")], strict=False)]))
    arguments = (argument, old, new)
    return text_of_first(
        "translate", "translate({0}, {1}, {2})", arguments, lambda text: text.translate(str.maketrans(partners))
    )


@function_of_name("lpad", arguments=(2, 3), examples="lpad(t, 5) | lpad(m::text, 6, 'xy') | lpad(t, 0, '')")
@function_of_name("rpad", arguments=(2, 3), examples="rpad(m::text, 4, 'xy')")
def padded(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """lpad(x, n) and rpad(x, n, filling), which also cut."""
    argument, length = text(operands[0], setting), whole_constant(name, operands[1], setting)
    filling = tuple(constant_text(name, operand, setting) for operand in operands[2:])
    size, signs = int(length.text or 0), (filling[0].text or "") if filling else " "

    def change(item: str) -> str:
        more = (signs * size)[: max(0, size - len(item))]
        return f"{more}{item[:size]}" if name == "lpad" else f"{item[:size]}{more}"

    holes = ", ".join(f"{{{place}}}" for place in range(2 + len(filling)))
    return text_of_first(name, f"{name}({holes})", (argument, length, *filling), change)


@function("repeat", arguments=2, examples="repeat(t, 3) | repeat(m::text, 2) | repeat(t, 0)")
def repeat(operands: Operands, setting: EvalContext) -> Expression:
    times = whole_constant("repeat", operands[1], setting, most=_MOST_COPIES)
    return text_of_first(
        "repeat", "repeat({0}, {1})", (text(operands[0], setting), times), lambda text: text * int(times.text or 0)
    )


@function(
    "overlay",
    arguments=(3, 4),
    examples="""
    overlay(t PLACING 'xy' FROM 2) | overlay(m::text PLACING 'oo' FROM 2 FOR 1)
    overlay(t PLACING '' FROM 1 FOR 3)
    """,
)
def overlay(operands: Operands, setting: EvalContext) -> Expression:
    """overlay(x PLACING 'new' FROM 2 FOR 3)."""
    argument, new = text(operands[0], setting), constant_text("overlay", operands[1], setting)
    start = whole_constant("overlay", operands[2], setting, least=1)
    lengths = tuple(whole_constant("overlay", operand, setting) for operand in operands[3:])
    first, put = int(start.text or 1) - 1, new.text or ""
    size = int(lengths[0].text or 0) if lengths else len(put)
    holes = ", ".join(f"{{{place}}}" for place in range(3 + len(lengths)))
    arguments = (argument, new, start, *lengths)
    return text_of_first(
        "overlay", f'"overlay"({holes})', arguments, lambda text: text[:first] + put + text[first + size :]
    )


@function("ascii", arguments=1, examples="ascii(t)")
def ascii_code(operands: Operands, setting: EvalContext) -> Expression:
    check_unicode("ascii", setting)
    return _counted("ascii", operands[0], setting, most=0x10FFFF)


@function("bit_length", arguments=1, examples="bit_length(t)")
def bit_length(operands: Operands, setting: EvalContext) -> Expression:
    """Return eight times the octets of a text: a character(n) becomes one, without the blanks that fill it up."""
    return _counted("bit_length", operands[0], setting, most=32 * LONGEST_TEXT)


def _counted(name: str, operand: Operand, setting: EvalContext, *, most: int) -> Expression:
    argument = text(operand, setting)
    image = Range(Fraction(0), Fraction(most), Fraction(1))
    return Apply(name, f"{name}({{0}})", (argument,), INT4, image, argument.nullable)
