"""Shares of the price of a synopsis never add up to more than the price, and are as the proof says."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.kernel.measures import Sensitivity
from rules.kernel.statement import Marginal
from rules.mechanisms.cost import Mechanism
from rules.synopses.shares import (
    Weighed,
    check_sum,
    cost_of,
    noise_of,
    shares_of_cells,
    shares_of_marginals,
    shares_of_totals,
)
from tests.properties.planning import thorough
from tests.synthesis.generated import price

prices = st.sampled_from([price("0.01"), price("2"), price("100"), *map(Mechanism.pure, (Decimal("0.1"), Decimal(3)))])


@st.composite
def weighed(draw: st.DrawFn) -> Weighed:
    most = draw(st.sampled_from((1, 7, 40, 1_000_000)))
    cap = draw(st.integers(1, most))
    marginal = Marginal((0, 1), Sensitivity(1, most, most * cap, cap))
    return Weighed(marginal, draw(st.integers(1, 4096)), draw(st.integers(1, 10**7)))


@thorough
@given(
    paid=prices,
    tables=st.integers(1, 4),
    some=st.lists(weighed(), min_size=1, max_size=60),
    size=st.sampled_from((1, 4)),
)
def test_all_shares_together_cost_no_more_than_the_price_and_hardly_less(
    paid: Mechanism, tables: int, some: list[Weighed], size: int
) -> None:
    first = shares_of_totals(paid, tables)
    rest = shares_of_marginals(paid, some, group_size=size)

    check_sum(paid, [first] * tables + rest)
    costs = [cost_of(decimal, paid) for decimal in [first] * tables + rest]
    spent = sum(cost.rho if paid.epsilon is None else cost.epsilon or 0 for cost in costs)
    assert spent > (paid.rho if paid.epsilon is None else paid.epsilon) * Decimal("0.99999")


@thorough
@given(
    paid=prices,
    drafts=st.lists(
        st.tuples(
            st.integers(1, 200_000), st.lists(st.sampled_from(("0.2", "0.333333333333", "0.5", "1")), min_size=1)
        ),
        min_size=1,
        max_size=40,
    ),
)
def test_the_sets_of_a_cube_cost_no_more_than_the_price_and_hardly_less(
    paid: Mechanism, drafts: list[tuple[int, list[str]]]
) -> None:
    """What a statement costs grows with its share, as ε or as its square."""
    kind = Mechanism.concentrated if paid.epsilon is None else Mechanism.pure
    priced = [(cells, [kind(Decimal(epsilon)) for epsilon in epsilons]) for cells, epsilons in drafts]
    shares = shares_of_cells(paid, priced)

    pairs = zip(shares, drafts, strict=True)
    costs = [kind(share * Decimal(epsilon)) for share, (_, epsilons) in pairs for epsilon in epsilons]
    whole = paid.rho if paid.epsilon is None else paid.epsilon
    spent = sum((cost.rho if cost.epsilon is None else cost.epsilon for cost in costs), Decimal(0))
    assert whole * Decimal("0.99999") < spent <= whole
    power = 2 / 3 if paid.epsilon is None else 1 / 2
    own = [
        sum(float(kind(share * Decimal(text)).rho) for text in some)
        for share, (_, some) in zip(shares, drafts, strict=True)
    ]
    if paid.epsilon is None:
        parts = [rho / cells**power for rho, (cells, _) in zip(own, drafts, strict=True)]
        assert max(parts) <= min(parts) * (1 + 1e-6), "shares are not as the cells say"


def test_a_sum_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="more than its price"):
        check_sum(Mechanism.pure(Decimal(1)), [Decimal("0.6"), Decimal("0.5")])
    with pytest.raises(ValueError, match="more than its price"):
        check_sum(price("1"), [Decimal(1)])


@given(paid=st.sampled_from([price("1"), Mechanism.pure(Decimal(1))]), one=weighed(), two=weighed())
def test_shares_grow_with_the_distance_that_noise_means(paid: Mechanism, one: Weighed, two: Weighed) -> None:
    """Of the best shares the expected distances are in proportion to ρ, or to ε: no exchange makes both less."""
    first, second = shares_of_marginals(paid, [one, two], group_size=1)

    def distance(each: Weighed, share: Decimal) -> float:
        return each.cells / math.sqrt(float(noise_of(each.marginal, share, paid, group_size=1).precision)) / each.rows

    power = 2 if paid.epsilon is None else 1
    ratio = (float(first) / float(second)) ** power
    assert distance(one, first) / distance(two, second) == pytest.approx(ratio, rel=1e-3)
