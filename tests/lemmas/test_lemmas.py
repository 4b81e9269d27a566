"""The short lemmas of rules/README.md, proved by z3 for all integers, about the SQL that the kernel writes.

Each one has a variant in which somebody was careless: a fault that is planted into the kernel, or a premise that is
left out. z3 has to find a counter-example of that variant.
"""

# ruff: noqa: SIM300 (inequalities are read as in the proofs)

import re
from decimal import Decimal
from pathlib import Path

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from rules.kernel import bounded, forms, measures, source, summand
from rules.kernel.added import SATURATION, saturated
from rules.kernel.bounded import PARTS
from rules.kernel.measures import MOST_SENSITIVE, Count, Products, Sum, Units
from rules.kernel.special import marginals
from rules.mechanisms.release_plan import Ladder
from rules.release.bound_ladder import choose_bound
from tests.kernel.faults import Edit, planted
from tests.lemmas import kernel_texts as kernel
from tests.lemmas.claims import Claim, Maker, follows, larger, size, smaller
from tests.lemmas.written import integer

README = Path(__file__).parents[2] / "rules" / "README.md"

F, m, M, K, b, c, s, t, n, k = z3.Ints("F m M K b c s t n k")
POSITIVE = (F >= 1, m >= 1, M >= 1, K >= 1, b >= 1)
WEIGHT = larger(c, m)  # 1/W is the share w = min(1, m/C) of a unit's rows, by m

# Saturation, clamps and the integers of a row.


def saturation() -> Claim:
    x, y = z3.Ints("x y")
    one, other = integer(saturated("x")), integer(saturated("y"))
    return follows(conclusion=z3.And(size(one - other) <= size(x - y), size(one) <= SATURATION))


def saturated_to_zero() -> Claim:
    x, y = z3.Ints("x y")
    one, other = (integer(f"CASE WHEN {v} <= {SATURATION} THEN {saturated(v)} ELSE 0 END") for v in "xy")
    return follows(conclusion=size(one - other) <= size(x - y))


def clamp() -> Claim:
    low, high, low_q, high_q = z3.Ints("low high low_q high_q")
    one, other = integer(kernel.clamped()), integer(kernel.seen())
    inside = z3.And(low <= one, one <= high, low_q <= other, other <= high_q)
    return follows(low <= high, low_q <= high_q, conclusion=inside)


def _inside(which: str) -> z3.BoolRef:
    low, value, high = z3.Ints(f"low_{which} {which} high_{which}")
    return z3.And(low <= value, value <= high)


def centred() -> Claim:
    """Σ(2q − (low + high)): a row adds at most high − low."""
    total = Sum(kernel.named_summand("q"), centred=True)
    return follows(_inside("q"), conclusion=size(integer(kernel.moment(total))) <= integer(f"{total.reach}"))


def moments() -> Claim:
    """Squares and products of centred values; with the count, 1 of a row, these are all that statistics are made of."""
    one, other = kernel.named_summand("q"), kernel.named_summand("r")
    bounds = [
        size(integer(kernel.moment(moment))) <= integer(f"{moment.reach}")
        for moment in (Products(one, one), Products(one, other), Products(other, other))
    ]
    return follows(_inside("q"), _inside("r"), conclusion=z3.And(*bounds))


# Shares: trunc(F·m·Σq/C) of a unit with more than m rows.


def share() -> Claim:
    g = integer(kernel.value_of(Count()), s0=s)
    return follows(*POSITIVE, c >= 1, conclusion=WEIGHT * size(g) <= F * m * size(s))


def share_is_lipschitz() -> Claim:
    text = kernel.value_of(Count())
    moved = size(integer(text, s0=s) - integer(text, s0=t))
    return follows(*POSITIVE, c >= 1, conclusion=moved <= F * size(s - t))


def share_is_a_bigint() -> Claim:
    """Where c ≤ m the product is one of bigints; elsewhere it is numeric, and the quotient is small again."""
    return _share_of(F * m * M <= MOST_SENSITIVE)


