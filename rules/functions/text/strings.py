"""Functions of text. Their operands are short texts, so that no result can be too long for PostgreSQL."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import prod

from rules.functions.casts import cast_to
from rules.functions.coerce import typed
from rules.functions.collation import check_collation
from rules.functions.function import EvalContext, Operands, check_unicode, function, function_of_name
from rules.functions.guard import LONGEST_TEXT, as_value, padded, short
from rules.refusal import NotSupported
from rules.values import domain
from rules.values.domain import ANYTHING, Domain, Range, Values
from rules.values.expression import Apply, Constant, Expression, Operand, condition
from rules.values.types import INT4, TEXT

_LONGEST_CONSTANT = 100
_MOST_JOINED = 10_000


def text(operand: Operand, setting: EvalContext) -> Expression:
    argument = as_value(typed(operand, setting, TEXT), setting)
    if argument.type.kind != "text":
        is_range = argument.type.kind == "other" and argument.type.name.endswith("range")
        hint = "Ask your DBA for columns with the two ends." if is_range else "Cast it: x::text."
        raise NotSupported(f"the argument must be of type text, not {argument.type.sql}", hint=hint)
    return short(argument)


def text_of_first(
    name: str,
    sql: str,
    expressions: tuple[Expression, ...],
    change: Callable[[str], str] | None = None,
    *,
    is_short: bool = False,
) -> Expression:
    """Make a text of the first one; `change` says what becomes of each of its listed values."""
    image = ANYTHING if change is None else _image(expressions[0], change)
    return Apply(
        name, sql, expressions, TEXT, image, any(expression.nullable for expression in expressions), is_short=is_short
    )


def _image(expression: Expression, change: Callable[[str], str]) -> Domain:
    """The image of a finite set of plain ASCII texts, on which Python and PostgreSQL agree."""
    if not isinstance(expression.domain, Values):
        return ANYTHING
    items = [item for item in expression.domain.items if isinstance(item, str) and item.isascii()]
    return domain.values(change(item) for item in items) if len(items) == len(expression.domain.items) else ANYTHING


@function("lower", arguments=1, examples="lower(t)")
def lower(operands: Operands, setting: EvalContext) -> Expression:
    return _cased("lower", operands, setting, str.lower)


@function("upper", arguments=1, examples="upper(t) | upper(m::text)")
def upper(operands: Operands, setting: EvalContext) -> Expression:
    return _cased("upper", operands, setting, str.upper)


def _cased(name: str, operands: Operands, setting: EvalContext, change: Callable[[str], str]) -> Expression:
    """Change the case of listed texts in the C locale alone: to a Turkish one, I is no capital of i."""
    check_unicode(name, setting)
    argument = text(operands[0], setting)
    check_collation(name, argument)
    is_listed = _image(argument, change) != ANYTHING
    sql = f'({name}({{0}} COLLATE "C") COLLATE "default")' if is_listed else f"{name}({{0}})"
    return text_of_first(name, sql, (argument,), change)


@function("initcap", arguments=1, examples="initcap(t)")
def initcap(operands: Operands, setting: EvalContext) -> Expression:
    check_unicode("initcap", setting)
    argument = text(operands[0], setting)
    check_collation("initcap", argument)
    return text_of_first("initcap", "initcap({0})", (argument,))


@function_of_name(
    "btrim",
    arguments=(1, 2),
    examples="""
    trim(t) | trim('a ' FROM t) | btrim(t, 'ab') | btrim(m::text, 'sd')
    """,
)
@function_of_name("ltrim", arguments=(1, 2), examples="ltrim(t) | ltrim(t, 'a')")
@function_of_name("rtrim", arguments=(1, 2), examples="rtrim(t) | rtrim(t, ' b')")
def trim(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """btrim, ltrim and rtrim, of blanks or of the characters of a constant."""
    argument = text(operands[0], setting)
    cut = {"btrim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}[name]
    if len(operands) == 1:
        return text_of_first(name, f"{name}({{0}})", (argument,), lambda text: cut(text, " "), is_short=True)
    signs = constant_text(name, operands[1], setting)
    return text_of_first(
        name, f"{name}({{0}}, {{1}})", (argument, signs), lambda text: cut(text, signs.text or "\0"), is_short=True
    )


@function_of_name("left", arguments=2, examples="left(t, 3) | left(t, -3) | left(m::text, 2)")
@function_of_name("right", arguments=2, examples="right(t, 2) | right(t, -2) | right(m::text, 0)")
def ends(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """left(x, n) and right(x, n)."""
    argument, count = text(operands[0], setting), whole_constant(name, operands[1], setting, least=-LONGEST_TEXT)
    size = int(count.text or 0)
    cut = (lambda length: length[:size]) if name == "left" else (lambda length: length[-size:] if size else "")
    return text_of_first(name, f'"{name}"({{0}}, {{1}})', (argument, count), cut if size >= 0 else None, is_short=True)


@function("substr", arguments=(2, 3), examples="substr(t, 2)")
def substring(operands: Operands, setting: EvalContext) -> Expression:
    """substring(x, start, length) with constants: a negative length would be an error."""
    argument = text(operands[0], setting)
    start = whole_constant("substring", operands[1], setting, least=-LONGEST_TEXT)
    lengths = tuple(whole_constant("substring", operand, setting) for operand in operands[2:])
    first = int(start.text or 0) - 1
    last = first + int(lengths[0].text or 0) if lengths else LONGEST_TEXT
    holes = ", ".join(f"{{{place}}}" for place in range(2 + len(lengths)))
    arguments = (argument, start, *lengths)
    sql = f'"substring"({holes})'
    return text_of_first("substring", sql, arguments, lambda text: text[max(first, 0) : max(last, 0)], is_short=True)


@function("replace", arguments=3, examples="replace(t, 'a', 'bcd') | replace(t, '', 'x') | replace(m::text, 'a', 'oo')")
def replace(operands: Operands, setting: EvalContext) -> Expression:
    argument = text(operands[0], setting)
    old, new = (constant_text("replace", operand, setting) for operand in operands[1:])

    def change(item: str) -> str:
        return item.replace(old.text, new.text or "") if old.text else item

    return text_of_first(
        "replace", f'"left"(replace({{0}}, {{1}}, {{2}}), {LONGEST_TEXT})', (argument, old, new), change
    )


@function_of_name("length", arguments=1, examples="length(t)")
@function_of_name("char_length", arguments=1, same_as="length", examples="char_length(vc)")
@function_of_name("character_length", arguments=1, same_as="length", examples="character_length(t)")
@function_of_name("octet_length", arguments=1, examples="octet_length(t)")
def length(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """Return how many characters, or octets: of a character(n) those that fill it up are octets, and no characters."""
    operand = typed(operands[0], setting, TEXT)
    argument = text(padded(operand) if name == "octet_length" else operand, setting)
    longest = 4 * LONGEST_TEXT if name == "octet_length" else argument.type.size or LONGEST_TEXT
    return Apply(
        name, f"{name}({{0}})", (argument,), INT4, Range(Fraction(0), Fraction(longest), Fraction(1)), argument.nullable
    )


@function("strpos", arguments=2, examples="strpos(t, vc)")
@function("position", arguments=2, examples="position('a' IN t)")
def position(operands: Operands, setting: EvalContext) -> Expression:
    """strpos(x, part)."""
    argument, part = text(operands[0], setting), text(operands[1], setting)
    image = Range(Fraction(0), Fraction(LONGEST_TEXT), Fraction(1))
    return Apply("strpos", "strpos({0}, {1})", (argument, part), INT4, image, argument.nullable or part.nullable)


@function("starts_with", arguments=2, examples="starts_with(t, vc)")
def starts_with(operands: Operands, setting: EvalContext) -> Expression:
    return condition("starts_with", "starts_with({0}, {1})", text(operands[0], setting), text(operands[1], setting))


def joined(operands: Operands, setting: EvalContext) -> Expression:
    """a || b, where at least one is a text."""
    arguments = tuple(as_value(typed(operand, setting, TEXT), setting) for operand in operands)
    if not any(argument.type.kind == "text" for argument in arguments):
        raise NotSupported(f"the operator {' || '.join(argument.type.sql for argument in arguments)} is not supported")
    texts = tuple(_as_text(argument, setting) for argument in arguments)
    image = _joined_image("", texts, with_nulls=False)
    return Apply("||", "({0} || {1})", texts, TEXT, image, any(text.nullable for text in texts))


def _as_text(expression: Expression, setting: EvalContext) -> Expression:
    return short(expression if expression.type.kind == "text" else cast_to(expression, TEXT, setting))


@function("concat", arguments=(1, 50), examples="concat(m, b) | concat(t, i4, b, NULL) | concat(vc, '-', m)")
def concat(operands: Operands, setting: EvalContext) -> Expression:
    """concat(…) takes NULL as the empty text."""
    texts = tuple(_printed(operand, setting) for operand in operands)
    holes = ", ".join(f"{{{place}}}" for place in range(len(texts)))
    return Apply(
        "concat",
        f"concat({holes})",
        texts,
        TEXT,
        _joined_image("", texts, with_nulls=True),
        nullable=False,
        strict=False,
    )


@function("concat_ws", arguments=(2, 50), examples="concat_ws(', ', t, i4, b, NULL) | concat_ws('', m, b)")
def concat_ws(operands: Operands, setting: EvalContext) -> Expression:
    """concat_ws(', ', …) leaves NULLs out."""
    separator, texts = (
        constant_text("concat_ws", operands[0], setting),
        [_printed(operand, setting) for operand in operands[1:]],
    )
    holes = ", ".join(f"{{{place}}}" for place in range(1 + len(texts)))
    image = _joined_image(separator.text or "", tuple(texts), with_nulls=True)
    return Apply("concat_ws", f"concat_ws({holes})", (separator, *texts), TEXT, image, nullable=False, strict=False)


def _printed(operand: Operand, setting: EvalContext) -> Expression:
    """As concat prints it: a boolean is t or f, and a character(n) has all its blanks."""
    argument = as_value(padded(typed(operand, setting, TEXT)), setting)
    return argument if argument.type.kind == "boolean" else _as_text(argument, setting)


def _joined_image(separator: str, expressions: tuple[Expression, ...], *, with_nulls: bool) -> Domain:
    """All texts that the parts' listed values make; a NULL makes all NULL, or is left out."""
    choices = [_choices(expression, with_nulls=with_nulls) for expression in expressions]
    if prod(len(choice) for choice in choices if choice is not None) > _MOST_JOINED or None in choices:
        return ANYTHING
    combined = product(*(choice for choice in choices if choice is not None))
    return domain.values(separator.join(part for part in parts if part is not None) for parts in combined)


def _choices(expression: Expression, *, with_nulls: bool) -> list[str | None] | None:
    if not isinstance(expression.domain, Values):
        return None
    texts = [item for item in expression.domain.items if isinstance(item, str)]
    if len(texts) < len(expression.domain.items):
        return None
    return [*texts, None] if expression.nullable and with_nulls else [*texts]


def constant_text(name: str, operand: Operand, setting: EvalContext) -> Constant:
    argument = typed(operand, setting, TEXT)
    if not isinstance(argument, Constant) or argument.text is None or len(argument.text) > _LONGEST_CONSTANT:
        raise NotSupported(f"{name} over protected rows needs constants of at most {_LONGEST_CONSTANT} characters")
    return argument


def whole_constant(
    name: str, operand: Operand, setting: EvalContext, *, least: int = 0, most: int = LONGEST_TEXT
) -> Constant:
    """A constant whole number, as a count of characters is."""
    argument = typed(operand, setting, INT4)
    if (
        not isinstance(argument, Constant)
        or argument.type.kind != "integer"
        or not least <= int(argument.text or most + 1) <= most
    ):
        raise NotSupported(f"{name} over protected rows needs a constant integer from {least} to {most}")
    return argument
