"""One statement as PostgreSQL's grammar reads it: its kind, what it names, and where.

Made by `read` in a worker, kept by the session: plain frozen values that travel between processes.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class RelationName:
    """A table as written, CTE names left out. `position` counts characters from 1 in the statement's text."""

    schema: str | None
    name: str
    position: int | None


@dataclass(frozen=True, slots=True)
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
    refusal: Refusal | None = None
    command: str = ""  # of a forbidden one: the command or the function that it is refused for
    fingerprint: str = ""  # of its normalized text, which has no constants
    bars: tuple[int | None, ...] = ()  # where it asks for error bars: characters from 1, where that is known
    shape: str = ""  # of a query: its text with a ? for each constant, cut

    @property
    def names_prepared(self) -> bool:
        """Return whether it runs or explains a prepared statement."""
        return self.kind is Kind.EXECUTE or (self.kind is Kind.EXPLAIN and self.name is not None)


@dataclass(frozen=True, slots=True)
class Reading:
    """All that one text holds; `unreadable` when PostgreSQL's grammar cannot read it (the twin is asked)."""

    statements: tuple[Statement, ...] = ()
    unreadable: bool = False
