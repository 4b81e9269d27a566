"""What the proxy asks of a real database: its catalog, and grouped aggregates over one snapshot."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from rules.catalog import Catalog, Table

Row = tuple[str | None, ...]  # every column as text


class EngineError(Exception):
    """The real database failed or is away. Carries no text of the database: what it said may quote data."""


class EngineAway(EngineError):
    """No connection can be had. Its text is about the connection alone and is for the DBA's log."""


class EngineTooOld(EngineError):
    """A server whose catalogs we cannot read: waiting does not mend it. Its text says the version."""


class SchemaChanged(EngineError):
    """A table is no longer what the plan took for proved: the catalog has to be read again. Nothing was run."""


class UnknownTimeZone(EngineError):
    """The real database does not know the session's time zone. Nothing was run."""


class Snapshot(Protocol):
    """One transaction, REPEATABLE READ and READ ONLY, settings pinned. Ended when its context is left."""

    async def run(self, sql: str) -> Sequence[Row]:
        """Run one inner statement."""

    async def cancel(self) -> None:
        """Stop what runs now; its `run` raises EngineError, and so does every later one."""


class Engine(Protocol):
    connections: int
    """How many snapshots there may be at once; who wants one more waits."""

    async def catalog(self) -> Catalog: ...

    async def risks(self) -> list[str]:
        """What our role may do there and should not, in plain words for the DBA."""

    def snapshot(
        self, *, time_zone: str, timeout_seconds: float, tables: Sequence[Table] = ()
    ) -> AbstractAsyncContextManager[Snapshot]:
        """Take a connection, pin its settings and lock `tables` as they were planned with.

        All that may fail before anything is charged; raises EngineError when it does.
        """

    async def close(self) -> None: ...
