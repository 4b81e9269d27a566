"""Texts and constant patterns: LIKE, SIMILAR TO and regular expressions, to compare with, to take out, to put in.

PostgreSQL compiles a regular expression when the first row meets it, so a wrong one would fail only where there are
rows. The part of its language that is admitted here has no back-references and no look-around, so that its automaton
sees each character of a text once; sizes are limited far below those at which PostgreSQL gives up, and no part that may
be empty and no anchor is repeated, for these are what its compiler is slow with.
"""

import re
from fractions import Fraction

from rules.frozen import frozen
from rules.functions.coerce import typed
from rules.functions.collation import check_collation
from rules.functions.function import EvalContext, Operands, function
from rules.functions.guard import padded
from rules.functions.text.strings import constant_text, substring, text
from rules.refusal import NotSupported
from rules.values.domain import ONE, Range
from rules.values.expression import Apply, Constant, Expression, Operand, condition
from rules.values.types import INT4, TEXT

LONGEST_PATTERN = 200
_LARGEST = 300  # places in the pattern, repetitions written out
_MOST_TIMES = 100
_DEEPEST = 10
_CLASSES = frozenset("alnum alpha blank cntrl digit graph lower print punct space upper xdigit".split())
_BOUND = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}")
_IN_CLASS = re.compile(r"\[:([a-z]+):\]")
_WORDS, _ANCHORS = frozenset("dswDSW"), frozenset("mMyYAZ")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


@frozen
class PatternShape:
    """Facts about a part of a pattern."""

    size: int = 0
    may_be_empty: bool = True
    has_anchor: bool = False
    groups: int = 0  # that capture
    repeats_group: bool = False

    def then(self, other: "PatternShape") -> "PatternShape":
        return self._with(other, may_be_empty=self.may_be_empty and other.may_be_empty)

    def instead(self, other: "PatternShape") -> "PatternShape":
        return self._with(other, may_be_empty=self.may_be_empty or other.may_be_empty)

    def _with(self, other: "PatternShape", *, may_be_empty: bool) -> "PatternShape":
        return PatternShape(
            self.size + other.size,
            may_be_empty,
            self.has_anchor or other.has_anchor,
            self.groups + other.groups,
            self.repeats_group or other.repeats_group,
        )


_ONE = PatternShape(size=1, may_be_empty=False)
_ANCHOR = PatternShape(size=1, has_anchor=True)


def shape_of(pattern: str) -> PatternShape:
    """The shape of a pattern that is admitted; any other is refused.

    Example:
        >>> shape_of("^(a|b)+[[:digit:]]{2,3}$").size
        9
    """
    if len(pattern) > LONGEST_PATTERN:
        raise _refused(f"is longer than {LONGEST_PATTERN} characters")
    if not pattern.isprintable():
        raise _refused("has non-printable characters")
    reader = _Reader(pattern.removeprefix("(?i)"))
    pattern_shape = reader.branches(0)
    if not reader.is_at_end:
        raise _refused("has an unmatched closing bracket")
    return pattern_shape


def _refused(why: str) -> NotSupported:
    known = "Supported are . [a-z] \\d \\s \\w ^ $ \\m \\M (…) (?:…) * + ? {2,5} and alternatives"
    hint = f"{known}; escape other characters with a backslash."
    return NotSupported(f"this regular expression {why}, so it is not supported over protected rows", hint=hint)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._text)

    def _take(self, part: str) -> bool:
        is_there = self._text.startswith(part, self._at)
        self._at += len(part) if is_there else 0
        return is_there

    def _next(self) -> str:
        if self.is_at_end:
            raise _refused("ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def branches(self, depth: int) -> PatternShape:
        if depth > _DEEPEST:
            raise _refused("is nested too deeply")
        pattern_shape = self._pieces(depth)
        while self._take("|"):
            pattern_shape = pattern_shape.instead(self._pieces(depth))
        return pattern_shape

    def _pieces(self, depth: int) -> PatternShape:
        pattern_shape = PatternShape()
        while not self.is_at_end and self._text[self._at] not in "|)":
            pattern_shape = pattern_shape.then(self._repeated(self._atom(depth)))
            if pattern_shape.size > _LARGEST:
                raise _refused("is too large")
        return pattern_shape

    def _atom(self, depth: int) -> PatternShape:
        match self._next():
            case "(":
                captures = not self._take("?:")
                inner = self.branches(depth + 1)
                if not self._take(")"):
                    raise _refused("has an unclosed bracket")
                return inner.then(PatternShape(groups=1)) if captures else inner
            case "[":
                return self._bracket()
            case "\\":
                letter = self._next()
                if letter in _ANCHORS:
                    return _ANCHOR
                if letter in _WORDS or letter in _CONTROLS or (letter.isascii() and not letter.isalnum()):
                    return _ONE
                raise _refused(f"has \\{letter}")
            case "^" | "$":
                return _ANCHOR
            case "*" | "+" | "?" | "{":
                raise _refused("has a quantifier without an operand")
        return _ONE

    def _repeated(self, atom: PatternShape) -> PatternShape:
        times = self._times()
        if times is None:
            return atom
        least, most = times
        self._take("?")  # as few as there can be
        if most != 1 and (atom.may_be_empty or atom.has_anchor):
            raise _refused("repeats a part that can be empty")
        if atom.has_anchor or (self._text[self._at : self._at + 1] or " ") in "*+?{":
            raise _refused("repeats a repeated part")
        size = atom.size * max(1, least + 1 if most is None else most)
        if size > _LARGEST:
            raise _refused("is too large")
        return PatternShape(size, atom.may_be_empty or not least, groups=atom.groups, repeats_group=atom.groups > 0)

    def _times(self) -> tuple[int, int | None] | None:
        """Return how often at least and at most; None for once."""
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return times
        match = _BOUND.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        least = int(match[1])
        most = least if not match[2] else int(match[3]) if match[3] else None
        if most == 0 or max(least, most or 0) > _MOST_TIMES or (most is not None and least > most):
            raise _refused(f"has a repetition count outside 1 to {_MOST_TIMES}")
        return least, most

    def _bracket(self) -> PatternShape:
        self._take("^")
        first = self._at
        while self._at == first or not self._take("]"):
            if self._is_dash_within and self._at > first:
                raise _refused("has a - after a range")
            low = self._member()
            if self._is_dash_within:
                self._at += 1
                _check_range(low, self._member())
        return _ONE

    @property
    def _is_dash_within(self) -> bool:
        """Return whether a - follows that is not the last character of its bracket."""
        return self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] != "]"

    def _member(self) -> str:
        """One character of a bracket; "" for a class of them."""
        named = _IN_CLASS.match(self._text, self._at)
        if named is not None and named[1] in _CLASSES:
            self._at = named.end()
            return ""
        letter = self._next()
        if letter == "[" and self._text[self._at : self._at + 1] in (".", "=", ":"):
            raise _refused("has a collating element")
        if letter == "]" or (letter == "\\" and self._text[self._at : self._at + 1] in ("D", "S", "W", "")):
            raise _refused("has an unclosed bracket list")
        if letter != "\\":
            return letter
        escaped = self._next()
        if escaped in _WORDS:
            return ""
        if escaped in _CONTROLS or (escaped.isascii() and not escaped.isalnum()):
            return _CONTROLS.get(escaped, escaped)
        raise _refused(f"has \\{escaped}")


def _check_range(low: str, high: str) -> None:
    """a-z, of characters that are not far from each other."""
    if not low or not high or not 0 <= ord(high) - ord(low) <= 1000 or ord(high) > 0xFFFF:
        raise _refused("has an invalid range")


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
