"""Histograms, tallies, rows without a unit, and the sealed statements themselves."""

import copy
import pickle
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.kernel.bounded import PARTS, GroupLadder, Ladder, RowLadder, SumLadder
from rules.kernel.keys import Found, Listed
from rules.kernel.measures import Case, Count, Distinct, Measure, Sensitivity, Sum, Units
from rules.kernel.statement import Bounded, Sealed, Tally, Threshold
from rules.refusal import NotSupported
from tests.kernel.facts import Data, bounded, column, facts, is_true, load, rows_of_facts, tally
from tests.kernel.oracle import Limits, contribution, group_of, q_of
from tests.kernel.statements import BINS, FORMS, PIVOTS, SUMMANDS, answer, keys
from tests.properties.planning import thorough

RUNGS = st.lists(st.integers(1, 600), min_size=1, max_size=5, unique=True).map(lambda each: tuple(sorted(each)))
SUMS = st.builds(Sum, st.sampled_from(SUMMANDS), st.booleans(), st.none(), st.sampled_from((None, Case(0, 1))))
ladders: st.SearchStrategy[Ladder] = st.one_of(
    st.builds(RowLadder, RUNGS), st.builds(GroupLadder, RUNGS), st.builds(SumLadder, SUMS, RUNGS)
)


@thorough
@given(facts(), keys(found=False), st.sampled_from(BINS), st.sampled_from((1, 3, 20)))
def test_a_histogram_counts_the_rows_of_each_bin(
    connection: psycopg.Connection, data: Data, given_keys: tuple[Listed, ...], bins: Listed, m: int
) -> None:
    load(connection, data)
    statements = [bounded(rows_of_facts(), (*given_keys, bins), (Count(),), m, form=form) for form in FORMS]
    first, *others = [answer(connection, statement) for statement in statements]
    assert all(other == first for other in others)
    sensitivity = statements[0].measures[0].sensitivity
    assert sensitivity.l1 == sensitivity.factor * m  # and no number of bins or groups
    expected = Counter[object]()
    limits = Limits(m, 1, sensitivity.factor, found=False)
    for unit, rows in data.items():
        counted = [(group, row) for row in rows if (group := group_of((*given_keys, bins), row)) is not None]
        expected.update((contribution(counted, Count(), (), limits) or {}) if unit is not None else {})
    assert {group: cells[0] for group, cells in first.items()} == {g: n for g, n in expected.items() if n}


@thorough
@given(facts(), keys(), st.lists(ladders, min_size=1, max_size=3), st.sampled_from((1, 3, 20)))
def test_each_unit_needs_one_rung_of_a_ladder_and_has_a_part_of_the_step_to_it(
    connection: psycopg.Connection, data: Data, given_keys: tuple[Listed, ...], asked: list[Ladder], m: int
) -> None:
    load(connection, data)
    found = tally(rows_of_facts(), given_keys, asked, rows_per_unit=m, pivots=PIVOTS)
    expected, parts = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for unit, rows in data.items():
        counted = [(group, row) for row in rows if (group := group_of(given_keys, row)) is not None]
        for number, ladder in enumerate(asked if counted and unit is not None else ()):
            total = len({group for group, _ in counted}) if isinstance(ladder, GroupLadder) else len(counted)
            if isinstance(ladder, SumLadder):
                shares = contribution(counted, ladder.measure, PIVOTS, Limits(m, 1, 1, found=False))
                total = sum(map(abs, (shares or Counter()).values()))
            rung = min(bisect_left(ladder.rungs, total), len(ladder.rungs) - 1)
            expected[number, rung] += 1
            if rung:
                low, high = ladder.rungs[rung - 1 : rung + 1]
                parts[number, rung] += PARTS * (min(total, high) - low) // (high - low)
    told = {(ladder, rung): (units, some) for ladder, rung, units, some in connection.execute(found.sql)}
    assert told == {place: (units, parts[place]) for place, units in expected.items()}


