"""The composition root: everything is made here, handed to who needs it, and taken down in the opposite order."""

import asyncio
import signal
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import psycopg

from proxy.causes import cause_of
from proxy.console.commands import Console
from proxy.console.http import OperatorPort
from proxy.console.session import ConsoleSession
from proxy.console.vitals import Vitals
from proxy.console.web.open import WebConsole
from proxy.engines.engine import EngineError, EngineTooOld, SchemaChanged
from proxy.engines.postgres.privileges import tables_to_read
from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.clock import system_clock
from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Service
from proxy.execute.time_zones import find_differing
from proxy.execute.worker_pool import PlannerPool
from proxy.freeze import Freeze
from proxy.kept_bounds import with_kept_bounds
from proxy.ledger.ledger import Ledger
from proxy.load_config import (
    ConfigurationError,
    cannot_listen,
    check_engine_settings,
    check_rules,
    database_of,
    ledger_identity,
    open_ledger,
    raise_open_files,
    read_rules,
    read_tls,
    secret_of,
    tell,
)
from proxy.load_logins import (
    check_authorities,
    find_oddities,
    follow_file,
    load_accounts,
    read_filed,
    verifiers_path,
)
from proxy.log import event, warn
from proxy.metrics import RELOADS
from proxy.server.listener import Listener
from proxy.server.server_context import ServerContext
from proxy.server.verifiers_file import VerifiersError
from proxy.session.interfaces import ClientPort, Login, Session
from proxy.session.sessions import Sessions
from proxy.settings import Settings
from proxy.synopses.make import Maker
from proxy.synopses.shelf import FOLLOW_SECONDS, Shelf
from proxy.twin.twin import ClusterError, TwinError, TwinLimits
from proxy.twin.twins import Twins
from rules.catalog import Catalog, TableName
from rules.mechanisms.draw import OpenDPNoise
from rules.policy.finding import Severity
from rules.policy.model import Policy
from rules.refusal import Unavailable

CANNOT: Final = (ConfigurationError, EngineError, TwinError, ClusterError, psycopg.Error)
"""Why a change does not come about. None of these quotes a row: the twin has none, and the engine says nothing."""


@dataclass
class Components:
    """What there is once the real database has been seen."""

    engine: PostgresEngine
    service: Service
    sessions: Sessions
    catalog: Catalog
    twins: Twins
    shelf: Shelf
    ledger: Ledger