def share_of_any_size() -> Claim:
    return _share_of(F * m * M <= 2**64)


def _share_of(limit: z3.BoolRef) -> Claim:
    g = z3.Int("g")  # |g|, as s is |s| here
    here = (s >= 0, s <= c * M, WEIGHT * g <= F * m * s)  # which `share` says
    held = z3.And(z3.Implies(c <= m, F * s < 2**63), g <= MOST_SENSITIVE)
    return follows(*POSITIVE, c >= 1, *here, limit, conclusion=held)


S, N, G = z3.Ints("S N G")  # over the groups so far: Σ|s|, rows, and Σ|g|
SO_FAR = (WEIGHT * G <= F * m * S, S <= M * N, G >= 0, S >= 0, N >= 0)


def shares_add_up() -> Claim:
    """One more group, with n rows that add s and of which g is counted."""
    g = integer(kernel.value_of(Count()), s0=s)
    more = z3.And(WEIGHT * (G + size(g)) <= F * m * (S + size(s)), S + size(s) <= M * (N + n))
    return follows(*POSITIVE, *SO_FAR, c >= 1, n >= 0, size(s) <= n * M, conclusion=more)


def rows_in_two_groups() -> Claim:
    """A row of a group is one of another group too, so that it is not counted among the rows."""
    more = S + size(s) <= M * N
    return follows(*POSITIVE, *SO_FAR, c >= 1, n >= 0, size(s) <= n * M, conclusion=more)


def sensitivity_of_rows() -> Claim:
    """All groups have the unit's c rows together: L1 is at most what the kernel claims."""
    total = Sum(kernel.named_summand("q"), centred=True)
    claimed = integer(f"{kernel.claimed_of(total).l1}")
    return follows(*POSITIVE, *SO_FAR, c >= 1, M == integer(f"{total.reach}"), N <= c, conclusion=G <= claimed)


# A unit's total.

T, V = z3.Ints("T V")  # over the groups so far: Σ|w| and what is counted of it


def capped_total() -> Claim:
    v = integer(kernel.value_of(kernel.capped_sum()), t0=t, w0=s)
    weight = larger(t, F * b)
    return follows(
        *POSITIVE, weight * V <= F * b * T, V >= 0, t >= 0,
        conclusion=z3.And(weight * (V + size(v)) <= F * b * (T + size(s)), size(v) <= size(s)),
    )  # fmt: skip


def sensitivity_of_a_total() -> Claim:
    """The total is t in all groups together."""
    return follows(*POSITIVE, larger(t, F * b) * V <= F * b * T, T <= t, V >= 0, conclusion=V <= F * b)


def total_of_more_groups() -> Claim:
    return follows(*POSITIVE, larger(t, F * b) * V <= F * b * T, T <= 2 * t, V >= 0, conclusion=V <= F * b)


def only_row_capped() -> Claim:
    return follows(*POSITIVE, conclusion=size(integer(kernel.total_of(kernel.capped_sum()))) <= b)


# Pivots: measures of which a row is in one at most.

LOSS, MORE = z3.Reals("loss more")  # Σ|x_i|/Δ_i over the cases so far, and of one more
DELTA = F * m * M


def case_of_a_pivot() -> Claim:
    """A case in which n of the unit's rows are: what it adds over all groups, by what its rows are worth."""
    return follows(*POSITIVE, *SO_FAR, c >= 1, N == n, conclusion=WEIGHT * G <= DELTA * n)


def case_of_all_rows() -> Claim:
    return follows(*POSITIVE, *SO_FAR, c >= 1, N == c, n <= c, n >= 0, conclusion=WEIGHT * G <= DELTA * n)


def pivot() -> Claim:
    """One more case, whose measure has another bound and factor, in the unit of its own sensitivity."""
    return _one_more_case(z3.Real("distance"))


