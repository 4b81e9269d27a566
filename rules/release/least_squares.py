"""Numbers of several releases that are made to agree: parts add up to the totals that were released beside them.

Least squares (Hay et al., Boosting the accuracy of histograms, VLDB 2010): with the true numbers x of the atoms, each
released number is y = A·x + noise of variance v, and x̂ makes Σ(y − A·x)²/v least. It is linear in y, so unbiased, and
no other unbiased sum of the released numbers has less variance. All of it is post-processing.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from rules.frozen import frozen
from rules.mechanisms.additive import AdditiveNoise
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.weighted_means import HalvedNoise
from rules.release.partitions import Places

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]
Atoms = np.ndarray[tuple[int], np.dtype[np.bool_]]  # whether each is meant
Level = Sequence[int]  # by group

_MOST_STEPS: Final = 200
_EXACT: Final = 1e-11  # of the right side may be left
_MOST_WEIGHTS: Final = 64  # different ones; what more there are is told by its variance
_MOST_SOLVED: Final = 1_000_000  # atoms of all systems that are solved for the laws
_SURE_DIGITS: Final = 6  # of a solution, far above what is left of it
_DIGITS: Final = 10  # of weights that are taken for equal


@frozen
class Observation:
    """One release: which of its cells each atom is in, the numbers of all its cells, and the noise in each."""

    places: Places
    numbers: Sequence[int]
    noise: AdditiveNoise | HalvedNoise
    cells: Sequence[int] = ()  # of so many draws each number is the sum; (): of one

    @property
    def precisions(self) -> Vector:
        """Of each number; of the sum of no draws none is known."""
        single = float(self.noise.precision)
        counts = self.cells or (1,) * len(self.numbers)
        return np.array([single / count if count else 0.0 for count in counts], dtype=np.float64)


@frozen
class Agreed:
    """The numbers of a question's groups, the law of the noise in each, and the coarser groups within which they add
    up, as by group the place of the coarser one: the coarsest first.
    """

    numbers: tuple[int, ...]
    laws: tuple[Distribution, ...]
    nested: tuple[Level, ...]
    totals: tuple[tuple[Distribution, ...], ...] = ()  # the laws of sums of groups, by level


def agreed(
    observed: Sequence[Observation], places: Places, groups: int, *, is_regular: bool, levels: Sequence[Level] = ()
) -> Agreed | None:
    """The least squares estimate of sums over atoms; None where it takes too long, or cannot be told exactly.

    Groups that nothing in the lists tells apart have one law: where lists are products or nest (`is_regular`), such are
    exchanged by a symmetry of the system. Elsewhere each group's law is computed by itself. So is that of each sum of
    groups in `levels`: groups that were made to agree err together, or against each other.
    """
    system = _System(tuple((observation, observation.precisions) for observation in observed), places, groups)
    shifts = system.shifts()
    classes = system.classes() if is_regular else list(range(groups))
    leaders = {kind: group for group, kind in reversed(list(enumerate(classes)))}
    sizes = [len(set(level)) for level in levels]
    if shifts is None or (len(leaders) + sum(size for size in sizes if size < groups)) * len(places) > _MOST_SOLVED:
        return None
    try:
        laws = {kind: system.law(np.equal(places, group)) for kind, group in leaders.items()}
        alone = tuple(laws[kind] for kind in classes)
        totals = tuple(
            alone if size == groups else tuple(system.law(system.within(level, total)) for total in range(size))
            for level, size in zip(levels, sizes, strict=True)
        )
    except _Unsolved:
        return None
    coarser = system.levels()
    nested = _chain(coarser, range(groups))
    return Agreed(_adding_up(*shifts, coarser, nested), alone, nested, totals)


class _Unsolved(Exception):
    """A system takes too many steps."""


@frozen
class _System:
    observed: tuple[tuple[Observation, Vector], ...]  # with the precisions of their numbers
    wanted: Places
    groups: int

    def shifts(self) -> tuple[list[int], Vector] | None:
        """Each group's number as a whole one, and what least squares adds to it.

        The whole ones are those of the finest release, split evenly over its atoms: what is left to be fitted is noise,
        which doubles hold exactly enough however large the numbers are.
        """
        start = self._start()
        right = np.zeros(len(self.wanted))
        for observation, precisions in self.observed:
            rest = list(observation.numbers)
            for place, number in zip(observation.places.tolist(), start, strict=True):
                if place >= 0:
                    rest[place] -= number
            right += _spread(observation, np.array(rest, dtype=np.float64) * precisions)
        moved = self._solve(right)
        if moved is None:
            return None
        whole = [0] * self.groups
        for place, number in zip(self.wanted.tolist(), start, strict=True):
            whole[place] += number
        return whole, _binned(self.wanted, moved, self.groups)

    def _start(self) -> list[int]:
        observed = (observation for observation, _ in self.observed)
        finest = max(observed, key=lambda observation: (int(np.all(observation.places >= 0)), len(observation.numbers)))
        places = finest.places.tolist()
        counts, seen, start = Counter(places), Counter[int](), list[int]()
        for place in places:
            share, rest = divmod(finest.numbers[place] if place >= 0 else 0, counts[place])
            start.append(share + (seen[place] < rest))
            seen[place] += 1
        return start

    def _normal(self, vector: Vector) -> Vector:
        """AᵀWA, as sums over cells and back."""
        product = np.zeros_like(vector)
        for observation, precisions in self.observed:
            product += _spread(observation, _summed(observation, vector) * precisions)
        return product

    def _solve(self, right: Vector) -> Vector | None:
        return _conjugate_gradients(self._normal, right)

    def within(self, level: Level, total: int) -> Atoms:
        """Tell which atoms are in the groups of one total."""
        groups = np.equal(np.array(level, dtype=np.int64), total)
        return np.asarray(groups[self.wanted])

    def law(self, atoms: Atoms) -> Distribution:
        """The law of the noise in a sum of atoms, by the weight that each released number has in it."""
        solved = self._solve(atoms.astype(np.float64))
        if solved is None:
            raise _Unsolved
        terms = Counter[tuple[int, int, float]]()  # of which noise, of how many draws, with which weight
        for number, (observation, precisions) in enumerate(self.observed):
            weights = np.abs(_summed(observation, solved) * precisions)
            counts = observation.cells or (1,) * len(weights)
            for weight, count in zip(np.round(weights, _DIGITS).tolist(), counts, strict=True):
                if weight and count:
                    terms[number, count, weight] += 1
        ordered = sorted(terms.items(), key=lambda part: -part[0][2])
        distribution = Distribution()
        for place, ((number, count, weight), times) in enumerate(ordered):
            law = self.observed[number][0].noise.law.repeated(count).times(weight).repeated(times)
            distribution = distribution.plus(law if place < _MOST_WEIGHTS else Distribution(variance=law.deviation**2))
        return distribution.rounded() if distribution.roundings or len(ordered) > 1 else distribution

    def classes(self) -> list[int]:
        """Groups with equal numbers are those that colour refinement does not tell apart."""
        colors = np.zeros(len(self.wanted), dtype=np.uint64)
        maps = [(observation.places, precisions) for observation, precisions in self.observed]
        maps.append((self.wanted, np.zeros(self.groups)))
        known = 0
        while (number := len(np.unique(colors))) > known:
            known = number
            rows = [colors]
            for places, precisions in maps:
                kinds = np.unique(precisions, return_inverse=True)[1].astype(np.uint64)
                rows.append(_mixed(kinds, _sums(places, _hashed(colors), len(precisions)))[places])
                rows[-1][places < 0] = 0
            colors = _mixed(*rows)
        colors_seen = _sums(self.wanted, _hashed(colors), self.groups).tolist()
        numbers = {color: number for number, color in enumerate(sorted(set(colors_seen)))}
        return [numbers[color] for color in colors_seen]

    def levels(self) -> list[Level]:
        """Releases with fewer cells, of which each has whole groups in it: by group the cell. The coarsest first."""
        levels = list[Level]()
        for observation, _ in self.observed:
            cells = np.full(self.groups, -1, dtype=np.int64)
            cells[self.wanted] = observation.places
            if np.all(observation.places >= 0) and np.array_equal(cells[self.wanted], observation.places):
                levels.append(cells.tolist())
        return sorted((level for level in levels if len(set(level)) < self.groups), key=lambda level: len(set(level)))


def _summed(observation: Observation, vector: Vector) -> Vector:
    """By cell the sum over its atoms."""
    inside = observation.places >= 0
    return _binned(observation.places[inside], vector[inside], len(observation.numbers))


def _binned(places: Places, weights: Vector, number: int) -> Vector:
    return np.asarray(np.bincount(places, weights, minlength=number), dtype=np.float64)


def _spread(observation: Observation, cells: Vector) -> Vector:
    """By atom the number of its cell, 0 where it is in none."""
    return np.where(observation.places >= 0, cells[observation.places], 0.0)


def _conjugate_gradients(normal: Callable[[Vector], Vector], right: Vector) -> Vector | None:
    """Solve a system that may leave directions open which the right side does not have; None if it does not end."""
    solution, rest = np.zeros_like(right), right.copy()
    turn, left = rest.copy(), float(rest @ rest)
    goal = left * _EXACT**2
    for _ in range(_MOST_STEPS):
        if left <= goal:
            return solution
        moved = normal(turn)
        if (along := float(turn @ moved)) <= 0:
            return None
        step = left / along
        solution, rest = solution + step * turn, rest - step * moved
        left, before = float(rest @ rest), left
        turn = rest + left / before * turn
    return None


def _chain(levels: Sequence[Level], groups: Level) -> tuple[Level, ...]:
    """Levels that are coarser than these groups and each finer than the one before; the first is everything."""
    chain: list[Level] = [(0,) * len(groups)]
    for level in levels:
        if _is_finer(groups, level) and _is_finer(level, chain[-1]) and len(set(level)) > len(set(chain[-1])):
            chain.append(level)
    return tuple(chain)


def _is_finer(one: Level, other: Level) -> bool:
    return len(set(zip(one, other, strict=True))) == len(set(one))


def _adding_up(
    whole: Sequence[int], added: Vector, levels: Sequence[Level], nested: Sequence[Level]
) -> tuple[int, ...]:  # fmt: skip
    """Whole numbers that add up to those of each level in the chain, and, where that can be, of one that crosses it."""
    moves = added.tolist()
    moved = _rounded(whole, moves, [*nested, range(len(whole))])
    crossing = next((level for level in reversed(levels) if level not in nested), None)
    if crossing is not None:
        totals = _rounded(whole, moves, [*_chain(levels, crossing), crossing])
        _shift(moved, nested[-1], crossing, totals)
    return tuple(moved[group] for group in range(len(whole)))


def _rounded(whole: Sequence[int], added: Sequence[float], levels: Sequence[Level]) -> dict[int, int]:
    """The numbers of the last level, rounded within each group of the level before to that group's rounded number."""
    totals: dict[int, int] = {0: sum(whole) + round(_sum(added))}
    for outer, inner in pairwise(levels):
        inside: dict[int, dict[int, list[int]]] = {}
        for group, (above, below) in enumerate(zip(outer, inner, strict=True)):
            inside.setdefault(above, {}).setdefault(below, []).append(group)
        rounded: dict[int, int] = {}
        for above, parts in inside.items():
            bases = [sum(whole[group] for group in groups) for groups in parts.values()]
            moves = [_sum(added[group] for group in groups) for groups in parts.values()]
            rest = _with_total(moves, totals[above] - sum(bases))
            rounded |= {part: base + more for part, base, more in zip(parts, bases, rest, strict=True)}
        totals = rounded
    return totals


