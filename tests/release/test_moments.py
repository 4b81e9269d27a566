"""Statistics from moments: without noise they are PostgreSQL's own, with any noise they stay possible."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rules.frozen import replace
from rules.mechanisms.noised_outputs import Moment, Spread, Statistic
from rules.release.moments import FORMULAS
from rules.release.outputs import show
from tests.conftest import RealDatabase

KINDS: tuple[str, ...] = tuple(FORMULAS)
HALF = Fraction(1, 2)
LOW, HIGH = {"x": 0, "y": -5}, {"x": 100, "y": 20}
X = Spread(Moment(1, HALF), Moment(2, HALF**2), Fraction(LOW["x"]), Fraction(HIGH["x"]))
Y = Spread(Moment(3, HALF), Moment(4, HALF**2), Fraction(LOW["y"]), Fraction(HIGH["y"]))
PAIRS = st.lists(st.tuples(st.integers(0, 100), st.integers(-5, 20)), max_size=12)


def statistic(kind: str) -> Statistic:
    if kind.startswith(("var", "stddev")):
        return Statistic(kind, 0, X, 10)
    return Statistic(kind, 0, X, 10, Y, Moment(5, HALF**2))


def moments(pairs: list[tuple[int, int]]) -> list[int]:
    dx = [2 * x - 100 for x, _ in pairs]
    dy = [2 * y - 15 for _, y in pairs]
    squares_x, squares_y = sum(d * d for d in dx), sum(d * d for d in dy)
    return [len(pairs), sum(dx), squares_x, sum(dy), squares_y, sum(a * b for a, b in zip(dx, dy, strict=True))]


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [(7, 3)],
        [(7, 3), (7, 9)],
        [(7, 3), (9, 3)],
        [(1, 2), (50, 3), (100, -5), (100, 20), (3, 3)],
        [(10, 10), (20, 15), (30, 20)],
        [(10, 10), (20, 5), (30, 0)],
    ],
)
def test_statistics_are_postgresql_s_own(shop: RealDatabase, pairs: list[tuple[int, int]]) -> None:
    for kind in KINDS:
        arguments = "x" if kind.startswith(("var", "stddev")) else "y, x"
        query = f"SELECT {kind}({arguments})::numeric FROM unnest(%s::float8[], %s::float8[]) AS t(x, y)"
        with shop.connect() as connection:
            columns = [x for x, _ in pairs], [y for _, y in pairs]
            (expected,) = connection.execute(query, columns).fetchone() or (None,)

        shown = show(statistic(kind), moments(pairs))
        assert (shown is None) == (expected is None), kind
        assert shown is None or float(shown) == pytest.approx(float(expected), abs=1e-8), kind


@given(pairs=PAIRS, noise=st.lists(st.integers(-10_000, 10_000), min_size=6, max_size=6), kind=st.sampled_from(KINDS))
def test_whatever_the_noise_no_statistic_is_impossible(
    pairs: list[tuple[int, int]], noise: list[int], kind: str
) -> None:
    noised = [moment + number for moment, number in zip(moments(pairs), noise, strict=True)]
    shown = show(statistic(kind), noised)
    assume(shown is not None and noised[0] > 2)

    limits = {"var": (0, 3750), "stddev": (0, 62), "corr": (-1, 1), "regr_r2": (0, 1), "regr_avgx": (0, 100)}
    for prefix, (low, high) in limits.items():
        if kind.startswith(prefix):
            assert low <= float(shown or "") <= high
    assert len((shown or "").partition(".")[2]) >= 10


def test_a_statistic_of_two_columns_needs_both() -> None:
    with pytest.raises(ValueError, match="two columns"):
        show(Statistic("corr", 0, X, 10), moments([(1, 1)]))


@pytest.mark.parametrize(
    ("kind", "power"), [("var_samp", 2), ("stddev_pop", 1), ("covar_pop", 1), ("regr_sxx", 2), ("regr_sxy", 1)]
)
def test_a_statistic_of_small_numbers_has_digits_too(kind: str, power: int) -> None:
    """A variance of nanometres was shown as 0, however many rows it was of."""
    part, pairs = Fraction(1, 10**12), [(1, 2), (50, 3), (100, -5), (100, 20), (3, 3)]
    usual = statistic(kind)
    small = Spread(Moment(1, HALF * part), Moment(2, (HALF * part) ** 2), LOW["x"] * part, HIGH["x"] * part)
    products = None if usual.products is None else Moment(5, HALF**2 * part)

    shown = show(replace(usual, x=small, products=products), moments(pairs))

    assert float(shown or "") == pytest.approx(float(show(usual, moments(pairs)) or "") * float(part) ** power)
