"""What leaves a release is the exact number plus discrete Laplace noise of the claimed scale, and nothing else.

Black-box audits find errors, never their absence: the proofs are in rules/README.md.
"""

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest

from rules.local import Bit, KAry, Mean, Sketch, Unary
from rules.local.laws import hashed_bit
from rules.mechanisms.additive import AdditiveNoise, GaussianNoise, LaplaceNoise, laplace_scale
from rules.mechanisms.additive import noise_of as additive_noise
from rules.mechanisms.draw import OpenDPNoise
from rules.mechanisms.noised_outputs import Count, Text
from rules.mechanisms.release_plan import (
    Block,
    Choice,
    KeyColumn,
    Ladder,
    Measure,
    PrivateGroups,
    PublicGroups,
    Quantile,
    Top,
)
from rules.mechanisms.weighted_means import SummedCells, mean, of_cells
from rules.release.bound_ladder import choose_bound, draw_climb
from rules.release.least_squares import Observation, agreed
from rules.release.release import columns, draw, known_groups, release, release_choice, release_found
from rules.sql.session_settings import Within
from tests.mechanisms.climbs import law_of_climb
from tests.mechanisms.sent import sent
from tests.release.test_within import asked, block_of
from tests.support.written import NOTHING

GROUPS = tuple((str(number),) for number in range(5_000))
ROWS = [(*group, str(100 + number % 7), str(2**61)) for number, group in enumerate(GROUPS) if number % 3]
BLOCK = Block(
    canonical="audit",
    statement=NOTHING,
    keys=(KeyColumn("text", "k"),),
    groups=PublicGroups(GROUPS),
    measures=(Measure("small", 3, Decimal("0.5")), Measure("large", 3_000_000, Decimal("0.25"))),
    outputs=(Count(0), Count(1)),
    output_types=("bigint", "bigint"),
    tables=(),
)


def noise_of_a_release(group_size: int = 1, block: Block = BLOCK) -> tuple[list[int], list[int]]:
    """Released minus exact, of both measures, over all groups."""
    groups = known_groups(block)
    assert groups is not None
    draws = draw(block, (0, 1), len(groups), OpenDPNoise(), group_size=group_size)
    keys, *outputs = columns(block, release(block, groups, sent(ROWS), draws))
    exact = {(key,): (int(small), int(large)) for key, small, large in ROWS}
    noise: tuple[list[int], list[int]] = ([], [])
    for measure, texts in enumerate(outputs):
        for key, text in zip(keys, texts, strict=True):
            noise[measure].append(int(text or "") - exact.get((key or "",), (0, 0))[measure])
    return noise


def chi_square(noise: list[int], scale: float, cells: int = 20) -> float:
    """Against the discrete Laplace law, over cells of nearly equal probability."""
    bounds = [_quantile(scale, share / cells) for share in range(1, cells)]
    edges = [-math.inf, *sorted(set(bounds)), math.inf]
    counted = Counter(int(np.searchsorted(edges[1:-1], value, side="left")) for value in noise)
    expected = [len(noise) * (_cumulative(scale, high) - _cumulative(scale, low)) for low, high in pairwise(edges)]
    return sum((counted[cell] - number) ** 2 / number for cell, number in enumerate(expected))


def _cumulative(scale: float, value: float) -> float:
    """P(noise ≤ value)."""
    if math.isinf(value):
        return float(value > 0)
    alpha = math.exp(-1 / scale)
    tail = alpha ** (value + 1) if value >= 0 else alpha**-value
    return float(1 - tail / (1 + alpha) if value >= 0 else tail / (1 + alpha))


def _quantile(scale: float, share: float) -> int:
    return round(scale * math.log(2 * share) if share < 0.5 else -scale * math.log(2 * (1 - share)))


@pytest.mark.parametrize("group_size", [1, 4])
def test_released_noise_follows_the_claimed_law(group_size: int) -> None:
    for noise, measure in zip(noise_of_a_release(group_size), BLOCK.measures, strict=True):
        scale = laplace_scale(measure.sensitivity * group_size, measure.epsilon)
        assert chi_square(noise, scale) < 90  # 19 degrees of freedom: 1 run in 10^11 is above


