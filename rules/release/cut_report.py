"""Report how much of the rows was cut, from below: one noised number for a whole block, bought by `noisegate.cut`.

No private upper bound of it exists, since one unit may have any number of rows. With a cap b, and T_u a unit's rows,
the height of the step from b to 2b counts each unit by the part of b that it has above b, in 64ths, at most as a whole:

    X = Σ_u min(64, max(0, ⌊64·(min(T_u, 2b) − b)/b⌋)),   so at least b·X/64 rows are above the cap.

One unit moves X by 0 to 64, so discrete Laplace noise of scale 64/ε makes it ε-private.
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from rules.kernel.tally import PARTS, RowLadder, TallyStatement
from rules.mechanisms.additive import noise_of
from rules.mechanisms.draw import Noise, add
from rules.mechanisms.release_plan import Block, Ladder, Measure
from rules.release.bound_ladder import tallies
from rules.release.release import Row


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
    (drawn,) = noise.draw(1, sensitivity=PARTS * group_size, epsilon=block.report)
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
    margin = noise_of(Measure("", PARTS, epsilon), group_size=group_size).law.margin(block.level)
    return int((reported - margin) * block.statement.rows_per_unit // PARTS)
