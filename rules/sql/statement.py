"""One statement as PostgreSQL's grammar reads it: its kind, what it names, and where; and the query inside of it.

Made by `read` in a worker, kept by the session: plain frozen values that travel between processes. Of DECLARE and COPY
the query inside is planned alone, and the text around it stays as it is.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, Literal

from rules.frozen import frozen
from rules.refusal import Refusal


class Kind(StrEnum):
    """Statements by what the session does with them."""

    QUERY = "query"  # SELECT, VALUES, TABLE, WITH … SELECT
    DECLARE = "declare"
    COPY_OUT = "copy"  # COPY (query) TO STDOUT, COPY table TO STDOUT
    PREPARE = "prepare"
    EXECUTE = "execute"
    EXPLAIN = "explain"
    DEALLOCATE = "deallocate"
    DISCARD = "discard"
    TRANSACTION = "transaction"
    SET = "set"  # SET, RESET
    VIEW = "view"  # CREATE TEMP VIEW, DROP VIEW
    OTHER = "other"  # FETCH, MOVE, CLOSE, SHOW, LISTEN, UNLISTEN, CHECKPOINT …: the twin's own business
    FORBIDDEN = "forbidden"  # refused by kind: `refusal` says why


@frozen
class RelationName:
    """A table as written, CTE names left out. `position` counts characters from 1 in the statement's text."""

    schema: str | None
    name: str
    position: int | None


@frozen
class Statement:
    """One statement of what the client sent."""

    kind: Kind
    text: str  # its own piece of the client's text
    start: int  # characters before it there
    relations: tuple[RelationName, ...] = ()
    name: str | None = None  # of the cursor, prepared statement (EXPLAIN EXECUTE has one too), setting or view
    transaction: Literal["", "begin", "commit", "rollback", "savepoint"] = ""
    arguments: tuple[str, ...] = ()  # of EXECUTE, as SQL expressions
    settings: tuple[tuple[str, str | None], ...] = ()  # that SET or set_config changes; None: to what is not written
    query: str = ""  # PREPARE, EXPLAIN: the text of the statement inside
    parameter_types: tuple[str, ...] = ()  # PREPARE p (int, text)
    analyze: bool = False  # EXPLAIN (ANALYZE)
    generic_plan: bool = False  # EXPLAIN (GENERIC_PLAN): parameters need no values
    refusal: Refusal | None = None
    command: str = ""  # of a forbidden one: the command or the function that it is refused for
    fingerprint: str = ""  # of its normalized text, which has no constants
    bars: tuple[int | None, ...] = ()  # where it asks for error bars: characters from 1, where that is known
    shape: str = ""  # of a query: its text with a ? for each constant, cut
    has_rows_in_arguments: bool = False  # EXECUTE p((SELECT …)) or EXECUTE p(count(*)), which PostgreSQL refuses

    @property
    def names_prepared(self) -> bool:
        """Return whether it runs or explains a prepared statement."""
        return self.kind is Kind.EXECUTE or (self.kind is Kind.EXPLAIN and self.name is not None)


@frozen
class Reading:
    """All that one text holds; `unreadable` when PostgreSQL's grammar cannot read it (the twin is asked)."""

    statements: tuple[Statement, ...] = ()
    unreadable: bool = False

    def is_of(self, text: str) -> bool:
        """Return whether its statements are pieces of a text, one after another.

        Example:
            >>> Reading((Statement(Kind.QUERY, "SELECT 2", 10),)).is_of("SELECT 1; SELECT 2")
            True
            >>> Reading((Statement(Kind.QUERY, "SELECT 2", 0),)).is_of("SELECT 1; SELECT 2")
            False
        """
        end = 0
        for statement in self.statements:
            if not statement.text or statement.start < end:
                return False
            start, end = statement.start, statement.start + len(statement.text)
            if text[start:end] != statement.text:
                return False
        return True


MOST_SHAPE: Final = 2_000  # characters

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


@frozen
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
            # DECLARE name … CURSOR … FOR query. A name that is spelled FOR can only be quoted
            for kind, token, end in _tokens(statement.text):
                if kind == "word" and token.lower() == "for":
                    return EnclosedQuery(statement.text[:end], statement.text[end:], "")
            return None
        case Kind.COPY_OUT:
            return _in_brackets(statement.text)
        case _:
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
