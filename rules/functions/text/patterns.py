"""Texts and constant patterns: regular expressions and SIMILAR TO, to compare with, to take out, to put in."""

import re
from fractions import Fraction

from rules.functions.coerce import typed
from rules.functions.collation import check_collation
from rules.functions.function import EvalContext, Operands, function
from rules.functions.guard import padded
from rules.functions.text.regex import PatternShape, shape_of
from rules.functions.text.strings import constant_text, substring, text
from rules.refusal import NotSupported
from rules.values.domain import ONE, Range
from rules.values.expression import Apply, Constant, Expression, Operand, condition
from rules.values.types import INT4, TEXT

MATCHES = {"~": "~", "~*": "~*", "similar": "~"}
# Where matches follow each other, each is looked for in all that is left: only so many characters are seen.
_SEEN = 2000
_NESTED = re.compile(r"\[\^?\]?[^\]]*\[(?!:)")  # which versions of PostgreSQL read differently


def matches(name: str, operand: Operand, pattern: Operand, setting: EvalContext) -> Expression:
    """x ~ 'pattern' and x SIMILAR TO 'pattern'."""
    return _matches(MATCHES[name], padded(typed(operand, setting, TEXT)), pattern, setting)


def _matches(operator: str, operand: Operand, pattern: Operand, setting: EvalContext) -> Expression:
    constant, seen = _pattern(pattern, setting), text(operand, setting)
    shape_of(_plain(constant))
    _check_letters(seen, constant, ignores_case=operator == "~*")
    return condition("~", f"({{0}} {operator} {{1}})", seen, constant)


@function("regexp_like", arguments=(2, 3), examples="regexp_like(t, '(?:ab){2,3}') | regexp_like(t, 'b', 'i')")
def regexp_like(operands: Operands, setting: EvalContext) -> Expression:
    """regexp_like(x, pattern, flags), which only newer servers know, is x ~ pattern."""
    flags = _flags("regexp_like", operands[2:], setting, known="ic")
    return _matches("~*" if flags.endswith("i") else "~", operands[0], operands[1], setting)


@function(
    "regexp_replace",
    arguments=(3, 4),
    examples=r"""
    regexp_replace(t, '[^0-9]+', '<\&>', 'g') | regexp_replace(t, '(a+)b', '\1')
    """,
)
def regexp_replace(operands: Operands, setting: EvalContext) -> Expression:
    """regexp_replace(x, pattern, replacement, flags)."""
    pattern = _pattern(operands[1], setting)
    _check_groups(shape_of(_plain(pattern)))
    replacement = constant_text("regexp_replace", operands[2], setting)
    flags = _flags("regexp_replace", operands[3:], setting, known="gic")
    seen = _seen(operands[0], pattern, setting, flags)
    arguments = (seen, pattern, replacement, Constant(TEXT, flags, flags))
    return Apply("regexp_replace", "regexp_replace({0}, {1}, {2}, {3})", arguments, TEXT, nullable=True)


@function(
    "substring",
    arguments=(2, 3),
    examples=r"""
    substring(t FROM 2 FOR 3) | substring(t, -5, 7) | substring(t, 0) | substring(t FROM '(\d+)-')
    substring(t, 'a+') | substring(m::text, 2, 2) | substring(m::text, -1, 3)
    """,
)
def part_of_text(operands: Operands, setting: EvalContext) -> Expression:
    """substring(x, 2, 3) counts characters, substring(x, 'pattern') looks for one."""
    by_pattern = len(operands) == 2 and typed(operands[1], setting).type.kind == "text"
    return part(operands, setting) if by_pattern else substring(operands, setting)


def part(operands: Operands, setting: EvalContext) -> Expression:
    """substring(x FROM 'pattern'): what the group in brackets has matched, or else all of it."""
    pattern = _pattern(operands[1], setting)
    _check_groups(shape_of(_plain(pattern)))
    arguments = (_seen(operands[0], pattern, setting), pattern)
    return Apply("substring", '"substring"({0}, {1})', arguments, TEXT, nullable=True, is_short=True)


@function("regexp_substr", arguments=2, examples="regexp_substr(t, '[a-c]+')")
def regexp_substr(operands: Operands, setting: EvalContext) -> Expression:
    """regexp_substr(x, pattern) takes out the whole match, as substring does where there is no group."""
    if shape_of(_plain(_pattern(operands[1], setting))).groups:
        raise NotSupported("regexp_substr with a group is not supported", hint="Use (?:…) instead of (…).")
    return part(operands, setting)


@function(
    "similar_to_escape",
    arguments=(1, 2),
    examples="""
    vc SIMILAR TO '%(y|z)[^a]_' | t NOT SIMILAR TO 'a#%' ESCAPE '#'
    """,
)
def similar_to_escape(operands: Operands, setting: EvalContext) -> Expression:
    """The regular expression that PostgreSQL makes of a constant pattern of SIMILAR TO."""
    pattern = _pattern(operands[0], setting)
    escape = _plain(_pattern(operands[1], setting)) if len(operands) > 1 else "\\"
    if len(escape) != 1 or not escape.isascii() or escape.isalnum():
        raise NotSupported("the ESCAPE of SIMILAR TO must be a single character")
    regex = f"^(?:{_as_regex(_plain(pattern), escape)})$"
    return Constant(TEXT, regex, regex)


