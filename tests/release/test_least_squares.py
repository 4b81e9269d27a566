"""Parts and totals are made to agree as least squares does it, with the law of the noise that is then in them."""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.mechanisms.additive import GaussianNoise, LaplaceNoise
from rules.mechanisms.cells import Clock, ReleasedKey, Span
from rules.mechanisms.draw import OpenDPNoise
from rules.release.least_squares import Observation, agreed
from rules.release.partitions import Partition, Places, common_atoms
from rules.values.types import DATE, TIMESTAMP
from tests.properties.planning import thorough

COUNTS = (1, 7, 12, 84)  # of the cells of a grid: of all, of its rows, of its columns, and of both
EPSILONS = st.sampled_from([Decimal("0.05"), Decimal("0.3"), Decimal(1), Decimal(4)])


def places(*cells: int) -> Places:
    return np.array(cells, dtype=np.int64)


@st.composite
def systems(draw: st.DrawFn) -> tuple[list[Observation], Places]:
    """A few releases over a few atoms; the first one is the question's own, over groups of its own."""
    atoms = draw(st.integers(1, 12))
    observed: list[Observation] = []
    for _ in range(draw(st.integers(1, 4))):
        cells = draw(st.integers(1, atoms))
        of = [*range(cells), *(draw(st.integers(0, cells - 1)) for _ in range(atoms - cells))]
        noise = (LaplaceNoise if draw(st.booleans()) else GaussianNoise)(draw(st.integers(1, 3)), draw(EPSILONS))
        numbers = draw(st.lists(st.integers(-(10**12), 10**12), min_size=cells, max_size=cells))
        if observed and cells > 1 and draw(st.booleans()):
            of = [place if place else -1 for place in of]
        observed.append(Observation(places(*draw(st.permutations(of))), numbers, noise))
    return observed, observed[0].places


