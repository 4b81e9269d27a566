"""The filters: exact sums, a conversion that agrees with the published one, and never more than was allowed."""

import math
from decimal import Decimal

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.accounting.accountant import Limit, Totals, epsilon_of, fits, grantable, largest_rho, loss
from rules.mechanisms.cost import Mechanism

dp.enable_features("contrib")

epsilons = st.decimals("0.000001", "3", places=6).filter(lambda epsilon: epsilon > 0)
deltas = st.sampled_from([Decimal(text) for text in ("1e-3", "1e-6", "1e-9", "1e-30")])


def paid(epsilon: str, times: int, delta: str = "0") -> Totals:
    return Totals().plus([Mechanism.pure(Decimal(epsilon), Decimal(delta))] * times)


def test_many_small_charges_add_up_exactly() -> None:
    totals = paid("1", 1).plus([Mechanism.pure(Decimal("1e-17"))] * 1000)

    assert totals.epsilon == Decimal("1.00000000000001")
    assert not fits(totals, Limit(Decimal(1)))


def test_basic_composition_fills_a_budget_to_its_last_digit() -> None:
    assert fits(paid("0.1", 50), Limit(Decimal(5)))
    assert not fits(paid("0.1", 50).plus([Mechanism.pure(Decimal("1e-12"))]), Limit(Decimal(5)))


def test_with_a_delta_many_small_releases_cost_less() -> None:
    limit = Limit(Decimal(10), Decimal("2e-6"))

    assert fits(paid("0.1", 300), limit)
    assert not fits(paid("0.1", 300), Limit(Decimal(10)))
    assert not fits(paid("0.1", 320), limit)


def test_few_large_releases_are_granted_by_basic_composition() -> None:
    limit = Limit(Decimal(1), Decimal("1e-6"))

    assert fits(paid("0.5", 2), limit)
    assert not fits(paid("0.5", 3), limit)


def test_half_of_delta_is_for_thresholds_and_half_for_the_conversion() -> None:
    limit = Limit(Decimal(10), Decimal("1e-6"))

    assert fits(paid("0.1", 1, "5e-7"), limit)
    assert not fits(paid("0.1", 1, "5.000001e-7"), limit)
    assert not fits(paid("0.1", 1, "1e-30"), Limit(Decimal(10)))


def test_a_release_without_pure_epsilon_is_granted_by_concentration_alone() -> None:
    gaussian = Totals().plus([Mechanism(None, Decimal(0), Decimal("0.001"))])

    assert fits(gaussian, Limit(Decimal(1), Decimal("1e-6")))
    assert not fits(gaussian, Limit(Decimal(1)))
    assert loss(gaussian, Limit(Decimal(1))) == Decimal("Infinity")


@given(epsilon=epsilons, delta=deltas)
def test_the_largest_rho_means_at_most_the_epsilon_it_was_made_for(epsilon: Decimal, delta: Decimal) -> None:
    assert epsilon_of(largest_rho(epsilon, delta), delta) <= epsilon * (1 + Decimal("1e-4"))


@given(rho=st.floats(1e-6, 2), delta=st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_the_conversion_agrees_with_opendp_and_beats_the_simple_one(rho: float, delta: float) -> None:
    sigma = math.sqrt(1 / (2 * rho))
    gaussian = dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=float), scale=sigma)
    curve = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0)  # type: ignore[no-untyped-call]

    ours = float(epsilon_of(Decimal(rho), Decimal(delta)))
    assert ours == pytest.approx(curve.epsilon(delta), rel=1e-3)
    assert ours <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-9


@given(spent=st.lists(st.tuples(epsilons, st.booleans()), max_size=40), delta=deltas)
def test_what_is_granted_is_within_one_of_the_two_guarantees(spent: list[tuple[Decimal, bool]], delta: Decimal) -> None:
    limit, totals = Limit(Decimal(2), delta), Totals()
    for epsilon, is_choice in spent:
        more = totals.plus([Mechanism.choice(epsilon) if is_choice else Mechanism.pure(epsilon)])
        totals = more if fits(more, limit) else totals

    assert loss(totals, limit) <= limit.epsilon * (1 + Decimal("1e-4"))


@given(st.lists(epsilons, max_size=60), epsilons, st.sampled_from(["0", "1e-9", "1e-4"]))
def test_what_is_told_to_be_grantable_is_granted_and_hardly_more_is(
    past: list[Decimal], budget: Decimal, delta: str
) -> None:
    limit = Limit(budget, Decimal(delta))
    totals = Totals().plus(map(Mechanism.pure, past))
    most = grantable(totals, limit)

    if most > 0:
        assert fits(totals.plus([Mechanism.pure(most)]), limit)
    assert not fits(totals.plus([Mechanism.pure(most + Decimal("1e-9"))]), limit)


def test_nothing_is_grantable_once_delta_is_overspent() -> None:
    assert grantable(paid("0.1", 1, delta="1e-6"), Limit(Decimal(5), Decimal("1e-6"))) == 0
