"""What is shown of a block: outputs, each computed from noised integers alone (`release.outputs`)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Text = str | None  # a value as PostgreSQL prints it; None is NULL


@dataclass(frozen=True, slots=True)
class Count:
    """A count: the measure itself, not below zero where a select item shows it bare."""

    measure: int  # which of the block's measures
    shown_bare: bool = False
    adds_up: bool = False  # counts of rows: those of groups are parts of that of all


@dataclass(frozen=True, slots=True)
class Sum:
    """(measure) · step, printed with exactly `digits` after the point."""

    measure: int
    step: Fraction
    digits: int
    adds_up: bool = False  # nothing that is summed is below zero, nor any sum


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of a clamped column from centred halves: mid + (halves / 2 · step) / count, within [low, high]."""

    halves: int  # measure: Σ (2q − (Lo+Hi))
    count: int  # measure: rows with a value
    step: Fraction
    low: Fraction
    high: Fraction
    digits: int


@dataclass(frozen=True, slots=True)
class CentredSum:
    """A sum from centred halves and the count, where the block has that count anyway: less noise than a sum alone."""

    halves: int  # measure: Σ (2q − (Lo+Hi))
    count: int  # measure: rows with a value
    step: Fraction
    middle: int  # Lo+Hi
    digits: int
    adds_up: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """An integer measure and what one of it stands for."""

    measure: int
    unit: Fraction


@dataclass(frozen=True, slots=True)
class Spread:
    """A clamped column by its moments around the middle of its bounds: Σ(x − mid) and Σ(x − mid)²."""

    total: Moment
    squares: Moment
    low: Fraction
    high: Fraction


StatisticKind = Literal[
    "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr", "regr_slope",
    "regr_intercept", "regr_r2", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statistic:
    """PostgreSQL's statistic of this name, from moments: of x alone, or of (y, x) over the rows that have both."""

    kind: StatisticKind
    count: int  # measure: rows with all the values
    x: Spread
    digits: int
    y: Spread | None = None
    products: Moment | None = None  # Σ(x − mid)(y − mid)


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the error bar of a choice ends: choices too, each with the outermost value of every candidate."""

    low: int  # measure: a Choice
    high: int
    lowest: tuple[Text, ...]
    highest: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen candidate, in these words."""

    measure: int  # a Choice
    candidates: tuple[Text, ...]
    ends: Ends | None = None  # where error bars are asked of it


@dataclass(frozen=True, slots=True)
class ChosenList:
    """Several choices as one array, as percentile_cont of an array of fractions gives them."""

    measures: tuple[int, ...]
    candidates: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many hold a value, from reports that match it: (hits − q·reports)/(p − q). Or the mean of a number as a bit.

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
        """What is shown of it is far below its error."""
        return 2 if self.bounds is None else 6


# Each is computed from noised integers alone.
Output = Count | Sum | CentredSum | Average | Statistic | Chosen | ChosenList | Estimate
