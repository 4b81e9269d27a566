"""How much of a statement's ε each measure has: by what is made of it, as the statement and the rules alone tell.

An output's relative error is s/ε for each measure that it is made of, whatever s is, so what k outputs are made of adds
k·s/ε to the sum of all errors. With Σε given the sum is least where ε is proportional to √k (Cauchy and Schwarz).
Weights are whole, 1 for up to three outputs, 2 for up to eight: within a twelfth of the least, and what is asked for as
a part of an answer of a few outputs is mostly asked for at the same share by itself, so that it need not be paid again.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isqrt

from rules.aggregates.contributions import Contribution
from rules.planner.disjoint_measures import Vector


def weights_of(vectors: Iterable[Vector], uses: Sequence[Sequence[Contribution]]) -> tuple[Fraction, ...]:
    """A weight for each vector; `uses` are what each thing that is shown is made of.

    The count below a mean weighs as much as its centred sum. Where the mean lies at an end of its bounds both move it
    by as much, so that equal shares are best; the further it lies inside the less the count does, but where it lies is
    not known, and for a mean that may lie anywhere equal shares are within 5% of the best. Other aggregates over the
    same rows use the count more often than not, and that weighs more.
    """
    counts = (sum(not set(use).isdisjoint(vector) for use in uses) for vector in vectors)
    return tuple(Fraction(isqrt(max(1, count))) for count in counts)
