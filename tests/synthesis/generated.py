"""Tables of which all is known, and what a synopsis measures of them: noised as a synopsis is, by OpenDP."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np

from rules.accounting.accountant import largest_rho
from rules.kernel import statement
from rules.kernel.measures import Sensitivity
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import OpenDPNoise
from rules.synopses.shares import Weighed, noise_of, shares_of_marginals, shares_of_totals
from rules.synthesis.fit import counts_of, distance
from rules.synthesis.model import Between, Column, Job, Limits, Marginal, Table, Whole
from rules.values.types import INT4

DELTA = Decimal("5e-7")


def dependent_rows(rows: int, bins: Sequence[int], seed: int = 1) -> Whole:
    """Columns that follow from two hidden ones, with skewed values: all pairs depend on each other."""
    random = np.random.default_rng(seed)
    hidden = random.integers(0, 4, size=(rows, 2))
    columns = []
    for place, count in enumerate(bins):
        laws = random.dirichlet(np.full(count, 0.4), size=(4,))
        draws = (random.random(rows)[:, None] > laws[hidden[:, place % 2]].cumsum(axis=1)).sum(axis=1)
        columns.append(np.minimum(draws, count - 1))
    return np.stack(columns, axis=1).astype(np.int64)


def price(epsilon: str) -> Mechanism:
    """What a synopsis of this ε costs under a δ of 10^-6."""
    return Mechanism(None, Decimal(0), largest_rho(Decimal(epsilon), DELTA))


def measured(
    rows: Whole, bins: Sequence[int], paid: Mechanism, most: int = 1, wanted: Sequence[tuple[int, ...]] = ()
) -> Table:
    """The table with its noised pairs, and larger sets that are wanted, one row of a unit at most."""
    columns = tuple(
        Column(f"c{place}", tuple(Between(number, number, Fraction(1), INT4) for number in range(count)), f"c{place}")
        for place, count in enumerate(bins)
    )
    sets = [(), *combinations(range(len(bins)), 2), *wanted]
    exact = [_exact(rows, bins, numbers) for numbers in sets]
    reach = [statement.Marginal(numbers, Sensitivity(1, most, most**2, most)) for numbers in sets]
    weighed = [Weighed(marginal, counts.size, len(rows)) for marginal, counts in zip(reach[1:], exact[1:], strict=True)]
    shares = [shares_of_totals(paid, 1), *shares_of_marginals(paid, weighed, group_size=1)]
    noised = []
    for places, counts, marginal, share in zip(sets, exact, reach, shares, strict=True):
        law = noise_of(marginal, share, paid, group_size=1)
        noise = np.array(OpenDPNoise().draw(law, counts.size), dtype=np.float64).reshape(counts.shape)
        noised.append(Marginal(places, counts + noise, float(1 / law.precision)))
    return Table("generated", columns, tuple(noised))


def _exact(rows: Whole, bins: Sequence[int], places: tuple[int, ...]) -> np.ndarray:
    shape = tuple(bins[place] for place in places)
    if not places:
        return np.array(float(len(rows)))
    cells = np.ravel_multi_index(tuple(rows[:, place] for place in places), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def job(table: Table, seed: int = 7) -> Job:
    return Job((table,), seed, Limits())


def distances(truth: Whole, made: Whole, table: Table) -> list[float]:
    """The total variation of each pair."""
    pairs = [marginal for marginal in table.marginals if marginal.columns]
    return [distance(counts_of(truth, pair), counts_of(made, pair)) for pair in pairs]
