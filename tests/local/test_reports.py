"""Reports lose at most ε, follow the law from which they are estimated, and are remembered if told so."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.local import Bit, KAry, Law, Mean, Remembered, Sketch, Unary, bit_law, kary_law, sketch_law, unary_law
from rules.local.laws import hashed_bit

RUNS = 20_000
epsilons = st.decimals("0.01", "8", places=3)


def true_loss(law: Law) -> Decimal:
    """The largest log of a ratio of chances, in exact fractions until the last step."""
    ratios = [law.p / law.q, (1 - law.q) / (1 - law.p)]
    return Decimal(max(math.log(ratio) for ratio in ratios))


@given(st.integers(2, 64), epsilons)
def test_a_k_ary_report_loses_at_most_epsilon(values: int, epsilon: Decimal) -> None:
    law = kary_law(values, epsilon)

    assert law.loss <= epsilon
    assert Decimal(math.log(law.p / law.q)) <= epsilon + Decimal("1e-12")
    assert law.p + (values - 1) * law.q == 1
    assert abs(float(law.p) - math.exp(epsilon) / (math.exp(epsilon) + values - 1)) < 1e-12


@given(epsilons)
def test_a_bit_and_a_vector_of_bits_lose_at_most_epsilon(epsilon: Decimal) -> None:
    bit, unary = bit_law(epsilon), unary_law(epsilon)

    assert bit.loss <= epsilon and true_loss(bit) <= epsilon + Decimal("1e-12")
    assert unary.loss <= epsilon  # of two bits that differ
    assert 2 * Decimal(math.log(unary.p / unary.q)) <= epsilon + Decimal("1e-12")


def test_the_nominal_probability_would_lose_more() -> None:
    assert Decimal(dp.m.make_randomized_response_bool(math.e / (math.e + 1)).map(1)) > 1  # type: ignore[no-untyped-call]
    assert bit_law(Decimal(1)).loss <= 1


def close(counted: int, share: float) -> bool:
    """Seven standard deviations: less often than 1e-11."""
    return abs(counted - RUNS * share) < 7 * math.sqrt(RUNS * share * (1 - share)) + 1


@pytest.mark.extended
def test_reports_follow_their_law() -> None:
    ask, law = KAry(("a", "b", "c", "d"), "1"), kary_law(4, Decimal(1))
    told = Counter(ask.report("b") for _ in range(RUNS))
    assert all(close(told[value], float(law.p if value == "b" else law.q)) for value in ask.values)

    bit = bit_law(Decimal(1))
    assert close(sum(Bit("1").report(answer=True) for _ in range(RUNS)), float(bit.p))
    assert close(sum(Bit("1").report(answer=False) for _ in range(RUNS)), float(bit.q))

    share = 0.25 * float(bit.p) + 0.75 * float(bit.q)
    assert close(sum(Mean(10, 50, "1").report(20) for _ in range(RUNS)), share)
    assert close(sum(Mean(10, 50, "1").report(-1e9) for _ in range(RUNS)), float(bit.q))


@pytest.mark.extended
def test_each_bit_of_a_vector_follows_its_law() -> None:
    values, law = tuple("abcdefghijk"), unary_law(Decimal(2))
    told = [Unary(values, "2").report("i") for _ in range(RUNS // 4)]

    assert {len(text) for text in told} == {len(values)}
    for place, value in enumerate(values):
        share = float(law.p if value == "i" else law.q)
        counted = sum(text[place] == "1" for text in told)
        assert abs(counted - len(told) * share) < 7 * math.sqrt(len(told) * share * (1 - share))


@given(st.integers(2, 4096), epsilons)
def test_a_sketch_loses_what_its_bits_lose_and_a_collision_is_in_its_law(width: int, epsilon: Decimal) -> None:
    law, bits = sketch_law(width, epsilon), unary_law(epsilon)

    assert law.loss == bits.loss <= epsilon
    assert law.p == bits.p
    assert law.q == bits.p / width + bits.q * (width - 1) / width
    chi = 1 / (bits.p - bits.q)  # Apple's estimate of c hits among n reports: w/(w−1)·(χ·c + n·(1−χ)/2 − n/w)
    for hits, reports in ((0, 1), (1, 1), (17, 40)):
        apple = Fraction(width, width - 1) * (chi * hits + reports * (1 - chi) / 2 - Fraction(reports, width))
        assert (hits - law.q * reports) / (law.p - law.q) == apple


@pytest.mark.slow
def test_a_sketch_follows_its_law_over_all_its_functions() -> None:
    ask = Sketch(hashes=16, width=20, key="00ff", epsilon="2")
    key, bits = bytes.fromhex(ask.key), unary_law(Decimal(2))
    told = [ask.report("tea") for _ in range(RUNS // 4)]

    numbers = Counter(number for number, _ in told)
    assert numbers.keys() == set(range(16))
    assert all(abs(number - len(told) / 16) < 7 * math.sqrt(len(told) / 16) for number in numbers.values())
    assert {len(text) for _, text in told} == {20}
    bit_of = [hashed_bit("tea", number, 20, key) for number in range(16)]
    for place in range(20):
        own = [bit_of[number] == place for number, _ in told]
        expected = sum(float(bits.p if each else bits.q) for each in own)
        assert abs(sum(text[place] == "1" for _, text in told) - expected) < 7 * math.sqrt(expected)


def test_hash_functions_spread_words_evenly_and_depend_on_word_number_and_key() -> None:
    places = Counter(hashed_bit(f"word {word}", number, 64, b"k") for word in range(200) for number in range(64))
    assert all(abs(place - 200) < 7 * math.sqrt(200) for place in places.values()), places
    one = [hashed_bit("tea", number, 4096, b"k") for number in range(64)]
    assert one != [hashed_bit("tea", number, 4096, b"l") for number in range(64)]
    assert one != [hashed_bit("eat", number, 4096, b"k") for number in range(64)]


@pytest.mark.parametrize(
    ("hashes", "width", "key"), [(0, 8, "00"), (1025, 8, "00"), (4, 1, "00"), (4, 5000, "00"), (4, 8, ""), (4, 8, "0g")]
)
def test_a_sketch_without_functions_is_refused(hashes: int, width: int, key: str) -> None:
    with pytest.raises(ValueError, match="sketch"):
        Sketch(hashes, width, key, "1")


def test_whoever_is_asked_again_reports_the_same() -> None:
    store: dict[str, str] = {}
    ask = Remembered(KAry(("yes", "no"), "0.1"), store)
    first = ask.report("ada", "yes")

    assert {ask.report("ada", "no") for _ in range(50)} == {first}
    assert store == {"ada": first}


@pytest.mark.parametrize("epsilon", ["0", "-1", "31", "NaN"])
def test_an_epsilon_that_has_no_law_is_refused(epsilon: str) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        kary_law(3, Decimal(epsilon))
    with pytest.raises((ValueError, ArithmeticError)):
        KAry(("a", "b"), epsilon)


def test_values_must_be_told_apart() -> None:
    with pytest.raises(ValueError, match="twice"):
        KAry(("a", "a"), "1")
    with pytest.raises(ValueError, match="two values"):
        KAry(("a",), "1")
    with pytest.raises(ValueError, match="each once"):
        Unary(("a", "a"), "1")
    with pytest.raises(ValueError, match="below"):
        Mean(3, 3, "1")