def pivot_by_a_smaller_distance() -> Claim:
    return _one_more_case(z3.Real("distance") / 2)


def _one_more_case(charged: z3.ArithRef) -> Claim:
    weight, rows, more_rows, x, distance = z3.Reals("weight rows more_rows x distance")
    return follows(
        weight > 0, distance > 0, weight * LOSS <= rows, weight * x <= distance * more_rows, MORE * charged == x,
        conclusion=weight * (LOSS + MORE) <= rows + more_rows,
    )  # fmt: skip


def whole_pivot() -> Claim:
    """The cases have the unit's rows together, c: the vector loses at most what one measure would."""
    return _all_cases(1)


def pivot_of_overlapping_cases() -> Claim:
    return _all_cases(2)


def _all_cases(cases_of_a_row: int) -> Claim:
    most, all_rows, rows = z3.Reals("most all_rows rows")
    weight = z3.If(all_rows >= most, all_rows, most)
    return follows(
        most >= 1, all_rows >= 0, weight * LOSS <= rows, rows <= cases_of_a_row * all_rows, conclusion=LOSS <= 1
    )


def pivot_with_gaussian_noise() -> Claim:
    """Squares of losses add up to at most the square of their sum."""
    squares = z3.Real("squares")
    return follows(
        LOSS >= 0, MORE >= 0, squares <= LOSS * LOSS, conclusion=squares + MORE * MORE <= (LOSS + MORE) * (LOSS + MORE)
    )


def gaussian_losses_of_any_sign() -> Claim:
    squares = z3.Real("squares")
    return follows(LOSS >= 0, squares <= LOSS * LOSS, conclusion=squares + MORE * MORE <= (LOSS + MORE) * (LOSS + MORE))


# Counts of units: trunc(F·K'/max(d, K')) in each of d groups.


def listed_units() -> Claim:
    d, chosen = z3.Int("d0"), z3.Int("chosen")  # groups of the unit, and how many groups are chosen of all
    v, claimed = integer(kernel.value_of(Units())), kernel.claimed_of(Units())
    largest, l1, squared = (integer(f"{each}") for each in (claimed.largest, claimed.l1, claimed.l2_squared))
    of_chosen = smaller(d, chosen) * v <= F * smaller(K, chosen)
    return follows(
        *POSITIVE, d >= 1, chosen >= 1,
        conclusion=z3.And(v >= 0, v <= largest, d * v <= l1, d * v * v <= squared, of_chosen),
    )  # fmt: skip


# Cells of marginals.

Q = z3.Int("Q")  # Σv² over the cells so far, of which S is Σv


def cell_cap() -> Claim:
    """One more cell, in which the unit has n rows."""
    v = integer(kernel.cell(), g=z3.IntVal(0))
    more = z3.And(v >= 0, v <= n, Q + v * v <= s * (S + v))
    return follows(s >= 1, n >= 0, Q <= s * S, conclusion=more)


def marginal() -> Claim:
    return follows(s >= 1, m >= 1, Q <= s * S, S <= m, conclusion=Q <= m * s)


def marginal_of_uncut_units() -> Claim:
    return follows(s >= 1, m >= 1, Q <= s * S, S <= m + 1, conclusion=Q <= m * s)


def lengths_add_up() -> Claim:
    """Cauchy and Schwarz, by one more cell: so k vectors of a length are together k times as long at most."""
    one, other, both, v, w = z3.Reals("one other both v w")
    return follows(
        one >= 0, other >= 0, both * both <= one * other,
        conclusion=(both + v * w) * (both + v * w) <= (one + v * v) * (other + w * w),
    )  # fmt: skip


def lengths_by_sums() -> Claim:
    one, other, both, v, w = z3.Reals("one other both v w")
    return follows(
        one >= 0, other >= 0, both <= one + other,
        conclusion=(both + v * w) * (both + v * w) <= (one + v * v) * (other + w * w),
    )  # fmt: skip


# Ladders.

