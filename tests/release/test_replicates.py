"""Error bars hold the answer without noise as often as they say: over the law that noise is really drawn from."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from rules.mechanisms.additive import laplace_scale, laws_of
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Count,
    Moment,
    Output,
    Spread,
    Statistic,
    Sum,
    margin_of_output,
)
from rules.mechanisms.release_plan import Bar, BarEnd, Block, KeyColumn, Measure, PublicGroups
from rules.release.moments import FORMULAS
from rules.release.outputs import show
from rules.release.release import Draws, Noised, columns, draw, release
from rules.release.replicates import points, share_below
from tests.mechanisms.sent import sent
from tests.mechanisms.sources import SeededNoise
from tests.support.written import NOTHING

GROUPS = tuple((str(number),) for number in range(2_500))
EXACT = (3_000, 150_000, 60_000)  # rows, their sum in cents, and the same in halves around the middle
MEASURES = (
    Measure("rows", 4, Decimal("0.1")),
    Measure("sum", 400, Decimal("0.1")),
    Measure("halves", 400, Decimal("0.1")),
)
CENT = Fraction(1, 100)
OUTPUTS = (
    Count(0),
    Sum(1, CENT, 2),
    CentredSum(2, 0, CENT, 100, 2),
    Average(2, 0, CENT, Fraction(0), Fraction(1), 16),
)
BLOCK = Block(
    canonical="bars",
    statement=NOTHING,
    keys=(KeyColumn("text", "k"),),
    groups=PublicGroups(GROUPS),
    measures=MEASURES,
    outputs=OUTPUTS,
    output_types=("bigint", "numeric", "numeric", "numeric"),
    tables=(),
    bars=tuple(map(Bar, range(len(OUTPUTS)))),
)
LAWS = laws_of(BLOCK, group_size=1)
SCALE = laplace_scale(4, Decimal("0.1"))

Numbers = Sequence[Decimal]


def answered(block: Block, groups: int = len(GROUPS)) -> list[list[list[Decimal]]]:
    """By output and group the replicates, after noise was drawn for groups that are all alike."""
    chosen = GROUPS[:groups]
    draws: Draws = draw(block, range(len(MEASURES)), groups, SeededNoise(11), group_size=1)
    noised = release(block, chosen, sent((*group, *EXACT) for group in chosen), draws)
    arrays = columns(block, replace(noised, laws=LAWS))[-len(block.bars) :]
    return [[[Decimal(each) for each in (text or "").strip("{}").split(",")] for text in column] for column in arrays]


def rank(count: int, share: float) -> int:
    """As percentile_disc computes it."""
    return max(1, math.ceil(share * count)) - 1


def quantile(numbers: Numbers, share: float) -> Decimal:
    return sorted(numbers)[rank(len(numbers), share)]


def share_within(replicates: Sequence[Numbers], truth: Decimal, level: float) -> float:
    """How many of the intervals from low to high hold the truth."""
    held = [
        quantile(replicate, (1 - level) / 2) <= truth <= quantile(replicate, (1 + level) / 2)
        for replicate in replicates
    ]
    return sum(held) / len(held)


def true(place: int) -> Decimal:
    return Decimal(show(OUTPUTS[place], EXACT) or "")


@pytest.mark.extended
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bars_of_counts_sums_averages_and_ratios_hold_the_truth_as_often_as_they_say(level: float) -> None:
    counts, sums, centred, averages = answered(replace(BLOCK, level=Decimal(str(level))))
    ratios = [[a / b for a, b in zip(one, other, strict=True)] for one, other in zip(sums, counts, strict=True)]

    for replicates, truth in (
        (counts, true(0)),
        (sums, true(1)),
        (centred, true(2)),
        (averages, true(3)),
        (ratios, true(1) / true(0)),
    ):
        assert abs(share_within(replicates, truth, level) - level) < 0.02 + 0.02 * (1 - level)


@pytest.mark.parametrize(("scale", "level"), [(10.0, 0.95), (0.8, 0.9), (1234.5, 0.99), (1e9, 0.95), (40.0, 0.999)])
def test_the_bars_of_one_draw_are_those_of_its_law(scale: float, level: float) -> None:
    block = replace(BLOCK, outputs=(Count(0),), bars=(Bar(0),), level=Decimal(str(level)))

    (array,) = columns(
        block, Noised(GROUPS[:1], dict(enumerate(((7,), (0,), (0,)))), {0: Distribution.of_laplace(scale)})
    )[-1]

    replicates = [Decimal(text) for text in (array or "").strip("{}").split(",")]
    expected = Distribution.of_laplace(scale).margin(Decimal(str(level)))
    for share in ((1 - level) / 2, (1 + level) / 2):
        assert abs(abs(quantile(replicates, share) - 7) - expected) <= max(1, expected * 0.05)


def test_the_same_release_has_the_same_bars_every_time() -> None:
    noised = Noised(GROUPS[:3], dict.fromkeys(range(3), (5, 6, 7)), LAWS)

    assert columns(BLOCK, noised) == columns(BLOCK, noised)


def test_what_has_no_noise_has_no_replicates_but_itself() -> None:
    exact = columns(BLOCK, Noised(GROUPS[:1], {index: (number,) for index, number in enumerate(EXACT)}))

    assert [column[0] for column in exact[-4:]] == [f"{{{column[0]}}}" for column in exact[1:5]]


def test_a_total_over_groups_has_the_noise_of_all_of_them() -> None:
    rolled = replace(BLOCK, outputs=(Count(0),), bars=(Bar(0),), sets=((0,), ()))
    groups = GROUPS[:400]
    values = {index: (number,) * len(groups) for index, number in enumerate(EXACT)}

    *_, bars = columns(rolled, Noised(groups, values, LAWS))

    def width(text: str | None) -> float:
        numbers = [Decimal(each) for each in (text or "").strip("{}").split(",")]
        return float(quantile(numbers, 0.975) - quantile(numbers, 0.025)) / 2

    normal = SCALE * math.sqrt(2 * 400) * 1.96
    assert width(bars[0]) == pytest.approx(SCALE * math.log(20), rel=0.03)
    assert width(bars[-1]) == pytest.approx(normal, rel=0.03)


def test_every_number_runs_through_its_quantiles_once_in_an_order_of_its_own() -> None:
    block = replace(BLOCK, outputs=(Count(0), Count(1)), bars=(Bar(0), Bar(1)))
    arrays = columns(block, Noised(GROUPS[:1], dict.fromkeys(range(3), (0,)), LAWS))[-2:]

    one, other = ([int(text) for text in (array or "").strip("{}").split(",")] for (array,) in arrays)

    prime, _ = points(block.level)
    assert len(one) == len(other) == prime - 1
    assert sum(one) == sum(other) == 0
    together = sum(x * y for x, y in zip(one, other, strict=True))
    assert abs(together) < 0.05 * math.sqrt(sum(x * x for x in one) * sum(y * y for y in other))


ELEVEN = replace(
    BLOCK,
    measures=tuple(Measure(f"m{place}", 1, Decimal(1)) for place in range(11)),
    outputs=tuple(map(Count, range(11))),
    bars=tuple(map(Bar, range(11))),
)


@pytest.mark.parametrize(
    ("level", "off"), [("0.95", (0.014, 0.024)), ("0.99", (0.009, 0.017)), ("0.999", (0.003, 0.008))]
)
@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_sums_and_differences_of_two_and_three_numbers_hold_nearly_what_they_say(
    kind: str, level: str, off: tuple[float, float]
) -> None:
    law = Distribution.of_laplace(1e6) if kind == "laplace" else Distribution(variance=1e12)
    noised = Noised(GROUPS[:1], dict.fromkeys(range(11), (0,)), dict.fromkeys(range(11), law))
    arrays = columns(replace(ELEVEN, level=Decimal(level)), noised)[-11:]
    numbers = np.array([(text or "").strip("{}").split(",") for (text,) in arrays], dtype=np.float64)
    drawn = getattr(np.random.default_rng(7), kind)(scale=1e6, size=(3, 1_000_000))
    for together, most in zip((2, 3), off, strict=True):
        true = np.sort(drawn[:together].sum(axis=0))
        for some in combinations(range(11), together):
            for signs in product((1, -1), repeat=together - 1):
                sums = np.sort(np.array([1, *signs]) @ numbers[list(some)])
                low, high = (sums[rank(len(sums), share)] for share in ((1 - float(level)) / 2, (1 + float(level)) / 2))
                held = np.diff(np.searchsorted(true, [low, high]))[0] / len(true)
                assert abs(held - float(level)) < most


SPREAD = Spread(Moment(2, CENT / 2), Moment(1, CENT), Fraction(0), Fraction(1))
KINDS = tuple(FORMULAS)
OTHER = Spread(Moment(2, CENT / 3), Moment(1, CENT * 2), Fraction(-1), Fraction(1))
FAR = Average(2, 0, CENT, Fraction(10**14), Fraction(10**14 + 1), 16)
STATISTICS = tuple(
    Statistic(kind, 0, SPREAD, 12, *(() if kind.startswith(("var", "std")) else (OTHER, Moment(2, CENT / 5))))
    for kind in KINDS
)


@pytest.mark.slow
@pytest.mark.parametrize("output", [*OUTPUTS, FAR, *STATISTICS], ids=str)
@pytest.mark.parametrize("level", ["0.8", "0.95"])
def test_the_end_of_a_bar_is_the_quantile_of_its_replicates(output: Output, level: str) -> None:
    """Found at once in doubles, and shown exactly: what the twin would find in arrays that are exact."""
    ends: tuple[BarEnd, ...] = ("low", "high", "margin")
    bars = (Bar(0), *(Bar(0, end) for end in ends))
    block = replace(BLOCK, outputs=(output,), output_types=("numeric",), bars=bars, level=Decimal(level))
    plain = replace(block, outputs=(Count(0), Count(1), Count(2)), bars=(Bar(0), Bar(1), Bar(2)))
    numbers = {0: (3_000, 160, 1, -5), 1: (150_000, 0, 7, 9), 2: (60_000, -6_000, 10**9, 3)}
    noised = Noised(GROUPS[:4], numbers, LAWS)
    array, *found = columns(block, noised)[-4:]

    for group, moved in enumerate(zip(*columns(plain, noised)[-3:], strict=True)):
        cells = zip(*(map(int, (each or "").strip("{}").split(",")) for each in moved), strict=True)
        exact = [Decimal(text) for cell in cells if (text := show(output, cell)) is not None]
        shown = show(output, [numbers[index][group] for index in range(3)])
        for text, end in zip((column[group] for column in found), ends, strict=True):
            distances = [abs(decimal - Decimal(shown or "NaN")) for decimal in exact] if end == "margin" else exact
            if not exact or "NaN" in str(distances[:1]):
                continue
            known = abs(Decimal(text or "NaN") - Decimal(shown or "NaN")) if end == "margin" else Decimal(text or "NaN")
            expected = quantile(distances, float(share_below(end, Decimal(level))))
            if end == "margin" and isinstance(output, Sum):
                expected = _margin(output, Decimal(level))
            near(known, expected, output)
        parts = [text for text in (array[group] or "").strip("{}").split(",") if text != "NULL"]
        assert len(parts) == len(exact)
        for part, decimal in zip(parts, exact, strict=True):
            near(Decimal(part), decimal, output)


def _margin(output: Sum, level: Decimal) -> Decimal:
    """A sum has that of its law, whatever is released."""
    margin = margin_of_output(output, LAWS, level)
    assert margin is not None
    return Decimal(margin.numerator) / margin.denominator


@pytest.mark.parametrize("bare", [False, True])
def test_the_margin_of_a_count_is_that_of_the_notice(*, bare: bool) -> None:
    output, reach = Count(1, shown_bare=bare), LAWS[1].margin(Decimal("0.95"))
    block = replace(BLOCK, outputs=(output,), output_types=("bigint",), bars=(Bar(0, "margin"),), level=Decimal("0.95"))
    noised = Noised(GROUPS[:1], dict.fromkeys(range(3), (10 * reach,)), LAWS)

    assert columns(block, noised)[-1] == (str(11 * reach),)


@pytest.mark.parametrize("number", [-500, 0, 3, 9_000])
def test_the_bar_of_a_count_of_listed_values_lies_in_the_list(number: int) -> None:
    bars = tuple(Bar(0, end) for end in ("low", "high", "margin"))
    block = replace(BLOCK, outputs=(Count(1, most=4),), output_types=("bigint",), bars=bars, level=Decimal("0.95"))
    noised = Noised(GROUPS[:1], dict.fromkeys(range(3), (number,)), LAWS)

    shown, low, high, moved = (int(column[0] or "") for column in columns(block, noised)[-4:])

    assert 0 <= low <= shown <= high <= 4
    assert 0 <= moved <= 4
    assert margin_of_output(Count(1, most=4), LAWS, Decimal("0.95")) == 4


def near(one: Decimal, other: Decimal, output: Output) -> None:
    """But for the last digit, to which a tie may be rounded either way."""
    digits = getattr(output, "digits", 0)
    assert abs(one - other) <= max(Decimal("1e-9") * max(Decimal(1), abs(other)), Decimal(10) ** -digits), (one, other)
