"""The twin: an empty PostgreSQL that looks like the real database, in a cluster of its own.

It is made when the proxy starts, follows the real schema and the rules while it lives, and is gone with the proxy.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection

from proxy.log import event, warn
from proxy.twin.changes import empty, find_changes
from proxy.twin.embedded import PORT, Cluster, ClusterError
from proxy.twin.hardening import close_other_databases, drop_temporary_views, harden, server_settings
from proxy.twin.public import Copied, Source, copy_tables
from proxy.twin.roles import change_roles, close_tables, default_settings, misnamed
from proxy.twin.schema import visible
from proxy.twin.sync import apply
from proxy.twin.text import Step, qualified, quoted
from rules.catalog import Catalog, TableName
from rules.policy.model import Policy

RECONNECT_SECONDS = 0.5
END_SECONDS = 5

Signal = Callable[[str, int], None]


class TwinError(Exception):
    """The twin cannot be what the real database and the rules ask for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the machine a twin may take."""

    sessions: int = 500
    sessions_per_analyst: int = 100
    memory_bytes: int = 2**29  # of address space, for each backend
    memory_bytes_per_table: int = 2**17  # more than a backend keeps of a table that its client has asked about
    public_rows: int = 100_000  # of one table; a larger one is not copied
    patience_seconds: float = 30  # so long a session may hold up a change of the schema


class Twin:
    """One running twin. `refresh` changes it in place; sessions stay."""

    def __init__(self, cluster: Cluster, catalog: Catalog, source: Source, limits: Limits) -> None:
        self._cluster = cluster
        self._source = source
        self._limits = limits
        self._channel = f"noisegate_{secrets.token_hex(16)}"
        self._catalog = catalog
        self._shown = empty(catalog)
        self._policy: Policy | None = None
        self._copied: dict[TableName, Copied] = {}
        self._changing = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self.on_signal: Signal | None = None
        """Called with "cancel" or "terminate" and a twin backend's process id, when its own role asked for it."""

    @classmethod
    async def open(
        cls,
        catalog: Catalog,
        policy: Policy,
        source: Source,
        limits: Limits = Limits(),
    ) -> Self:
        """Start a cluster and build the twin of this catalog in it."""
        twin = cls(await _start(catalog, limits), catalog, source, limits)
        try:
            await twin._found(catalog)
            await twin.refresh(catalog, policy)
        except BaseException:
            await twin.close()
            raise
        twin._watch = asyncio.create_task(twin._watch_over())
        return twin

    @property
    def database(self) -> str:
        """Named as the real one: tools write its name before a schema's."""
        return self._shown.database

    @property
    def socket_directory(self) -> Path:
        return self._cluster.directory

    @property
    def port(self) -> int:
        return PORT

    @property
    def socket(self) -> Path:
        """Where analysts' sessions connect, each with its analyst's name as the role."""
        return self._cluster.directory / f".s.PGSQL.{PORT}"

    @property
    def version(self) -> int:
        """16 or 18; see `version_for`."""
        return self._cluster.version

    @property
    def shown(self) -> Catalog:
        """What analysts see."""
        return self._shown

    @property
    def closed_tables(self) -> dict[TableName, str]:
        """Public tables that are not in the twin, and why: statements over them fail with 42501."""
        return {name: copied.reason for name, copied in self._copied.items() if copied.reason}

    def is_running(self) -> bool:
        return self._cluster.is_running()

    def dsn(self, user: str) -> str:
        """For a libpq client on this machine; tests and tools."""
        return self._cluster.dsn(self.database, user)

    async def refresh(self, catalog: Catalog, policy: Policy) -> None:
        """Become the twin of another catalog or policy: all at once, or not at all. Public rows follow."""
        if wrong := misnamed(policy):
            raise TwinError(f"an analyst cannot have the name {', '.join(wrong)}")
        if any(name == "noisegate" for name, _ in catalog.schemas):
            raise TwinError('the real database has a schema "noisegate", which is the name of our own')
        if catalog.database != self.database:
            raise TwinError(f'the real database is "{catalog.database}" now, and was "{self.database}"')
        async with self._changing:
            await self._change(catalog, policy)

    async def refresh_public(self) -> None:
        """Copy public tables whose rows have changed."""
        async with self._changing, await self._connect() as owner:
            await self._copy_public(owner)

    async def end_backends(self, process_ids: Collection[int]) -> None:
        """End sessions whose clients are gone, whatever they run. While the twin itself is gone there are none."""
        with suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(END_SECONDS), await self._connect() as owner:
                await owner.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) AS pid", [list(process_ids)])

    async def close(self) -> None:
        """End the cluster and all sessions on it."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await asyncio.to_thread(self._cluster.stop)

    async def _found(self, catalog: Catalog) -> None:
        """Make the database, and make it safe."""
        async with await self._connect("postgres") as owner:
            cursor = await owner.execute("SELECT system_identifier::text FROM pg_control_system()")
            if (await cursor.fetchall())[0][0] == catalog.system_identifier:
                raise TwinError("the twin would be the real database itself")
            if catalog.database != "postgres":
                if catalog.database in ("template0", "template1"):
                    raise TwinError("the real database is a template; name one with tables")
                await owner.execute(f"CREATE DATABASE {quoted(catalog.database)} TEMPLATE template0")
            for sql in close_other_databases(catalog.database):
                await owner.execute(sql)
        async with await self._connect() as owner:
            await apply(owner, list(harden(catalog.database, self._channel)))

    async def _change(self, catalog: Catalog, policy: Policy) -> None:
        shown = visible(catalog, policy)
        names = {table.name for table in shown.tables}
        change = find_changes(self._shown, shown)
        closed = {name for name in self._copied if name in names and not _is_public(policy, name)}
        emptied = change.touched | closed
        async with await self._connect() as owner:
            leaving = set(self._policy.analysts if self._policy else ()) - set(policy.analysts)
            before = [drop_temporary_views()] if change.steps or leaving else []
            steps = [*before, *change.steps, *self._rights(policy, emptied, closed)]
            await apply(owner, steps, self._limits.patience_seconds)
            self._catalog, self._shown, self._policy = catalog, shown, policy
            self._copied = {name: each for name, each in self._copied.items() if name in names - emptied}
            try:
                await self._copy_public(owner)
            except self._source.failure:  # the change is made; `refresh_public` brings the rows when it can
                warn("public_rows_missing", tables=sum(_is_public(policy, name) for name in names))

    def _rights(self, policy: Policy, touched: frozenset[TableName], closed: set[TableName]) -> list[Step]:
        """Rights of changed tables and of analysts; rows of a table that is public no more go at once."""
        known = self._policy.analysts if self._policy else ()
        settings = default_settings(policy, self.database)
        before = default_settings(self._policy, self.database) if self._policy else {}
        return [
            *close_tables(touched),
            *(Step(f"DELETE FROM {qualified(name)}") for name in sorted(closed)),
            *change_roles(known, policy.analysts, self._limits.sessions_per_analyst),
            *(step for name, step in settings.items() if before.get(name) != step),
        ]

    async def _copy_public(self, owner: AsyncConnection[Any]) -> None:
        assert self._policy is not None
        tables = [table for table in self._shown.tables if _is_public(self._policy, table.name)]
        self._copied = await copy_tables(owner, self._source, tables, self._copied, self._limits.public_rows)

    async def _connect(self, database: str | None = None) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(
            self._cluster.dsn(database or self.database), autocommit=True, application_name="noisegate"
        )

    async def _watch_over(self) -> None:
        """Hear of sessions that cancel one another, and begin again when the server has died."""
        while True:
            try:
                if not self._cluster.is_running():
                    await self._begin_again()
                async with await self._connect() as owner:
                    await owner.execute(f"LISTEN {quoted(self._channel)}")
                    async for notification in owner.notifies():
                        self._tell(notification.payload)
            except Exception as error:  # noqa: BLE001 - whatever it was: who does not watch brings no twin back
                warn("twin_lost", kind=type(error).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _begin_again(self) -> None:
        """A new twin in place of one that is gone: another directory, and no sessions."""
        async with self._changing:
            assert self._policy is not None
            policy, self._policy = self._policy, None
            try:
                await asyncio.to_thread(self._cluster.stop)
                self._cluster = await _start(self._catalog, self._limits)
                self._shown, self._copied = empty(self._catalog), {}
                await self._found(self._catalog)
                await self._change(self._catalog, policy)
                event("twin_made")
            except BaseException:
                self._policy = policy
                await asyncio.to_thread(self._cluster.stop)
                raise

    def _tell(self, payload: str) -> None:
        signal, _, process = payload.partition(" ")
        if self.on_signal is not None and process.isdigit():
            self.on_signal(signal, int(process))


def version_for(server_version: int) -> int:
    """The wheel's PostgreSQL that stands for this one: never an older one, which could not show its schema."""
    return 16 if server_version < 170000 else 18


async def _start(catalog: Catalog, limits: Limits) -> Cluster:
    """A server as like the real one as there is: tools ask for its version."""
    starting = asyncio.create_task(
        asyncio.to_thread(
            Cluster.start,
            version=version_for(catalog.version),
            settings=server_settings(limits.sessions),
            memory_limit_bytes=limits.memory_bytes + limits.memory_bytes_per_table * len(catalog.tables),
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:  # a thread cannot be cancelled, and what it starts must not be left behind
        cluster = await starting
        await asyncio.to_thread(cluster.stop)
        raise


def _is_public(policy: Policy, name: TableName) -> bool:
    rules = policy.find_table(name)
    return rules is not None and rules.public


__all__ = ["ClusterError", "Twin", "TwinError"]
