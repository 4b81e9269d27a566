"""The composition root: everything is made here, handed to who needs it, and taken down in the opposite order."""

import asyncio
import signal
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Final

import psycopg

from proxy.engine.engine import EngineError, EngineTooOld
from proxy.engine.postgres import PostgresEngine
from proxy.given import (
    Failed,
    accounts_of,
    check_rules,
    database_of,
    open_ledger,
    read_rules,
    read_tls,
    secret_of,
    tell,
)
from proxy.log import event, warn
from proxy.query.clock import system_clock
from proxy.query.pool import PlannerPool
from proxy.query.rulebook import Rulebook
from proxy.query.service import Service
from proxy.server.house import House
from proxy.server.listener import Listener
from proxy.server.ports import ClientPort, Login, Session
from proxy.server.sessions import Sessions, SessionSettings
from proxy.settings import Settings
from proxy.twin.twin import ClusterError, Limits, Twin, TwinError
from rules.catalog import Catalog
from rules.noise.mechanism import OpenDPNoise
from rules.policy.model import Policy
from rules.refusal import Unavailable

CANNOT: Final = (Failed, EngineError, TwinError, ClusterError, psycopg.Error)
"""Why a change does not come about. None of these quotes a row: the twin has none, and the engine says nothing."""


@dataclass
class Parts:
    """What there is once the real database has been seen."""

    engine: PostgresEngine
    service: Service
    sessions: Sessions
    catalog: Catalog
    twin: Twin