@pytest.mark.parametrize("group_size", [1, 4])
def test_released_gaussian_noise_has_the_sigma_of_its_l2_sensitivity(group_size: int) -> None:
    """Of a count of people in at most 36 groups, and of a sum of which all may be in one."""
    units = Measure("units", 36, Decimal("0.5"), noise="gaussian", at_most_one=True)
    total = Measure("large", 3_000_000, Decimal("0.25"), noise="gaussian")
    block, generator = replace(BLOCK, measures=(units, total)), np.random.default_rng(3)

    for noise, sigma in zip(noise_of_a_release(group_size, block), (6 / 0.5, 3_000_000 / 0.25), strict=True):
        law = NormalDist(0, sigma * group_size)
        cells = Counter(int(20 * law.cdf(number + generator.uniform(-0.5, 0.5))) for number in noise)
        statistic = sum((cells[cell] - len(noise) / 20) ** 2 / (len(noise) / 20) for cell in range(20))
        assert statistic < 90  # 19 degrees of freedom: 1 run in 10^11 is above
        assert abs(np.std(noise) / law.stdev - 1) < 0.07  # seven standard deviations


def test_an_audit_would_see_noise_of_another_scale() -> None:
    small, _ = noise_of_a_release()

    assert chi_square(small, 6.0 * 1.3) > 90  # it is around 300
    assert chi_square(small, 6.0 / 1.3) > 90