TOTAL, LOW, HIGH = z3.Ints("total low high")
STEP = {"total": TOTAL, "rungs[rung]": LOW, "rungs[rung + 1]": HIGH}


def part_of_a_step() -> Claim:
    """A unit that needs a rung above the first is above the one before; of the last one it may be any way above."""
    parts = [integer(kernel.part_of_step(rungs), **STEP) for rungs in ((1, 2, 4), (1, 2, 2**58))]
    formula = smaller(z3.IntVal(PARTS), PARTS * (smaller(TOTAL, HIGH) - LOW) / (HIGH - LOW))
    each = [z3.And(part >= 0, part <= PARTS, part == formula) for part in parts]
    return follows(LOW >= 1, LOW < HIGH, TOTAL > LOW, conclusion=z3.And(*each))


A, E, LIFT, HEIGHT, EARLIER, THRESHOLD, E_EARLIER, THRESHOLD_EARLIER, RISE, RISE_EARLIER = z3.Ints(
    "A E lift height earlier threshold e_earlier threshold_earlier rise rise_earlier"
)


def _stops(height: z3.ArithRef, drawn: z3.ArithRef, threshold: z3.ArithRef, lowered: z3.ArithRef) -> z3.BoolRef:
    """As `choose_bound` compares, which the test below says."""
    return height - drawn < threshold - lowered


def _climb(before: int, after: int, shift_of_threshold: z3.ArithRef, shift_of_step: z3.ArithRef) -> Claim:
    """The climb ends at a step after any earlier one: with these units, and with the others and shifted noise.

    `before` and `after` say whether the further unit is there. It lifts each step by 0 to 64k, whatever its rows are.
    """
    lifts = (RISE >= 0, RISE <= LIFT, RISE_EARLIER >= 0, RISE_EARLIER <= LIFT, LIFT >= 0)
    here = (
        z3.Not(_stops(EARLIER + before * RISE_EARLIER, E_EARLIER, THRESHOLD_EARLIER, A)),
        _stops(HEIGHT + before * RISE, E, THRESHOLD, A),
    )
    lowered, drawn = A + shift_of_threshold, E + shift_of_step
    there = (
        z3.Not(_stops(EARLIER + after * RISE_EARLIER, E_EARLIER, THRESHOLD_EARLIER, lowered)),
        _stops(HEIGHT + after * RISE, drawn, THRESHOLD, lowered),
    )
    return follows(*lifts, *here, conclusion=z3.And(*there))


def climb_with_a_unit_more() -> Claim:
    return _climb(0, 1, z3.IntVal(0), LIFT)


def climb_with_a_unit_less() -> Claim:
    return _climb(1, 0, LIFT, LIFT)


# Groups: unions of lists that were released, and of cells.


def union_of_lists() -> Claim:
    """Thresholds one after the other: one more, in which a group passes that only one unit has with chance β."""
    return _one_more_list(most=1)


def union_of_lists_with_chances_above_one() -> Claim:
    return _one_more_list(most=2)


def _one_more_list(most: int) -> Claim:
    none, sum_of_chances, chance = z3.Reals("none sum_of_chances chance")
    return follows(
        none <= most, none >= 0, chance >= 0, chance <= 1, none >= 1 - sum_of_chances,
        conclusion=none * (1 - chance) >= 1 - (sum_of_chances + chance),
    )  # fmt: skip


WITH, HIDDEN, WITHOUT, RATIO, LOST, CONVERSION = z3.Reals(  # P(X ∈ E), P(X̃ ∈ E), P(Y ∈ E), e^ε, δ′, δ_c
    "with hidden without ratio lost conversion"
)
CHANCES = (
    *(z3.And(each >= 0, each <= 1) for each in (WITH, HIDDEN, WITHOUT)),
    RATIO >= 1, LOST >= 0, LOST < 1, CONVERSION >= 0,
)  # fmt: skip


