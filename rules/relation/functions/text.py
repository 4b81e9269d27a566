"""Functions of text. Their operands are short texts, so that no result can be too long for PostgreSQL."""

from collections.abc import Callable
from fractions import Fraction

from rules.refusal import NotSupported
from rules.relation import domain
from rules.relation.domain import ANYTHING, Domain, Range, Values
from rules.relation.expression import Apply, Constant, Expression, Operand, condition
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import LONGEST_TEXT, Setting, as_value, short
from rules.relation.types import INT4, TEXT

Operands = tuple[Operand, ...]
_LONGEST_CONSTANT = 100


def text(operand: Operand, setting: Setting) -> Expression:
    given = as_value(typed(operand, setting, TEXT), setting)
    if given.type.kind != "text":
        raise NotSupported(f"a text is needed here, not {given.type.sql}", hint="Cast it: x::text.")
    return short(given)


def _made(name: str, sql: str, given: tuple[Expression, ...], image: Domain = ANYTHING) -> Expression:
    return Apply(name, sql, given, TEXT, image, any(each.nullable for each in given))


def _each(given: Expression, change: Callable[[str], str]) -> Domain:
    """The image of a finite set of plain ASCII texts, on which Python and PostgreSQL agree."""
    if not isinstance(given.domain, Values):
        return ANYTHING
    items = [item for item in given.domain.items if isinstance(item, str) and item.isascii()]
    return domain.values(change(item) for item in items) if len(items) == len(given.domain.items) else ANYTHING


def lower(operands: Operands, setting: Setting) -> Expression:
    given = text(operands[0], setting)
    return _made("lower", "lower({0})", (given,), _each(given, str.lower))


def upper(operands: Operands, setting: Setting) -> Expression:
    given = text(operands[0], setting)
    return _made("upper", "upper({0})", (given,), _each(given, str.upper))


def initcap(operands: Operands, setting: Setting) -> Expression:
    return _made("initcap", "initcap({0})", (text(operands[0], setting),))


def trim(name: str, operands: Operands, setting: Setting) -> Expression:
    """btrim, ltrim and rtrim, of blanks or of the characters of a constant."""
    given = text(operands[0], setting)
    if len(operands) == 1:
        change = {"btrim": lambda each: each.strip(" "), "ltrim": lambda each: each.lstrip(" ")}
        return _made(name, f"{name}({{0}})", (given,), _each(given, change.get(name, lambda each: each.rstrip(" "))))
    return _made(name, f"{name}({{0}}, {{1}})", (given, constant_text(name, operands[1], setting)))


def ends(name: str, operands: Operands, setting: Setting) -> Expression:
    """left(x, n) and right(x, n)."""
    given, count = text(operands[0], setting), _count(name, operands[1], setting)
    size = int(count.value) if isinstance(count.value, Fraction) else 0
    cut = (lambda each: each[:size]) if name == "left" else (lambda each: each[-size:] if size else "")
    return _made(name, f'"{name}"({{0}}, {{1}})', (given, count), _each(given, cut) if size >= 0 else ANYTHING)


def substring(operands: Operands, setting: Setting) -> Expression:
    """substring(x, start, length) with constants: a negative length would be an error."""
    given = text(operands[0], setting)
    counts = tuple(_count("substring", operand, setting) for operand in operands[1:])
    if len(counts) == 2 and isinstance(counts[1].value, Fraction) and counts[1].value < 0:
        raise NotSupported("substring needs a length that is not negative")
    holes = ", ".join(f"{{{place}}}" for place in range(len(counts) + 1))
    return _made("substring", f'"substring"({holes})', (given, *counts))


def replace(operands: Operands, setting: Setting) -> Expression:
    given = text(operands[0], setting)
    patterns = tuple(constant_text("replace", operand, setting) for operand in operands[1:])
    return _made("replace", f'"left"(replace({{0}}, {{1}}, {{2}}), {LONGEST_TEXT})', (given, *patterns))


def length(name: str, operands: Operands, setting: Setting) -> Expression:
    given = text(operands[0], setting)
    longest = 4 * LONGEST_TEXT if name == "octet_length" else given.type.size or LONGEST_TEXT
    return Apply(
        name, f"{name}({{0}})", (given,), INT4, Range(Fraction(0), Fraction(longest), Fraction(1)), given.nullable
    )


def position(operands: Operands, setting: Setting) -> Expression:
    """strpos(x, part)."""
    given, part = text(operands[0], setting), text(operands[1], setting)
    found = Range(Fraction(0), Fraction(LONGEST_TEXT), Fraction(1))
    return Apply("strpos", "strpos({0}, {1})", (given, part), INT4, found, given.nullable or part.nullable)


def starts_with(operands: Operands, setting: Setting) -> Expression:
    return condition("starts_with", "starts_with({0}, {1})", text(operands[0], setting), text(operands[1], setting))


def joined(operands: Operands, setting: Setting) -> Expression:
    """a || b, where at least one is a text."""
    given = tuple(as_value(typed(operand, setting, TEXT), setting) for operand in operands)
    if not any(each.type.kind == "text" for each in given):
        raise NotSupported(f"the operator {' || '.join(each.type.sql for each in given)} is not supported")
    texts = tuple(_as_text(each, setting) for each in given)
    return _made("||", "({0} || {1})", texts, _joined_image(texts))


def _as_text(given: Expression, setting: Setting) -> Expression:
    return short(given if given.type.kind == "text" else cast_to(given, TEXT, setting))


def _joined_image(given: tuple[Expression, ...]) -> Domain:
    first, second = (domain.items_of(each.domain, 1000) for each in given)
    if first is None or second is None or len(first) * len(second) > 10_000:
        return ANYTHING
    return domain.values(f"{left}{right}" for left in first for right in second)


def concat(operands: Operands, setting: Setting) -> Expression:
    """concat(…) takes NULL as the empty text, and prints a boolean as t or f."""
    given = tuple(as_value(typed(operand, setting, TEXT), setting) for operand in operands)
    texts = tuple(each if each.type.kind == "boolean" else _as_text(each, setting) for each in given)
    holes = ", ".join(f"{{{place}}}" for place in range(len(texts)))
    return Apply("concat", f"concat({holes})", texts, TEXT, ANYTHING, nullable=False)


def constant_text(name: str, operand: Operand, setting: Setting) -> Constant:
    found = typed(operand, setting, TEXT)
    if not isinstance(found, Constant) or found.text is None or len(found.text) > _LONGEST_CONSTANT:
        raise NotSupported(f"{name} needs constants of at most {_LONGEST_CONSTANT} characters here")
    return found


def _count(name: str, operand: Operand, setting: Setting) -> Constant:
    found = typed(operand, setting, INT4)
    if not isinstance(found, Constant) or not isinstance(found.value, Fraction) or abs(found.value) > LONGEST_TEXT:
        raise NotSupported(f"{name} needs a constant number of characters")
    return found