@function("like_escape", arguments=2, examples=r"t LIKE 'a!%' ESCAPE '!' | t NOT ILIKE '\_x' ESCAPE ''")
def like_escape(operands: Operands, setting: EvalContext) -> Expression:
    """LIKE 'pattern' ESCAPE '!': the same pattern with backslashes for the signs."""
    pattern, escape = (_plain(_pattern(operand, setting)) for operand in operands)
    if len(escape) > 1:
        raise NotSupported("the ESCAPE of LIKE must be empty or a single character")
    escaped = _escaped_by_backslash(pattern, escape)
    return Constant(TEXT, escaped, escaped)


def _escaped_by_backslash(pattern: str, escape: str) -> str:
    """As like_escape in PostgreSQL's like.c; that nothing is left behind an escape is seen by LIKE."""
    if escape == "\\":
        return pattern
    pieces, is_escaped = list[str](), False
    for letter in pattern:
        if letter == escape and not is_escaped:
            pieces.append("\\")
            is_escaped = True
            continue
        pieces.append("\\\\" if letter == "\\" and not is_escaped else letter)
        is_escaped = False
    return "".join(pieces)


@function("regexp_count", arguments=2, since=15, examples="regexp_count(t, 'a+')")
def regexp_count(operands: Operands, setting: EvalContext) -> Expression:
    """regexp_count(x, pattern): how often it is found."""
    pattern = _pattern(operands[1], setting)
    _check_groups(shape_of(_plain(pattern)))
    argument = _seen(operands[0], pattern, setting)
    image = Range(Fraction(0), Fraction(_SEEN + 1), ONE)
    return Apply("regexp_count", "regexp_count({0}, {1})", (argument, pattern), INT4, image, argument.nullable)


def _as_regex(pattern: str, escape: str) -> str:
    """% is .*, _ is ., brackets do not capture; what only a regular expression reads as a sign is escaped."""
    if _NESTED.search(re.sub(f"{re.escape(escape)}.", "-", pattern)):
        raise NotSupported(
            "SIMILAR TO with [ inside a bracket list is not supported", hint="Escape the bracket, or use x ~ '…'."
        )
    pieces, in_list, rest = list[str](), False, iter(pattern)
    for letter in rest:
        if letter == escape:
            pieces.append("\\" + _escaped(next(rest, "")))
        elif in_list:
            in_list = letter != "]"
            pieces.append("\\\\" if letter == "\\" else letter)
        else:
            in_list = letter == "["
            pieces.append(
                {"%": ".*", "_": ".", "(": "(?:"}.get(letter) or (f"\\{letter}" if letter in "\\.^$" else letter)
            )
    return "".join(pieces)


def _escaped(letter: str) -> str:
    if letter == '"':
        raise NotSupported("SIMILAR TO with an escaped double quote is not supported")
    return letter


def _pattern(operand: Operand, setting: EvalContext) -> Constant:
    argument = typed(operand, setting, TEXT)
    if not isinstance(argument, Constant) or argument.text is None or argument.type.kind != "text":
        hint = "Use a constant or a parameter as the pattern."
        raise NotSupported("a pattern that is not constant is not supported over protected rows", hint=hint)
    return argument


def _plain(pattern: Constant) -> str:
    return pattern.text or ""


def _check_groups(shape: PatternShape) -> None:
    """One group that is not repeated is found by trying its ends; repeated ones could be divided in many ways."""
    if shape.groups > 1 or shape.repeats_group:
        hint = "Use (?:…) instead of (…) for groups that are not extracted."
        raise NotSupported("several groups or a repeated group are not supported over protected rows", hint=hint)


def _check_letters(seen: Expression, pattern: Constant, *, ignores_case: bool) -> None:
    """What is a letter, and which one is its capital, a collation says; all else in a pattern means itself."""
    if ignores_case or _LETTERS.search(_plain(pattern)):
        check_collation("this pattern", seen)


_LETTERS = re.compile(r"\\[a-zA-Z]|\[:|^\(\?i\)")


def _seen(operand: Operand, pattern: Constant, setting: EvalContext, flags: str = "") -> Expression:
    argument = text(operand, setting)
    _check_letters(argument, pattern, ignores_case="i" in flags)
    return Apply(
        "left", f'"left"({{0}}, {_SEEN})', (argument,), TEXT, argument.domain, argument.nullable, is_short=True
    )


def _flags(name: str, operands: Operands, setting: EvalContext, *, known: str) -> str:
    if not operands:
        return ""
    flags = _plain(constant_text(name, operands[0], setting))
    if set(flags) - set(known):
        raise NotSupported(
            f"{name} with the flags '{flags}' is not supported", hint=f"The supported flags are {', '.join(known)}."
        )
    return flags
