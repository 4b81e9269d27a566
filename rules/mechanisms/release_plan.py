"""Say what a private block asks of the noise: integer measures, the groups to answer, and what is made from them.

Made by the planner from the statement, the rules and the catalog alone, never from a row; `release` reads it.
"""

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import chain, product
from typing import Final, Literal

from rules.frozen import frozen, replace
from rules.kernel.bounded import Statement, TallyStatement
from rules.kernel.special.blocks import BlockStatement
from rules.mechanisms.cells import Cells
from rules.mechanisms.noised_outputs import Estimate, Output, Text
from rules.policy.model import NoiseKind
from rules.sql.session_settings import CONFIDENCE
from rules.values.types import SpanForm

MOST_GROUPS: Final = 100_000  # that the rules may let be listed
_MISSED: Final = 20  # one in so many choices leaves out a group that is further above the last one than is told


@frozen
class Ladder:
    """Bounds of what one unit adds over all groups, of which one is chosen privately (`release.bound_ladder`)."""

    name: str  # canonical
    what: str  # that the bound is for, in words: "rows"
    epsilon: Decimal
    rungs: tuple[int, ...]  # rising, the last is what the rules declare, or the most that is counted
    thresholds: tuple[
        int, ...
    ]  # by step from rung to rung, how high it has to be to be worth its noise, in 64ths of a unit
    step: Fraction = Fraction(1)  # what one of a rung stands for
    is_declared: bool = True  # whether the rules or the session say the last rung
    favours_height: bool = False  # whether a bound that is too low costs more than one that is too high
    # Where groups are found: the thresholds for lists of up to so many, by which the list that was found is priced.
    by_groups: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def over(self, groups: int) -> "Ladder":
        """The ladder for a list of so many groups, which was released before."""
        classes = (thresholds for most, thresholds in self.by_groups if groups <= most)
        last = self.by_groups[-1][1] if self.by_groups else self.thresholds
        return replace(self, thresholds=next(classes, last), by_groups=())

    def bound_text(self, bound: int) -> str:
        """A bound as a number to be read."""
        number = bound * self.step
        return f"{number.numerator:,}" if number.denominator == 1 else f"{float(number):,.6g}"


@frozen
class Cut:
    """Say what may be cut of a unit, by the rules and the query."""

    what: str  # "rows" or "groups"
    most: int
    by: str  # whose number it is: "the rules' cap"

    def __str__(self) -> str:
        what = self.what if self.most > 1 else self.what.removesuffix("s")
        return f"{self.most:,} {what} of a unit ({self.by})"


@frozen
class Measure:
    """One integer column of the inner statement, over all groups: one vector, one draw of noise.

    The database's integer may be finer than the number that it stands for: `factor` times it, so that a unit which is
    scaled to its share loses no more than one part of the factor. Noise is made for that integer. What is released is
    rounded to whole numbers right after, which is post-processing.
    """

    name: str  # canonical: equal blocks and equal names mean equal numbers
    sensitivity: int  # L1, over all groups together, for ONE unit: `release` multiplies it by the rules' group_size
    epsilon: Decimal
    chosen_by: tuple[int, ...] = ()  # ladders of the block, by whose choice the sensitivity may be less
    vector: int | None = None  # measures with the same number exclude each other row by row, so their ε is paid once
    noise: NoiseKind = "laplace"
    at_most_one: bool = False  # is what a unit adds to each group: one number, which is `factor` of the integer
    factor: int = 1  # how many of the database's integers are one: a power of two, which the sensitivity includes

    def __post_init__(self) -> None:
        if self.factor < 1 or self.factor & (self.factor - 1):
            raise ValueError(f"a factor of {self.factor} is not a power of two")

    @property
    def squared(self) -> int:
        """The square of the L2 distance that one unit moves it by: the root is not a whole number.

        Where no entry is above F and all together are at most s, the squares are together at most F·s.
        """
        return self.sensitivity * self.factor if self.at_most_one else self.sensitivity**2


@frozen
class Quantile:
    """The candidate that this fraction of the rows lies below."""

    fraction: Fraction


@frozen
class FromEnd:
    """The candidate of the row at this place, counted from the smallest or the largest: what stands for min and max.

    The place is fixed by the query and the rules, large enough not to be that of one unit's rows
    (`quantile.place_for_extreme`).
    """

    place: int
    largest: bool = False


@frozen
class MostFrequent:
    """The candidate with the most rows."""


Target = Quantile | FromEnd | MostFrequent


@frozen
class End:
    """An end of a choice's error bar: so far beside the choice's target as the bar needs for this level."""

    side: Literal[-1, 1]  # towards the smallest, or the largest
    level: Decimal
    reach: int | None = None  # how far beside, where that does not follow from the noise of the choice alone


