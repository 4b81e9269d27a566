"""The synopses of a running proxy: found in the ledger, made when they are due, fitted, and shown in the twins.

What was released is kept by the ledger, so a restart, another proxy, or a new fit costs nothing: the same release makes
the same rows.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

import psycopg

from proxy.causes import cause_of
from proxy.engines.engine import EngineError
from proxy.execute.rulebook import Rulebook
from proxy.execute.synopses import SynopsisState
from proxy.log import event, warn
from proxy.synopses.fit_release import FitFailed, fitted_schema
from proxy.synopses.make import AGAIN, DueMakes, Maker, is_mark
from proxy.twin.synthetic import SyntheticSchema
from rules.accounting.store import KeptRelease
from rules.catalog import Table
from rules.planner.plan import PreviewRows
from rules.policy.model import Policy
from rules.policy.synopses import account_name
from rules.refusal import Refusal
from rules.synopses.plan import SynopsisPlan, plan_synopsis

FOLLOW_SECONDS: Final = 10.0
_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


Tell = Callable[[Mapping[str, SynopsisState]], None]


class Stage(Protocol):
    """Show synthetic rows in the twins, and list cubes."""

    async def show_synopsis(self, schema: SyntheticSchema) -> None: ...

    async def drop_synopsis(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """Hold what is shown of a synopsis: of which release, by which plan, and for whom."""

    release: int
    digest: str
    unit: tuple[str, int]
    schema: SyntheticSchema


class Shelf:
    """All synopses of the rules in force."""

    def __init__(self, maker: Maker, stage: Stage, tell: Tell) -> None:
        self._maker, self._stage, self._tell = maker, stage, tell
        self._shown: dict[str, Shown] = {}
        self._due = DueMakes(maker.ledger, maker.clock)
        self._unfit: dict[str, tuple[tuple[int, str], datetime]] = {}  # what could not be fitted, and when
        self._outdated: dict[str, int] = {}  # the releases of which it was told that the rules ask for others
        self._working = asyncio.Lock()
        self._reloads = self._followed = 0  # how often rules came into force, and by which of them it is worked
        self._in_force: Policy | None = None  # since the last time

    @property
    def shown(self) -> dict[str, Shown]:
        """List what is shown now, by name."""
        return dict(self._shown)

    async def follow(self, rulebook: Rulebook) -> None:
        """Bring what is shown in line with the rules and the ledger. A failure leaves what is there, and is told."""
        async with self._working:
            self._followed = self._reloads
            for name in set(self._shown) - set(rulebook.policy.schemas):
                await self._drop(name)
            for name in rulebook.policy.schemas:
                if self._is_late:
                    return
                try:
                    await self._follow(name, rulebook)
                except Exception as error:  # noqa: BLE001 - the proxy goes on without a synopsis
                    warn("synopsis_failed", place=name, kind=type(error).__name__, **fields_of(error))

    @property
    def _is_late(self) -> bool:
        """Tell whether other rules have come into force meanwhile."""
        return self._followed != self._reloads

    async def withdraw(self, policy: Policy) -> None:
        """Take away at once what was made for another unit, or is in the rules no more; a make is not waited for."""
        self._reloads, self._in_force = self._reloads + 1, policy
        for name, shown in self.shown.items():
            if not _may_stand(name, shown.unit, policy):
                await self._drop(name)

    async def _follow(self, name: str, rulebook: Rulebook) -> None:
        plan = plan_synopsis(name, rulebook.policy, rulebook.catalog)
        shown = self._shown.get(name)
        if shown is not None and shown.unit != (plan.unit, plan.group_size):
            await self._drop(name)
            shown = None
        made = await self._due.make(
            name, rulebook, lambda since: self._maker.make(name, rulebook, once_since=since)
        )  # fmt: skip
        kept = await self._maker.find(plan) if made is None else made
        if self._is_late:
            return  # the next look charges and shows by the rules that hold now
        if kept is None:
            await self._without(name, shown)
            return
        readers = tuple(await self._maker.admit(kept, plan.rules.readers(rulebook.policy.analysts), rulebook, plan))
        if shown is None or (shown.release, shown.digest) != (kept.id, plan.digest):
            await self._show(plan, kept, readers, rulebook)
        elif shown.schema.readers != readers:
            await self._put(shown, _with(shown.schema, readers=readers))

    async def _without(self, name: str, shown: Shown | None) -> None:
        """What other rules, or another version, have made is told, and stays if it is shown; what was dropped goes."""
        made = await self._maker.ledger.newest_of(account_name(name))
        if made and not is_mark(made) and self._outdated.get(name) != made[0].id:
            self._outdated[name] = made[0].id
            warn("synopsis_outdated", place=name)
        if shown is not None and is_mark(made):
            await self._drop(name)
        elif shown is not None and shown.schema.state != "outdated":
            await self._put(shown, _with(shown.schema, state="outdated"))

    async def _drop(self, name: str) -> None:
        await self._stage.drop_synopsis(name)
        self._shown.pop(name, None)
        self._announce()
        event("synopsis_dropped", place=name)

    async def _show(self, plan: SynopsisPlan, kept: KeptRelease, readers: tuple[str, ...], rulebook: Rulebook) -> None:
        tried, now = (kept.id, plan.digest), self._maker.clock()
        unfit, failed = self._unfit.get(plan.name, (tried, _NEVER))
        if unfit == tried and now - failed <= AGAIN:
            return
        try:
            schema = await fitted_schema(plan, kept, readers, rulebook)
        except FitFailed:
            self._unfit[plan.name] = tried, now
            raise
        if self._is_withdrawn(plan):
            return
        await self._stage.show_synopsis(schema)
        self._shown[plan.name] = Shown(kept.id, plan.digest, (plan.unit, plan.group_size), schema)
        self._announce()
        event("synopsis_shown", place=plan.name, seconds=round(schema.seconds, 1))
        if self._is_withdrawn(plan):  # while its rows were written
            await self._drop(plan.name)

    def _is_withdrawn(self, plan: SynopsisPlan) -> bool:
        """Tell whether the rules that came into force last take it away."""
        rules = self._in_force
        return rules is not None and not _may_stand(plan.name, (plan.unit, plan.group_size), rules)

    async def _put(self, shown: Shown, schema: SyntheticSchema) -> None:
        await self._stage.show_synopsis(schema)
        self._shown[schema.name] = Shown(shown.release, shown.digest, shown.unit, schema)
        self._announce()

    def _announce(self) -> None:
        """Tell sessions what there is now."""
        self._tell({name: _state(shown.schema) for name, shown in self._shown.items()})


def _may_stand(name: str, unit: tuple[str, int], policy: Policy) -> bool:
    """Tell whether these rules have it, and protect no other unit than it was made for."""
    return name in policy.schemas and unit == (policy.unit, policy.group_size)


def fields_of(error: Exception) -> dict[str, str]:
    """Choose what the log may say of a failure: a code or a cause, and no text."""
    match error:
        case Refusal():
            return {"sqlstate": error.sqlstate}
        case EngineError():
            return error.cause.fields
        case psycopg.Error():
            return cause_of(error).fields
    return {}


def _state(schema: SyntheticSchema) -> SynopsisState:
    rows = tuple(
        PreviewRows(table.real, table.table.name, table.columns, _order(table.table)) for table in schema.tables
    )
    return SynopsisState(schema.name, schema.epsilon, schema.made_at, schema.readers, rows)


def _order(table: Table) -> tuple[str, ...]:
    return next((key.columns for key in table.keys if key.primary), ())


def _with(schema: SyntheticSchema, *, readers: tuple[str, ...] | None = None, state: str = "ready") -> SyntheticSchema:
    return replace(schema, readers=schema.readers if readers is None else readers, state=state)