def dense(observed: list[Observation], asked: Places) -> tuple[list[float], list[float]]:
    """Solve it by the pseudo-inverse: the estimates, relative to the first release, and the variance of each."""
    rows, numbers, precisions = [], [], []
    first = observed[0]
    share = [first.numbers[place] // int(np.sum(first.places == place)) for place in first.places.tolist()]
    for observation in observed:
        for cell, number in enumerate(observation.numbers):
            inside = observation.places == cell
            rows.append(inside.astype(float))
            numbers.append(float(number - sum(one for one, is_in in zip(share, inside.tolist(), strict=True) if is_in)))
            precisions.append(float(observation.noise.precision))
    matrix, weight = np.array(rows), np.diag(precisions)
    covariance = np.linalg.pinv(matrix.T @ weight @ matrix, hermitian=True)
    groups = np.array([(asked == group).astype(float) for group in range(len(first.numbers))])
    weights = groups @ covariance @ matrix.T @ weight
    kinds = [observation.noise.law.deviation**2 for observation in observed for _ in observation.numbers]
    base = groups @ np.array(share, dtype=float)
    return (weights @ np.array(numbers) + base).tolist(), (weights**2 @ np.array(kinds)).tolist()


@thorough
@given(system=systems())
def test_it_is_the_least_squares_estimate_with_its_noise(system: tuple[list[Observation], Places]) -> None:
    observed, asked = system
    found = agreed(observed, asked, len(observed[0].numbers), is_regular=False)
    estimates, variances = dense(observed, asked)

    assert found is not None
    largest = max(abs(number) for observation in observed for number in observation.numbers)
    for number, estimate, law, variance in zip(found.numbers, estimates, found.laws, variances, strict=True):
        assert abs(number - estimate) <= len(observed[0].numbers) + 1e-9 * largest
        assert abs(law.deviation**2 - variance) <= 1e-6 * variance + 0.1


def grid(rows: int, columns: int) -> tuple[Places, Places, Places, Places]:
    """Atoms in rows and columns: everything, the rows, the columns, and the atoms themselves."""
    pairs = list(product(range(rows), range(columns)))
    return (
        places(*(0 for _ in pairs)),
        places(*(row for row, _ in pairs)),
        places(*(column for _, column in pairs)),
        places(*range(len(pairs))),
    )


@thorough
@given(
    bins=st.lists(st.integers(2, 4), min_size=2, max_size=3),
    data=st.data(),
)
def test_sets_of_a_cube_are_told_as_their_residuals_say(bins: list[int], data: st.DataObject) -> None:
    """For a question over one measured set, by the closed form of ResidualPlanner (Xiao et al., NeurIPS 2023)."""
    every = [frozenset(keys) for size in range(1, len(bins) + 1) for keys in combinations(range(len(bins)), size)]
    measured = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    noises = {keys: GaussianNoise(data.draw(st.integers(1, 9)), data.draw(EPSILONS)) for keys in measured}
    asked = data.draw(st.sampled_from(measured))
    atoms = list(np.ndindex(*bins))
    of = {keys: _cells(keys, bins, atoms) for keys in measured}
    sizes = {keys: math.prod(bins[key] for key in keys) for keys in measured}
    order = [asked, *(keys for keys in measured if keys != asked)]

    told = agreed(
        [Observation(of[keys], [0] * sizes[keys], noises[keys]) for keys in order],
        of[asked], sizes[asked], is_regular=True,
    )  # fmt: skip

    assert told is not None
    variances = {keys: float(1 / noise.precision) for keys, noise in noises.items()}
    expected = _by_residuals(asked, bins, variances)
    rounding = 1 / 12 if len(measured) > 1 else 0  # of the last number
    for law in told.laws:
        assert expected * 0.98 - rounding <= law.deviation**2 <= expected * 1.02 + 2 * rounding


def _cells(keys: frozenset[int], bins: list[int], atoms: list[tuple[int, ...]]) -> Places:
    shape = [bins[key] for key in sorted(keys)]
    return places(*(int(np.ravel_multi_index([atom[key] for key in sorted(keys)], shape)) for atom in atoms))


def _by_residuals(asked: frozenset[int], bins: list[int], variances: dict[frozenset[int], float]) -> float:
    """The variance of one cell: Σ over S within it of v_S · Π (1 − 1/n) · Π 1/n²."""
    total = 0.0
    for part in (frozenset(keys) for size in range(len(asked) + 1) for keys in combinations(sorted(asked), size)):
        above = (
            variance * math.prod(bins[key] for key in keys - part)
            for keys, variance in variances.items()
            if part <= keys
        )
        within = math.prod(1 - 1 / bins[key] for key in part) * math.prod(bins[key] ** -2 for key in asked - part)
        total += within / sum(1 / variance for variance in above)
    return total


def test_cells_rows_columns_and_total_agree_whichever_is_asked_for() -> None:
    source = OpenDPNoise()
    check_agreement([source.draw(LaplaceNoise(1, Decimal("0.1")), count) for count in COUNTS])


@pytest.mark.parametrize("seed", range(30))
def test_halves_are_rounded_alike_in_every_question(seed: int) -> None:
    """Estimates have small denominators here, so the fractions of many are exactly a half."""
    random = Random(seed)
    check_agreement([[random.randrange(-3, 4) for _ in range(count)] for count in COUNTS])


def check_agreement(drawn: Sequence[Sequence[int]]) -> None:
    """Check that total, rows, columns and cells of a grid add up, with this noise in each."""
    noise, levels, counts = LaplaceNoise(1, Decimal("0.1")), grid(7, 12), COUNTS
    true = [20 * (place % 5) for place in range(84)]
    observed = [
        Observation(level, [noise_ + sum(t for t, p in zip(true, level.tolist(), strict=True) if p == cell)
                            for cell, noise_ in enumerate(draws)], noise)
        for level, draws in zip(levels, drawn, strict=True)
    ]  # fmt: skip

    found = [agreed(observed, level, count, is_regular=True) for level, count in zip(levels, counts, strict=True)]

    cells = found[3]
    assert cells is not None
    for level, of, count in zip(levels, found, counts, strict=True):
        assert of is not None
        sums = [0] * count
        for place, number in zip(level.tolist(), cells.numbers, strict=True):
            sums[place] += number
        assert tuple(sums) == of.numbers
        assert len(set(of.laws)) == 1


@thorough
@given(rows=st.integers(1, 5), columns=st.integers(1, 5), epsilons=st.lists(EPSILONS, min_size=4, max_size=4))
def test_groups_that_lists_do_not_tell_apart_have_one_law(rows: int, columns: int, epsilons: list[Decimal]) -> None:
    levels = grid(rows, columns)
    noises = [LaplaceNoise(1, epsilon) for epsilon in epsilons]
    observed = [
        Observation(level, [0] * (int(level.max()) + 1), noise) for level, noise in zip(levels, noises, strict=True)
    ]

    for level in levels:
        shared = agreed(observed, level, int(level.max()) + 1, is_regular=True)
        apart = agreed(observed, level, int(level.max()) + 1, is_regular=False)
        assert shared is not None
        assert apart is not None
        for one, other in zip(shared.laws, apart.laws, strict=True):
            assert abs(one.deviation - other.deviation) < 1e-6 * one.deviation


@pytest.mark.slow
def test_bars_of_what_agrees_hold_what_they_say_and_numbers_are_not_bent() -> None:
    """A total and its parts, six hundred times: at 95%, with eight standard deviations to spare."""
    source, noise, parts, runs = OpenDPNoise(), LaplaceNoise(1, Decimal("0.2")), 4, 600
    total, cells = places(*([0] * parts)), places(*range(parts))
    drawn, above = source.draw(noise, parts * runs), source.draw(noise, runs)
    inside, moved = 0, 0
    for run in range(runs):
        numbers = [1000 + number for number in drawn[run * parts : (run + 1) * parts]]
        observed = [Observation(cells, numbers, noise), Observation(total, [1000 * parts + above[run]], noise)]
        found = agreed(observed, cells, parts, is_regular=True)
        assert found is not None
        reach = found.laws[0].margin(Decimal("0.95"))
        inside += sum(abs(number - 1000) <= reach for number in found.numbers)
        moved += sum(found.numbers) - 1000 * parts
        assert abs(sum(found.numbers) - 1000 * parts) <= max(abs(above[run]), abs(sum(numbers) - 1000 * parts)) + 1

    assert 0.91 < inside / (parts * runs) < 0.99
    assert abs(moved / runs) < 8 * noise.law.deviation * np.sqrt(parts / (parts + 1) / runs) + 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seen", "apart"),
    [
        # Each by itself, and windows of two, twice: what the middle has too much, both ends lack.
        (((0, 1, 2), (0, 0, -1), (0, 0, -1), (-1, 0, 0), (-1, 0, 0)), "less"),
        (((0, 1, 2), (0, 0, 0)), "more"),  # three parts and their total
    ],
)
def test_a_sum_of_groups_that_agree_has_the_bar_of_their_common_noise(
    seen: tuple[tuple[int, ...], ...], apart: str
) -> None:
    source, noise, runs = OpenDPNoise(), LaplaceNoise(1, Decimal("0.1")), 600
    level, inside, reach, alone = (0, 1, 0), 0, 0, 0.0
    drawn = {number: source.draw(noise, runs * (max(cells) + 1)) for number, cells in enumerate(seen)}
    for run in range(runs):
        observed = []
        for number, cells in enumerate(seen):
            size = max(cells) + 1
            numbers = [1000 * cells.count(c) + drawn[number][run * size + c] for c in range(size)]
            observed.append(Observation(places(*cells), numbers, noise))
        found = agreed(observed, places(0, 1, 2), 3, is_regular=False, levels=[level])
        assert found is not None
        ((ends, middle),) = found.totals
        assert abs(middle.deviation - found.laws[1].deviation) < 1e-6 * middle.deviation
        reach, alone = ends.margin(Decimal("0.95")), found.laws[0].plus(found.laws[2]).deviation
        inside += abs(found.numbers[0] + found.numbers[2] - 2000) <= reach

    assert 0.91 < inside / runs < 0.99
    assert (alone < 0.95 * ends.deviation) if apart == "less" else (alone > 1.05 * ends.deviation)


