"""Admit regular expressions that PostgreSQL compiles for certain, and runs in time that is bounded.

A pattern is compiled when the first row meets it, so one that is wrong would fail only where there are rows. What is
read here is a part of PostgreSQL's language that has no back-references and no look-around, so that its automaton sees
each character of a text once; sizes are limited far below those at which PostgreSQL gives up, no part that may be
empty and no anchor is repeated, for these are what its compiler is slow with.
"""

import re

from rules.frozen import frozen
from rules.refusal import NotSupported

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
                return self._escape()
            case "^" | "$":
                return _ANCHOR
            case "*" | "+" | "?" | "{":
                raise _refused("has a quantifier without an operand")
        return _ONE

    def _escape(self) -> PatternShape:
        letter = self._next()
        if letter in _ANCHORS:
            return _ANCHOR
        if letter in _WORDS or letter in _CONTROLS or (letter.isascii() and not letter.isalnum()):
            return _ONE
        raise _refused(f"has \\{letter}")

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
