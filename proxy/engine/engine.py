"""What the proxy asks of a real database: its catalog, and grouped aggregates over one snapshot."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from rules.catalog import Catalog

Row = tuple[str | None, ...]  # every column as text


class EngineError(Exception):
    """The real database failed or is away. Carries no text of its own: what the database said may quote data."""


class Snapshot(Protocol):
    """One transaction, REPEATABLE READ and READ ONLY, settings pinned. Ended when its context is left."""

    async def run(self, sql: str) -> Sequence[Row]:
        """Run one inner statement."""

    async def cancel(self) -> None:
        """Stop what runs now; its `run` raises EngineError."""


class Engine(Protocol):
    async def catalog(self) -> Catalog: ...

    def snapshot(self, *, time_zone: str, timeout_seconds: float) -> AbstractAsyncContextManager[Snapshot]:
        """Take a connection and pin its settings: all that may fail before anything is charged."""

    async def close(self) -> None: ...
