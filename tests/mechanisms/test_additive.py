"""Laws of noise: the rules file names those of the table, and the table alone says what there is to know of one."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Self, get_args

import pytest

from rules.frozen import frozen
from rules.mechanisms.additive import (
    NOISES,
    GaussianNoise,
    LaplaceNoise,
    kind_paid,
    laws_of,
    mechanism_of,
    noise_of,
    noise_paid,
)
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.noised_outputs import Count
from rules.mechanisms.release_plan import Block, Measure, PublicGroups
from rules.policy.model import PURE_NOISE, NoiseKind
from rules.release.release import draw
from tests.support.written import NOTHING

kinds = pytest.mark.parametrize("kind", get_args(NoiseKind))


def block_of(measure: Measure) -> Block:
    return Block("", NOTHING, (), PublicGroups(((),)), (measure,), (Count(0),), ("bigint",), ())


def test_the_rules_file_names_the_laws_of_the_table_and_those_with_a_pure_epsilon() -> None:
    assert set(get_args(NoiseKind)) == set(NOISES)
    assert {kind for kind, noise in NOISES.items() if noise.is_pure} == PURE_NOISE


@kinds
def test_a_price_tells_its_law(kind: NoiseKind) -> None:
    paid = NOISES[kind].price(Decimal("0.3"))

    assert (paid.epsilon is not None) == NOISES[kind].is_pure
    assert kind_paid(paid) == kind


@frozen
class WideNoise(LaplaceNoise):
    """A law that no module but this one knows: twice the noise for the price."""

    @classmethod
    def over(cls, l1: int, l2_squared: int, epsilon: Decimal, factor: int = 1) -> Self:
        return cls(2 * l1, epsilon, factor)

    @classmethod
    def price(cls, epsilon: Decimal) -> Mechanism:
        return Mechanism.concentrated(epsilon)


def test_a_law_in_the_table_is_drawn_priced_and_told_without_any_other_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NOISES, "gaussian", WideNoise)
    measure = Measure("rows", 3, Decimal("0.5"), noise="gaussian")

    noise = noise_of(measure, group_size=2)
    (drawn,) = draw(block_of(measure), [0], 4000, OpenDPNoise(), group_size=2).values()

    assert noise == WideNoise(12, Decimal("0.5"))
    assert laws_of(block_of(measure), group_size=2) == {0: noise.law}
    assert mechanism_of(block_of(measure), 0) == WideNoise.price(Decimal("0.5"))
    assert sum(map(abs, drawn)) / len(drawn) == pytest.approx(24, rel=0.2)  # twelve deviations of the mean
    assert len(Counter(drawn)) > 50


@pytest.mark.parametrize("group_size", [1, 3])
def test_gaussian_noise_of_a_count_of_units_grows_with_the_root_of_their_groups(group_size: int) -> None:
    units = Measure("units", 40, Decimal("0.1"), noise="gaussian", at_most_one=True)

    noise = noise_of(units, group_size=group_size)

    assert noise == GaussianNoise(40 * group_size**2, Decimal("0.1"))
    assert noise.law.deviation == pytest.approx(group_size * 40**0.5 / 0.1)


def test_gaussian_noise_of_anything_else_is_made_for_all_of_a_unit_in_one_group() -> None:
    rows = Measure("rows", 40, Decimal("0.1"), noise="gaussian")

    assert noise_of(rows, group_size=1).law.deviation == pytest.approx(40 / 0.1)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_what_a_release_cost_tells_what_noise_is_in_it(kind: NoiseKind) -> None:
    measure = Measure("units", 40, Decimal("0.123456789012"), noise=kind, at_most_one=True)
    block = Block("", NOTHING, (), PublicGroups(((),)), (measure,), (Count(0),), ("bigint",), ())

    paid = mechanism_of(block, 0)

    other = replace(measure, noise="laplace", epsilon=Decimal(1))
    assert noise_paid(other, paid, group_size=2) == noise_of(measure, group_size=2)
    assert (paid.epsilon is None) == (kind == "gaussian")
