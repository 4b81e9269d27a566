"""How far noise moves an answer: the distance within which a stated share of answers lies.

Only noise is in a margin. What clamping, truncation and thresholds take away is not.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from rules.noise.law import Law
from rules.noise.measures import CentredSum, Count, Output, Sum


def percent(level: Decimal) -> str:
    """A level in words.

    Example:
        >>> percent(Decimal("0.950")), percent(Decimal("0.999"))
        ('95%', '99.9%')
    """
    return f"{(level * 100).normalize():f}%"


def margin_of_output(output: Output, laws: Mapping[int, Law], level: Decimal) -> Fraction | None:
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
