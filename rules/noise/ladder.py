"""How much of each unit is counted, chosen privately: from the bound that the rules declare down to a thousandth of it.

What units really add to one query is often far less than the rules allow. A ladder's rungs are bounds of a unit's total
over all groups. The exponential mechanism chooses one by how many units it cuts and how much noise it spares; then the
block is answered with that bound as if it had been declared. Rungs that are not chosen are never summed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from math import ceil

from rules.noise.measures import Block, Choice, FromEnd, Ladder, Measure, Text
from rules.noise.mechanism import Noise
from rules.noise.quantile import place_for_extreme
from rules.noise.release import MalformedRows

MOST_RUNGS = 12
LEAST_CEILING = 3  # below, the lowest rung spares less than the choice costs
_MARK = "\0"  # the one character that no text of PostgreSQL's can hold


def rungs_to(ceiling: int) -> tuple[int, ...]:
    """Bounds that double from rung to rung, up to a ceiling.

    Example:
        >>> rungs_to(40)
        (1, 2, 3, 5, 10, 20, 40)
    """
    return tuple(sorted({-(-ceiling // 2**place) for place in range(MOST_RUNGS)}))


def price_of(groups: int, measure: Decimal, ladder: Decimal) -> int:
    """For how many more units cut a lower rung is worth taking: as many as its noise is less by in all groups.

    A bound that is lower by b takes b from every unit above it, and b/ε of noise from every group. Fewer units than 1/ε
    cannot be told from the choice's own noise.
    """
    return max(1, ceil(Fraction(groups) / Fraction(measure)), ceil(1 / Fraction(ladder)))


def enough_for(rungs: Sequence[int], epsilon: Decimal) -> int:
    """How many units a choice among these rungs can tell from none: their prices together are no more than that."""
    return ceil(len(rungs) / Fraction(epsilon))


def hole(ladder: int) -> str:
    """What stands in a block's SQL for the bound that is chosen on this ladder."""
    return f"{_MARK}{ladder}{_MARK}"


def filled(sql: str, bounds: Sequence[object]) -> str:
    """The SQL with a bound, or a name for it, in each hole."""
    parts = sql.split(_MARK)
    return "".join(str(bounds[int(part)]) if place % 2 else part for place, part in enumerate(parts))


def tallies(block: Block, rows: Iterable[Sequence[Text]]) -> tuple[list[int], ...]:
    """By ladder and rung: the units whose total needs that rung, from the rows of the block's tally."""
    found = tuple([0] * len(ladder.rungs) for ladder in block.ladders)
    for row in rows:
        try:
            number, rung, units = (int(cell or 0) for cell in row)
        except ValueError:
            raise MalformedRows from None
        if not (0 <= number < len(found) and 0 <= rung < len(found[number])):
            raise MalformedRows
        found[number][rung] += units
    return found


def choose_bound(ladder: Ladder, tally: Sequence[int], noise: Noise, *, group_size: int) -> int:
    """One of the rungs, by the exponential mechanism; `group_size` units move a score by twice as many."""
    return ladder.rungs[noise.choose(score_rungs(ladder, tally), sensitivity=group_size, epsilon=ladder.epsilon)]


def score_rungs(ladder: Ladder, tally: Sequence[int]) -> list[int]:
    """Minus the units that a rung cuts, minus the price of each rung that it is higher than the first.

    Where there are few units it could not be told that a low rung cuts them all: those that are missing of enough count
    as cut by every rung but the last. One unit more fills one of the missing places, and no score falls, or there are
    enough, and none rises. Where all move one way exp(−ε·units) is ε-private: twice that in exp(ε·score/2).
    """
    missing = max(0, ladder.enough - sum(tally))
    above = list(accumulate(reversed(tally), initial=0))[-2::-1]
    cut = [*(units + missing for units in above[:-1]), above[-1]]
    return [-2 * (units + ladder.price * rung) for rung, units in enumerate(cut)]


def settled(block: Block, bounds: Sequence[int]) -> Block:
    """The block with these bounds of its ladders, as if the rules had declared them."""
    if not block.ladders:
        return block
    named = (f"{bound} of {ladder.name}" for ladder, bound in zip(block.ladders, bounds, strict=True))
    return replace(
        block,
        canonical=f"{block.canonical} with at most {', '.join(named)}",
        sql=filled(block.sql, bounds),
        measures=tuple(_bounded(measure, bounds) for measure in block.measures),
        ladders=(),
        tally="",
    )


def _bounded(measure: Measure | Choice, bounds: Sequence[int]) -> Measure | Choice:
    limits = (bounds[bound.ladder] * bound.reach for bound in measure.bounds)
    sensitivity = min((measure.sensitivity, *limits))
    match measure:
        case Measure():
            return replace(measure, sensitivity=sensitivity, bounds=())
        case Choice(target=target):
            if isinstance(target, FromEnd):
                target = replace(target, place=place_for_extreme(measure.candidates, sensitivity, measure.epsilon))
            sql = filled(measure.sql, bounds)
            return replace(measure, sensitivity=sensitivity, sql=sql, target=target, bounds=())
