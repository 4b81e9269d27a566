"""The twins of one proxy: one for all analysts, or one for each.

What ends a server of PostgreSQL ends all sessions on it, and its catalogs show the names of all its roles. A twin of
one's own costs some 40 MB and a second at the start.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from proxy.twin.public import RowSource
from proxy.twin.synthetic import SyntheticSchema
from proxy.twin.twin import Signal, Twin, TwinLimits
from rules.catalog import Catalog, TableName
from rules.policy.model import Policy

_AT_ONCE: Final = 4  # twins that are being made


class Twins:
    """All of them, changed together."""

    def __init__(self, source: RowSource, limits: TwinLimits, *, apart: bool, binaries: Path | None = None) -> None:
        self._source, self._limits, self._apart, self._binaries = source, limits, apart, binaries
        self._shared: Twin | None = None
        self._by_analyst: dict[str, Twin] = {}
        self._in_force: tuple[Catalog, Policy] | None = None
        self._on_signal: Signal | None = None

    @classmethod
    async def open(
        cls,
        catalog: Catalog,
        policy: Policy,
        source: RowSource,
        limits: TwinLimits,
        *,
        apart: bool = False,
        binaries: Path | None = None,
    ) -> Self:
        """Make them; with `apart` each analyst has one."""
        twins = cls(source, limits, apart=apart, binaries=binaries)
        try:
            if apart:
                await twins._add(policy.analysts, catalog, policy)
            else:
                twins._shared = await Twin.open(catalog, policy, source, limits, binaries)
        except BaseException:
            await twins.close()
            raise
        twins._in_force = catalog, policy
        return twins

    def socket(self, analyst: str) -> Path:
        """Return where this analyst's sessions connect; raises OSError while there is no such place."""
        return self.of(analyst).socket

    def of(self, analyst: str) -> Twin:
        """The twin of an analyst."""
        twin = self._shared or self._by_analyst.get(analyst)
        if twin is None:
            raise FileNotFoundError(f"{analyst} has no twin")
        return twin

    def states(self) -> dict[str, bool]:
        """Return whether each runs, by its analyst; the one that all share is "shared"."""
        if self._shared is not None:
            return {"shared": self._shared.is_running()}
        return {name: twin.is_running() for name, twin in self._by_analyst.items()}

    def changes(self, analyst: str) -> int:
        """The number of changes of an analyst's twin, which is odd while one is made."""
        twin = self._shared or self._by_analyst.get(analyst)
        return 0 if twin is None else twin.changes.number

    @property
    def closed_tables(self) -> Mapping[TableName, str]:
        """Public tables that are not in every twin, and why."""
        return {name: reason for twin in self._all() for name, reason in twin.closed_tables.items()}

    def hear(self, on_signal: Signal) -> None:
        """Receive notices of sessions that cancel or terminate one another."""
        self._on_signal = on_signal
        for twin in self._all():
            twin.on_signal = on_signal

    async def refresh(self, catalog: Catalog, policy: Policy) -> None:
        """Become the twins of another catalog or policy: all of them, or none."""
        if self._shared is not None:
            await self._shared.refresh(catalog, policy)
            return
        old_catalog, old_policy = self._in_force or (catalog, policy)
        new = {name for name in policy.analysts if name not in self._by_analyst}
        kept = {name: twin for name, twin in self._by_analyst.items() if name in policy.analysts}
        try:
            for name, twin in kept.items():
                await twin.refresh(catalog, _only(policy, name))
            await self._add(new, catalog, policy)
        except BaseException:
            await self._remove(new)
            for name, twin in kept.items():
                await twin.refresh(old_catalog, _only(old_policy, name))
            raise
        await self._remove(set(self._by_analyst) - set(policy.analysts))
        self._in_force = catalog, policy

    async def refresh_public(self) -> None:
        """Copy public tables whose rows have changed."""
        for twin in self._all():
            await twin.refresh_public()

    async def show_synopsis(self, schema: SyntheticSchema) -> None:
        """Show synthetic rows in the twins of all who may read them."""
        own = (self._by_analyst.get(reader) for reader in schema.readers)
        twins = self._all() if self._shared else [twin for twin in own if twin is not None]
        await asyncio.gather(*(twin.show_synopsis(schema) for twin in twins))

    async def drop_synopsis(self, name: str) -> None:
        """Remove synthetic rows from all twins."""
        await self._each(lambda twin: twin.drop_synopsis(name))

    async def end_backends(self, process_ids: Collection[int]) -> None:
        """End sessions whose clients are gone, on whichever twin they are."""
        await self._each(lambda twin: twin.end_backends(process_ids))

    async def reset_roles(self, analyst: str) -> bool:
        """Take back what an analyst has set for sessions to come; whether there was anything."""
        twin = self._shared or self._by_analyst.get(analyst)
        return twin is not None and await twin.reset_roles()

    async def close(self) -> None:
        """End all of them."""
        await self._each(lambda twin: twin.close())

    def _all(self) -> list[Twin]:
        return [self._shared] if self._shared is not None else list(self._by_analyst.values())

    async def _each(self, work: Callable[[Twin], Any]) -> None:
        await asyncio.gather(*(work(twin) for twin in self._all()))

    async def _add(self, names: Iterable[str], catalog: Catalog, policy: Policy) -> None:
        """Make the twins of these analysts; those that were made stay known when another cannot be."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def make(name: str) -> None:
            async with turns:
                twin = await Twin.open(catalog, _only(policy, name), self._source, self._limits, self._binaries)
            twin.on_signal = self._on_signal
            self._by_analyst[name] = twin

        try:
            async with asyncio.TaskGroup() as tasks:
                for name in names:
                    tasks.create_task(make(name))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _remove(self, names: Iterable[str]) -> None:
        leaving = [self._by_analyst.pop(name) for name in names if name in self._by_analyst]
        await asyncio.gather(*(twin.close() for twin in leaving))


def _only(policy: Policy, analyst: str) -> Policy:
    """The rules as one analyst has them: no other one exists."""
    return policy.model_copy(update={"analysts": {analyst: policy.analysts[analyst]}})