def _sum(numbers: Iterable[float]) -> float:
    """A sum of solutions without the error of solving: halves are rounded alike in every question."""
    return round(math.fsum(numbers), _SURE_DIGITS)


def _shift(shifted: dict[int, int], rows: Level, columns: Level, totals: dict[int, int]) -> None:
    """Move ones within rows until columns have their totals too, or no row has both one that is too large and one that
    is too small.
    """
    excess = {column: -total for column, total in totals.items()}
    cells: dict[int, dict[int, int]] = {}
    for group, (row, column) in enumerate(zip(rows, columns, strict=True)):
        excess[column] += shifted[group]
        cells.setdefault(row, {}).setdefault(column, group)
    has_moved = True
    while has_moved:
        has_moved = False
        for known in cells.values():
            more, less = ([cell for cell in known if sign * excess[cell] > 0] for sign in (1, -1))
            for large, small in zip(more, less, strict=False):
                shifted[known[large]] -= 1
                shifted[known[small]] += 1
                excess[large] -= 1
                excess[small] += 1
                has_moved = True


def _with_total(numbers: Sequence[float], total: int) -> list[int]:
    """Whole numbers near these with exactly this sum: those with the largest remainders are rounded up."""
    floors = [math.floor(number) for number in numbers]
    every, rest = divmod(total - sum(floors), len(floors))
    order = sorted(range(len(floors)), key=lambda place: (floors[place] - numbers[place], place))
    up = set(order[:rest])
    return [floor + every + (place in up) for place, floor in enumerate(floors)]


def _sums(places: Places, hashes: Hashes, cells: int) -> Hashes:
    """By cell a number for the multiset of its atoms' colours."""
    sums = np.zeros(cells, dtype=np.uint64)
    inside = places >= 0
    np.add.at(sums, places[inside], hashes[inside])
    return sums


def _hashed(colors: Hashes) -> Hashes:
    """The finalizer of splitmix64."""
    mixed = colors + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _mixed(*rows: Hashes) -> Hashes:
    """One colour for equal rows of colours."""
    mixed = np.zeros_like(rows[0])
    for row in rows:
        mixed = _hashed(mixed ^ row) + mixed
    return mixed
