"""The query inside DECLARE and COPY, and the text around it: the query alone is planned, the rest stays as it is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rules.sql.statement import Kind, Statement

_TOKEN: Final = re.compile(
    r"""
    \s+ | --[^\n\r]* | (?P<comment>/\*)
  | [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
  | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][\w]*)?\$)
  | (?P<word>[\w$]+) | (?P<open>\() | (?P<close>\)) | .
    """,
    re.VERBOSE | re.DOTALL,
)
_EDGE: Final = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class EnclosedQuery:
    """A statement as head + query + tail."""

    head: str
    query: str
    tail: str

    def put(self, query: str) -> str:
        """The statement with another query in it."""
        return f"{self.head} {query}{self.tail}" if self.head else query


def split_around(statement: Statement) -> EnclosedQuery | None:
    """Return where the query of a readable statement stands; None where there is none, as in COPY orders TO STDOUT.

    Example:
        >>> split_around(Statement(Kind.COPY_OUT, "COPY (SELECT 1) TO STDOUT", 0))
        EnclosedQuery(head='COPY (', query='SELECT 1', tail=') TO STDOUT')
    """
    match statement.kind:
        case Kind.QUERY:
            return EnclosedQuery("", statement.text, "")
        case Kind.EXPLAIN if statement.name is not None:
            return _before_execute(statement.text)
        case Kind.EXPLAIN if not statement.analyze:
            return EnclosedQuery("", statement.text, "")  # the planner explains; what it says is the whole answer
        case Kind.DECLARE:
            return _after_for(statement.text)
        case Kind.COPY_OUT:
            return _in_brackets(statement.text)
        case _:
            return None


def _after_for(text: str) -> EnclosedQuery | None:
    """DECLARE name … CURSOR … FOR query. A name that is spelled FOR can only be quoted."""
    for kind, token, end in _tokens(text):
        if kind == "word" and token.lower() == "for":
            return EnclosedQuery(text[:end], text[end:], "")
    return None


def _before_execute(text: str) -> EnclosedQuery | None:
    """EXPLAIN … EXECUTE name(…): the options of EXPLAIN stand in brackets."""
    depth = 0
    for kind, token, end in _tokens(text):
        depth += {"open": 1, "close": -1}.get(kind, 0)
        if not depth and kind == "word" and token.lower() == "execute":
            return EnclosedQuery(text[: end - len(token)], text[end - len(token) :], "")
    return None


def _in_brackets(text: str) -> EnclosedQuery | None:
    """COPY (query) TO …: the bracket follows COPY itself."""
    depth = start = 0
    for kind, token, end in _tokens(text):
        if not depth and kind == "word" and token.lower() != "copy":
            return None
        if kind == "open":
            depth += 1
            start = start or end
        elif kind == "close":
            depth -= 1
            if not depth:
                return EnclosedQuery(text[:start], text[start : end - 1], text[end - 1 :])
    return None


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and end of each token; comments nest, a dollar quote ends with its own tag."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, "the last alternative takes any character"
        at = match.end()
        if match.lastgroup == "comment":
            at = _comment_end(text, at)
        elif match.lastgroup == "dollar":
            end = text.find(match.group(), at)
            at = len(text) if end < 0 else end + len(match.group())
        yield match.lastgroup or "", match.group(), at


def _comment_end(text: str, at: int) -> int:
    depth = 1
    while depth and (edge := _EDGE.search(text, at)):
        depth += 1 if edge.group() == "/*" else -1
        at = edge.end()
    return len(text) if depth else at
