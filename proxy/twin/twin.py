"""The twin: an empty PostgreSQL that looks like the real database, in a cluster of its own.

It is made when the proxy starts, follows the real schema and the rules while it lives, and is gone with the proxy.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection

from proxy.log import event, warn
from proxy.metrics import TWINS_MADE
from proxy.twin.changes import empty, find_changes
from proxy.twin.ddl import empty_table
from proxy.twin.embedded import PORT, Cluster, ClusterError
from proxy.twin.hardening import close_other_databases, drop_temporary_views, harden, server_settings
from proxy.twin.public import Copied, RowSource, copy_tables
from proxy.twin.roles import change_roles, close_tables, default_settings, misnamed
from proxy.twin.schema import visible
from proxy.twin.server_programs import ServerPrograms, create_options
from proxy.twin.steps import ChangeTurns, Step, apply, quoted
from proxy.twin.synthetic import SyntheticSchema, drop_synthetic, show_synthetic
from rules.catalog import Catalog, Table, TableName
from rules.policy.model import Policy

RECONNECT_SECONDS = 0.5
END_SECONDS = 5
LOOKS_FOR_SIZE = 10  # one look at the files for so many at the processes

Signal = Callable[[str, int], None]


class TwinError(Exception):
    """The twin cannot be what the real database and the rules ask for."""


@dataclass(frozen=True, slots=True)
class TwinLimits:
    """The most of the machine that a twin may take."""

    sessions: int = 500
    sessions_per_analyst: int = 100
    memory_bytes: int = 2**29  # of address space, for each backend
    memory_bytes_per_table: int = 2**17  # more than a backend keeps of a table that its client has asked about
    disk_bytes: int = 4 * 2**30  # of all its databases; a twin that has grown larger is made anew
    public_rows: int = 100_000  # of one table; a larger one is not copied
    patience_seconds: float = 30  # so long a session may hold up a change of the schema


class Twin:
    """One running twin. `refresh` changes it in place; sessions stay."""

    def __init__(
        self, cluster: Cluster, catalog: Catalog, source: RowSource, limits: TwinLimits, binaries: Path | None
    ) -> None:
        self._cluster = cluster
        self._source = source
        self._limits = limits
        self._binaries = binaries
        self._channel = f"noisegate_{secrets.token_hex(16)}"
        self._catalog = catalog
        self._shown = empty(catalog)
        self._policy: Policy | None = None
        self._copied: dict[TableName, Copied] = {}
        self._synthetic: dict[str, SyntheticSchema] = {}
        self.changes = ChangeTurns()
        self._watch: asyncio.Task[None] | None = None
        self.on_signal: Signal | None = None
        """Called with "cancel" or "terminate" and a twin backend's process id, when its own role asked for it."""

    @classmethod
    async def open(
        cls,
        catalog: Catalog,
        policy: Policy,
        source: RowSource,
        limits: TwinLimits = TwinLimits(),
        binaries: Path | None = None,
    ) -> Self:
        """Start a cluster and build the twin of this catalog in it; `binaries` are the machine's, not the wheel's."""
        twin = cls(await _start(catalog, limits, binaries), catalog, source, limits, binaries)
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
    def port(self) -> int:
        return PORT

    @property
    def socket(self) -> Path:
        """Return where analysts' sessions connect, each with its analyst's name as the role."""
        return self._cluster.directory / f".s.PGSQL.{PORT}"

    @property
    def version(self) -> int:
        """The major version of its server."""
        return self._cluster.version

    @property
    def shown(self) -> Catalog:
        """Return what analysts see."""
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

    @property
    def owner_dsn(self) -> str:
        """Return how its owner, who may do everything there, reaches the database."""
        return self._cluster.dsn(self.database)

    async def refresh(self, catalog: Catalog, policy: Policy) -> None:
        """Become the twin of another catalog or policy: all at once, or not at all. Public rows follow."""
        if wrong := misnamed(policy):
            raise TwinError(f"an analyst cannot have the name {', '.join(wrong)}")
        if any(name == "noisegate" for name, _ in catalog.schemas):
            raise TwinError('the real database has a schema "noisegate", which conflicts with the schema of the proxy')
        if catalog.database != self.database:
            raise TwinError(f'the real database changed from "{self.database}" to "{catalog.database}"')
        async with self.changes:
            await self._change(catalog, policy)

    async def refresh_public(self) -> None:
        """Copy public tables whose rows have changed."""
        async with self.changes, await self._connect() as owner:
            await self._copy_public(owner)

    async def show_synopsis(self, schema: SyntheticSchema) -> None:
        """Put a schema of synthetic rows, or its newer rows, in force."""
        async with self.changes, await self._connect() as owner:
            await self._show(owner, schema, self._synthetic.get(schema.name))

    async def drop_synopsis(self, name: str) -> None:
        """Remove a schema of synthetic rows."""
        async with self.changes, await self._connect() as owner:
            await apply(owner, list(drop_synthetic(name)), self._limits.patience_seconds)
            self._synthetic.pop(name, None)

    async def _show(self, owner: AsyncConnection[Any], schema: SyntheticSchema, before: SyntheticSchema | None) -> None:
        shown_before = None if before is None else self._with_roles(before)
        await show_synthetic(owner, self._with_roles(schema), shown_before, self._limits.patience_seconds)
        self._synthetic[schema.name] = schema

    def _with_roles(self, schema: SyntheticSchema) -> SyntheticSchema:
        """The schema, of its readers those who are roles now."""
        known = () if self._policy is None else self._policy.analysts
        return replace(schema, readers=tuple(name for name in schema.readers if name in known))

    async def end_backends(self, process_ids: Collection[int]) -> None:
        """End sessions whose clients are gone, whatever they run. While the twin itself is gone there are none."""
        with suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(END_SECONDS), await self._connect() as owner:
                await owner.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) AS pid", [list(process_ids)])

    async def reset_roles(self) -> bool:
        """Take back what analysts have set for sessions to come, which PostgreSQL lets each role do to itself.

        Returns whether there was anything.
        """
        try:
            async with asyncio.timeout(END_SECONDS), await self._connect() as owner:
                cursor = await owner.execute("DELETE FROM pg_catalog.pg_db_role_setting WHERE setrole <> 0")
                return cursor.rowcount > 0
        except (psycopg.Error, TimeoutError):
            return False

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
                raise TwinError("the twin must not be the real database")
            if catalog.database != "postgres":
                if catalog.database in ("template0", "template1"):
                    raise TwinError("the real database is a template database")
                options = create_options(catalog.locale, self.version)
                await owner.execute(f"CREATE DATABASE {quoted(catalog.database)} TEMPLATE template0{options}")
            for sql in close_other_databases(catalog.database):
                await owner.execute(sql)
        async with await self._connect() as owner:
            await apply(owner, list(harden(catalog.database, self._channel)))

    async def _change(self, catalog: Catalog, policy: Policy) -> None:
        shown = visible(catalog, policy)
        names = {table.name for table in shown.tables}
        change = find_changes(self._shown, shown)
        closed = {table for table in shown.tables if table.name in self._copied and not _is_public(policy, table.name)}
        emptied = change.touched | {table.name for table in closed}
        async with await self._connect() as owner:
            leaving = set(self._policy.analysts if self._policy else ()) - set(policy.analysts)
            before = [drop_temporary_views()] if change.steps or leaving else []
            if change.steps:  # their tables rest on types that may change
                before += [step for name in self._synthetic for step in drop_synthetic(name)]
            steps = [*before, *change.steps, *self._rights(policy, emptied, closed)]
            await apply(owner, steps, self._limits.patience_seconds)
            self._catalog, self._shown, self._policy = catalog, shown, policy
            self._copied = {name: copied for name, copied in self._copied.items() if name in names - emptied}
            for schema in self._synthetic.values() if change.steps else ():
                await self._show(owner, schema, None)
            try:
                await self._copy_public(owner)
            except self._source.failure:  # the change is made; `refresh_public` brings the rows when it can
                warn("public_rows_missing", tables=sum(_is_public(policy, name) for name in names))

    def _rights(self, policy: Policy, touched: frozenset[TableName], closed: set[Table]) -> list[Step]:
        """Rights of changed tables and of analysts; rows of a table that is public no more go at once."""
        known = self._policy.analysts if self._policy else ()
        settings = default_settings(policy, self.database)
        before = default_settings(self._policy, self.database) if self._policy else {}
        return [
            *close_tables(touched),
            *(step for one in sorted(closed, key=lambda table: table.name) for step in empty_table(one)),
            *change_roles(known, policy.analysts, self._limits.sessions_per_analyst),
            *(step for name, step in settings.items() if before.get(name) != step),
        ]

    async def _copy_public(self, owner: AsyncConnection[Any]) -> None:
        """Copy public tables; synthetic rows that refer to changed ones refer to what is there now."""
        assert self._policy is not None and self._catalog is not None
        tables = [table for table in self._shown.tables if _is_public(self._policy, table.name)]
        before = self._copied
        self._copied = await copy_tables(owner, self._source, self._catalog, tables, before, self._limits.public_rows)
        changed = {name for name, copied in self._copied.items() if before.get(name) != copied}
        for schema in self._synthetic.values():
            if schema.targets & changed:
                await self._show(owner, schema, schema)

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
                    looks = 0
                    while self._cluster.is_running():
                        if looks % LOOKS_FOR_SIZE == 0:
                            await self._check_size(owner)
                        looks += 1
                        async for notification in owner.notifies(timeout=RECONNECT_SECONDS):
                            self._tell(notification.payload)
            except Exception as error:  # noqa: BLE001 - whatever it was: who does not watch brings no twin back
                warn("twin_lost", kind=type(error).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _check_size(self, owner: AsyncConnection[Any]) -> None:
        """Stop a server whose files have grown by whatever its sessions do: another takes its place."""
        cursor = await owner.execute("SELECT sum(pg_database_size(oid)) FROM pg_database")
        ((size,),) = await cursor.fetchall()
        if size > self._limits.disk_bytes:
            warn("twin_too_large", megabytes=int(size) // 2**20)
            await asyncio.to_thread(self._cluster.stop)

    async def _begin_again(self) -> None:
        """A new twin in place of one that is gone: another directory, and no sessions."""
        async with self.changes:
            assert self._policy is not None
            policy, self._policy = self._policy, None
            try:
                await asyncio.to_thread(self._cluster.stop)
                self._cluster = await _start(self._catalog, self._limits, self._binaries)
                self._shown, self._copied = empty(self._catalog), {}
                await self._found(self._catalog)
                await self._change(self._catalog, policy)
                TWINS_MADE.inc()
                event("twin_made")
            except BaseException:
                self._policy = policy
                await asyncio.to_thread(self._cluster.stop)
                raise

    def _tell(self, payload: str) -> None:
        signal, _, process = payload.partition(" ")
        if self.on_signal is not None and process.isdigit():
            self.on_signal(signal, int(process))


async def _start(catalog: Catalog, limits: TwinLimits, binaries: Path | None) -> Cluster:
    """A server as like the real one as there is: tools ask for its version."""
    programs = (
        await asyncio.to_thread(ServerPrograms.of_wheel, catalog.version)
        if binaries is None
        else await asyncio.to_thread(ServerPrograms.of_machine, binaries, catalog.version)
    )
    starting = asyncio.create_task(
        asyncio.to_thread(
            Cluster.start,
            version=programs.version,
            binaries=programs.directory,
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