def test_draws_of_neighbouring_groups_measures_and_answers_are_unrelated() -> None:
    small, large = noise_of_a_release()
    again, _ = noise_of_a_release()

    for one, other in ((small, large), (small, again), (small[1:], small[:-1])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 7 / math.sqrt(len(one))


def test_no_answer_is_more_than_e_to_the_epsilon_times_as_likely_with_a_unit_as_without() -> None:
    groups, epsilon = 20_000, 1.0
    counted = Measure("count", 1, Decimal(1))
    answers = {}
    for exact in (10, 11):
        block = replace(BLOCK, measures=(counted,), outputs=(Count(0),))
        draws = draw(block, (0,), groups, OpenDPNoise(), group_size=1)
        rows = [(str(number), str(exact)) for number in range(groups)]
        noised = release(block, [(str(number),) for number in range(groups)], sent(rows), draws)
        answers[exact] = Counter(noised.values[0])

    for answer in range(4, 18):
        without, with_unit = answers[10][answer], answers[11][answer]
        for one, other in ((without, with_unit), (with_unit, without)):
            # The law has this very ratio: of all such answers this share is, at most, of one of the databases.
            # By Chernoff's bound a sample is so far above with a probability below e^-26.
            share = math.exp(epsilon) / (1 + math.exp(epsilon))
            assert one <= share * (one + other) or (one + other) * _divergence(one / (one + other), share) < 26


def _divergence(seen: float, share: float) -> float:
    """Of a coin that shows heads so often from one that has this share of them."""
    tails = (1 - seen) * math.log((1 - seen) / (1 - share)) if seen < 1 else 0.0
    return seen * math.log(seen / share) + tails


def test_the_group_of_a_lone_unit_is_shown_as_rarely_as_delta_says() -> None:
    lone, delta = 30_000, Decimal("0.02")
    units = Measure("units", 1, Decimal("0.5"))
    found = PrivateGroups(measure=0, delta=delta)
    block = replace(BLOCK, groups=found, measures=(units,), outputs=(Count(0),))
    rows: list[tuple[Text, ...]] = [(str(number), "1") for number in range(lone)]

    shown = len(release_found(block, found, sent(rows), OpenDPNoise(), group_size=1).groups) / lone
    assert 0.6 * float(delta) - 0.002 < shown < float(delta) + 0.004


LADDER = Ladder("rows", "rows", Decimal("0.5"), (1, 2, 4, 8), (300, 300, 400))
CLASSES = ((4, (300, 300, 400)), (16, (900, 700, 800)))


@pytest.mark.parametrize("ladder", [LADDER, replace(LADDER, by_groups=CLASSES).over(9)], ids=["listed", "found"])
@pytest.mark.parametrize("heights", [[700, 300, 100], [0, 0, 0], [2000, 2000, 2000]])
def test_bounds_are_chosen_with_the_claimed_law(heights: list[int], ladder: Ladder) -> None:
    """And with one unit more no rung is more than e^ε times as likely, or as unlikely."""
    draws = 20_000
    expected, other = (
        law_of_climb(ladder, numbers) for numbers in (heights, [heights[0] + 64, heights[1] + 30, heights[2]])
    )
    noise = OpenDPNoise()

    chosen = Counter(choose_bound(ladder, heights, draw_climb(ladder, noise, group_size=1)) for _ in range(draws))

    for rung, share in zip(ladder.rungs, expected, strict=True):
        assert abs(chosen[rung] - draws * share) < 7 * math.sqrt(draws * share) + 1e-9
    assert all(abs(math.log(one / two)) <= 0.5 for one, two in zip(expected, other, strict=True))


def test_an_answer_that_is_asked_by_its_error_costs_what_both_of_its_parts_are_charged() -> None:
    """Which ε the second part has is chosen by the first, and refusals are answers too: at most ε = 1 in all."""
    noise, runs = OpenDPNoise(), 1_500
    within = Within(Fraction(1, 20), is_relative=True, text="5%")

    answers = [[asked(block_of(1), within, 0, (rows,), noise) for _ in range(runs)] for rows in (300, 301)]
    shares = [[sum(number is None for number in some) / runs for some in answers]]
    for bound in (295, 300, 305):
        shares.append([sum(number is not None and number <= bound for number in some) / runs for some in answers])
    for here, there in shares:
        for least, most in ((here, there), (there, here)):
            assert least <= math.e * most + 5 * math.sqrt(max(least, 0.01) / runs)


def test_a_typical_value_tells_of_a_replaced_block_no_more_than_epsilon() -> None:
    """Of two clusters of blocks the value of one jumps to the other: the released candidates, drawn and counted."""
    runs, cells = 4_000, 9
    choice = Choice("m", 2, Decimal(1), NOTHING, cells, Quantile(Fraction(1, 2)), blocks=41)
    rows = ([(0, 20), (8, 21)], [(0, 21), (8, 20)])
    block = replace(BLOCK, keys=(), groups=PublicGroups(((),)), measures=(choice,), outputs=())

    chosen = [
        Counter(release_choice(block, choice, ((),), sent(some), OpenDPNoise(), group_size=1)[0] for _ in range(runs))
        for some in rows
    ]
    low = [sum(each[cell] for cell in range(4)) for each in chosen]
    for one, other in ((low[0], low[1]), (low[1], low[0])):
        share = math.e / (1 + math.e)
        assert one <= share * (one + other) or (one + other) * _divergence(one / (one + other), share) < 26
    assert sum(each[cell] for each in chosen for cell in range(cells)) == 2 * runs


def test_what_is_served_from_cells_is_their_noise_and_no_other() -> None:
    """Sums of two cells of one release, in the mean with another: by hand from what was drawn, and by the law told."""
    rows, groups = Measure("rows", 2, Decimal("0.5")), 20_000
    noise = additive_noise(rows, group_size=1)
    drawn, beside = OpenDPNoise().draw(noise, 2 * groups), OpenDPNoise().draw(noise, groups)
    pairs = [drawn[place] + drawn[groups + place] for place in range(groups)]
    cells = SummedCells(pairs, (2,) * groups, noise)

    means, laws = mean([of_cells(beside, noise), cells])

    assert all(abs(mean - (pair + 2 * one) / 3) <= 0.5 for mean, pair, one in zip(means, pairs, beside, strict=True))
    within = sum(abs(mean) <= laws[0].margin(Decimal("0.95")) for mean in means) / groups
    assert 0.938 < within < 0.972  # eight standard deviations, and a whole number


def test_what_is_made_to_agree_is_its_noise_and_no_other() -> None:
    """A total and two parts with noise of three kinds: by hand from what was drawn, and by the law told."""
    runs, source = 3_000, OpenDPNoise()
    noises: list[AdditiveNoise] = [
        LaplaceNoise(1, Decimal("0.5")),
        LaplaceNoise(1, Decimal("0.2")),
        GaussianNoise(4, Decimal("0.3")),
    ]
    parts, total = np.array([0, 1], dtype=np.int64), np.array([0, 0], dtype=np.int64)
    drawn = [source.draw(noise, count * runs) for noise, count in zip(noises, (2, 1, 2), strict=True)]
    one, above, other = (float(noise.precision) for noise in noises)
    inside = 0
    for run in range(runs):
        pair, whole, beside = drawn[0][2 * run : 2 * run + 2], drawn[1][run], drawn[2][2 * run : 2 * run + 2]
        observed = [Observation(parts, pair, noises[0]), Observation(total, [whole], noises[1])]
        found = agreed([*observed, Observation(parts, beside, noises[2])], parts, 2, is_regular=True)
        means = [(one * first + other * second) / (one + other) for first, second in zip(pair, beside, strict=True)]
        moved = (whole - sum(means)) * above / (one + other + 2 * above)
        assert found is not None
        assert all(abs(number - mean - moved) <= 1 for number, mean in zip(found.numbers, means, strict=True))
        inside += sum(
            abs(number) <= law.margin(Decimal("0.95")) for number, law in zip(found.numbers, found.laws, strict=True)
        )

    assert 0.93 < inside / (2 * runs) < 0.98  # eight standard deviations, and a whole number


def test_no_group_is_chosen_e_to_the_epsilon_times_as_often_with_a_unit_as_without() -> None:
    """A unit that is in all groups but the one that is looked for, and one that is in that alone."""
    asked, times, scores = Top("units", 1, Decimal(1), 1, 6), 40_000, [4, 4, 3, 3, 3, 3]
    chosen = [
        Counter(OpenDPNoise().choose_top(numbers, asked, group_size=1)[0] for _ in range(times))
        for numbers in (scores, [5, *scores[1:]], [4, *(score + 1 for score in scores[1:])])
    ]

    for with_unit in chosen[1:]:
        for place in range(6):
            most, least = max(chosen[0][place], with_unit[place]), min(chosen[0][place], with_unit[place])
            assert most - 7 * math.sqrt(most) <= math.e * (least + 7 * math.sqrt(least))


@pytest.mark.extended
def test_a_local_report_tells_two_answers_apart_by_no_more_than_epsilon() -> None:
    """Each report, drawn and counted: of one of three values, of yes or no, of bits, of a number, of a word."""
    runs = 6_000
    kary, bit, unary = KAry(("a", "b", "c"), "1"), Bit("1"), Unary(("a", "b", "c"), "1")
    mean, sketch = Mean(0, 12, "1"), Sketch(2, 3, "c0ffee", "1")
    asks = (
        (partial(kary.report, "a"), partial(kary.report, "b")),
        (partial(bit.report, True), partial(bit.report, False)),
        (partial(unary.report, "a"), partial(unary.report, "b")),
        (partial(mean.report, 0), partial(mean.report, 12)),
        (partial(sketch.report, "tea"), partial(sketch.report, "milk")),
    )
    for pair in asks:
        one, other = (Counter(str(report()) for _ in range(runs)) for report in pair)
        assert len(one) == len(other) >= 2
        share = math.e / (1 + math.e)
        for report in one | other:
            for most, least in ((one[report], other[report]), (other[report], one[report])):
                both = most + least
                assert most <= share * both or both * _divergence(most / both, share) < 26


def test_the_words_of_that_audit_are_told_apart_by_a_sketch() -> None:
    places = [[hashed_bit(word, number, 3, bytes.fromhex("c0ffee")) for number in range(2)] for word in ("tea", "milk")]
    assert all(one != other for one, other in zip(*places, strict=True))