@given(facts(), st.sampled_from((None, "d")))
@thorough
def test_rows_without_a_unit_are_units_themselves(
    connection: psycopg.Connection, data: Data, grouped: str | None
) -> None:
    load(connection, data)
    rows = [row for own in data.values() for row in own]
    asked: tuple[Measure, ...] = (Count(), Units(), Sum(SUMMANDS[6], total=2), Distinct(column("a")))
    listed = (Listed((column("ok"),), (("true",), (None,))),) if grouped else ()
    nobody = rows_of_facts(has_identity=False)
    statement = bounded(nobody, listed, asked, rows_per_unit=9, form="pairs")
    assert [measure.sensitivity.l1 for measure in statement.measures] == [1, 1, 2, 1]
    found = answer(connection, statement)
    for group in {group for row in rows if (group := group_of(listed, row)) is not None}:
        own = [row for row in rows if group_of(listed, row) == group]
        total = sum(min(max(q_of(SUMMANDS[6], row) or 0, -2), 2) for row in own)
        assert found[group] == (len(own), len(own), total, len({row["a"] for row in own} - {None}))
    ladders = (RowLadder((1, 2)), SumLadder(Sum(SUMMANDS[6]), (1, 5)))
    counted = connection.execute(tally(nobody, (), ladders, rows_per_unit=1).sql).fetchall()
    assert sum(units for ladder, _, units, _ in counted if ladder == 0) == len(rows)
    assert sum(units for ladder, _, units, _ in counted if ladder == 1) == len(rows)


def test_the_threshold_counts_units_that_nobody_asked_for() -> None:
    statement = bounded(rows_of_facts(), (Found(column("b")),), (Count(),), rows_per_unit=5, groups_per_unit=2)
    assert statement.threshold == Threshold(measure=1, groups=2)
    assert statement.measures[1].sensitivity == Sensitivity(factor=1, l1=2, l2_squared=2, largest=1)
    asked = bounded(rows_of_facts(), (Found(column("b")),), (Units(), Count()), rows_per_unit=5)
    assert asked.threshold == Threshold(measure=0, groups=5)


def test_no_threshold_lets_out_groups_of_a_list_that_is_known() -> None:
    """A unit may bring more of those in which nobody is counted than a threshold was made for."""
    known = bounded(rows_of_facts(), (Found(column("b")),), (Units(),), rows_per_unit=5, is_list_known=True)
    assert known.threshold is None


def test_the_forms_that_read_less_do(connection: psycopg.Connection) -> None:
    candidates = bounded(
        rows_of_facts(condition=is_true("a", "{0} = 3")), (), (Count(),), rows_per_unit=5, form="candidates"
    )
    assert 'SELECT t1."u" AS u FROM ONLY "public"."facts" AS t1 WHERE' in candidates.sql
    for form in (*FORMS, None):
        statement = bounded(rows_of_facts(), (), (Count(), Units()), rows_per_unit=5, form=form)
        assert connection.execute(f"EXPLAIN {statement.sql}").fetchall()


def test_what_has_no_meaning_is_refused() -> None:
    broken: list[Callable[[], object]] = [
        lambda: bounded(rows_of_facts(), (), (Count(),), rows_per_unit=0),
        lambda: bounded(rows_of_facts(), (), (Count(),), rows_per_unit=1, groups_per_unit=0),
        lambda: bounded(rows_of_facts(), (), (Count(case=Case(0, 0)),), rows_per_unit=1),
        lambda: bounded(rows_of_facts(), (), (Count(column("a")),), rows_per_unit=1),
        lambda: tally(rows_of_facts(), (), (RowLadder((2, 1)),), rows_per_unit=1),
        lambda: tally(rows_of_facts(), (), (), rows_per_unit=1),
        lambda: Sum(SUMMANDS[0], total=0),
        lambda: Listed((column("a"),), ((),)),
    ]
    for each in broken:
        with pytest.raises(NotSupported):
            each()


def test_nobody_but_the_kernel_makes_a_statement() -> None:
    made = bounded(rows_of_facts(), (), (Count(),), rows_per_unit=1)
    counted = tally(rows_of_facts(), (), (RowLadder((1,)),), rows_per_unit=1)
    forgeries: list[Callable[[], object]] = [
        lambda: Bounded("SELECT 1", (), (), None, object()),
        lambda: Tally("SELECT 1", (), object()),
        lambda: replace(made, sql="SELECT 1", seal=object()),
        lambda: copy.copy(made),
        lambda: copy.deepcopy(counted),
        lambda: pickle.dumps(made),
        lambda: made.__setstate__(["SELECT 1"]),
        lambda: type("Forged", (Bounded,), {}),
        lambda: type("Forged", (Sealed,), {}),
    ]
    for forge in forgeries:
        with pytest.raises((TypeError, ValueError)):
            forge()
    assert Fraction(made.measures[0].sensitivity.l1, made.measures[0].sensitivity.factor) == 1
