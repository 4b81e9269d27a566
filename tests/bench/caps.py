"""What a chosen cap of rows costs against the best one known in hindsight: seven shapes of data, many numbers of units.

python -m tests.bench.caps
python -m tests.bench.caps --units 600 --draws 400

The error of an answer is the mean over its groups of |answer − truth|, what is cut included; the ratio is its median
over draws, divided by the median with the best single cap and the whole ε. The choice is the product's own.

Groups are listed, or found: then the units of each are counted too, the list is released before the cap is chosen, and
a cell is measured where every group has twice the units that the threshold asks for.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rules.kernel.bounded import PARTS
from rules.mechanisms.cost import share
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.release_plan import Ladder
from rules.planner.choose_bounds import CLASSES, weight_of_ladder
from rules.release.bound_ladder import Noisy, choose_bound, draw_climb, rungs_to, thresholds_of
from rules.sql.session_settings import MOST_ROWS

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Shape = Callable[[np.random.Generator, int], Integers]

RUNGS = rungs_to(MOST_ROWS)
SHAPES: dict[str, Shape] = {
    "8 to 12": lambda rng, units: rng.integers(8, 13, units),
    "one each": lambda _, units: np.ones(units, np.int64),
    "800 to 1,300": lambda rng, units: rng.integers(800, 1301, units),
    "geometric": lambda rng, units: rng.geometric(0.1, units),
    "Zipf 2": lambda rng, units: np.minimum(rng.zipf(2, units), MOST_ROWS),
    "log-normal": lambda rng, units: _whole(rng.lognormal(1, 1.8, units)),
    "Pareto 1.2": lambda rng, units: _whole(1 + rng.pareto(1.2, units)),
}
GROUPS, FOUND, EPSILONS, UNITS = (1, 4, 12, 50), (4, 12, 50), ("0.1", "1"), (600, 6_000, 100_000)
BARS = {1: (2.5, None, 7), 4: (1.75, None, 7), 12: (1.5, 1.75, 7), 50: (1.5, 1.75, 7)}  # median, 90% quantile, largest


def _whole(given: Reals) -> Integers:
    return np.clip(np.ceil(given), 1, MOST_ROWS).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Data:
    """Rows by unit, and what every cap takes from every group."""

    rows: Integers
    cut: Reals  # by rung and group
    fewest: int  # units in a group

    @classmethod
    def of(cls, shape: Shape, units: int, groups: int, seed: int) -> "Data":
        """Each row is in a group of its own choice; a unit with more than its cap is scaled."""
        rng = np.random.default_rng(seed)
        rows = shape(rng, units)
        by_group = rng.multinomial(rows, [1 / groups] * groups).astype(float)
        left = [np.maximum(0, 1 - rung / rows) @ by_group for rung in RUNGS]
        return cls(rows, np.array(left), int((by_group > 0).sum(axis=0).min()))

    @property
    def heights(self) -> list[int]:
        """What a tally says of the steps."""
        return [
            int((PARTS * (np.minimum(self.rows, high) - low) // (high - low)).clip(0).sum())
            for low, high in pairwise(RUNGS)
        ]


@dataclass(frozen=True, slots=True)
class Cell:
    """One shape at one size, ε and number of groups."""

    ratio: float
    ratio_of_tails: float  # of the 90% quantiles of the errors
    far: float  # in how many draws the cap is over eight times the best
    best: float  # relative error with the best cap
    chosen: float


def ladder_for(epsilon: Decimal, groups: int, *, found: bool) -> tuple[Ladder, Decimal]:
    """The ladder of a statement that counts rows, and what is left of its ε for the count."""
    if not found:
        measure, choice = share(epsilon, (Fraction(1), weight_of_ladder(groups, Fraction(1))))
        return Ladder("rows", "rows", choice, RUNGS, thresholds_of(RUNGS, groups, [Noisy(measure)], choice)), measure
    measure, _units, choice = share(epsilon, (Fraction(1), Fraction(1), weight_of_ladder(None, Fraction(1))))
    by_groups = tuple((most, thresholds_of(RUNGS, max(1, most // 2), [Noisy(measure)], choice)) for most in CLASSES)
    return Ladder("rows", "rows", choice, RUNGS, (), by_groups=by_groups).over(groups), measure


def is_measured(data: Data, epsilon: Decimal, *, found: bool) -> bool:
    """Return whether every group is shown nearly always, by the threshold of half of ε and δ = 1e-9."""
    return not found or data.fewest > 2 * (1 - math.log(2e-9) / (float(epsilon) / 2))


def measure(data: Data, epsilon: Decimal, groups: int, draws: int, rng: np.random.Generator, *, found: bool) -> Cell:
    """Draw choices and answers."""
    noise, heights = OpenDPNoise(), data.heights
    ladder, left = ladder_for(epsilon, groups, found=found)
    whole = epsilon / 2 if found else epsilon  # units that decide on groups have as much as the rows
    picked = [RUNGS.index(choose_bound(ladder, heights, draw_climb(ladder, noise, group_size=1))) for _ in range(draws)]
    errors = np.array([_errors(data, rung, left, 1, rng)[0] for rung in picked])
    hindsight = [_errors(data, rung, whole, draws, rng) for rung in range(len(RUNGS))]
    best = min(range(len(RUNGS)), key=lambda rung: np.median(hindsight[rung]))
    truth = data.rows.sum() / groups
    return Cell(
        float(np.median(errors) / np.median(hindsight[best])),
        float(np.quantile(errors, 0.9) / np.quantile(hindsight[best], 0.9)),
        sum(RUNGS[rung] > 8 * RUNGS[best] for rung in picked) / draws,
        float(np.median(hindsight[best]) / truth),
        float(np.median(errors) / truth),
    )


def _errors(data: Data, rung: int, epsilon: Decimal, draws: int, rng: np.random.Generator) -> Reals:
    cut = data.cut[rung]
    found: Reals = np.abs(rng.laplace(0, RUNGS[rung] / float(epsilon), (draws, len(cut))) - cut).mean(axis=1)
    return found


def cells(groups: int, units: Sequence[int], draws: int, *, found: bool) -> Iterator[tuple[str, int, str, Cell]]:
    """All cells with so many groups."""
    rng = np.random.default_rng(groups)
    for number, (name, shape) in enumerate(SHAPES.items()):
        for size in units:
            data = Data.of(shape, size, groups, 1_000 * groups + number)
            for epsilon in filter(lambda epsilon: is_measured(data, Decimal(epsilon), found=found), EPSILONS):
                yield name, size, epsilon, measure(data, Decimal(epsilon), groups, draws, rng, found=found)


def main() -> int:
    """Print each cell, and a line for each number of groups; 1 where a bar is not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.caps", description=__doc__.partition("\n")[0])
    parser.add_argument("--units", type=int, nargs="*", default=UNITS, help="how many (default: 600 6000 100000)")
    parser.add_argument("--draws", type=int, default=1_000, help="of each cell (default: 1000)")
    given = parser.parse_args()
    summary, kept = [], True
    for groups, found in (*((groups, False) for groups in GROUPS), *((groups, True) for groups in FOUND)):
        measured = []
        for name, size, epsilon, cell in cells(groups, given.units, given.draws, found=found):
            measured.append(cell)
            print(
                f"{groups:>3} groups{' found' * found}  {name:14}{size:>8,} units  ε {epsilon:4} "
                f"ratio {cell.ratio:5.2f}, of tails {cell.ratio_of_tails:6.2f}, "
                f"far {cell.far:6.2%}, error {cell.best:8.3%} -> {cell.chosen:8.3%}",
                flush=True,
            )
        summary.append(_line(f"{groups}{', found' * found}", measured))
        kept = kept and (found or _keeps(groups, measured))
    print("\n| groups | ratio: median, 90%, largest | at most 1.5 | of 90% errors: median, 90% | cap over 8 times |")
    print("|---|---|---|---|---|", *summary, sep="\n")
    print(f"\nThe bars are {'kept' if kept else 'NOT kept'}.")
    return 0 if kept else 1


def _line(groups: str, found: Sequence[Cell]) -> str:
    ratios, tails = [cell.ratio for cell in found], [cell.ratio_of_tails for cell in found]
    whole = f"{np.median(ratios):.2f}, {np.quantile(ratios, 0.9):.2f}, {max(ratios):.1f}"
    few = sum(ratio <= 1.5 for ratio in ratios) / len(ratios)
    far = sum(cell.far for cell in found) / len(found)
    return f"| {groups} | {whole} | {few:.0%} | {np.median(tails):.2f}, {np.quantile(tails, 0.9):.2f} | {far:.2%} |"


def _keeps(groups: int, found: Sequence[Cell]) -> bool:
    ratios = [cell.ratio for cell in found]
    middle, tail, largest = BARS[groups]
    return (
        float(np.median(ratios)) <= middle
        and (tail is None or float(np.quantile(ratios, 0.9)) <= tail)
        and max(ratios) <= largest
    )


if __name__ == "__main__":
    raise SystemExit(main())