def answers_with_the_unit() -> Claim:
    return follows(
        *CHANCES, WITH <= HIDDEN + LOST, HIDDEN <= RATIO * WITHOUT + CONVERSION,
        conclusion=WITH <= RATIO * WITHOUT + CONVERSION + LOST,
    )  # fmt: skip


def answers_with_the_unit_by_conversion_alone() -> Claim:
    return follows(
        *CHANCES, WITH <= HIDDEN + LOST, HIDDEN <= RATIO * WITHOUT + CONVERSION,
        conclusion=WITH <= RATIO * WITHOUT + CONVERSION,
    )  # fmt: skip


def answers_without_the_unit() -> Claim:
    return _without_the_unit((1 - LOST) * HIDDEN)


def answers_without_the_unit_of_any_chance() -> Claim:
    return _without_the_unit(HIDDEN / 2)


def _without_the_unit(least: z3.ArithRef) -> Claim:
    return follows(
        *CHANCES, WITHOUT <= RATIO * HIDDEN + CONVERSION, WITH >= least,
        conclusion=WITHOUT <= RATIO * WITH + CONVERSION + LOST,
    )  # fmt: skip


def bet() -> Claim:
    """On one person's presence, with P(E) and Q(E) of the answers on which the gambler says "there"."""
    return _bet_with(RATIO * HIDDEN + LOST)


def bet_with_other_answers() -> Claim:
    return _bet_with(RATIO * HIDDEN + 2 * LOST)


def _bet_with(most: z3.ArithRef) -> Claim:
    there = (WITH <= most, 1 - HIDDEN <= RATIO * (1 - WITH) + LOST)
    return follows(*CHANCES, *there, conclusion=(WITH + 1 - HIDDEN) / 2 <= (RATIO + LOST) / (1 + RATIO))


def _union_of_cells(*, is_whole: bool) -> Claim:
    """A row counts in a group of a question if and only if it is in one released cell that maps to the group.

    Released are the cells of all values in one span; the question has a span of its own, and its group is a function
    of the value. `value` is any row's, `cell` any cell.
    """
    values, groups = z3.DeclareSort("Value"), z3.DeclareSort("Group")
    released, asked = (z3.Function(name, values, z3.BoolSort()) for name in ("released", "asked"))
    group_of = z3.Function("group_of", values, groups)
    value, cell, other, group = z3.Const("value", values), z3.Const("cell", values), z3.Const("other", values), (
        z3.Const("group", groups)
    )  # fmt: skip
    within = z3.ForAll(cell, z3.Implies(asked(cell), released(cell)))

    def is_summed(of: z3.ExprRef) -> z3.BoolRef:
        return z3.And(released(of), asked(of), group_of(of) == group, value == of)

    counted = z3.And(asked(value), group_of(value) == group)
    once = z3.ForAll([cell, other], z3.Implies(z3.And(is_summed(cell), is_summed(other)), cell == other))
    return follows(
        *([within] if is_whole else []), conclusion=z3.And(counted == z3.Exists(cell, is_summed(cell)), once)
    )


def union_of_cells() -> Claim:
    return _union_of_cells(is_whole=True)


def union_of_cells_that_lack_some() -> Claim:
    return _union_of_cells(is_whole=False)


