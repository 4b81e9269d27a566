"""What leaves a synopsis is the exact counts plus noise of the law that each share pays for, and nothing else."""

from collections import Counter
from decimal import Decimal
from statistics import NormalDist

import numpy as np
import pytest

from rules.accounting.store import Release
from rules.kernel.ground import Ground
from rules.mechanisms.additive import AdditiveNoise
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import OpenDPNoise
from rules.replay import Kernel
from rules.synopses.plan import SynopsisPlan, plan_synopsis
from rules.synopses.release import Measured, measured, release_synopsis
from rules.synopses.shares import cost_of, noise_of, price_of
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of

RULES = shop_data.RULES + (
    "synopses: {explore: {epsilon: 2, tables: {customers: [city, segment, country], "
    "orders: [customers.city, status, ordered_at by month, amount by 20]}, "
    "marginals: {orders: [[customers.city, status, amount]]}}}\n"
)
TIMES = 40


@pytest.fixture(scope="module", params=["gaussian", "laplace"])
def looked(request: pytest.FixtureRequest, shop: RealDatabase) -> tuple[SynopsisPlan, list[Measured], Mechanism]:
    rules = RULES if request.param == "gaussian" else RULES.replace(", delta: 1e-6", "").replace(", delta: 1e-9", "")
    policy, catalog = shop_data.policy(rules=rules), catalog_of(shop.dsn)
    plan = plan_synopsis("explore", policy, catalog)
    kernel, tables = Kernel(Ground(policy, catalog)), []
    with shop.connect() as connection:
        for table in plan.tables:
            made = kernel.marginals(table.statement)
            rows = connection.execute(made.sql.encode()).fetchall()
            sent = [tuple(None if cell is None else str(cell).encode() for cell in row) for row in rows]
            tables.append(measured(table, made, sent))
    return plan, tables, price_of(plan.rules.epsilon, policy)


def _noise(
    release: Release, tables: list[Measured], price: Mechanism
) -> list[tuple[tuple[str, str], AdditiveNoise, list[int]]]:
    """By marginal its law, as its share says it, and what was added."""
    known, start, found = {str(table.table.table.name): table for table in tables}, 0, []
    for name, number, epsilon in release.groups:
        table = known[str(name)]
        exact, marginal = table.counts[int(str(number))], table.statement.marginals[int(str(number))]
        noised = release.values[start : start + len(exact)]
        start += len(exact)
        law = noise_of(marginal, Decimal(str(epsilon)), price, group_size=1)
        added = [one - two for one, two in zip(noised, exact, strict=True)]
        found.append(((str(name), str(number)), law, added))
    assert start == len(release.values)
    return found


def test_counts_carry_the_noise_that_their_share_pays_for(
    looked: tuple[SynopsisPlan, list[Measured], Mechanism],
) -> None:
    plan, tables, price = looked
    drawn: list[float] = []
    random = np.random.default_rng(5)
    for _ in range(TIMES):
        for _, law, added in _noise(release_synopsis(plan, tables, price, OpenDPNoise()), tables, price):
            scale = float(law.precision) ** -0.5
            drawn += [(each + random.uniform(-0.5, 0.5)) / scale for each in added]

    assert len(drawn) > 10_000
    assert abs(np.std(drawn) - 1) < 0.02
    assert abs(np.mean(drawn)) < 0.03
    if price.epsilon is None:
        normal = NormalDist()
        cells = Counter(int(20 * normal.cdf(each)) for each in drawn)
        assert sum((cells[cell] - len(drawn) / 20) ** 2 / (len(drawn) / 20) for cell in range(20)) < 90


def test_noise_of_marginals_and_of_releases_is_unrelated(
    looked: tuple[SynopsisPlan, list[Measured], Mechanism],
) -> None:
    plan, tables, price = looked
    one, two = (  # in scales of its law: else the few counts with the largest noise decide
        [each * float(law.precision) ** 0.5 for _, law, added in _noise(release, tables, price)[2:] for each in added]
        for release in (release_synopsis(plan, tables, price, OpenDPNoise()) for _ in range(2))
    )

    assert abs(np.corrcoef(one, two)[0, 1]) < 7 / len(one) ** 0.5
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 7 / len(one) ** 0.5


def test_the_shares_of_a_release_cost_no_more_than_was_charged(
    looked: tuple[SynopsisPlan, list[Measured], Mechanism],
) -> None:
    plan, tables, price = looked
    for _ in range(TIMES):
        release = release_synopsis(plan, tables, price, OpenDPNoise())
        costs = [cost_of(Decimal(str(epsilon)), price) for _, _, epsilon in release.groups]
        assert release.mechanism == price
        assert sum(cost.rho for cost in costs) <= price.rho
        assert price.epsilon is None or sum(cost.epsilon or 0 for cost in costs) <= price.epsilon
