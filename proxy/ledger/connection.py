"""Connections as the ledger's SQL needs them: the same few words for SQLite and PostgreSQL."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class Cursor(Protocol):
    def fetchone(self) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Parameters are written as `?`. Nothing is committed but by COMMIT."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor: ...

    def close(self) -> None: ...