class App:
    """One proxy: rules, twin, ledger and listener. `run` is its whole life."""

    def __init__(self, settings: Settings, *, on_ready: Callable[[], None] | None = None) -> None:
        self.settings = settings
        self.policy = read_rules(settings.rules)
        self._on_ready = on_ready
        self._parts: Parts | None = None
        self._changing = asyncio.Lock()
        self._stop = asyncio.Event()
        tls = read_tls(settings.server)
        self._secret = secret_of(settings.server)
        self._house = House.build(
            settings.server,
            database=database_of(self.policy),
            accounts=accounts_of(self.policy, self._secret),
            tls=tls,
            open_session=self._open_session,
        )
        self.listener = Listener(self._house)

    async def run(self) -> int:
        """Listen at once, serve as soon as the database has been seen, stop when told to."""
        self._take_signals()
        try:
            await self.listener.start()
        except OSError as error:
            raise Failed(f"cannot listen on port {self.settings.server.port}: {error.strerror}") from None
        async with AsyncExitStack() as stack:
            try:
                await self._until_stopped(stack)
            finally:
                await self.listener.stop()
        return 0

    def stop(self) -> None:
        """Let what runs finish, then end."""
        self._stop.set()

    async def reload(self) -> bool:
        """Read rules and certificate again. Whatever is wrong with them keeps the old ones, and is said."""
        async with self._changing:
            try:
                policy = read_rules(self.settings.rules)
                if policy.database != self.policy.database:
                    raise Failed("the rules name another database: that takes a restart")
                accounts, tls = accounts_of(policy, self._secret), read_tls(self.settings.server)
                if self._parts is not None:
                    await self._put_in_force(policy, await self._parts.engine.catalog(), self._parts)
            except CANNOT as error:
                tell(f"{error or 'the database is away'}\nthe old rules stay in force")
                warn("rules_refused", kind=type(error).__name__)
                return False
            self.policy, self._house.accounts, self._house.tls = policy, accounts, tls
            tell("the new rules are in force")
            event("rules_loaded", tables=len(policy.tables), analysts=len(policy.analysts))
            return True

    async def _until_stopped(self, stack: AsyncExitStack) -> None:
        """Serve until `stop` is called, or until something cannot be mended by waiting."""
        work = asyncio.create_task(self._work(stack))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            stopped.cancel()
            work.cancel()
            await asyncio.gather(work, stopped, return_exceptions=True)

    async def _work(self, stack: AsyncExitStack) -> None:
        self._parts = parts = await self._open(stack)
        event("ready", port=self.listener.port)
        if self._on_ready is not None:
            self._on_ready()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(parts.sessions.watch())
            tasks.create_task(self._keep_looking(parts))

    async def _open(self, stack: AsyncExitStack) -> Parts:
        """Make all parts; each is closed when the stack is left."""
        policy, settings = self.policy, self.settings
        engine = PostgresEngine(policy.database)
        stack.push_async_callback(engine.close)
        catalog, risks = await self._first_look(engine)
        for line in (*check_rules(policy, catalog), *(f"warning: {risk}" for risk in risks)):
            tell(str(line))
        ledger = await open_ledger(settings, catalog)
        stack.push_async_callback(ledger.close)
        planner = await PlannerPool.start(size=settings.workers)
        stack.push_async_callback(planner.close)
        await planner.load(policy, catalog)
        rulebook = Rulebook.of(policy, catalog, 0)
        service = Service(rulebook, planner, engine, ledger, noise=OpenDPNoise(), clock=system_clock)
        sessions = Sessions(
            service,
            socket=lambda: parts.twin.socket,
            end_backends=self._end_backends,
            database=catalog.database,
            settings=SessionSettings(),
        )
        parts = Parts(engine, service, sessions, catalog, await self._open_twin(engine, catalog, sessions))
        stack.push_async_callback(_close_twin, parts)
        self._house.database = catalog.database
        return parts

    async def _open_twin(self, engine: PostgresEngine, catalog: Catalog, sessions: Sessions) -> Twin:
        server = self.settings.server
        limits = Limits(sessions=server.max_connections, sessions_per_analyst=server.max_connections_per_analyst)
        try:
            twin = await Twin.open(catalog, self.policy, engine, limits)
        except (ClusterError, TwinError, psycopg.Error) as error:
            raise Failed(f"the twin cannot be made: {error}") from error
        for name, reason in twin.closed_tables.items():
            tell(f"warning: the public table {name} cannot be asked: {reason}")
        signals = {"cancel": sessions.cancel_backend, "terminate": sessions.terminate_backend}
        twin.on_signal = lambda name, process_id: signals[name](process_id)
        return twin

    async def _first_look(self, engine: PostgresEngine) -> tuple[Catalog, list[str]]:
        """The catalog, and what our role may do too much, as soon as the database lets us in."""
        while True:
            try:
                return await engine.catalog(), await engine.risks()
            except EngineTooOld as error:
                raise Failed(str(error)) from None
            except EngineError as error:
                tell(f"{error or 'the catalog cannot be read'}; trying again")
                warn("database_away", retry_seconds=self.settings.retry_seconds)
            await asyncio.sleep(self.settings.retry_seconds)

    async def _keep_looking(self, parts: Parts) -> None:
        """Follow the real database: a changed schema, and the rows of public tables."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(parts.service.schema_changed.wait(), self.settings.look_seconds)
            parts.service.schema_changed.clear()
            async with self._changing:
                try:
                    catalog = await parts.engine.catalog()
                    if catalog == parts.catalog:
                        await parts.twin.refresh_public()
                    else:
                        await self._put_in_force(self.policy, catalog, parts)
                        event("schema_followed", tables=len(catalog.tables))
                except CANNOT as error:
                    tell(f"{error or 'the database is away'}\nthe schema as it was known stays in force")
                    warn("schema_not_followed", kind=type(error).__name__)

    async def _put_in_force(self, policy: Policy, catalog: Catalog, parts: Parts) -> None:
        """Change twin and rules together, or not at all."""
        check_rules(policy, catalog)
        await parts.twin.refresh(catalog, policy)
        await parts.service.load(policy, catalog)
        parts.catalog = catalog

    async def _open_session(self, login: Login, client: ClientPort) -> Session:
        if self._parts is None:
            raise Unavailable("the proxy is starting: the database behind it has not answered yet")
        return await self._parts.sessions.open(login, client)

    async def _end_backends(self, process_ids: Collection[int]) -> None:
        if self._parts is not None:
            await self._parts.twin.end_backends(process_ids)

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        reloads: set[asyncio.Task[bool]] = set()

        def reload() -> None:
            task = loop.create_task(self.reload())
            reloads.add(task)
            task.add_done_callback(reloads.discard)

        loop.add_signal_handler(signal.SIGHUP, reload)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)


async def _close_twin(parts: Parts) -> None:
    """The twin of the end is not always that of the start."""
    await parts.twin.close()
