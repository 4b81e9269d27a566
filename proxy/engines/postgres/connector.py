"""Connections to the real database: to no other that comes to its address, and given up on in time."""

from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proxy.causes import Cause, cause_of
from proxy.engines.engine import EngineAway, EngineTooOld
from proxy.engines.postgres.catalog import read_system_identifier
from proxy.engines.postgres.opening import PREPARE
from rules.catalog import SERVERS

# How soon a line is given up on that drops packets. Keepalives alone would wait for as long as something is on its way.
CONNECTION: dict[str, str | int | None] = {
    "application_name": "noisegate",
    "connect_timeout": 10,
    "tcp_user_timeout": 25_000,  # not before the last keepalive: one that is lost ends no statement
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}

_ANOTHER = Cause("other_database")


class Connector:
    """Makes connections. A database of another identity is as good as none: answers, and the ledger, are of the first.

    `prepares` is whether a connection has a plan of the proofs; behind a pooler it may be lent with that, or without.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = make_conninfo("", **CONNECTION | conninfo_to_dict(dsn) | {"client_encoding": "UTF8"})
        self.system_identifier: str | None = None  # as the catalog has it; None takes any
        self.prepares = True

    async def connect(self) -> AsyncConnection[Any]:
        """Raises EngineAway, or EngineTooOld."""
        try:
            # Of no transaction: its own statements say when one begins.
            connection = await AsyncConnection.connect(self._dsn, autocommit=True, prepare_threshold=None)
            try:
                await self._check(connection)
                await self._prepare(connection)
            except BaseException:
                await connection.close()
                raise
        except (psycopg.Error, OSError) as error:
            cause = cause_of(error)
            words = f"cannot connect to the real database: {cause.advice}\n  {' '.join(str(error).split())}"
            raise EngineAway(words, cause=cause) from None
        return connection

    async def _check(self, connection: AsyncConnection[Any]) -> None:
        if 0 < (version := connection.info.server_version) < SERVERS[0] * 10_000:  # 0 where it is not said
            raise EngineTooOld(
                f"the database is PostgreSQL {written_version(version)}, and must be {SERVERS[0]} or newer"
            )
        known = self.system_identifier
        if known is not None and await read_system_identifier(connection) != known:
            raise EngineAway(_ANOTHER.advice, cause=_ANOTHER)

    async def _prepare(self, connection: AsyncConnection[Any]) -> None:
        if self.prepares:
            try:
                await connection.execute(PREPARE)
            except psycopg.errors.DuplicatePreparedStatement:  # a pooler hands out one that was in use before
                self.prepares = False


def written_version(version: int) -> str:
    """130023 is 13.23, 90624 was 9.6.24."""
    first, second, third = version // 10_000, version // 100 % 100, version % 100
    return f"{first}.{third}" if first >= 10 else f"{first}.{second}.{third}"
