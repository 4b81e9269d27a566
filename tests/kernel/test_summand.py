"""The integer of a summand: within its bounds whatever the value, exact within them, and never an error."""

from fractions import Fraction

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.kernel.measures import Count, Products, Sum, Units
from rules.kernel.source import factors_of
from rules.kernel.summand import Lattice, Summand
from rules.refusal import NotSupported, TooComplex
from rules.values.expression import Column, Constant
from rules.values.types import NUMERIC
from tests.kernel.facts import COLUMNS, POOLS, bounded, clamped, column, computed, rows_of_facts
from tests.kernel.oracle import q_of
from tests.kernel.statements import SUMMANDS
from tests.properties.planning import PARALLEL, thorough

DECIMAL_STEPS = [Fraction(10) ** exponent for exponent in (-12, -2, 0, 3, 9)]
BINARY_STEPS = [Fraction(2) ** exponent for exponent in (-40, -10, 0, 3, 60, 900)]


OF_COLUMNS = [summand for summand in SUMMANDS if isinstance(summand.expression, Column)]


def integers(connection: psycopg.Connection, given: Summand) -> list[tuple[str | None, int | None]]:
    """Every value of the column's pool, and its integer as SQL computes it."""
    assert isinstance(given.expression, Column)
    name = given.expression.name
    whole = given.wrap(is_stored=True).format(f"unnest.{name}")
    sql = f"SELECT {whole} FROM unnest(%s::{COLUMNS[name].sql}[]) AS unnest ({name})"
    unknown = ("Infinity", "-Infinity") if name == "n" and connection.info.server_version < 140000 else ()
    values = [text for text in POOLS[name] if text not in unknown]
    rows = connection.execute(sql, [values]).fetchall()
    return list(zip(values, [row[0] for row in rows], strict=True))


@pytest.mark.parametrize("given", OF_COLUMNS, ids=range(len(OF_COLUMNS)))
def test_each_value_has_the_integer_that_arithmetic_gives_it(connection: psycopg.Connection, given: Summand) -> None:
    assert isinstance(given.expression, Column)
    for text, found in integers(connection, given):
        assert found == q_of(given, {given.expression.name: text})


@thorough
@given(st.data())
def test_no_value_of_any_type_fails_or_leaves_the_bounds(connection: psycopg.Connection, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(("n", "f", "r", "i", "s")))
    steps = BINARY_STEPS if name in "fr" else DECIMAL_STEPS
    ends = sorted(data.draw(st.lists(st.integers(-(2**52), 2**52), min_size=2, max_size=2)))
    summand = Summand(column(name), Lattice(data.draw(st.sampled_from(steps)), *ends))
    for text, found in integers(connection, summand):
        assert found == q_of(summand, {name: text})
        assert (found is None) == (text in (None, "NaN"))
        assert found is None or ends[0] <= found <= ends[1]


@pytest.mark.parametrize(
    ("name", "lattice"),
    [
        ("n", Lattice(Fraction(3), 0, 10)),  # 1/3 has no end as a decimal
        ("f", Lattice(Fraction(2) ** 1020, 0, 10)),
        ("n", Lattice(Fraction(1), 0, 2**61)),
        ("n", Lattice(Fraction(1), 5, 4)),
        ("d", Lattice(Fraction(1), 0, 10**7)),  # after the year 9999
        ("d", Lattice(Fraction(2), 0, 10)),
        ("b", Lattice(Fraction(1), 0, 10)),
        ("ok", Lattice(Fraction(1), 0, 10)),
    ],
)
def test_bounds_that_cannot_be_kept_are_refused(name: str, lattice: Lattice) -> None:
    with pytest.raises(NotSupported):
        print(Summand(column(name), lattice).wrap())


@pytest.mark.parametrize("text", ["1e999999999", "1/0", "1" * 4000, "-1e-999999999", "NaN", "", "0x1"])
def test_a_constant_that_nobody_writes_out_makes_no_factor(text: str) -> None:
    for bound, addend in ((text, "1"), ("0.10", text)):
        share = computed("({0} - {1})", Constant(NUMERIC, addend), clamped("p", "0.00", bound))
        product = computed("({0} * {1})", clamped("p", "-2.00", "50.00"), share)
        assert not factors_of(Summand(product, Lattice(Fraction(1, 10**4), -50, 4000)), lambda _: True)


def test_sums_that_overflow_are_refused() -> None:
    wide = Summand(column("n"), Lattice(Fraction(1), 0, 2**40))
    for measure in (Sum(wide, total=5), Sum(wide, centred=True), Products(wide, wide)):
        with pytest.raises(TooComplex):
            bounded(rows_of_facts(), (), (measure,), rows_per_unit=2**21)


def test_a_sum_of_nothing_but_zeros_has_noise() -> None:
    zero = Summand(column("s"), Lattice(Fraction(1), 0, 0))
    found = bounded(rows_of_facts(), (), (Sum(zero), Sum(zero, centred=True), Units(), Count()), rows_per_unit=2)
    assert all(measure.sensitivity.l1 >= 1 for measure in found.measures)


def test_products_are_computed_of_integers_in_coarser_steps_too() -> None:
    share = clamped("p", "0.00", "0.10")
    for step, low, known in (
        (4, "0.00", True),
        (2, "0.00", True),
        (0, "0.00", True),
        (2, "-0.10", False),
        (5, "0.00", False),
    ):
        product = computed("({0} * {1})", share, clamped("p", low, "0.10"))
        asked = Summand(product, Lattice(Fraction(1, 10**step), -100, 100))
        assert bool(factors_of(asked, lambda _: True)) == known, (step, low)


def test_workers_of_a_parallel_plan_compute_what_products_share_once(connection: psycopg.Connection) -> None:
    price, share = clamped("p", "0.00", "50.00"), clamped("p", "0.00", "0.10")
    products = [
        computed("({0} * {1})", price, share),
        computed("({0} * {1})", price, computed("({0} - {1})", Constant(NUMERIC, "1"), share)),
    ]
    measures = tuple(Sum(Summand(product, Lattice(Fraction(1, 10**4), 0, 500_000))) for product in products)
    sql = bounded(rows_of_facts(), (), measures, rows_per_unit=2, form="corrected").sql
    with connection.transaction(force_rollback=True):
        connection.execute(PARALLEL)
        plan = [line.strip() for (line,) in connection.execute(f"EXPLAIN (COSTS off) {sql}").fetchall()]

    assert "FROM (SELECT * FROM r OFFSET '0') AS r" in sql
    assert "->  Parallel Seq Scan on facts t1" in plan
    if connection.info.server_version >= 150000:  # before, what they compute is added up by one process
        assert "->  Partial Aggregate" in plan