def key(name: str, *, clock: Clock | None = None) -> ReleasedKey:
    return ReleasedKey(name, is_complete=True, span=Span(), clock=clock)


def partition(keys: tuple[ReleasedKey, ...], *cells: tuple[str | None, ...]) -> Partition:
    return Partition(keys, {cell: place for place, cell in enumerate(cells)}, is_whole=True, is_exact=True)


def test_atoms_are_joined_by_what_keys_share_and_by_days_that_tell_their_months() -> None:
    day, month = Clock("at", "day", DATE), Clock("at", "month", TIMESTAMP)
    days = [("2024-01-31", "a"), ("2024-02-01", "a"), ("2024-02-02", "b")]
    found = common_atoms(
        [
            partition((key("d", clock=day), key("k")), *days),
            partition((key("m", clock=month),), ("2024-01-01 00:00:00",), ("2024-02-01 00:00:00",)),
            partition((), ()),
            partition((key("k"),), ("a",), ("b",), ("c",)),  # which has rows that the first list has not
        ],
        "UTC",
    )

    assert [None if place is None else place.tolist() for place in found.places[:3]] == [
        [0, 1, 2],
        [0, 1, 1],
        [0, 0, 0],
    ]
    assert found.places[3] is None
    assert not found.is_regular


def test_lists_whose_join_is_too_long_are_left_out() -> None:
    lists = [partition((key(name),), *((str(number),) for number in range(30))) for name in "abc"]

    found = common_atoms(lists, "UTC", most=1000)

    assert [place is None for place in found.places] == [False, False, True]
    assert found.is_regular
