"""Choose privately how much of each unit is counted: a ladder is climbed until the next step is not worth it.

What units really add to one query is often far less than the rules allow, and often nobody has said how much it is. A
ladder's rungs are bounds of a unit's total over all groups. With a bound b the error of all groups together is
Σ_u (T_u − b)₊ for what is cut and G·b/ε for noise, which is convex in b: the first rung from which the next step spares
less than its noise is the best. So the steps are looked at from below, each with noise of its own and all against one
noised threshold, and the first that is too low ends the climb. Then the block is answered with that bound as if it had
been declared. Rungs that are not chosen are never summed.

How much of the rows was cut is reported from below: one noised number for a whole block, bought by `noisegate.cut`.
No private upper bound of it exists, since one unit may have any number of rows. With a cap b, and T_u a unit's rows,
the height of the step from b to 2b counts each unit by the part of b that it has above b, in 64ths, at most as a whole:

    X = Σ_u min(64, max(0, ⌊64·(min(T_u, 2b) − b)/b⌋)),   so at least b·X/64 rows are above the cap.

One unit moves X by 0 to 64, so discrete Laplace noise of scale 64/ε makes it ε-private.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil

from rules.frozen import frozen, replace
from rules.kernel.bounded import PARTS, RowLadder, TallyStatement
from rules.mechanisms.additive import LaplaceNoise
from rules.mechanisms.draw import Noise, add
from rules.mechanisms.release_plan import Block, Ladder
from rules.release.release import Row, find_integer

MOST_STEPS = 64
LEAST_CEILING = 4  # below, there is nothing to gain
_SURE = 2  # how many times the choice's own noise a step has to be worth at least
_EIGHT_TENTHS = Fraction(4, 5)  # of the deviation is the mean absolute value of a normal draw
_UP = Context(prec=12, rounding=ROUND_CEILING)
_DOWN = Context(prec=80, rounding=ROUND_FLOOR)  # for prices of many digits: exact, or less


class MalformedRows(Exception):
    """A tally is not what our own counts can have said. Says nothing more: the text may be data."""


def rungs_to(ceiling: int, lowest: int = 1) -> tuple[int, ...]:
    """Bounds up to a ceiling: powers of two, and one and a half times these.

    Example:
        >>> rungs_to(40)
        (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40)
    """
    between = (rung for rung in _round_numbers() if rung > lowest)
    rungs = [min(lowest, ceiling)]
    while rungs[-1] < ceiling:
        rungs.append(min(next(between), ceiling) if len(rungs) < MOST_STEPS else ceiling)
    return tuple(rungs)


def _round_numbers() -> Iterator[int]:
    yield 1
    power = 2
    while True:
        yield power
        yield power // 2 * 3
        power *= 2


@frozen
class Noisy:
    """A measure whose bound is to be chosen: by how much its noise grows with it."""

    epsilon: Decimal
    by_root: bool = False  # Gaussian noise of a count of units grows with the root of the bound


def thresholds_of(
    rungs: Sequence[int],
    groups: int,
    measures: Sequence[Noisy],
    epsilon: Decimal,
    *,
    group_size: int = 1,
    favours_height: bool = False,
) -> tuple[int, ...]:
    """For each step how high it has to be: as many units as its noise is worth in all groups, or can be told from none.

    A bound that is higher by one step adds that step to each unit above it, and its noise to every group. Fewer than
    2/ε units cannot be told from the noise of the choice itself; where that favours height, they count for a step
    all the same. Units that are protected together make both larger.

    Example:
        >>> thresholds_of((1, 2, 4), 12, [Noisy(Decimal("0.8"))], Decimal("0.2"))
        (960, 960)
    """
    least = 0 if favours_height else _SURE / Fraction(epsilon)
    return tuple(
        ceil(PARTS * group_size * max(least, groups * _noise_between(low, high, measures) / (high - low)))
        for low, high in pairwise(rungs)
    )


def _noise_between(low: int, high: int, measures: Sequence[Noisy]) -> Fraction:
    """By how much the mean absolute noise grows, as a mean over the measures."""
    grown = (
        _EIGHT_TENTHS * (_root(high) - _root(low)) / Fraction(measure.epsilon)
        if measure.by_root
        else (high - low) / Fraction(measure.epsilon)
        for measure in measures
    )
    return sum(grown, Fraction(0)) / max(1, len(measures))


def _root(number: int) -> Fraction:
    return Fraction(Decimal(number).sqrt(_UP))


def tallies(block: Block, rows: Iterable[Row]) -> tuple[list[int], ...]:
    """By ladder and step: its height, from the rows of the block's tally."""
    units = tuple([0] * len(ladder.rungs) for ladder in block.ladders)
    parts = tuple([0] * len(ladder.rungs) for ladder in block.ladders)
    for row in rows:
        match [0 if cell is None else find_integer(cell) for cell in row]:
            case [int(number), int(rung), int(tally), int(some)] if (
                0 <= number < len(units) and 0 <= rung < len(units[number]) and 0 <= some <= PARTS * tally
            ):
                units[number][rung] += tally
                parts[number][rung] += some
            case _:
                raise MalformedRows
    return tuple(map(_heights, units, parts))


