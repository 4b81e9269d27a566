"""What the ledger has charged is what was learned: added up by brute force, from the draws that each account has seen.

Releases that were drawn for one price are private together for it, so who has seen some of them has learned as much as
who has seen one. Of all others each counts. Histories are random: charges, sights, periods, roles, closings, restarts.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from proxy.ledger.ledger import Ledger
from proxy.twin.embedded import Cluster
from rules.accounting.accountant import Limit, Totals, fits
from rules.accounting.budgets import Budgets
from rules.accounting.store import Charge, Release, ReleaseQuery, Viewer
from rules.mechanisms.cost import Mechanism
from rules.refusal import BudgetSpent
from tests.ledger.charges import IDENTITY, NOON, create_database
from tests.support.ledgers import PostgresLedger, SqliteLedger

NAMES = ("ada", "bob", "eve")
LIMIT = Limit(Decimal(4), Decimal("1e-6"))
BUDGETS = Budgets(
    Limit(Decimal(6), Decimal("1e-6")),
    dict.fromkeys(NAMES, LIMIT),
    "month",
    roles={"team": Limit(Decimal(5), Decimal("1e-6"))},
    members={"ada": "team", "bob": "team"},
)
PRICES = (
    Mechanism.pure(Decimal("0.1")), Mechanism.pure(Decimal("0.35")), Mechanism.pure(Decimal("0.2"), Decimal("1e-8")),
    Mechanism.choice(Decimal("0.3")), Mechanism.concentrated(Decimal("0.25")),
)  # fmt: skip
Drawn = tuple[int, int]  # the charge, and the vector


@dataclass
class World:
    """A ledger, and what each account has seen of which draws, in each period."""

    ledger: Ledger
    random: Random
    may_move: bool
    now: datetime = NOON
    budgets: Budgets = BUDGETS
    prices: dict[Drawn, Mechanism] = field(default_factory=dict)
    releases: list[tuple[int, Drawn]] = field(default_factory=list)
    drawn_at: dict[int, datetime] = field(default_factory=dict)
    learned: dict[tuple[str, str], set[Drawn]] = field(default_factory=lambda: defaultdict(set))

    async def step(self) -> None:
        match self.random.choices(("ask", "look", "wait", "move", "prune"), (10, 16, 2, 2, 1))[0]:
            case "ask":
                await self.ask(self.random.choice(NAMES))
            case "look" if self.releases:
                await self.look(self.random.choice(NAMES))
            case "wait":
                self.now += timedelta(days=self.random.choice((1, 20)))
            case "prune":
                await self.ledger.close_before(self.now, self.now)
                self.releases = [kept for kept in self.releases if self.drawn_at[kept[1][0]] >= self.now]
            case "move" if self.may_move:
                self.move(self.random.choice(NAMES))

    def move(self, name: str) -> None:
        members = {other: role for other, role in self.budgets.members.items() if other != name}
        self.budgets = replace(self.budgets, members=members if len(members) < len(self.budgets.members) else {
            **members, name: "team"
        })  # fmt: skip

    async def ask(self, name: str) -> None:
        """Some vectors, each of one release or of several."""
        prices = [self.random.choice(PRICES) for _ in range(self.random.randint(1, 2))]
        try:
            receipt = await self.ledger.charge(self._charge(name, tuple(prices)), self.budgets)
        except BudgetSpent:
            return
        parts = [(place, part) for place in range(len(prices)) for part in range(self.random.randint(1, 3))]
        block = str(receipt.charge)
        await self.ledger.settle(
            receipt.charge,
            [Release(block, f"{place}.{part}", prices[place], (("Berlin",),), (1,), place) for place, part in parts],
        )
        wanted = [ReleaseQuery(block, f"{place}.{part}", Decimal("0.01"), None) for place, part in parts]
        found = await self.ledger.find_releases(
            wanted, Viewer(analyst=name, budgets=self.budgets, now=self.now, since=NOON)
        )
        self.drawn_at[receipt.charge] = self.now
        for (place, _), servable in zip(parts, found, strict=True):
            self.prices[receipt.charge, place] = prices[place]
            self.releases.append((servable.own[0].id, (receipt.charge, place)))
        self._note(name, {(receipt.charge, place) for place in range(len(prices))})

    async def look(self, name: str) -> None:
        seen = self.random.sample(self.releases, min(len(self.releases), self.random.randint(1, 4)))
        try:
            await self.ledger.charge(self._charge(name, (), tuple(number for number, _ in seen)), self.budgets)
        except BudgetSpent:
            return
        self._note(name, {drawn for _, drawn in seen})

    def _charge(self, name: str, prices: tuple[Mechanism, ...], sights: tuple[int, ...] = ()) -> Charge:
        return Charge(self.now, name, "s", "f", "customers.id", ("orders",), prices, sights)

    def _note(self, name: str, drawn: set[Drawn]) -> None:
        for account in self.accounts(name):
            self.learned[account, f"month:{self.now:%Y-%m}"] |= drawn

    def accounts(self, name: str) -> Iterable[str]:
        return name, "", *([self.budgets.members[name]] if name in self.budgets.members else [])

    async def check(self) -> None:
        """Hold all accounts of the running period against what was learned."""
        for name in NAMES:
            review = await self.ledger.review(name, self.budgets, self.now, most_charges=0)
            states = (review.analyst, review.dataset, *([] if review.role is None else [review.role]))
            for account, state in zip(self.accounts(name), states, strict=True):
                learned = self.learned[account, review.period]
                owed = Totals().plus(self.prices[drawn] for drawn in learned)
                assert fits(owed, state.limit)
                if self.may_move or account == "team":  # a sight has one price, of the analyst and of the role
                    paid = state.totals
                    assert paid.epsilon >= owed.epsilon and paid.delta >= owed.delta and paid.rho >= owed.rho
                    assert paid.pure <= owed.pure
                else:
                    assert state.totals == owed


@pytest.mark.parametrize("may_move", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_charged_is_what_was_learned(tmp_path: Path, seed: int, may_move: bool) -> None:
    async def run() -> None:
        SqliteLedger.create(tmp_path / "ledger", IDENTITY)
        world = World(await SqliteLedger.open(tmp_path / "ledger", IDENTITY), Random(seed), may_move)
        for _ in range(60):
            await world.step()
            await world.check()
        await world.ledger.close()
        world.ledger = await SqliteLedger.open(tmp_path / "ledger", IDENTITY)  # which replays all entries
        await world.check()
        await world.ledger.close()

    asyncio.run(run())


@pytest.mark.parametrize("may_move", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_two_proxies_at_once_charge_what_was_learned(real_cluster: Cluster, seed: int, may_move: bool) -> None:
    """On one ledger in PostgreSQL: two statements of each at the same time, and then all accounts."""

    async def run() -> None:
        dsn = create_database(real_cluster)
        PostgresLedger.create(dsn, IDENTITY)
        ledgers = [await PostgresLedger.open(dsn, IDENTITY) for _ in range(2)]
        world = World(ledgers[0], Random(seed), may_move)
        for _ in range(12):
            await asyncio.gather(*(_several(replace(world, ledger=ledger)) for ledger in ledgers for _ in range(2)))
            world.ledger = world.random.choice(ledgers)
            await world.check()
            world.now += timedelta(days=world.random.choice((0, 0, 1, 20)))
            if may_move:
                world.move(world.random.choice(NAMES))
        for ledger in ledgers:
            await ledger.close()
        world.ledger = await PostgresLedger.open(dsn, IDENTITY)
        await world.check()
        await world.ledger.close()

    asyncio.run(run())


async def _several(world: World) -> None:
    for _ in range(3):
        look = world.releases and world.random.random() < 0.6
        await (world.look if look else world.ask)(world.random.choice(NAMES))
