"""Vital signs of the proxy: gauges for Prometheus, and whether a client could be answered now."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from proxy.causes import ledger_cause
from proxy.engines.engine import EngineError, WatchedEngine
from proxy.execute.clock import Clock
from proxy.execute.service import Service
from proxy.execute.worker_pool import PlannerPool
from proxy.ledger.ledger import Ledger
from proxy.server.listener import Listener
from proxy.session.sessions import Sessions
from proxy.twin.twins import Twins
from rules.accounting.store import Balance, LedgerError

OK: Final = "ok"
NO_ANSWER: Final = "no_answer"
_PATIENCE_SECONDS: Final = 2.0  # for one part to answer
_CHECK_SECONDS: Final = 5.0  # between two looks at the real database, however often it is asked


@dataclass(frozen=True, slots=True)
class Balances:
    """The amounts that each analyst, and all together, have spent in the running period."""

    analysts: Mapping[str, Balance]
    shared: Balance
    roles: Mapping[str, Balance]


class Families(Collector):
    """Gauges as they were read, in the form that `generate_latest` takes."""

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families


@dataclass
class Vitals:
    """The parts of a proxy that has seen its database, as an operator looks at them."""

    listener: Listener
    sessions: Sessions
    service: Service
    engine: WatchedEngine
    planner: PlannerPool
    twins: Twins
    ledger: Ledger
    clock: Clock

    def __post_init__(self) -> None:
        self._checked, self._database = -_CHECK_SECONDS, OK
        self._checking: asyncio.Task[None] | None = None
        self._tried_to_write = -_CHECK_SECONDS
        self._ledger = NO_ANSWER  # the last failure

    async def health(self) -> dict[str, str]:
        """For each part "ok", or a word for what is wrong with it."""
        database, ledger = await asyncio.gather(self._check_database(), self._check_ledger())
        return {
            "database": database,
            "ledger": ledger,
            "twin": OK if all(self.twins.states().values()) else "is_made_again",
            "clients": "draining" if self.listener.is_stopping else OK,
        }

    async def gauges(self) -> Families:
        """All numbers that say how something is, and not how often it was."""
        families = [*self._connections(), *self._machinery()]
        try:
            balances = await self.balances()
        except (LedgerError, TimeoutError):
            return Families([*families, _gauge("ledger_up", "Whether the ledger takes charges", 0)])
        takes_charges = _gauge("ledger_up", "Whether the ledger takes charges", int(not self.ledger.has_failed))
        return Families([*families, takes_charges, *_budgets(balances)])

    async def balances(self) -> Balances:
        """All accounts, those of analysts at one moment; raises LedgerError, or TimeoutError."""
        budgets = self.service.rulebook.budgets
        names = sorted(budgets.analysts)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            *own, shared = await self.ledger.all_balances(names, budgets, self.clock())
            roles = await self.ledger.role_balances(budgets, self.clock()) if budgets.roles else {}
        return Balances(dict(zip(names, own, strict=True)), shared, roles)

    async def _check_ledger(self) -> str:
        """Read it. After a failure try to write it too, every few seconds: an unready proxy gets no charge to write."""
        now = asyncio.get_running_loop().time()
        try:
            await self.balances()
            if self.ledger.has_failed and now - self._tried_to_write >= _CHECK_SECONDS:
                self._tried_to_write = now
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await self.ledger.try_to_write()
        except LedgerError as error:
            self._ledger = ledger_cause(error).reason
            return self._ledger
        except TimeoutError:
            return NO_ANSWER
        return self._ledger if self.ledger.has_failed else OK

    async def _check_database(self) -> str:
        """Ask it every few seconds at most. Where all connections are in use, the database is what they wait for.

        Giving up on a line that drops packets takes longer than whoever asks for health waits, so he leaves before.
        """
        now = asyncio.get_running_loop().time()
        if self._checking is None and now - self._checked >= _CHECK_SECONDS and not self.engine.is_busy:
            self._checked, self._checking = now, asyncio.create_task(self._ask_database())
        if (checking := self._checking) is not None:
            done, _ = await asyncio.wait({checking}, timeout=_PATIENCE_SECONDS)
            if not done:
                return NO_ANSWER
            checking.result()  # raises what is no word of the database's, but a defect
        return self._database

    async def _ask_database(self) -> None:
        try:
            await self.engine.check(_PATIENCE_SECONDS)
            self._database = OK
        except EngineError as error:
            self._database = error.cause.reason
        finally:
            self._checking = None

    def _connections(self) -> Iterator[GaugeMetricFamily]:
        context = self.listener.context
        yield _gauge("connections", "Open connections of clients, logged in or not", len(self.listener))
        yield _gauge("connections_before_login", "Those before their login", len(context.doorway))
        yield _gauge("sessions_limit", "Sessions that there may be", context.settings.max_connections)
        by_analyst = Counter(session.analyst for session in self.sessions.all())
        yield _labelled("sessions", "Sessions that are open", "analyst", by_analyst)

    def _machinery(self) -> Iterator[GaugeMetricFamily]:
        engine, planner, service = self.engine, self.planner, self.service
        connections = {"in_use": engine.in_use, "idle": engine.idle}
        yield _labelled("pool_connections", "Connections to the real database", "state", connections)
        yield _gauge("pool_limit", "Connections to the real database that there may be", engine.connections)
        yield _gauge("pool_waiting", "Statements that wait for one", service.waiting)
        yield _gauge("workers", "Processes that read and plan", planner.alive)
        yield _gauge("workers_busy", "Those that do so now", planner.busy)
        yield _gauge("workers_waiting", "Texts that wait for one", planner.waiting)
        yield _labelled("twin_up", "Whether a twin runs", "twin", self.twins.states())
        yield _gauge("rules_generation", "How often rules or schema were changed", service.rulebook.generation)


def _budgets(balances: Balances) -> Iterator[GaugeMetricFamily]:
    for name, text in (("spent", "is spent"), ("left", "is left"), ("limit", "may be spent")):
        of_each = {analyst: float(getattr(balance, name)) for analyst, balance in balances.analysts.items()}
        yield _labelled(f"epsilon_{name}", f"ε of an analyst that {text} in this period", "analyst", of_each)
        if balances.roles:
            of_roles = {role: float(getattr(balance, name)) for role, balance in balances.roles.items()}
            yield _labelled(f"role_epsilon_{name}", f"ε of a role that {text} in this period", "role", of_roles)
        shared = float(getattr(balances.shared, name))
        yield _gauge(f"shared_epsilon_{name}", f"ε of all analysts together that {text} in this period", shared)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"noisegate_{name}", text, value=value)


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"noisegate_{name}", text, labels=[label])
    for label_value, value in values.items():
        family.add_metric([label_value], value)
    return family
