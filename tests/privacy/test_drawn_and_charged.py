"""The noise that is drawn for a statement is that of what the ledger charges for it, whatever it asks for.

Draws are written down at the seam where OpenDP makes them, charges where the ledger gets them. Between both lie the
planner, the kernel, choices of bounds and the rules' group_size, for each of which the sensitivity counts so often.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Answer, Service
from rules.accounting.budgets import Budgets
from rules.accounting.store import Charge, Receipt
from rules.kernel.bounded import PARTS
from rules.mechanisms.additive import GaussianNoise, LaplaceNoise
from rules.mechanisms.draw import Drawable, OpenDPNoise
from rules.mechanisms.exponential_choice import step
from rules.mechanisms.release_plan import Block, Choice, Measure, Top
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.replay import Kernel
from tests.conftest import RealDatabase
from tests.execute.plans import HandPlanner
from tests.execute.watched_engine import WatchedEngine
from tests.planner.planned import public_groups
from tests.support import shop as shop_data
from tests.support.ledgers import SqliteLedger

GROUP, EPSILON = 3, Decimal(2)
BASE = shop_data.RULES.replace("budget:", f"group_size: {GROUP}\nbudget:")
AUTO = BASE.replace("_unit: 40", "_unit: auto up to 64").replace("_unit: 120", "_unit: auto up to 200")
RULES = {"laplace": BASE, "gaussian": BASE + "noise: gaussian\n", "chosen bounds": AUTO}
STATEMENTS = [
    "SELECT count(*) FROM customers",
    "SELECT city, count(*), avg(amount), sum(amount) FROM customers c JOIN orders ON customer_id = c.id GROUP BY 1",
    "SELECT variance(amount), stddev(amount) FROM orders",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), min(amount), max(amount) FROM orders",
    "SELECT mode() WITHIN GROUP (ORDER BY status) FROM orders",
    "SELECT status, percentile_disc(0.9) WITHIN GROUP (ORDER BY amount) FROM orders GROUP BY status",
    "SELECT note, count(*), sum(amount) FROM orders GROUP BY note",
    "SELECT ordered_at::date, count(DISTINCT customer_id) FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
    "SELECT noisegate.typical(avg(amount), 0, 500) FROM orders",
    "SELECT count(DISTINCT product_id) FROM order_items",
    "SELECT status, count(*) FILTER (WHERE amount < 9), count(*) FILTER (WHERE amount >= 9) FROM orders GROUP BY 1",
    "SELECT sum(CASE status WHEN 'paid' THEN amount END), sum(CASE status WHEN 'sent' THEN amount END) FROM orders",
    "SELECT corr(amount, quantity) FROM orders o JOIN order_items ON order_id = o.id",
    "SELECT date_trunc('month', ordered_at), count(DISTINCT customer_id) FROM orders GROUP BY CUBE (1, status)",
    "SELECT avg(n) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY 1) AS t",
]
Drawn = tuple[str, int, Decimal]  # the kind, the sensitivity (Gaussian: its square) and ε


@dataclass
class WrittenDown(OpenDPNoise):
    """OpenDP's noise, and what it was drawn for."""

    drawn: list[Drawn] = field(default_factory=list)

    def draw(self, noise: Drawable, count: int) -> tuple[int, ...]:
        assert isinstance(noise, LaplaceNoise | GaussianNoise)
        kind, reach = ("L", noise.sensitivity) if isinstance(noise, LaplaceNoise) else ("G", noise.squared)
        self.drawn.append((kind, reach, noise.epsilon))
        return super().draw(noise, count)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        self.drawn.append(("choice", sensitivity, epsilon))
        return super().choose(scores, sensitivity=sensitivity, epsilon=epsilon)

    def choose_top(self, scores: Sequence[int], top: Top, *, group_size: int) -> tuple[int, ...]:
        self.drawn.append(("top", top.sensitivity * group_size, top.epsilon))
        return super().choose_top(scores, top, group_size=group_size)


class WatchedLedger(SqliteLedger):
    """Remembers what it charged."""

    charges: list[Charge]

    async def charge(self, charge: Charge, budgets: Budgets) -> Receipt:
        self.charges.append(charge)
        return await super().charge(charge, budgets)


