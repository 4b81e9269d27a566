"""Components of a running proxy: opened one after the other, each with those that it needs, and closed in reverse."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta

import psycopg

from proxy.causes import cause_of
from proxy.engines.engine import Engine, EngineError, EngineTooOld, WatchedEngine, tables_to_read
from proxy.engines.engines import real_database
from proxy.execute.clock import clock_warning, find_ahead, find_differing, is_far_ahead, system_clock
from proxy.execute.public_rows import PublicRows
from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Service
from proxy.execute.worker_pool import PlannerPool
from proxy.ledger.ledger import Ledger
from proxy.load_config import (
    ConfigurationError,
    check_engine_settings,
    check_rules,
    ledger_identity,
    open_ledger,
    tell,
)
from proxy.log import event, warn
from proxy.policy_in_force import Freeze, begin_period, with_kept_bounds
from proxy.process_wall import WITHOUT_SECCOMP
from proxy.session.sessions import Sessions
from proxy.settings import Settings
from proxy.synopses.cubes import CubeMaker, CubeShelf
from proxy.synopses.make import Maker
from proxy.synopses.shelf import Shelf
from proxy.twin.server_programs import sorted_as_twin
from proxy.twin.twin import ClusterError, TwinError, TwinLimits
from proxy.twin.twins import Twins
from rules.catalog import Catalog, TableName
from rules.mechanisms.draw import OpenDPNoise
from rules.policy.finding import Severity, in_lines
from rules.policy.model import Policy


@dataclass
class Components:
    """All that is made once the real database has been seen. Catalog and frozen schema change as the schema does."""

    engine: WatchedEngine
    planner: PlannerPool
    service: Service
    sessions: Sessions
    catalog: Catalog
    twins: Twins
    shelf: Shelf
    cubes: CubeShelf
    ledger: Ledger
    freeze: Freeze


async def open_components(
    settings: Settings, policy: Policy, stack: AsyncExitStack, *, warns_of_zones: bool
) -> Components:
    """Open all components as soon as the database lets us in; each is closed when the stack is left."""
    load = settings.load
    engine = real_database(policy.database).open_engine(
        connections=load.running, most_cost=load.cost, settings=policy.engine_settings
    )
    stack.push_async_callback(engine.close)
    catalog, risks = await _look_first(engine, policy, settings, warns_of_zones=warns_of_zones)
    await engine.bind(catalog.system_identifier)  # what is answered, and charged, is of this one
    freeze = Freeze(settings.rules).read_again(policy, catalog).told(policy, catalog, ())
    policy = freeze.hide(policy, catalog)
    warnings = (line for _, line in in_lines(check_rules(policy, catalog), Severity.WARNING))
    for line in (*warnings, *(f"warning: {risk}" for risk in risks)):  # notes are what `noisegate check` is for
        tell(line)
    ledger = await open_ledger(settings, ledger_identity(catalog))
    stack.push_async_callback(ledger.close)
    policy = await with_kept_bounds(policy, catalog, ledger)
    await begin_period(policy, ledger)
    planner = await PlannerPool.start(size=settings.workers)
    stack.push_async_callback(planner.close)
    event("planner_started", **asdict(planner.wall))
    if not planner.wall.seccomp:
        tell(f"warning: {WITHOUT_SECCOMP}")
    await planner.load(policy, catalog)
    rulebook = Rulebook.of(policy, catalog, 0)
    service = Service(rulebook, planner, engine, ledger, noise=OpenDPNoise(), clock=system_clock, load=load)
    twins = await _open_twins(settings, engine, catalog, policy)
    stack.push_async_callback(twins.close)
    service.public = await _public_rows(policy, load.cost, twins, service, stack)
    sessions = _sessions(settings, service, twins, catalog.database)
    shelf = Shelf(Maker(engine, ledger, OpenDPNoise(), system_clock), twins, service.synopses.tell)
    cubes = CubeShelf(CubeMaker(engine, ledger, OpenDPNoise(), system_clock), twins, service.cubes.tell)
    return Components(engine, planner, service, sessions, catalog, twins, shelf, cubes, ledger, freeze)


async def catalog_for(engine: Engine, settings: Settings) -> Catalog:
    """The catalog of the database, with what the planner has to know of its twin."""
    return sorted_as_twin(await engine.catalog(), settings.twin_binaries)


async def find_differing_zones(engine: Engine, policy: Policy, catalog: Catalog, *, is_told: bool) -> list[str]:
    """Name the time zones that differ. The demo does not tell: nobody there can install other tables of zones."""
    return await find_differing(engine, policy, catalog, system_clock()) if is_told else []


def check_clock(ahead: timedelta) -> list[str]:
    """What is charged in a period to come would be the latest: no budget is renewed before that has ended."""
    lines = clock_warning(ahead)
    if is_far_ahead(ahead):
        raise ConfigurationError(f"{lines[0]}; set the clock that is wrong, or budgets may not be renewed for as long")
    return lines


def check_readable(missing: Mapping[TableName, str]) -> None:
    """Each statement over this table would fail as if the database were unavailable."""
    if missing:
        lines = [f"{name}: {grant}" for name, grant in missing.items()]
        raise ConfigurationError("\n".join(["the proxy's role cannot read all tables of the rules", *lines]))


def cause_fields(error: Exception) -> dict[str, str]:
    """Return what the log says of a failure; our own objections stand at the terminal in full."""
    if isinstance(error, EngineError):
        return error.cause.fields
    return cause_of(error).fields if isinstance(error, psycopg.Error) else {}


async def _look_first(
    engine: WatchedEngine, policy: Policy, settings: Settings, *, warns_of_zones: bool
) -> tuple[Catalog, list[str]]:
    """The catalog, and what our role may do too much or zones differ in, as soon as the database lets us in."""
    while True:
        try:
            catalog, named = await catalog_for(engine, settings), tables_to_read(policy)
            await check_engine_settings(policy, engine)
            check_readable(await engine.missing_rights(named))
            risks = await engine.risks(named) + check_clock(await find_ahead(engine))
            return catalog, risks + await find_differing_zones(engine, policy, catalog, is_told=warns_of_zones)
        except EngineTooOld as error:
            raise ConfigurationError(str(error)) from None
        except EngineError as error:
            tell(f"{error or 'the catalog cannot be read'}; trying again")
            warn("database_away", retry_seconds=settings.retry_seconds, **cause_fields(error))
        await asyncio.sleep(settings.retry_seconds)


async def _open_twins(settings: Settings, engine: Engine, catalog: Catalog, policy: Policy) -> Twins:
    server = settings.server
    limits = TwinLimits(
        sessions=server.max_connections,
        sessions_per_analyst=server.max_connections_per_analyst,
        public_rows=settings.max_public_rows,
    )
    try:
        apart, binaries = settings.twins == "per-analyst", settings.twin_binaries
        twins = await Twins.open(catalog, policy, engine, limits, apart=apart, binaries=binaries)
    except (ClusterError, TwinError, psycopg.Error) as error:
        raise ConfigurationError(f"the twin cannot be made: {error}") from error
    for name, reason in twins.closed_tables.items():
        tell(f"warning: the public table {name} cannot be queried: {reason}")
    return twins


async def _public_rows(
    policy: Policy, most_cost: float | None, twins: Twins, service: Service, stack: AsyncExitStack
) -> PublicRows:
    """Rows of public tables that no twin holds, if the rules name a login that reads them."""
    if policy.public_reader is None:
        return PublicRows(None, lambda: twins.closed_tables)
    reader = real_database(policy.public_reader).open_public_reader(most_cost=most_cost)
    stack.push_async_callback(reader.close)
    await reader.bind(service.rulebook.catalog.system_identifier)
    for reason in await reader.find_excess(service.rulebook.readable):
        tell(f"warning: public_reader is not used: {reason}; noisegate grants prints the SQL of its role")
    return PublicRows(reader, lambda: twins.closed_tables, service.schema_changed.set)


def _sessions(settings: Settings, service: Service, twins: Twins, database: str) -> Sessions:
    """Sessions over the twins, with notices of sessions that cancel or terminate one another."""
    sessions = Sessions(
        service,
        socket=twins.socket,
        end_backends=twins.end_backends,
        reset_roles=twins.reset_roles,
        database=database,
        settings=settings.sessions,
    )
    sessions.closed_tables = lambda: {table.name: reason for table, reason in twins.closed_tables.items()}
    sessions.twin_changes = twins.changes
    signals = {"cancel": sessions.cancel_backend, "terminate": sessions.terminate_backend}
    twins.hear(lambda name, process_id: signals[name](process_id))
    return sessions
