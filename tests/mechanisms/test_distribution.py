"""Laws of noise: as many draws lie within a distance as is said, however they are added up and rounded."""

from decimal import Decimal
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.distribution import Distribution, Vector

DRAWS = 200_000
LAWS = [
    Distribution(((10.0, 1),)),
    Distribution(((10.0, 2),)),
    Distribution(((1.0, 1), (10.0, 1))),
    Distribution(((1.0, 1), (50.0, 1), (100.0, 1))),
    Distribution(((3.0, 12),)),
    Distribution(((1e-3, 1), (1.0, 1))),
    Distribution(((2.0, 150),)),
    Distribution(variance=9.0),
    Distribution(((2.0, 1),), variance=9.0),
    Distribution(((20.0, 3),), variance=1.0),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_the_share_that_is_said_lies_within(law: Distribution, share: float) -> None:
    drawn = drawn_from(law, np.random.default_rng(7))

    assert np.mean(np.abs(drawn) <= law.within(share)) == pytest.approx(share, abs=0.003)
    assert np.std(drawn) == pytest.approx(law.deviation, rel=0.02)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_quantiles_and_margins_of_rounded_noise_are_the_smallest_whole_numbers_that_hold(law: Distribution) -> None:
    rounded = np.abs(np.rint(drawn_from(law, np.random.default_rng(11))))
    margin = law.margin(Decimal("0.9"))

    assert law.quantiles([0.95]) == [margin]
    assert np.mean(rounded <= margin) >= 0.897
    assert margin == 0 or np.mean(rounded <= margin - 1) <= 0.903


def drawn_from(law: Distribution, generator: np.random.Generator) -> Vector:
    drawn = generator.normal(0, sqrt(law.variance), DRAWS)
    for scale, count in law.laplace:
        drawn += (
            generator.laplace(0, scale, (count, DRAWS)).sum(axis=0) if count < 100 else many(scale, count, generator)
        )
    return drawn


def many(scale: float, count: int, generator: np.random.Generator) -> Vector:
    """A sum of Laplace draws is a difference of two gamma draws."""
    return generator.gamma(count, scale, DRAWS) - generator.gamma(count, scale, DRAWS)


@pytest.mark.parametrize("draws", [2, 3, 10, 150, 5_000])
def test_the_law_of_a_sum_is_that_of_a_difference_of_gamma_laws(draws: int) -> None:
    """Its second and fourth moments: 2n and 12n(n + 1)."""
    law = Distribution.of_laplace(1000.0).repeated(draws)
    found = [
        quantile / 1000 for quantile in law.quantiles([(2 * place + 1) / 20_000 for place in range(5_000, 10_000)])
    ]

    assert sum(x**2 for x in found) / len(found) == pytest.approx(2 * draws, rel=0.02)
    assert sum(x**4 for x in found) / len(found) == pytest.approx(12 * draws * (draws + 1), rel=0.1)


@given(scale=st.floats(0.5, 1e6), variance=st.floats(0, 1e6), factor=st.floats(0.01, 100), count=st.integers(1, 50))
def test_what_is_multiplied_and_added_up_has_the_variance_that_it_must_have(
    scale: float, variance: float, factor: float, count: int
) -> None:
    law = Distribution(((scale, 1),), variance)

    assert law.times(-factor).deviation == pytest.approx(law.deviation * factor)
    assert law.repeated(count).deviation == pytest.approx(law.deviation * sqrt(count))
    assert law.plus(law).deviation == law.repeated(2).deviation
