"""From which noisy number of units on a group found in the data may be shown, so that its name betrays nobody.

A group that exists only because of one unit must pass with so small a chance that all of that unit's groups together
pass with at most δ. (The form is that of Wilson et al., "Differentially Private SQL with Bounded User Contribution",
2020, with the exact tail of the discrete law.)

What the filters need of it is more than (ε, δ). Let D have k units more than D', let the candidates be the groups with
a counted unit (with `at_least` of them, where fewer are left out), and let B be the event that over D a group passes
which is no candidate over D'. Then:

* Each unit is counted in at most K groups, in each once, so there are at most k·K such groups, and each has at most k
  units (at most at_least − 1 + k). By τ each passes with probability at most 1 − (1−δ)^(1/kK), all with noise of their
  own, so β = P(B) ≤ δ.
* The noise of all other groups is independent of B. So without B the release over D is N(D): the numbers of D, noised
  and held against τ over the candidates of D' alone. And N(D') is the release over D' itself.
* The candidates of D' are one list for N(D) and N(D'), over which the numbers are at most k·K apart in L1: so N is
  ε-private.

So the release over D is N(D) with probability 1 − β and anything otherwise, and over D' it is N(D'), always. How such
releases add up to the (ε, δ) of an account, whoever asks next by what was answered, is in the README of these rules,
under Composition.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

from rules.mechanisms.additive import AdditiveNoise, noise_of
from rules.mechanisms.release_plan import Measure

_PRECISION = 120
_UP = Context(prec=_PRECISION, rounding=ROUND_CEILING)
_DOWN = Context(prec=_PRECISION, rounding=ROUND_FLOOR)


def find_threshold(units: Measure, delta: Decimal, *, group_size: int = 1, at_least: int = 1) -> int:
    """The smallest τ with P(k + noise ≥ τ) ≤ 1 − (1−δ)^(1/(k·K)), for k units together and K groups of each.

    Where groups of fewer than `at_least` units were left out before, k units more make a group of at_least − 1 + k
    appear, so τ is that much higher.

    Example:
        >>> find_threshold(Measure("units", sensitivity=1, epsilon=Decimal(1)), Decimal("1e-6"))
        15
        >>> find_threshold(Measure("units", sensitivity=40, epsilon=Decimal("0.05")), Decimal("1e-8"))
        17135
    """
    if units.factor != 1:
        raise ValueError("a threshold looks at whole units")
    if not 0 < delta < 1:
        raise ValueError(f"a threshold needs a delta between 0 and 1, not {delta}")
    noise, groups = noise_of(units, group_size=group_size), units.sensitivity * group_size
    return at_least - 1 + group_size + _tail(noise, delta, groups)


@lru_cache(maxsize=1024)
def _tail(noise: AdditiveNoise, delta: Decimal, groups: int) -> int:
    """Kept by numbers alone, whatever the measure is called."""
    return noise.least_tail(_share_of(delta, groups))


def _share_of(delta: Decimal, groups: int) -> Decimal:
    """1 − (1−δ)^(1/n), rounded down. By Bernoulli it is never less than δ/n, which serves where digits run out."""
    power = _UP.exp(_UP.divide(_UP.ln(_UP.subtract(Decimal(1), delta)), Decimal(groups)))
    slack = Decimal(10) ** (8 - _PRECISION)  # exp and ln round to the nearest digit, whatever the context says
    return max(_DOWN.subtract(Decimal(1), power) - slack, _DOWN.divide(delta, Decimal(groups)))