def _heights(units: Sequence[int], parts: Sequence[int]) -> list[int]:
    """Units that need a rung above a step pass the step whole."""
    above = list(accumulate(reversed(units), initial=0))[-3::-1]
    return [PARTS * whole + part for whole, part in zip(above, parts[1:], strict=True)]


def draw_climb(ladder: Ladder, noise: Noise, *, group_size: int) -> tuple[int, ...]:
    """The noise of a choice: first the threshold's, then that of each step. None of it is below 0.

    All of it is drawn, wherever the climb will end, and before the database is asked.
    """
    for_steps = _for_steps(ladder)
    reach = PARTS * group_size
    threshold = _one_sided(1, reach, _DOWN.subtract(ladder.epsilon, for_steps), noise)
    return threshold + _one_sided(len(ladder.thresholds), reach, for_steps, noise)


def _for_steps(ladder: Ladder) -> Decimal:
    """The ε of the steps' noise, rounded up to few digits: what is left of ε is exact, and is the threshold's.

    The more the steps have, the fewer climbs end too early, and the more go on too far. A third is for ladders that go
    up to a million. A declared bound ends such a climb, so there it is nine twentieths.
    """
    if ladder.favours_height:
        return _UP.divide(ladder.epsilon * 9, Decimal(20))
    return _UP.divide(ladder.epsilon, Decimal(3))


def _one_sided(count: int, reach: int, epsilon: Decimal, noise: Noise) -> tuple[int, ...]:
    """Geometric draws with P(x or more) = exp(−x/scale): discrete Laplace draws, but those below 0 are drawn again."""
    chosen: tuple[int, ...] = ()
    while len(chosen) < count:
        drawn = noise.draw(LaplaceNoise(reach, epsilon), 2 * count)
        chosen += tuple(count for count in drawn if count >= 0)
    return chosen[:count]


def choose_bound(ladder: Ladder, heights: Sequence[int], drawn: Sequence[int]) -> int:
    """The first rung from which the next step is not worth it, in noised numbers; the last where all are."""
    lowered, *own = drawn
    steps = zip(ladder.rungs, heights, ladder.thresholds, own, strict=False)
    return next(
        (rung for rung, height, threshold, step in steps if height - step < threshold - lowered), ladder.rungs[-1]
    )


def report_statement(block: Block) -> TallyStatement:
    """The tally of the step above a block's cap, which is known by now."""
    statement, cap = block.statement, block.statement.rows_per_unit
    return TallyStatement(statement.rows, statement.keys, (RowLadder((cap, 2 * cap)),), cap, statement.pivots)


def report_name(block: Block) -> str:
    """Name what the number is of; equal blocks with equal names mean equal numbers."""
    return f"units above {block.statement.rows_per_unit} rows"


def draw_report(block: Block, noise: Noise, *, group_size: int) -> int:
    """The noise of a report, which does not depend on the cap: it is drawn before the database is asked."""
    assert block.report is not None, "a report is paid for"
    (drawn,) = noise.draw(LaplaceNoise(PARTS * group_size, block.report), 1)
    return drawn


def release_report(block: Block, rows: Iterable[Row], drawn: int) -> int:
    """The noised height of the step above the cap."""
    cap = block.statement.rows_per_unit
    ((height,),) = tallies(replace(block, ladders=(Ladder("", "", Decimal(1), (cap, 2 * cap), (0,)),)), rows)
    return add(height, drawn)


def certainty(block: Block) -> Decimal:
    """In how many reports the bound is right: of errors beyond a level half would make it too low, which is right."""
    return (1 + block.level) / 2


def least_cut(block: Block, reported: int, epsilon: Decimal, *, group_size: int) -> int:
    """Compute how many rows were cut at least, right for `certainty` of reports; 0 or less: noise may have made it."""
    margin = LaplaceNoise(PARTS * group_size, epsilon).law.margin(block.level)
    return int((reported - margin) * block.statement.rows_per_unit // PARTS)