LEMMAS: dict[str, tuple[Maker, Maker | Edit]] = {
    "saturation": (saturation, saturated_to_zero),
    "clamp": (clamp, (summand.clamped, "int8larger({whole}, {lattice.low})", "{whole}")),
    "centred": (centred, (source._value, "lattice.low + summand.lattice.high", "lattice.low")),
    "moments": (moments, (source._value, "lattice.low + summand.lattice.high", "lattice.high")),
    "share": (share, (forms.Frame.share, "c <= {self.caps.rows} THEN", "c <= 2 * {self.caps.rows} THEN")),
    "share, Lipschitz": (
        share_is_lipschitz,
        (forms.Frame.share, "{factor * self.caps.rows}, c", "{factor * self.caps.rows} * 2, c"),
    ),
    "share, bigint": (share_is_a_bigint, share_of_any_size),
    "shares, one more group": (shares_add_up, rows_in_two_groups),
    "shares, all groups": (
        sensitivity_of_rows,
        (
            measures.sensitivity,
            "_of(_row_factor(measure, caps), caps.rows * measure.reach)",
            "_of(1, caps.rows * measure.reach)",
        ),
    ),
    "total, one more group": (
        capped_total,
        (forms._value, "ELSE div({share}::numeric * {cap}, {total})::int8 END", "ELSE {share} END"),
    ),
    "total, all groups": (sensitivity_of_a_total, total_of_more_groups),
    "total, one row": (only_row_capped, (forms._plain, "greatest({term.value}, -{total})", "{term.value}")),
    "pivot, one case": (case_of_a_pivot, case_of_all_rows),
    "pivot, one more case": (pivot, pivot_by_a_smaller_distance),
    "pivot, all cases": (whole_pivot, pivot_of_overlapping_cases),
    "pivot, Gaussian": (pivot_with_gaussian_noise, gaussian_losses_of_any_sign),
    "units of listed groups": (listed_units, (forms._unit, "greatest(d{term.number}, {most})", "d{term.number}")),
    "cell caps, one more cell": (cell_cap, (marginals.bounded_marginals, "THEN {cap}", "THEN n")),
    "cell caps, all cells": (marginal, marginal_of_uncut_units),
    "cell caps, several units": (lengths_add_up, lengths_by_sums),
    "ladder, part of a step": (part_of_a_step, (bounded.tally, "least(total, rungs[rung + 1])", "total")),
    "ladder, a unit more": (climb_with_a_unit_more, lambda: _climb(0, 1, z3.IntVal(0), z3.IntVal(0))),
    "ladder, a unit less": (climb_with_a_unit_less, lambda: _climb(1, 0, z3.IntVal(0), LIFT)),
    "union of lists": (union_of_lists, union_of_lists_with_chances_above_one),
    "union of lists, with the unit": (answers_with_the_unit, answers_with_the_unit_by_conversion_alone),
    "union of lists, without the unit": (answers_without_the_unit, answers_without_the_unit_of_any_chance),
    "bet": (bet, bet_with_other_answers),
    "union of cells": (union_of_cells, union_of_cells_that_lack_some),
}


@pytest.mark.parametrize("name", LEMMAS)
def test_a_lemma_holds_for_all_numbers(name: str) -> None:
    claim = LEMMAS[name][0]()

    assert claim.counter_example() is None
    assert claim.example() is not None


@pytest.mark.parametrize("name", LEMMAS)
def test_a_careless_variant_has_a_counter_example(name: str) -> None:
    _, careless = LEMMAS[name]
    if callable(careless):
        claim = careless()
    else:
        with planted(careless):
            claim = LEMMAS[name][0]()

    assert claim.counter_example() is not None


@given(
    st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9), st.integers(0, 4)), min_size=1, max_size=4),
    st.integers(0, 4),
)
def test_a_climb_ends_at_the_first_step_that_the_lemmas_call_its_end(
    steps: list[tuple[int, int, int]], lowered: int
) -> None:
    heights, thresholds, drawn = zip(*steps, strict=True)
    rungs = tuple(range(1, len(steps) + 2))
    ladder = Ladder("rows", "", Decimal(1), rungs, thresholds)

    ends = (_stops(height, own, threshold, lowered) for height, threshold, own in steps)
    expected = next((rung for rung, is_end in zip(rungs, ends, strict=False) if is_end), rungs[-1])
    assert choose_bound(ladder, heights, (lowered, *drawn)) == expected


def test_each_lemma_is_named_beside_its_proof_in_the_readme() -> None:
    assert set(re.findall(r"`z3: ([^`]+)`", README.read_text())) == LEMMAS.keys()
