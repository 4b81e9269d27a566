"""The ledger as a state machine: whatever is charged, settled, seen again or reopened, nothing is ever overspent."""

import asyncio
import tempfile
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from rules.accounting.accountant import Limit, Totals
from rules.accounting.budgets import Budgets, period_of
from rules.accounting.store import Charge, Receipt, ReleaseQuery, Viewer
from rules.refusal import BudgetSpent
from tests.ledger.charges import BUDGETS, IDENTITY, NOON, charge_of, release_of
from tests.support.ledgers import SqliteLedger

NAMES = ("ada", "bob", "eve")
TEAM = "role"  # whose account is no analyst's
WITH_ROLE = replace(
    BUDGETS,
    analysts={**BUDGETS.analysts, "eve": Limit(Decimal("1.5"))},
    roles={"team": Limit(Decimal("1.25"))},
    members={"ada": "team", "bob": "team"},
)
analysts = st.sampled_from(NAMES)
epsilons = st.lists(st.sampled_from(["0.05", "0.1", "0.25", "0.4"]), min_size=1, max_size=3)
Owed = dict[tuple[str, str], Decimal]


class LedgerMachine(RuleBasedStateMachine):
    """Compares a real ledger with sums kept in a dictionary."""

    charges = Bundle("charges")
    releases = Bundle("releases")

    @initialize()
    def open(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.now, self.owed, self.seen = NOON, Owed(), set[tuple[str, str, int]]()
        self.budgets: Budgets = WITH_ROLE
        SqliteLedger.create(self.path, IDENTITY)
        self.ledger = self.runner.run(SqliteLedger.open(self.path, IDENTITY))

    @rule(target=charges, analyst=analysts, asked=epsilons)
    def charge(self, analyst: str, asked: list[str]) -> object:
        return multiple(*self._charge([charge_of(analyst, *asked, time=self.now)]))

    @rule(target=charges, askers=st.lists(st.tuples(analysts, epsilons), min_size=2, max_size=6))
    def charge_at_the_same_time(self, askers: list[tuple[str, list[str]]]) -> object:
        return multiple(*self._charge([charge_of(analyst, *asked, time=self.now) for analyst, asked in askers]))

    @rule(analyst=analysts)
    def move(self, analyst: str) -> None:
        """To the role, or out of it."""
        members = {name: role for name, role in self.budgets.members.items() if name != analyst}
        if analyst not in self.budgets.members:
            members[analyst] = "team"
        self.budgets = replace(self.budgets, members=members)

    @rule(target=releases, charged=consumes(charges), epsilon=st.sampled_from(["0.1", "0.3"]))
    def settle(self, charged: tuple[str, str, int, bool], epsilon: str) -> tuple[int, Decimal]:
        analyst, period, number, is_of_team = charged
        self.runner.run(self.ledger.settle(number, [release_of(epsilon, block=str(number))]))
        wanted = ReleaseQuery(str(number), "count", Decimal("0.1"), None)
        (found,) = self.runner.run(
            self.ledger.find_releases([wanted], Viewer(analyst=analyst, budgets=self.budgets, now=self.now, since=NOON))
        )
        kept = found.own[0] if found.own else found.other
        assert kept is not None
        self._note(analyst, period, kept.id, is_of_team=is_of_team)
        return kept.id, Decimal(epsilon)

    @rule(release=releases, analyst=analysts)
    def see_again(self, release: tuple[int, Decimal], analyst: str) -> None:
        number, epsilon = release
        period = period_of(self.now, self.budgets)
        is_new = (analyst, period, number) not in self.seen
        is_first = (period, number) not in {(when, which) for _, when, which in self.seen}
        is_of_team = analyst in self.budgets.members
        is_first_of_role = is_of_team and (TEAM, period, number) not in self.seen
        try:
            receipt = self.runner.run(
                self.ledger.charge(charge_of(analyst, sights=(number,), time=self.now), self.budgets)
            )
        except BudgetSpent:
            limit = self.budgets.analysts[analyst].epsilon
            own = self.owed.get((analyst, period), Decimal(0)) + epsilon > limit
            shared = self.owed.get(("", period), Decimal(0)) + epsilon > self.budgets.dataset.epsilon
            of_role = self.owed.get((TEAM, period), Decimal(0)) + epsilon > self.budgets.roles["team"].epsilon
            assert (is_new and own) or (is_first and shared) or (is_first_of_role and of_role)
            return
        assert receipt.cost.epsilon == (epsilon if is_new else 0)
        self._owe(analyst, period, receipt.cost.epsilon)
        self._owe("", period, epsilon if is_first else Decimal(0))
        self._owe(TEAM, period, epsilon if is_first_of_role else Decimal(0))
        self._note(analyst, period, number, is_of_team=is_of_team)

    @rule(charged=charges)
    def fail(self, charged: tuple[str, str, int, bool]) -> None:
        self.runner.run(self.ledger.fault(charged[2], self.now, cause="57", stops=False))

    @rule(days=st.integers(1, 20))
    def wait(self, days: int) -> None:
        self.now += timedelta(days=days)

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.ledger.close())
        self.ledger = self.runner.run(SqliteLedger.open(self.path, IDENTITY))

    @invariant()
    def balances_are_the_sums_and_within_the_limits(self) -> None:
        for analyst in NAMES if hasattr(self, "ledger") else ():
            own, dataset, role = self.runner.run(self.ledger.balances(analyst, self.budgets, self.now))
            period = period_of(self.now, self.budgets)
            assert (role is None) == (analyst not in self.budgets.members)
            assert role is None or role.spent == self.owed.get((TEAM, period), 0) <= role.limit
            assert own.spent == self.owed.get((analyst, period), 0) <= own.limit
            assert dataset.spent == self.owed.get(("", period), 0) <= dataset.limit
            assert own.lifetime == sum(owed for (name, _), owed in self.owed.items() if name == analyst)

    @invariant()
    def a_review_says_the_same_charge_by_charge(self) -> None:
        for analyst in NAMES if hasattr(self, "ledger") else ():
            review = self.runner.run(self.ledger.review(analyst, self.budgets, self.now, most_charges=1_000))
            paid: dict[str, Decimal] = {}
            for charge in review.charges:
                cost = Totals().plus((*charge.fresh, *charge.seen)).epsilon
                paid[charge.period] = paid.get(charge.period, Decimal(0)) + cost
            assert review.analyst.totals.epsilon == paid.get(review.period, 0)
            assert review.analyst.lifetime == sum(paid.values())

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.runner.run(self.ledger.close())
            self.runner.close()
            self.folder.cleanup()

    def _note(self, analyst: str, period: str, release: int, *, is_of_team: bool) -> None:
        """That a release is on the analyst's account, and on the team's."""
        self.seen |= {(name, period, release) for name in (analyst, *([TEAM] if is_of_team else []))}

    def _charge(self, charges: list[Charge]) -> list[tuple[str, str, int, bool]]:
        """Charge together; each is granted exactly when it fits after those before it."""

        async def together() -> list[Receipt | BaseException]:
            asked = (self.ledger.charge(charge, self.budgets) for charge in charges)
            return await asyncio.gather(*asked, return_exceptions=True)

        granted = []
        period = period_of(self.now, self.budgets)
        for charge, outcome in zip(charges, self.runner.run(together()), strict=True):
            cost = sum((mechanism.epsilon or Decimal(0) for mechanism in charge.mechanisms), Decimal(0))
            if isinstance(outcome, BudgetSpent):
                assert not self._has_room(charge.analyst, period, cost)
                continue
            assert isinstance(outcome, Receipt) and self._has_room(charge.analyst, period, cost)
            self._owe(charge.analyst, period, cost)
            self._owe("", period, cost)
            is_of_team = charge.analyst in self.budgets.members
            self._owe(TEAM, period, cost if is_of_team else Decimal(0))
            granted.append((charge.analyst, period, outcome.charge, is_of_team))
        return granted

    def _has_room(self, analyst: str, period: str, cost: Decimal) -> bool:
        own = self.owed.get((analyst, period), Decimal(0)) + cost <= self.budgets.analysts[analyst].epsilon
        if analyst in self.budgets.members:
            own = own and self.owed.get((TEAM, period), Decimal(0)) + cost <= self.budgets.roles["team"].epsilon
        return own and self.owed.get(("", period), Decimal(0)) + cost <= self.budgets.dataset.epsilon

    def _owe(self, name: str, period: str, cost: Decimal) -> None:
        self.owed[name, period] = self.owed.get((name, period), Decimal(0)) + cost


LedgerMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase
