"""What a private block asks of the noise: integer measures, the groups to answer, and the outputs made from them.

Made by the planner from the statement, the rules and the catalog alone, never from a row; `release` reads it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from rules.sql.commands import CONFIDENCE

Text = str | None  # a value as PostgreSQL prints it; None is NULL
NoiseKind = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class Ladder:
    """Bounds of what one unit adds over all groups, of which one is chosen privately (`noise.ladder`)."""

    name: str  # canonical
    what: str  # that the bound is for, in words: "rows"
    epsilon: Decimal
    rungs: tuple[int, ...]  # rising, the last is what the rules declare
    price: int  # how many more units may be cut where a rung lower is taken: by the query and the rules alone
    enough: int  # how many units there have to be for rungs below the last to be taken by that alone
    step: Fraction = Fraction(1)  # what one of a rung stands for

    def told(self, bound: int) -> str:
        """A bound as a number to be read."""
        number = bound * self.step
        return f"{number.numerator:,}" if number.denominator == 1 else f"{float(number):,.6g}"


@dataclass(frozen=True, slots=True)
class Bound:
    """Whatever is chosen on a ladder, one unit moves the measure by at most `reach` times that."""

    ladder: int  # which of the block's
    reach: int = 1


@dataclass(frozen=True, slots=True)
class Measure:
    """One integer column of the inner statement, over all groups: one vector, one draw of noise."""

    name: str  # canonical: equal blocks and equal names mean equal numbers
    sensitivity: int  # L1, over all groups together, for ONE unit: `release` multiplies it by the rules' group_size
    epsilon: Decimal
    bounds: tuple[Bound, ...] = ()  # by which it may be less than what the rules declare
    vector: int | None = None  # measures with the same number exclude each other row by row, so their ε is paid once
    noise: NoiseKind = "laplace"
    at_most_one: bool = False  # is what a unit adds to each group

    @property
    def squared(self) -> int:
        """The square of the L2 distance that one unit moves it by: the root is not a whole number."""
        return self.sensitivity if self.at_most_one else self.sensitivity**2


@dataclass(frozen=True, slots=True)
class Quantile:
    """The candidate that this fraction of the rows lies below."""

    fraction: Fraction


@dataclass(frozen=True, slots=True)
class FromEnd:
    """The candidate of the row at this place, counted from the smallest or the largest: what stands for min and max.

    The place is fixed by the query and the rules, large enough not to be that of one unit's rows
    (`quantile.place_for_extreme`).
    """

    place: int
    largest: bool = False


@dataclass(frozen=True, slots=True)
class MostFrequent:
    """The candidate with the most rows."""


Target = Quantile | FromEnd | MostFrequent


@dataclass(frozen=True, slots=True)
class End:
    """An end of a choice's error bar: so far beside the choice's target as the bar needs for this level."""

    side: Literal[-1, 1]  # towards the smallest, or the largest
    level: Decimal


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a list of candidates in each group, chosen by the exponential mechanism from a histogram over them.

    The histogram has an inner statement of its own, whose rows are the keys, a candidate's number from 0, and the rows
    of that candidate as int8. Its bins are one more key of the bounding, so a unit's rows in all groups and bins
    together are at most `sensitivity`: groups share ε, for m_g rows of a unit in a group move only its scores, by m_g.
    """

    name: str
    sensitivity: int  # rows of ONE unit over all groups and bins together; `release` multiplies it by group_size
    epsilon: Decimal
    sql: str
    candidates: int
    target: Target
    bounds: tuple[Bound, ...] = ()
    end: End | None = None  # of an error bar, or the target itself


@dataclass(frozen=True, slots=True)
class Count:
    """A count: the measure itself, not below zero where a select item shows it bare."""

    measure: int  # which of the block's measures
    shown_bare: bool = False


@dataclass(frozen=True, slots=True)
class Sum:
    """(measure) · step, printed with exactly `digits` after the point."""

    measure: int
    step: Fraction
    digits: int


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


# Each is computed from noised integers alone.
Output = Count | Sum | CentredSum | Average | Statistic | Chosen | ChosenList


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One grouping column of an answer."""

    type: str  # what the outer statement casts it to
    name: str


@dataclass(frozen=True, slots=True)
class PublicGroups:
    """Groups known from the query and the rules; all are answered, in this order. () without GROUP BY: one group."""

    rows: tuple[tuple[Text, ...], ...]


@dataclass(frozen=True, slots=True)
class PrivateGroups:
    """Groups found in the data: those whose noisy number of units reaches a threshold.

    The threshold is not stated here: `threshold.find_threshold` computes it from the measure of units (whose
    sensitivity is the number of groups that a unit may be in), delta and the rules' group_size.
    """

    measure: int  # the units per group
    delta: Decimal
    at_least: int = 1  # the inner statement leaves out groups with fewer units, for size; the threshold is raised by it


Groups = PublicGroups | PrivateGroups

BarEnd = Literal["margin", "low", "high"]


@dataclass(frozen=True, slots=True)
class Bar:
    """An error bar around an output by itself: where it ends. Of one around more, all replicates of each output."""

    output: int
    end: BarEnd | None = None  # the replicate that the margin reaches to, or the lowest or highest of the bar


@dataclass(frozen=True, slots=True)
class Block:
    """One private aggregate: an inner statement whose rows are keys (as text) and then measures (as int8).

    A Choice among the measures has no column there: it brings a statement of its own.
    A block with ladders is not run as it is: its SQL has holes, which `ladder.settled` fills with the bounds chosen.
    """

    canonical: str  # equal canonical text means equal block: the key of reuse
    sql: str
    keys: tuple[KeyColumn, ...]
    groups: Groups
    measures: tuple[Measure | Choice, ...]
    outputs: tuple[Output, ...]
    output_types: tuple[str, ...]
    tables: tuple[str, ...]
    explanation: tuple[tuple[str, str], ...] = ()  # for EXPLAIN: (what, how)
    notices: tuple[str, ...] = ()  # what the analyst should know of how it is answered: rows that may be cut
    sets: tuple[tuple[int, ...], ...] = ()  # GROUPING SETS, as numbers of keys; columns then have the set's number too
    ladders: tuple[Ladder, ...] = ()
    bars: tuple[Bar, ...] = ()  # the outputs that have error bars: columns then end with these
    level: Decimal = CONFIDENCE  # of these bars
    tally: str = ""  # a statement whose rows are a ladder, a rung and the units whose total needs that rung

    @property
    def epsilon(self) -> Decimal:
        """What a fresh answer costs."""
        paying = (self.measures[index] for index in self.paying(range(len(self.measures))))
        return sum((each.epsilon for each in (*paying, *self.ladders)), Decimal(0))

    def paying(self, fresh: Iterable[int]) -> tuple[int, ...]:
        """Of measures to be drawn those that are paid for: the first of each vector, and all others."""
        payers: dict[tuple[int | None, int | None], int] = {}
        for index in fresh:
            measure = self.measures[index]
            vector = measure.vector if isinstance(measure, Measure) else None
            payers.setdefault((vector, index if vector is None else None), index)
        return tuple(payers.values())
