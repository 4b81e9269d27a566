"""How far noise moves an answer: the distance within which a stated share of answers lies.

Only noise is in a margin. What clamping, truncation and thresholds take away is not.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import Average, CentredSum, Count, Output, Sum


def percent(level: Decimal) -> str:
    """A level in words.

    Example:
        >>> percent(Decimal("0.950")), percent(Decimal("0.999"))
        ('95%', '99.9%')
    """
    return f"{(level * 100).normalize():f}%"


def margin_of_output(output: Output, laws: Mapping[int, Distribution], level: Decimal) -> Fraction | None:
    """The margin at a level of what has noise of these laws, by measure; None where it depends on the answer itself."""
    match output:
        case Count(measure=measure):
            return Fraction(laws[measure].margin(level))
        case Sum(measure=measure, step=step):
            return laws[measure].margin(level) * step
        case CentredSum(halves=halves, count=count, middle=middle, step=step):
            law = laws[halves].plus(laws[count].times(middle))
            return Fraction(law.within(float(level))) * step / 2
        case _:
            return None


def margin_of_average(output: Average, laws: Mapping[int, Distribution], level: Decimal, slack: float = 0.0) -> float:
    """So many times the rows of a group a mean is off by at most this, however far from the middle it lies.

    mid + sum/count moves by (δs − (mean − mid)·δn)/count, and |mean − mid| is at most half of the bounds' width. A
    group so small that the noise of its count matters has more: `slack` is for that noise, in the mean's own unit.
    """
    half = float(output.high - output.low) / 2
    law = laws[output.halves].times(float(output.step) / 2).plus(laws[output.count].times(half + slack))
    return law.within(float(level))