@dataclass
class Audit:
    """A service with the real planner, and what was drawn and charged."""

    service: Service
    noise: WrittenDown
    ledger: WatchedLedger
    shop: RealDatabase

    async def ask(self, sql: str) -> tuple[Plan, Answer]:
        rulebook = self.service.rulebook
        request = Request(
            *(sql, ("pg_catalog", "public")), epsilon=EPSILON, delta=Decimal("1e-9"), now="2026-11-21 12:00:00+00:00"
        )
        with self.shop.connect() as connection:
            while isinstance(made := plan(request, rulebook.policy, rulebook.catalog, rulebook.kernel), NeedsInner):
                request = replace(request, released=(*request.released, public_groups(connection, made)))
        answer = await self.service.answer(made, analyst="ada", session="s", timeout_seconds=60, reuse=False)
        return made, answer


@pytest.fixture(params=RULES)
async def audit(shop: RealDatabase, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Audit]:
    WatchedLedger.create(tmp_path / "ledger", "1/shop")
    opened = await SqliteLedger.open(tmp_path / "ledger", "1/shop")
    opened.__class__ = WatchedLedger
    assert isinstance(opened, WatchedLedger)
    opened.charges, noise, engine = [], WrittenDown(), WatchedEngine(shop.reader_dsn)
    rulebook = Rulebook.of(shop_data.policy(rules=RULES[request.param]), await engine.catalog(), 0)
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    service = Service(rulebook, HandPlanner(), engine, opened, noise=noise, clock=lambda: now)
    yield Audit(service, noise, opened, shop)
    await engine.close()
    await opened.close()


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_what_is_drawn_is_what_is_charged_for_a_group_of_units(audit: Audit, sql: str) -> None:
    made, answer = await audit.ask(sql)

    (charge,), drawn = audit.ledger.charges, set(audit.noise.drawn)
    expected, costs = set[Drawn](), list[Decimal]()
    for before, (block, _) in zip(made.blocks, answer.released, strict=True):
        of_block, paid = expected_of(block, audit.service.rulebook.kernel)
        of_choices, choices = expected_of_ladders(before, drawn)
        expected |= of_block | of_choices
        costs += paid + choices
    assert drawn == expected
    strengths = [mechanism.strength for mechanism in charge.mechanisms]
    assert [f"{cost:.9f}" for cost in sorted(costs)] == [f"{strength:.9f}" for strength in sorted(strengths)]
    assert EPSILON * Decimal("0.99") < sum(strengths) <= EPSILON


def expected_of(block: Block, kernel: Kernel) -> tuple[set[Drawn], list[Decimal]]:
    """The noise that a block's measures need by what the kernel enforces, and the ε of each that pays."""
    drawn, costs = set[Drawn](), dict[object, Decimal]()
    summed = iter(kernel.bounded(block.statement).measures)
    for index, measure in enumerate(block.measures):
        if isinstance(measure, Choice):
            (made,) = kernel.bounded(measure.statement).measures
            drawn.add(("choice", GROUP * made.sensitivity.l1 * step(measure.target), measure.epsilon))
            costs[index] = measure.epsilon
            continue
        sensitivity = next(summed).sensitivity
        drawn.add(drawn_for(measure, sensitivity.l1, sensitivity.l2_squared, sensitivity.largest, block.top))
        costs[index if measure.vector is None else ("vector", measure.vector)] = measure.epsilon
    if (top := block.top) is not None:
        drawn.add(("top", GROUP * kernel.bounded(block.statement).measures[0].sensitivity.largest, top.epsilon))
        costs["top"] = top.epsilon
    return drawn, list(costs.values())


def drawn_for(measure: Measure, l1: int, squared: int, largest: int, top: Top | None) -> Drawn:
    """Of groups that were chosen a unit is in all at most."""
    if top is not None:
        l1, squared = min(l1, top.count * largest), min(squared, top.count * largest**2)
    if measure.noise == "gaussian":
        return "G", GROUP**2 * (squared if measure.at_most_one else l1**2), measure.epsilon
    return "L", GROUP * l1, measure.epsilon


def expected_of_ladders(block: Block, drawn: set[Drawn]) -> tuple[set[Drawn], list[Decimal]]:
    """Each ladder has two kinds of noise, whose ε add up to its own: a third of it, and the rest."""
    found = set[Drawn]()
    for ladder in block.ladders:
        parts = {each for each in drawn if each[:2] == ("L", PARTS * GROUP)}
        (pair,) = {
            frozenset((one, other))
            for one in parts
            for other in parts
            if one[2] >= other[2] and one[2] + other[2] == ladder.epsilon
        }
        found |= pair
    return found, [ladder.epsilon for ladder in block.ladders]
