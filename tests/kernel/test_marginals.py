"""Marginals on a real server: all count the same rows, and one unit moves each by no more than is said."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.kernel.relation import Relation
from rules.kernel.special import marginals
from rules.kernel.special.marginals import (
    ColumnBins,
    Counted,
    EdgeBins,
    LabelBins,
    MarginalsStatement,
    bounded_marginals,
)
from rules.kernel.statement import Marginals
from rules.refusal import NotSupported
from tests.kernel.facts import Data, column, facts, load, rows_of_facts
from tests.kernel.faults import Edit, planted
from tests.kernel.statements import SUMMANDS
from tests.properties.planning import EXAMPLES, thorough

PLANS = (
    "",
    "SET enable_hashagg = off; SET enable_hashjoin = off",
    "SET enable_sort = off; SET work_mem = '64kB'",
    "SET debug_parallel_query = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0",
)
_LABELS = {"a": ("1", "2", "-7"), "b": ("x", "y", "é'\\", "nobody"), "ok": ("true", "false"), "i": ("0", "1", "7")}

Cell = tuple[int, ...]
Answer = list[dict[Cell, int]]  # by marginal


@dataclass(frozen=True)
class Asked:
    """All that makes such a statement but its rows: whatever a planner may say."""

    bins: tuple[ColumnBins, ...]
    counted: tuple[Counted, ...]
    rows_per_unit: int

    def statement(self, rows: Relation) -> Marginals:
        return bounded_marginals(rows, MarginalsStatement(rows.script, self.bins, self.counted, self.rows_per_unit))


@st.composite
def _bins(draw: st.DrawFn) -> ColumnBins:
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(_LABELS)))
        texts = draw(st.lists(st.sampled_from(_LABELS[name]), min_size=1, max_size=3))
        return LabelBins(column(name), tuple(texts))
    summand = draw(st.sampled_from(SUMMANDS))
    low, high = summand.lattice.low, summand.lattice.high
    edges = draw(st.sets(st.integers(low - 2, high + 2), min_size=1, max_size=5))
    return EdgeBins(summand, tuple(sorted(edges)), draw(st.booleans()))


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    found = tuple(draw(st.lists(_bins(), min_size=1, max_size=4)))
    sets = [combination for size in range(4) for combination in combinations(range(len(found)), size)]
    chosen = draw(st.lists(st.sampled_from(sets), min_size=1, max_size=6, unique=True))
    missing = set(range(len(found))) - {place for numbers in chosen for place in numbers}
    chosen += [(place,) for place in missing]
    caps = st.sampled_from((None, None, 1, 2, 5, 100))
    counted = tuple(Counted(numbers, draw(caps)) for numbers in chosen)
    return Asked(found, counted, draw(st.sampled_from((1, 2, 5, 30))))


def _answer(connection: psycopg.Connection, statement: Marginals) -> Answer:
    masks = {statement.mask(marginal.columns): number for number, marginal in enumerate(statement.marginals)}
    found: Answer = [{} for _ in statement.marginals]
    for mask, *numbers, count in connection.execute(statement.sql.encode()):
        number = masks[mask]
        columns = statement.marginals[number].columns
        assert all((cell is None) == (place not in columns) for place, cell in enumerate(numbers))
        cell = tuple(numbers[place] for place in columns)
        assert cell not in found[number], "a cell has two rows"
        assert all(0 <= each < statement.bins[place] for each, place in zip(cell, columns, strict=True))
        found[number][cell] = count
    return found


def _without(unit: int) -> Relation:
    return rows_of_facts(without=unit)


def _check_moves(connection: psycopg.Connection, data: Data, question: Asked) -> list[bool]:
    """No unit moves a marginal further than is said; returns whether one moved it so far."""
    statement = question.statement(rows_of_facts())
    whole = _answer(connection, statement)
    reached = [False] * len(whole)
    for unit in filter(None, data):
        less = _answer(connection, question.statement(_without(unit)))
        for number, marginal in enumerate(statement.marginals):
            one, two = Counter(whole[number]), Counter(less[number])
            moved = [one[cell] - two[cell] for cell in {**one, **two}]
            assert all(number >= 0 for number in moved), "a unit takes the rows of another one away"
            assert sum(moved) <= marginal.sensitivity.l1, f"{moved} is more than {marginal}"
            squared = sum(number**2 for number in moved)
            assert squared <= marginal.sensitivity.l2_squared, f"{moved} is more than {marginal}"
            reached[number] |= squared == marginal.sensitivity.l2_squared
    return reached


def _check_rows(connection: psycopg.Connection, data: Data, question: Asked) -> None:
    """Marginals without a cap of their cells all count the same rows: of each unit as many as the cap allows."""
    whole = _answer(connection, question.statement(rows_of_facts()))
    rows = sum(min(len(rows), question.rows_per_unit) for unit, rows in data.items() if unit is not None)
    sums: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for counted, cells in zip(question.counted, whole, strict=True):
        if counted.rows_per_cell is None or counted.rows_per_cell >= question.rows_per_unit:
            assert sum(cells.values()) == rows, "a marginal counts other rows"
            for place, of in enumerate(counted.columns):
                one = Counter[int]()
                for cell, count in cells.items():
                    one[cell[place]] += count
                assert sums.setdefault((of,), one) == one, "two marginals cut a unit in two ways"


def test_one_unit_moves_a_marginal_by_no_more_than_is_said(connection: psycopg.Connection) -> None:
    reached = Counter[bool]()

    @settings(thorough, max_examples=max(80, 2 * EXAMPLES))
    @given(facts(), asked())
    def check(data: Data, question: Asked) -> None:
        load(connection, data)
        reached.update(_check_moves(connection, data, question))
        _check_rows(connection, data, question)

    check()
    assert reached[True] > reached.total() / 50, "the bound is hardly ever reached"


@pytest.mark.parametrize("settings_of_plan", PLANS)
def test_the_numbers_are_the_same_under_every_plan_and_order_of_rows(
    connection: psycopg.Connection, settings_of_plan: str
) -> None:
    @settings(thorough, max_examples=EXAMPLES // 5)
    @given(facts(), asked())
    def check(data: Data, question: Asked) -> None:
        load(connection, data)
        before = _answer(connection, question.statement(rows_of_facts()))
        load(connection, {unit: rows[::-1] for unit, rows in reversed(data.items())})
        known = settings_of_plan if connection.info.server_version >= 160000 else settings_of_plan.replace(
            "debug_parallel_query", "force_parallel_mode"
        )  # fmt: skip
        connection.execute(known)
        try:
            assert _answer(connection, question.statement(rows_of_facts())) == before
        finally:
            connection.execute("RESET ALL")
            connection.execute("SET search_path = ''")

    check()


FAULTS: dict[str, Edit] = {
    "all rows of a unit": (marginals._steps, "WHERE rn <= {most}", "WHERE true"),
    "one row more of a unit": (marginals._steps, "WHERE rn <= {most}", "WHERE rn <= {most} + 1"),
    "units beyond the cap alone": (marginals._steps, "{few} UNION ALL ", ""),
    "a cell without its cap": (bounded_marginals, "THEN {cap}", "THEN n"),
    "a cap of half its size in the claim": (bounded_marginals, "most * cap", "most * max(1, cap // 2)"),
    "NULL in no bin": (vars(marginals.EdgeBins)["read"], 'f"coalesce({place}, {number + 1})"', "place"),
    "rows cut by their order on disk": (
        marginals._steps,
        "PARTITION BY u ORDER BY {hashed}, {listed}",
        "ORDER BY random()",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("name", FAULTS)
def test_a_careless_form_is_found(connection: psycopg.Connection, name: str) -> None:
    @settings(thorough, max_examples=max(80, 2 * EXAMPLES))
    @given(facts(), asked())
    def check(data: Data, question: Asked) -> None:
        load(connection, data)
        _check_moves(connection, data, question)
        _check_rows(connection, data, question)

    with planted(FAULTS[name]), pytest.raises((AssertionError, KeyError, psycopg.Error, ExceptionGroup)):
        check()


def test_what_has_no_meaning_is_refused() -> None:
    label = LabelBins(column("a"), ("1",))
    for counted, rows in (
        ((Counted((0,)), Counted((0,))), 1),
        ((Counted((1,)),), 1),
        ((Counted((0, 0)),), 1),
        ((Counted((0,), 0),), 1),
        ((), 1),
        ((Counted(()),), 1),
        ((Counted((0,)),), 0),
    ):
        with pytest.raises(NotSupported):
            Asked((label,), counted, rows).statement(rows_of_facts())
    with pytest.raises(NotSupported):
        LabelBins(column("b"), ("{0}",))
    with pytest.raises(NotSupported):
        EdgeBins(SUMMANDS[0], (3, 3))