class App:
    """One proxy: rules, twin, ledger and listener. `run` is its whole life."""

    def __init__(
        self, settings: Settings, *, on_ready: Callable[[], None] | None = None, warns_of_zones: bool = True
    ) -> None:
        self.settings, self._warns_of_zones = settings, warns_of_zones
        self.policy = read_rules(settings.rules)
        self._on_ready = on_ready
        self._parts: Components | None = None
        self._changing = asyncio.Lock()
        self._freeze = Freeze(settings.rules)
        self._stop = asyncio.Event()
        tls = read_tls(settings.server)
        self._secret = secret_of(settings.server)
        accounts = load_accounts(self.policy, settings.rules, self._secret)
        check_authorities(self.policy, settings.server)
        self._context = ServerContext.build(
            settings.server,
            database=database_of(self.policy),
            accounts=accounts,
            tls=tls,
            open_session=self._open_session,
        )
        for line in find_oddities(self.policy, settings.rules, accounts):
            tell(f"warning: {line}")
        self._context.is_ready, self._context.operators = False, frozenset(self.policy.operators)
        self._console: Console | None = None
        self.listener = Listener(self._context)
        self._vitals: Vitals | None = None
        port = settings.operator.port
        self.operator = None if port is None else OperatorPort(settings.operator.host, port, lambda: self._vitals)
        self.web = None if settings.web.port is None else WebConsole(settings, self._context, lambda: self._console)

    async def run(self) -> int:
        """Listen at once, serve as soon as the database has been seen, stop when told to."""
        self._take_signals()
        raise_open_files(self.settings.server)
        try:
            await self.listener.start()
        except OSError as error:
            raise cannot_listen(self.settings.server.port, error) from None
        async with AsyncExitStack() as stack:
            await self._open_operator_port(stack)
            await self._open_web_console(stack)
            try:
                await self._until_stopped(stack)
            finally:
                await self.listener.stop()
        return 0

    async def _open_operator_port(self, stack: AsyncExitStack) -> None:
        """Metrics and health are told from the start to the end."""
        if self.operator is None:
            return
        try:
            await self.operator.start()
        except OSError as error:
            await self.listener.stop()
            raise cannot_listen(self.operator.port, error, " for metrics") from None
        stack.push_async_callback(self.operator.stop)

    async def _open_web_console(self, stack: AsyncExitStack) -> None:
        if self.web is None:
            return
        try:
            await self.web.port.start()
        except OSError as error:
            await self.listener.stop()
            raise cannot_listen(self.web.port.port, error, " for the console") from None
        stack.push_async_callback(self.web.port.stop)

    def stop(self) -> None:
        """Let what runs finish, then end."""
        self._stop.set()

    async def reload(self) -> bool:
        """Read rules and certificate again. Whatever is wrong with them keeps the old ones, and is said."""
        async with self._changing:
            try:
                policy = read_rules(self.settings.rules)
                if policy.database != self.policy.database:
                    raise ConfigurationError("the rules name another database: that takes a restart")
                check_authorities(policy, self.settings.server)
                accounts, tls = load_accounts(policy, self.settings.rules, self._secret), read_tls(self.settings.server)
                if self._parts is not None:
                    engine, catalog = self._parts.engine, await self._parts.engine.catalog()
                    await check_engine_settings(policy, engine)
                    _check_readable(await engine.missing_rights(tables_to_read(policy)))
                    zones = await self._differing_zones(engine, policy, catalog)
                    freeze = self._freeze.read_again(policy, catalog)
                    await self._put_in_force(policy, catalog, self._parts, freeze)
                    for line in zones:
                        tell(f"warning: {line}")
            except CANNOT as error:
                tell(f"{error or 'the database is away'}\nthe old rules stay in force")
                RELOADS.labels("refused").inc()
                warn("rules_refused", kind=type(error).__name__, **_cause(error))
                return False
            self.policy, self._context.accounts, self._context.tls = policy, accounts, tls
            self._context.operators = frozenset(policy.operators)
            if self.web is not None:
                self.web.renew_certificate()
            RELOADS.labels("in_force").inc()
            tell("the new rules are in force")
            event("rules_loaded", tables=len(policy.tables), analysts=len(policy.analysts))
            return True

    async def reload_verifiers(self) -> None:
        """Read the file of verifiers again, by itself. With a mistake in it the old ones stay in force."""
        async with self._changing:
            try:
                accounts = load_accounts(self.policy, self.settings.rules, self._secret)
                oddities = find_oddities(self.policy, self.settings.rules, accounts)
                names = len(read_filed(self.policy, self.settings.rules))
            except ConfigurationError as error:
                tell(f"{error}\nthe old passwords stay in force")
                cause = error.__cause__
                warn("verifiers_refused", **({"line": cause.line} if isinstance(cause, VerifiersError) else {}))
                return
            self._context.accounts = accounts
            for line in oddities:
                tell(f"warning: {line}")
            event("verifiers_loaded", names=names)

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
        self._context.is_ready = True
        event("ready", port=self.listener.port)
        if self._on_ready is not None:
            self._on_ready()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(parts.sessions.watch())
            tasks.create_task(self._keep_looking(parts))
            tasks.create_task(self._follow_synopses(parts))
            tasks.create_task(
                follow_file(lambda: verifiers_path(self.policy, self.settings.rules), self.reload_verifiers)
            )

    async def _open(self, stack: AsyncExitStack) -> Components:
        """Make all parts; each is closed when the stack is left."""
        settings, load = self.settings, self.settings.load
        engine = PostgresEngine(
            self.policy.database, connections=load.running, most_cost=load.cost, settings=self.policy.engine_settings
        )
        stack.push_async_callback(engine.close)
        catalog, risks = await self._first_look(engine)
        self._freeze = self._freeze.read_again(self.policy, catalog).told(self.policy, catalog, ())
        policy = self._freeze.hide(self.policy, catalog)
        warnings = (finding for finding in check_rules(policy, catalog) if finding.severity is not Severity.NOTE)
        for line in (*warnings, *(f"warning: {risk}" for risk in risks)):  # notes are what `noisegate check` is for
            tell(str(line))
        ledger = await open_ledger(settings, ledger_identity(catalog))
        stack.push_async_callback(ledger.close)
        policy = await with_kept_bounds(policy, catalog, ledger)
        planner = await PlannerPool.start(size=settings.workers)
        stack.push_async_callback(planner.close)
        await planner.load(policy, catalog)
        rulebook = Rulebook.of(policy, catalog, 0)
        service = Service(rulebook, planner, engine, ledger, noise=OpenDPNoise(), clock=system_clock, load=load)
        sessions = Sessions(
            service,
            socket=self._socket,
            end_backends=self._end_backends,
            reset_roles=self._reset_roles,
            database=catalog.database,
            settings=settings.sessions,
        )
        twins = await self._open_twins(engine, catalog, policy, sessions)
        stack.push_async_callback(twins.close)
        shelf = Shelf(Maker(engine, ledger, OpenDPNoise(), system_clock), twins, service.synopses.tell)
        parts = Components(engine, service, sessions, catalog, twins, shelf, ledger)
        self._context.database = catalog.database
        self._vitals = Vitals(self.listener, sessions, service, engine, planner, twins, ledger, clock=system_clock)
        refresh = partial(self._look, parts)
        self._console = Console(self._vitals, lambda: self.policy, lambda: self._freeze.unseen, self.reload, refresh)
        return parts

    async def _open_twins(
        self, engine: PostgresEngine, catalog: Catalog, policy: Policy, sessions: Sessions
    ) -> Twins:  # fmt: skip
        server = self.settings.server
        limits = TwinLimits(
            sessions=server.max_connections,
            sessions_per_analyst=server.max_connections_per_analyst,
            public_rows=self.settings.max_public_rows,
        )
        try:
            apart = self.settings.twins == "per-analyst"
            binaries = self.settings.twin_binaries
            twins = await Twins.open(catalog, policy, engine, limits, apart=apart, binaries=binaries)
        except (ClusterError, TwinError, psycopg.Error) as error:
            raise ConfigurationError(f"the twin cannot be made: {error}") from error
        for name, reason in twins.closed_tables.items():
            tell(f"warning: the public table {name} cannot be asked: {reason}")
        signals = {"cancel": sessions.cancel_backend, "terminate": sessions.terminate_backend}
        sessions.closed_tables = lambda: {table.name: reason for table, reason in twins.closed_tables.items()}
        twins.hear(lambda name, process_id: signals[name](process_id))
        return twins

    async def _first_look(self, engine: PostgresEngine) -> tuple[Catalog, list[str]]:
        """The catalog, and what our role may do too much or zones differ in, as soon as the database lets us in."""
        while True:
            try:
                catalog, named = await engine.catalog(), tables_to_read(self.policy)
                await check_engine_settings(self.policy, engine)
                _check_readable(await engine.missing_rights(named))
                risks = await engine.risks(named)
                return catalog, risks + await self._differing_zones(engine, self.policy, catalog)
            except EngineTooOld as error:
                raise ConfigurationError(str(error)) from None
            except EngineError as error:
                tell(f"{error or 'the catalog cannot be read'}; trying again")
                warn("database_away", retry_seconds=self.settings.retry_seconds, **_cause(error))
            await asyncio.sleep(self.settings.retry_seconds)

    async def _differing_zones(self, engine: PostgresEngine, policy: Policy, catalog: Catalog) -> list[str]:
        """The demo does not tell of them: nobody there can install other tables of zones."""
        return await find_differing(engine, policy, catalog, system_clock()) if self._warns_of_zones else []

    async def _keep_looking(self, parts: Components) -> None:
        """Follow the real database: a changed schema, and the rows of public tables."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(parts.service.schema_changed.wait(), self.settings.look_seconds)
            parts.service.schema_changed.clear()
            await self._look(parts)

    async def _follow_synopses(self, parts: Components) -> None:
        """Show synopses that were made, here or elsewhere, and make those that are due."""
        while True:
            if self.policy.synopses or parts.shelf.shown:
                await parts.shelf.follow(parts.service.rulebook)
            await asyncio.sleep(FOLLOW_SECONDS)

    async def _look(self, parts: Components) -> bool:
        """Look once; False: the schema as it was known stays in force, and it is said why."""
        async with self._changing:
            try:
                catalog = await parts.engine.catalog()
                if catalog == parts.catalog:
                    await parts.twins.refresh_public()
                else:
                    await self._put_in_force(self.policy, catalog, parts, self._freeze)
                    event("schema_followed", tables=len(catalog.tables))
            except SchemaChanged:  # while rows of public tables were read: what it is now is looked at at once
                parts.service.schema_changed.set()
                warn("schema_not_followed", kind="SchemaChanged")
                return False
            except CANNOT as error:
                tell(f"{error or 'the database is away'}\nthe schema as it was known stays in force")
                warn("schema_not_followed", kind=type(error).__name__, **_cause(error))
                return False
            return True

    async def _put_in_force(self, policy: Policy, catalog: Catalog, parts: Components, freeze: Freeze) -> None:
        """Change twin and rules together, or not at all."""
        shown = await with_kept_bounds(freeze.hide(policy, catalog), catalog, parts.ledger)
        check_rules(shown, catalog)
        await parts.twins.refresh(catalog, shown)
        await parts.service.load(shown, catalog)
        parts.engine.settings = policy.engine_settings
        parts.catalog = catalog
        self._freeze = freeze.told(policy, catalog, self._freeze.unseen)
        await parts.shelf.withdraw(policy)

    async def _open_session(self, login: Login, client: ClientPort) -> Session:
        if self._parts is None or self._console is None:
            raise Unavailable("the proxy is starting up: the twin or the real database is not ready")
        if login.user in self._context.operators:
            return ConsoleSession(self._console, login, client)
        return await self._parts.sessions.open(login, client)

    def _socket(self, analyst: str) -> Path:
        if self._parts is None:
            raise FileNotFoundError
        return self._parts.twins.socket(analyst)

    async def _end_backends(self, process_ids: Collection[int]) -> None:
        if self._parts is not None:
            await self._parts.twins.end_backends(process_ids)

    async def _reset_roles(self, analyst: str) -> bool:
        return self._parts is not None and await self._parts.twins.reset_roles(analyst)

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


def _check_readable(missing: Mapping[TableName, str]) -> None:
    """Each statement over such a table would be told that the database is away."""
    if missing:
        lines = [f"{name}: {grant}" for name, grant in missing.items()]
        raise ConfigurationError("\n".join(["our role may not read all tables of the rules", *lines]))


def _cause(error: Exception) -> dict[str, str]:
    """What the log says of why something did not come about; our own objections stand at the terminal in full."""
    if isinstance(error, EngineError):
        return error.cause.fields
    return cause_of(error).fields if isinstance(error, psycopg.Error) else {}