@frozen
class Choice:
    """One of a list of candidates in each group, chosen by the exponential mechanism from a histogram over them.

    The histogram has an inner statement of its own, whose rows are the keys, a candidate's number from 0, and the rows
    of that candidate as int8. Its bins are one more key of the bounding, so a unit's rows in all groups and bins
    together are at most `sensitivity`: groups share ε, for m_g rows of a unit in a group move only its scores, by m_g.
    """

    name: str
    sensitivity: int  # of ONE unit over all groups and bins together; `release` multiplies it by group_size
    epsilon: Decimal
    statement: Statement | BlockStatement
    candidates: int
    target: Target
    chosen_by: tuple[int, ...] = ()
    end: End | None = None  # of an error bar, or the target itself
    factor: int = 1  # how many of the histogram's integers are one row: the sensitivity and places include it
    blocks: int | None = None  # of units, whose values are counted in place of rows


@frozen
class Top:
    """So many groups of a list, those with the largest noised numbers of the block's only measure."""

    name: str
    sensitivity: int  # of ONE unit in one group; the rules' group_size multiplies it
    epsilon: Decimal
    count: int
    listed: int  # among so many
    factor: int = 1  # how many of the statement's integers are one
    is_pure: bool = True  # or else it is paid by ρ alone, as Gaussian noise is

    def margin(self, *, group_size: int) -> float:
        """By how much a group may be above the last one and be left out all the same, in one of twenty choices.

        Two scores differ by logistic noise; one of the pairs of a chosen and another group is further off with at most
        as often as all of them together.
        """
        scale = gumbel_scale(self, group_size=group_size) / self.factor
        return scale * math.log(_MISSED * self.listed * self.count)


def gumbel_scale(top: Top, *, group_size: int) -> float:
    """About the scale of the noise in a score; `draw.top_scale` rounds it up."""
    sensitivity, epsilon = top.sensitivity * group_size, float(top.epsilon)
    return top.count * sensitivity / epsilon if top.is_pure else math.sqrt(top.count) * sensitivity / (2 * epsilon)


@frozen
class KeyColumn:
    """One grouping column of an answer."""

    type: str  # what the outer statement casts it to
    name: str
    is_number: bool = False  # so that groups come in the order of numbers; a type's name may begin like any word
    # Beside keys that are found: what its cells stand for, which are ordinals then, from 0; None: they are the values.
    labels: tuple[Text, ...] | None = None


@frozen
class PublicGroups:
    """Groups known from the query and the rules; all are answered, in this order. () without GROUP BY: one group.

    With ordinals the key cells of the inner statement's rows are these integers, in place of the texts of a group: as
    many as a group has keys, or fewer where one stands for several. What a label is called then is for us to say.
    """

    rows: tuple[tuple[Text, ...], ...]
    ordinals: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.ordinals is None:
            return
        if len(self.ordinals) != len(self.rows) or len(set(map(len, self.ordinals))) > 1:
            raise ValueError("a list of groups needs ordinals for each of them, and equally many")
        if len(set(self.ordinals)) < len(self.ordinals):
            raise ValueError("two groups of a list cannot have the same ordinals: one row would move both")


@frozen
class GroupLists:
    """Lists of labels, each with a value for each of its keys."""

    lists: tuple[tuple[tuple[Text, ...], ...], ...]

    def combined(self) -> "GroupProduct":
        """All combinations, the last list running fastest; raises ValueError where they are too many."""
        widths = [set(map(len, labels)) for labels in self.lists]
        if math.prod(map(len, self.lists)) > MOST_GROUPS:
            raise ValueError("a list of groups is too long")
        rows: tuple[tuple[Text, ...], ...]
        if len(self.lists) == 1:
            (rows,) = self.lists
        elif all(each <= {1} for each in widths):
            rows = tuple(product(*map(chain.from_iterable, self.lists)))
        else:
            rows = tuple([tuple(chain.from_iterable(labels)) for labels in product(*self.lists)])
        return GroupProduct(rows, tuple(product(*(range(len(labels)) for labels in self.lists))), self)


@frozen
class GroupProduct(PublicGroups):
    """All combinations of some lists: as these it crosses from process to process, in less than a tenth of the size."""

    lists: GroupLists = GroupLists(())

    def __post_init__(self) -> None:
        """Each combination is there once."""


@frozen
class PrivateGroups:
    """Groups found in the data: those whose noisy number of units reaches a threshold.

    The threshold is not stated here: `threshold.find_threshold` computes it from the measure of units (whose
    sensitivity is the number of groups that a unit may be in), delta and the rules' group_size.
    """

    measure: int  # the units per group
    delta: Decimal


