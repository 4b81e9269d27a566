"""What leaves a cube is the exact cells plus noise of the law that its share pays for, in all sets at once."""

import numpy as np
import pytest

from rules.kernel.ground import Ground
from rules.mechanisms.additive import noise_of
from rules.mechanisms.draw import Noise, OpenDPNoise
from rules.mechanisms.release_plan import Measure
from rules.release.release import draw, known_groups, release
from rules.replay import Kernel
from rules.synopses.cubes import CubePlan, KeySet, plan_cube
from tests.conftest import RealDatabase
from tests.mechanisms.sources import ConstantNoise
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of

CUBE = "cube: [ordered_at by month, status, customers.city], measures: [count, sum(amount)], table: orders"
RULES = f"{shop_data.RULES}synopses: {{daily: {{epsilon: 2, {CUBE}}}}}\n"
TIMES = 12
LEAVER = 7  # a customer with far more orders than count
Rows = list[tuple[bytes | None, ...]]


@pytest.fixture(scope="module", params=["gaussian", "laplace"])
def looked(
    request: pytest.FixtureRequest, shop: RealDatabase
) -> tuple[CubePlan, dict[tuple[str, ...], Rows], dict[tuple[str, ...], Rows]]:
    """The plan, and by set the rows of its statement, with one customer and without."""
    rules = RULES if request.param == "gaussian" else RULES.replace(", delta: 1e-6", "").replace(", delta: 1e-9", "")
    policy, catalog = shop_data.policy(rules=rules), catalog_of(shop.dsn)
    plan, kernel = plan_cube("daily", policy, catalog), Kernel(Ground(policy, catalog))
    found: list[dict[tuple[str, ...], Rows]] = []
    with shop.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute("SET TimeZone = 'UTC'")
        for _ in range(2):
            asked = {key_set.keys: kernel.bounded(key_set.block.statement).sql.encode() for key_set in plan.sets}
            found.append({keys: _sent(connection.execute(sql).fetchall()) for keys, sql in asked.items()})
            items = "DELETE FROM order_items USING orders WHERE order_id = orders.id AND customer_id = %s"
            connection.execute(items, [LEAVER])
            connection.execute("DELETE FROM orders WHERE customer_id = %s", [LEAVER])
    return plan, found[0], found[1]


def _sent(rows: list[tuple[object, ...]]) -> Rows:
    return [tuple(None if cell is None else str(cell).encode() for cell in row) for row in rows]


def _released(each: KeySet, rows: Rows, source: Noise) -> dict[int, np.ndarray]:
    groups = known_groups(each.block)
    assert groups is not None
    draws = draw(each.block, range(len(each.block.measures)), len(groups), source, group_size=1)
    noised = release(each.block, groups, rows, draws, codec="utf-8")
    return {index: np.array(values, dtype=np.float64) for index, values in noised.values.items()}


def test_cells_carry_the_noise_that_their_share_pays_for(
    looked: tuple[CubePlan, dict[tuple[str, ...], Rows], dict[tuple[str, ...], Rows]],
) -> None:
    plan, rows, _ = looked
    drawn: list[np.ndarray] = []
    random = np.random.default_rng(5)
    for key_set in plan.sets:
        exact = _released(key_set, rows[key_set.keys], ConstantNoise(0))
        for _ in range(TIMES):
            for index, values in _released(key_set, rows[key_set.keys], OpenDPNoise()).items():
                measure = key_set.block.measures[index]
                assert isinstance(measure, Measure)
                scale = float(noise_of(measure, group_size=1).precision) ** -0.5
                drawn.append((values - exact[index] + random.uniform(-0.5, 0.5, len(values))) / scale)
    whole = np.concatenate(drawn)

    assert len(whole) > 10_000
    assert abs(np.std(whole) - 1) < 0.02
    assert abs(np.mean(whole)) < 0.05


def test_a_unit_moves_all_sets_together_by_no_more_than_the_price(
    looked: tuple[CubePlan, dict[tuple[str, ...], Rows], dict[tuple[str, ...], Rows]],
) -> None:
    """The loss of the very vectors that are released, with one customer and without: Σ Δ²/2σ², or Σ |Δ|/b."""
    plan, rows, without = looked
    spent = 0.0
    for key_set in plan.sets:
        count = len(key_set.block.measures)
        here, there = (_exact(of[key_set.keys], count) for of in (rows, without))
        for index, measure in enumerate(key_set.block.measures):
            assert isinstance(measure, Measure)
            cells = here.keys() | there.keys()
            moved = np.array([abs(here.get(cell, (0, 0))[index] - there.get(cell, (0, 0))[index]) for cell in cells])
            precision, fine = float(noise_of(measure, group_size=1).precision), moved / measure.factor
            assert 0 < np.sum(moved) <= measure.sensitivity
            is_gaussian = plan.price.epsilon is None
            spent += precision * np.sum(fine**2) / 2 if is_gaussian else np.sum(fine) * (2 * precision) ** 0.5
    price = float(plan.price.rho if plan.price.epsilon is None else plan.price.epsilon)
    assert 0 < spent <= price * (1 + 1e-6)


def _exact(rows: Rows, measures: int) -> dict[tuple[bytes | None, ...], tuple[int, ...]]:
    """The integers that noise is added to, by cell."""
    return {row[:-measures]: tuple(int(cell or 0) for cell in row[-measures:]) for row in rows}
