"""The composition root: everything is made here, handed to who needs it, and taken down in the opposite order."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Final

import psycopg

from proxy.components import (
    Components,
    catalog_for,
    cause_fields,
    check_readable,
    find_differing_zones,
    open_components,
)
from proxy.console.commands import Console
from proxy.console.http import OperatorPort
from proxy.console.session import ConsoleSession
from proxy.console.vitals import Vitals
from proxy.console.web.port import WebConsole
from proxy.engines.engine import EngineError, SchemaChanged, tables_to_read
from proxy.engines.engines import real_database
from proxy.execute.clock import system_clock
from proxy.garbage import look_seldom
from proxy.load_config import (
    ConfigurationError,
    cannot_listen,
    check_engine_settings,
    check_ledger_place,
    check_rules,
    raise_open_files,
    read_rules,
    read_tls,
    secret_of,
    tell,
)
from proxy.load_logins import (
    VerifiersError,
    check_authorities,
    find_oddities,
    follow_file,
    load_accounts,
    read_filed,
    verifiers_path,
)
from proxy.log import event, warn
from proxy.metrics import RELOADS
from proxy.policy_in_force import Freeze, begin_period, with_kept_bounds
from proxy.server.listener import Listener
from proxy.server.server_context import ServerContext
from proxy.session.interfaces import ClientPort, Login, Session
from proxy.settings import Settings
from proxy.synopses.shelf import FOLLOW_SECONDS
from proxy.twin.twin import ClusterError, TwinError
from rules.accounting.store import LedgerError
from rules.catalog import Catalog
from rules.policy.model import Policy
from rules.refusal import Unavailable

CANNOT: Final = (ConfigurationError, EngineError, TwinError, ClusterError, psycopg.Error)
"""Why a change does not come about. None of these quotes a row: the twin has none, and the engine says nothing."""

REST_SECONDS: Final = 2


class App:
    """One proxy: rules, twin, ledger and listener. `run` is its whole life."""

    def __init__(
        self, settings: Settings, *, on_ready: Callable[[], None] | None = None, warns_of_zones: bool = True
    ) -> None:
        self.settings, self._warns_of_zones = settings, warns_of_zones
        self.policy = read_rules(settings.rules, needs_verifiers=True)
        self._on_ready = on_ready
        self._parts: Components | None = None
        self._changing = asyncio.Lock()
        self._stop = asyncio.Event()
        tls = read_tls(settings.server)
        self._secret = secret_of(settings.server)
        accounts = load_accounts(self.policy, settings.rules, self._secret)
        check_authorities(self.policy, settings.server)
        self._context = ServerContext.build(
            settings.server,
            database=real_database(self.policy.database).name,
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
        """Listen at once, serve as soon as the database was seen, stop at a signal."""
        self._take_signals()
        raise_open_files(self.settings.server)
        check_ledger_place(self.settings)
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
        """Answer metrics and health from the start to the end."""
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

    async def reload(self) -> str:
        """Read rules and certificate again. Whatever is wrong with them keeps the old ones; why, for an operator."""
        async with self._changing:
            try:
                policy = read_rules(self.settings.rules, needs_verifiers=True)
                if policy.database != self.policy.database:
                    raise ConfigurationError("the rules name another database, which needs a restart")
                if policy.public_reader != self.policy.public_reader:
                    raise ConfigurationError("the rules name another public_reader, which needs a restart")
                check_authorities(policy, self.settings.server)
                accounts, tls = load_accounts(policy, self.settings.rules, self._secret), read_tls(self.settings.server)
                if self._parts is not None:
                    engine = self._parts.engine
                    catalog = await catalog_for(engine, self.settings)
                    await check_engine_settings(policy, engine)
                    check_readable(await engine.missing_rights(tables_to_read(policy)))
                    zones = await find_differing_zones(engine, policy, catalog, is_told=self._warns_of_zones)
                    freeze = self._parts.freeze.read_again(policy, catalog)
                    await self._put_in_force(policy, catalog, self._parts, freeze)
                    for line in zones:
                        tell(f"warning: {line}")
            except CANNOT as error:
                tell(f"{error or 'the database is away'}\nthe old rules stay in force")
                RELOADS.labels("refused").inc()
                warn("rules_refused", kind=type(error).__name__, **cause_fields(error))
                return _why_not(error)
            self.policy, self._context.accounts, self._context.tls = policy, accounts, tls
            self._context.operators = frozenset(policy.operators)
            if self.web is not None:
                self.web.renew_certificate()
            RELOADS.labels("in_force").inc()
            tell("the new rules are in force")
            event("rules_loaded", tables=len(policy.tables), analysts=len(policy.analysts))
            return ""

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
        await parts.cubes.follow(parts.service.rulebook, makes=False)  # or what they serve would be charged meanwhile
        look_seldom()
        self._context.is_ready = True
        event("ready", port=self.listener.port)
        if self._on_ready is not None:
            self._on_ready()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(parts.sessions.watch())
            tasks.create_task(self._keep_looking(parts))
            tasks.create_task(self._follow_synopses(parts))
            tasks.create_task(parts.ledger.checkpoints.keep(system_clock))
            tasks.create_task(
                follow_file(lambda: verifiers_path(self.policy, self.settings.rules), self.reload_verifiers)
            )

    async def _open(self, stack: AsyncExitStack) -> Components:
        """Open all components, and show them to clients and operators."""
        parts = await open_components(self.settings, self.policy, stack, warns_of_zones=self._warns_of_zones)
        engine, planner, service, sessions, twins = (
            parts.engine,
            parts.planner,
            parts.service,
            parts.sessions,
            parts.twins,
        )
        self._context.database = parts.catalog.database
        self._vitals = Vitals(
            self.listener, sessions, service, engine, planner, twins, parts.ledger, clock=system_clock
        )
        refresh = partial(self._look, parts)
        self._console = Console(
            self._vitals,
            lambda: self.policy,
            lambda: parts.freeze.unseen,
            lambda: parts.freeze.is_locked,
            self.reload,
            refresh,
        )
        return parts

    async def _keep_looking(self, parts: Components) -> None:
        """Follow the real database: a changed schema, and the rows of public tables."""
        await keep_looking(parts.service.schema_changed, partial(self._look, parts), self.settings.look_seconds)

    async def _follow_synopses(self, parts: Components) -> None:
        """Show synopses that were made, here or elsewhere, and make those that are due."""
        while True:
            if self.policy.schemas or parts.shelf.shown:
                await parts.shelf.follow(parts.service.rulebook)
            if self.policy.cubes or not parts.cubes.is_empty:
                await parts.cubes.follow(parts.service.rulebook)
            await asyncio.sleep(FOLLOW_SECONDS)

    async def _look(self, parts: Components) -> bool:
        """Look once; False: the previous schema stays in force, and it is said why."""
        async with self._changing:
            try:
                catalog = await catalog_for(parts.engine, self.settings)
                if catalog == parts.catalog:
                    await parts.twins.refresh_public()
                else:
                    await self._put_in_force(self.policy, catalog, parts, parts.freeze)
                    event("schema_followed", tables=len(catalog.tables))
            except SchemaChanged:  # while rows of public tables were read: what it is now is looked at at once
                parts.service.schema_changed.set()
                warn("schema_not_followed", kind="SchemaChanged")
                return False
            except CANNOT as error:
                tell(f"{error or 'the database is away'}\nthe previous schema stays in force")
                warn("schema_not_followed", kind=type(error).__name__, **cause_fields(error))
                return False
            return True

    async def _put_in_force(self, policy: Policy, catalog: Catalog, parts: Components, freeze: Freeze) -> None:
        """Change twin and rules together, or not at all."""
        freeze = freeze.told(policy, catalog, parts.freeze.unseen)  # before what is hidden keeps the rules from fitting
        shown = await with_kept_bounds(freeze.hide(policy, catalog), catalog, parts.ledger)
        check_rules(shown, catalog)
        if shown.budget != parts.service.rulebook.policy.budget:
            await begin_period(shown, parts.ledger)
        await parts.twins.refresh(catalog, shown)
        await parts.service.load(shown, catalog)
        parts.engine.settings = policy.engine_settings
        parts.catalog = catalog
        parts.freeze = freeze
        parts.cubes.reloaded()
        await parts.shelf.withdraw(shown)

    async def _open_session(self, login: Login, client: ClientPort) -> Session:
        if self._parts is None or self._console is None:
            raise Unavailable("the proxy is starting up: the twin or the real database is not ready")
        if login.user in self._context.operators:
            return ConsoleSession(self._console, login, client)
        return await self._parts.sessions.open(login, client)

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        reloads: set[asyncio.Task[str]] = set()

        def reload() -> None:
            task = loop.create_task(self.reload())
            reloads.add(task)
            task.add_done_callback(reloads.discard)

        loop.add_signal_handler(signal.SIGHUP, reload)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)


async def keep_looking(told: asyncio.Event, look: Callable[[], Awaitable[object]], every_seconds: float) -> None:
    """Look every so many seconds, and at once after a notice; then rest for as long as the look took, or longer.

    While a unique index is not valid, each statement over its table tells of a change. It is refused and costs nothing,
    and must not keep the proxy reading the catalog and copying public tables.
    """
    clock = asyncio.get_running_loop().time
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), every_seconds)
        was_told, began = told.is_set(), clock()
        told.clear()
        await look()
        if was_told:
            await asyncio.sleep(max(REST_SECONDS, clock() - began))


def _why_not(error: Exception) -> str:
    """Why a change did not come about, for an operator's client.

    The words of a database are not among it, nor those of libpq, which may quote a part of a connection string.
    """
    cause = error.__context__
    is_ours = isinstance(error, ConfigurationError) and not isinstance(cause, (LedgerError, *CANNOT))
    if is_ours and (isinstance(cause, VerifiersError) or not isinstance(cause, ValueError)):
        return str(error)
    return "The proxy's standard error says why."