@frozen
class GroupsFoundFirst:
    """Groups that another block of the same answer finds; this one is then asked over their list, as over a known one.

    Each unit counts in one group for the threshold, which finds more groups, and then in all that were found.
    """

    finder: "Block"


@frozen
class FoundGroups(PublicGroups):
    """The list that a finder has released for this very answer, or for an equal one."""

    finder: "Block | None" = None


Groups = PublicGroups | GroupProduct | FoundGroups | PrivateGroups | GroupsFoundFirst

BarEnd = Literal["margin", "low", "high"]


@frozen
class Bar:
    """An error bar around an output by itself: where it ends. Of one around more, all replicates of each output."""

    output: int
    end: BarEnd | None = None  # the replicate that the margin reaches to, or the lowest or highest of the bar


@frozen
class LeastUnits:
    """By the rules: a number of a group is not shown where the noised units that it is about are less."""

    measures: tuple[int, ...]  # by output: these units
    units: int


@frozen
class Block:
    """One private aggregate: an inner statement whose rows are keys and then measures (as int8).

    A Choice among the measures has no column there: it brings a statement of its own.
    A block with ladders is not run as it is: its caps are the highest rungs, until `enforce.settled` has lowered them.
    """

    canonical: str  # equal canonical text means equal block: the key of reuse
    statement: Statement
    keys: tuple[KeyColumn, ...]
    groups: Groups
    measures: tuple[Measure | Choice, ...]
    outputs: tuple[Output, ...]
    output_types: tuple[str, ...]
    tables: tuple[str, ...]
    explanation: tuple[tuple[str, str], ...] = ()  # for EXPLAIN: (what, how)
    notices: tuple[str, ...] = ()  # what the analyst should know of how it is answered: rows that may be cut
    sets: tuple[tuple[int, ...], ...] = ()  # GROUPING SETS, as numbers of keys; columns then have the set's number too
    spans: tuple[SpanForm, ...] = ()  # of each output that is an interval, as it is shown; () of none
    ladders: tuple[Ladder, ...] = ()
    bars: tuple[Bar, ...] = ()  # the outputs that have error bars: columns then end with these
    level: Decimal = CONFIDENCE  # of these bars
    shown: tuple[int, ...] = ()  # outputs that a client sees as they are: of these a column follows, not below zero
    tally: TallyStatement | None = None  # units by the rung of each ladder that they need
    cuts: tuple[Cut, ...] = ()  # besides what is chosen
    report: Decimal | None = None  # the ε for which it is told how much was cut of the rows
    outside: tuple[int, ...] = ()  # the listed groups of what is not as the rules declare
    least_units: LeastUnits | None = None
    hides_empty: bool = False  # whether listed groups are left out whose numbers could be noise alone
    counted: int | None = None  # the measure of rows by which this is decided, where no output can say it
    cells: Cells | None = None  # how its groups are cells of a relation that other blocks have too
    top: Top | None = None  # which of the listed groups are chosen, and answered alone
    plain: "Block | None" = None  # the same without the choice: what serves instead, where it is on the account

    @property
    def numbers(self) -> int:
        """Count the numbers of a group: its measures, and two for each estimate (`release.estimates`)."""
        return len(self.measures) + 2 * sum(isinstance(output, Estimate) for output in self.outputs)

    @property
    def key_cells(self) -> int:
        """Count the cells of a row of the inner statement that are keys."""
        match self.groups:
            case PublicGroups(ordinals=(first, *_)):
                return len(first)
        return len(self.keys)

    @property
    def epsilon(self) -> Decimal:
        """Add up what a fresh answer costs."""
        paying = (self.measures[index] for index in self.paying(range(len(self.measures))))
        own = sum((mechanism.epsilon for mechanism in (*paying, *self.ladders)), Decimal(0))
        own += self.groups.finder.epsilon if isinstance(self.groups, GroupsFoundFirst) else 0
        return own + (self.report or 0) + (0 if self.top is None else self.top.epsilon)

    @property
    def delta(self) -> Decimal:
        """Return what the threshold of a fresh answer costs."""
        match self.groups:
            case PrivateGroups(delta=delta):
                return delta
            case GroupsFoundFirst(finder=finder):
                return finder.delta
        return Decimal(0)

    def paying(self, fresh: Iterable[int]) -> tuple[int, ...]:
        """Of measures to be drawn those that are paid for: the first of each vector, and all others."""
        payers: dict[tuple[int | None, int | None], int] = {}
        for index in fresh:
            measure = self.measures[index]
            vector = measure.vector if isinstance(measure, Measure) else None
            payers.setdefault((vector, index if vector is None else None), index)
        return tuple(payers.values())
