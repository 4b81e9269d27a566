"""Outputs of a block, each computed from noised integers alone (`release.outputs`), and how far noise moves them.

Only noise is in a margin. What clamping, truncation and thresholds take away is not.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from rules.frozen import frozen
from rules.mechanisms.distribution import Distribution

Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float64]]  # groups × replicates


MOST_CANDIDATES: Final = 4_096  # of a choice: each has a draw in every group
MOST_DIGITS: Final = 16_383  # after the point, as numeric has them

Text = str | None  # a value as PostgreSQL prints it; None is NULL


@frozen
class Count:
    """A count: the measure itself, not below zero where a select item shows it bare."""

    measure: int  # which of the block's measures
    shown_bare: bool = False
    adds_up: bool = False  # counts of rows: those of groups are parts of that of all
    most: int | None = None  # of different values of a list: it is shown as no less than 0 and no more than this

    def held(self, number: int) -> int:
        """The number that is shown."""
        if self.most is not None:
            return min(max(0, number), self.most)
        return max(0, number) if self.shown_bare else number


@frozen
class Sum:
    """(measure) · step, printed with exactly `digits` after the point."""

    measure: int
    step: Fraction
    digits: int
    adds_up: bool = False  # nothing that is summed is below zero, nor any sum
    most: int | None = None  # that its type has, if noise can bring it beyond


@frozen
class Average:
    """The mean of a clamped column from centred halves: mid + (halves / 2 · step) / count, within [low, high]."""

    halves: int  # measure: Σ (2q − (Lo+Hi))
    count: int  # measure: rows with a value
    step: Fraction
    low: Fraction
    high: Fraction
    digits: int
    least: Fraction | None = None  # where a mean is known to be no less, though the bounds lie around zero


@frozen
class CentredSum:
    """A sum from centred halves and the count, where the block has that count anyway: less noise than a sum alone."""

    halves: int  # measure: Σ (2q − (Lo+Hi))
    count: int  # measure: rows with a value
    step: Fraction
    middle: int  # Lo+Hi
    digits: int
    adds_up: bool = False
    most: int | None = None  # as that of a sum


@frozen
class Moment:
    """An integer measure and what one of it stands for."""

    measure: int
    unit: Fraction


@frozen
class Spread:
    """A clamped column by its moments around the middle of its bounds: Σ(x − mid) and Σ(x − mid)²."""

    total: Moment
    squares: Moment
    low: Fraction
    high: Fraction


@frozen
class Statistic:
    """PostgreSQL's statistic of this name, from moments: of x alone, or of (y, x) over the rows that have both."""

    kind: str  # its name in `release.moments`
    count: int  # measure: rows with all the values
    x: Spread
    digits: int
    y: Spread | None = None
    products: Moment | None = None  # Σ(x − mid)(y − mid)


@frozen
class Ends:
    """The ends of a choice's error bar: choices too, each with the outermost value of every candidate."""

    low: int  # measure: a Choice
    high: int
    lowest: tuple[Text, ...]
    highest: tuple[Text, ...]


@frozen
class Chosen:
    """The chosen candidate, in these words."""

    measure: int  # a Choice
    candidates: tuple[Text, ...]
    ends: Ends | None = None  # where error bars are asked of it
    reach: Fraction = Fraction(0)  # how far from it a value may be for which it stands: in days and seconds of times


@frozen
class ChosenList:
    """Several choices as one array, as percentile_cont of an array of fractions gives them."""

    measures: tuple[int, ...]
    candidates: tuple[Text, ...]
    reach: Fraction = Fraction(0)


@frozen
class Estimate:
    """The units that hold a value, from reports that match: (hits − q·reports)/(p − q). Or a mean of one bit each.

    In a group of reports that match a value the other reports are those of other groups, which differ in a key alone.
    """

    hits: int  # measure: reports that match
    reports: tuple[int, ...]  # measures: all reports together, the hits among them
    p: Fraction  # the chance that a report matches a value that is held, and that is not
    q: Fraction
    bounds: tuple[Fraction, Fraction] | None = None  # of a mean
    key: int | None = None  # the key of groups that are the values
    groups: int = 1  # how many values that key has
    chance: int = -1  # where its own numbers stand: that of the chance in reports, and the reports of other groups
    others: int = -1

    @property
    def digits(self) -> int:
        """Return what is shown of it is far below its error."""
        return 2 if self.bounds is None else 6


InDigits = Sum | CentredSum | Average | Statistic  # so many are shown, as the query asks for

# Each is computed from noised integers alone.
Output = Count | Sum | CentredSum | Average | Statistic | Chosen | ChosenList | Estimate


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
        case Count(measure=measure, most=most):
            margin = laws[measure].margin(level)
            return Fraction(margin if most is None else min(margin, most))
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
