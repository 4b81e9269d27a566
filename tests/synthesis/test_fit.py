"""Rows that are fitted to noised counts: how near they come, and that their distance is told without the data."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.synthesis.fit import consistent, fit, simplex
from rules.synthesis.model import Column, Label, Marginal, Table
from tests.properties.planning import thorough
from tests.synthesis.generated import dependent_rows, distances, job, measured, price

BINS = (2, 3, 5, 8, 13)
ROWS = dependent_rows(20_000, BINS)


@pytest.mark.extended
@pytest.mark.parametrize(("epsilon", "most"), [("0.25", 0.08), ("1", 0.035), ("2", 0.025), ("4", 0.018)])
def test_pairs_are_as_near_as_the_price_allows_and_the_distance_is_told(epsilon: str, most: float) -> None:
    table = measured(ROWS, BINS, price(epsilon))

    fitted = fit(job(table), time.monotonic)
    true = float(np.mean(distances(ROWS, fitted.tables[0].bins, table)))
    told = float(np.mean([pair.expected for pair in fitted.pairs]))

    assert true < most
    assert abs(told / true - 1) < 0.25
    assert all(pair.low <= pair.expected <= pair.high for pair in fitted.pairs)


@pytest.mark.extended
def test_more_is_paid_and_nearer_they_are() -> None:
    means = []
    for epsilon in ("0.25", "1", "4"):
        table = measured(ROWS, BINS, price(epsilon))
        means.append(np.mean(distances(ROWS, fit(job(table), time.monotonic).tables[0].bins, table)))

    assert means[0] > 1.5 * means[1] > 1.5 * means[2]


@pytest.mark.extended
def test_the_same_release_makes_the_same_rows() -> None:
    table = measured(ROWS, BINS, price("1"))
    one, two, other = (fit(job(table, seed), time.monotonic).tables[0].bins for seed in (3, 3, 4))

    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.slow
def test_a_table_has_as_many_rows_as_its_noised_counts_say() -> None:
    table = measured(ROWS, BINS, price("1"))
    total, ones, goals = consistent(table)

    assert abs(total - len(ROWS)) < 50
    assert all(abs(float(one.sum()) - total) < 1e-6 * total for one in (*ones, *goals))
    assert all(float(one.min()) >= 0 for one in (*ones, *goals))
    assert len(fit(job(table), time.monotonic).tables[0].bins) == round(total)


@thorough
@given(seed=st.integers(0, 2**32), sd=st.sampled_from((1.0, 30.0, 1000.0)), is_whole=st.booleans())
def test_a_measured_triple_has_the_sums_that_its_pairs_have(seed: int, sd: float, is_whole: bool) -> None:
    random, shape = np.random.default_rng(seed), (2, 3, 4)
    exact = random.dirichlet(np.ones(24)).reshape(shape) * 5000
    sets = [(), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    sums = [exact.sum(axis=tuple({0, 1, 2} - set(numbers))) for numbers in sets]
    marginals = tuple(
        Marginal(set_, counts + random.normal(0, sd, counts.shape), sd**2, is_whole or len(set_) < 3)
        for set_, counts in zip(sets, sums, strict=True)
    )
    columns = tuple(Column(str(count), tuple(Label(str(place)) for place in range(count))) for count in shape)

    total, _, goals = consistent(Table("t", columns, marginals))

    assert all(float(goal.min()) >= 0 and abs(float(goal.sum()) - total) < 1e-6 * total for goal in goals)
    apart = [float(np.abs(goals[3].sum(axis=axis) - pair).sum()) / total for axis, pair in enumerate(goals[2::-1])]
    assert sd > 1 or max(apart) < 0.02, "pairs of little noise agree, so that a table has their sums"


@thorough
@given(
    values=st.lists(st.floats(-1000, 1000), min_size=1, max_size=12),
    total=st.floats(0.5, 2000),
    seed=st.integers(0, 2**32),
)
def test_the_nearest_point_of_a_simplex_is_found(values: list[float], total: float, seed: int) -> None:
    given_values = np.array(values)
    found = simplex(given_values, total)

    assert float(found.min()) >= 0
    assert abs(float(found.sum()) - total) < 1e-6 * max(1.0, total)
    other = np.random.default_rng(seed).dirichlet(np.ones(len(values))) * total
    # Of the nearest point the way to any other one is no way towards what is projected.
    assert float(np.dot(given_values - found, other - found)) <= 1e-6 * max(1.0, total) * 2000
