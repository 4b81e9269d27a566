"""Bounded statements of every kind, drawn at random, and their answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import psycopg
from hypothesis import strategies as st

from rules.kernel.forms import Form
from rules.kernel.keys import Bins, Found, Key, Listed
from rules.kernel.measures import Case, Count, Distinct, DistinctSum, Measure, Products, Sum, Units, Values
from rules.kernel.relation import Relation
from rules.kernel.statement import Bounded
from rules.kernel.summand import Lattice, Summand
from rules.values.expression import TRUE, Constant, Expression
from rules.values.types import INT4
from tests.kernel.facts import bounded, clamped, column, computed, is_true
from tests.kernel.oracle import Group

FORMS: tuple[Form, ...] = ("pairs", "corrected", "candidates")
_PRICE, _SHARE, _ONE = clamped("p", "-2.00", "50.00"), clamped("p", "0.00", "0.10"), Constant(INT4, "1")
SUMMANDS = (
    Summand(column("n"), Lattice(Fraction(1, 100), -150, 500)),
    Summand(column("n"), Lattice(Fraction(1000), -3, 7)),
    Summand(column("n"), Lattice(Fraction(1), 2**21, 2**50)),
    Summand(column("f"), Lattice(Fraction(1, 1024), -5000, 5000)),
    Summand(column("f"), Lattice(Fraction(2) ** 900, -2, 2**20)),
    Summand(column("r"), Lattice(Fraction(4), -1, 3)),
    Summand(column("i"), Lattice(Fraction(1), -3, 7)),
    Summand(column("s"), Lattice(Fraction(1), -4, 100000)),
    Summand(column("s"), Lattice(Fraction(1), 0, 0)),
    Summand(column("d"), Lattice(Fraction(1), 19700, 20000)),
    Summand(column("at"), Lattice(Fraction(1), 0, 2 * 10**15)),
    Summand(column("tz"), Lattice(Fraction(1), -(10**15), 2 * 10**15)),
    Summand(
        computed("({0} * {1})", _PRICE, computed("({0} - {1})", _ONE, _SHARE)), Lattice(Fraction(1, 10**4), -50, 4000)
    ),
    Summand(
        computed("({0} * {1})", computed("({0} * {1})", _PRICE, _SHARE), computed("({0} + {1})", _ONE, _PRICE)),
        Lattice(Fraction(1, 10**6), -3000, 2**30),
    ),
    *(  # in coarser steps than their products have
        Summand(computed("({0} * {1})", factor, computed("({0} - {1})", _ONE, _SHARE)), Lattice(step, low, 2**30))
        for factor, step, low in (
            (_SHARE, Fraction(1, 10**3), 0),
            (_SHARE, Fraction(1, 10**2), 1),
            (_SHARE, Fraction(1), -3),
            (_PRICE, Fraction(1, 10**3), -1800),
        )
    ),
)
PIVOTS: tuple[tuple[Expression, ...], ...] = (
    (is_true("a", "{0} = 1"), is_true("a", "{0} > 0"), TRUE),  # which do not exclude each other
    (is_true("ok", "{0}"), is_true("a", "{0} > 2")),
)
CONDITIONS = (TRUE, is_true("ok", "{0}"), is_true("a", "{0} > 1"))
_CELLS: dict[str, tuple[str | None, ...]] = {
    "a": ("1", "2", "3", "-7", "44", None),
    "b": ("x", "y", "", "é'\\", "zz", None),
    "ok": ("true", "false", None),
    "i": ("0", "1", "9223372036854775807", None),
}


@dataclass(frozen=True)
class Question:
    """All that makes a bounded statement but its form and its rows."""

    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    rows_per_unit: int
    groups_per_unit: int | None

    @property
    def is_found(self) -> bool:
        return any(isinstance(key, Found) for key in self.keys)

    def statement(self, rows: Relation, form: Form | None = None) -> Bounded:
        return bounded(
            rows,
            self.keys,
            self.measures,
            rows_per_unit=self.rows_per_unit,
            groups_per_unit=self.groups_per_unit,
            pivots=PIVOTS,
            form=form,
        )


@st.composite
def listed(draw: st.DrawFn) -> Listed:
    """A list over one or two columns: with NULLs, labels that nobody has, and labels that stand there twice."""
    names = draw(st.sampled_from((["a"], ["b"], ["ok"], ["i"], ["a", "b"], ["b", "ok"])))
    labels = draw(st.lists(st.sampled_from(list(product(*(_CELLS[name] for name in names)))), max_size=12))
    return Listed(tuple(map(column, names)), tuple(labels))


BINS = tuple(Bins(SUMMANDS[place], width) for place, width in ((0, 100), (0, 1), (6, 3), (9, 31), (11, 86_400_000_000)))
FOUND = tuple(Found(column(name)) for name in ("a", "b", "n", "f", "r", "ok"))


def keys(*, found: bool = True) -> st.SearchStrategy[tuple[Key, ...]]:
    kinds: list[st.SearchStrategy[Key]] = [listed(), st.sampled_from(BINS)]
    if found:
        kinds.append(st.sampled_from(FOUND))
    return st.lists(st.one_of(kinds), max_size=2).map(tuple)


cases = st.one_of(
    st.none(),
    st.sampled_from(
        [Case(pivot, number) for pivot, expressions in enumerate(PIVOTS) for number in range(len(expressions))]
    ),
)
summands = st.sampled_from(SUMMANDS)
row_measures: st.SearchStrategy[Measure] = st.one_of(
    st.builds(Count, st.sampled_from(CONDITIONS), cases),
    st.builds(Values, summands, cases),
    st.builds(Sum, summands, st.booleans(), st.sampled_from((None, None, 1, 40, 3000)), cases),
    st.builds(Products, st.sampled_from((*SUMMANDS[:1], *SUMMANDS[6:8])), st.sampled_from(SUMMANDS[6:8]), cases),
)
measures: st.SearchStrategy[Measure] = st.one_of(
    row_measures,
    st.builds(Units, st.sampled_from(CONDITIONS), cases),
    st.builds(Distinct, st.sampled_from([column(name) for name in ("a", "b", "n", "f", "i", "ok")]), cases),
    st.builds(DistinctSum, summands, st.booleans(), cases),
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    asked = draw(st.lists(measures, min_size=1, max_size=5))
    groups = draw(st.sampled_from((None, 1, 2, 3)))
    return Question(draw(keys()), tuple(asked), draw(st.sampled_from((1, 2, 5, 30))), groups)


Answer = dict[Group, tuple[int, ...]]


def answer(connection: psycopg.Connection, given: Bounded) -> Answer:
    """The rows of a statement by group, but those of zeros: a listed group without a row is a group of zeros."""
    width = len(given.keys)
    rows = connection.execute(given.sql).fetchall()
    found = {tuple(row[:width]): tuple(row[width:]) for row in rows}
    assert len(found) == len(rows), "a group has two rows"
    return {group: cells for group, cells in found.items() if any(cells)}


def of_measure(given: Answer, number: int) -> Counter[Group]:
    return Counter({group: cells[number] for group, cells in given.items()})


def difference(one: Counter[Group], other: Counter[Group], groups: Sequence[Group]) -> list[int]:
    return [one[group] - other[group] for group in groups]
