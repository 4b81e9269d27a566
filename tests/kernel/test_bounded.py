"""The statements of the kernel, on a real server: what one unit moves, and that all forms say the same."""

from collections import Counter, defaultdict

import psycopg
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rules.kernel.forms import Form
from rules.values.expression import TRUE, Expression
from tests.kernel.claims import check_integers, check_moves
from tests.kernel.facts import Data, facts, is_true, load
from tests.kernel.picked import DATA, QUESTIONS
from tests.kernel.statements import FORMS, Question, questions
from tests.properties.planning import EXAMPLES, thorough


def test_all_forms_give_the_integers_of_an_independent_sum(connection: psycopg.Connection) -> None:
    decided = Counter[str]()

    @thorough
    @given(facts(), questions(), st.booleans(), st.sampled_from((TRUE, is_true("a", "{0} > 1"))))
    def check(data: Data, question: Question, single: bool, condition: Expression) -> None:
        data = _load(connection, data, single=single)
        if condition != TRUE:
            data = {unit: [row for row in rows if int(row["a"] or 0) > 1] for unit, rows in data.items()}
        decided.update(check_integers(connection, data, question, single=single, condition=condition))

    check()
    assert decided["by sum"] > 2 * decided["by hash"] > 0


def test_one_unit_moves_a_measure_by_no_more_than_is_said(connection: psycopg.Connection) -> None:
    reached: dict[str, Counter[bool]] = defaultdict(Counter)

    @settings(thorough, max_examples=max(120, 3 * EXAMPLES))
    @given(facts(), questions(), st.sampled_from((*FORMS, None)))
    def check(data: Data, question: Question, form: Form | None) -> None:
        for kind, is_farthest in check_moves(connection, _load(connection, data), question, form):
            reached[kind][is_farthest] += 1

    for question in QUESTIONS:  # which reach it, whatever is drawn
        check = example(DATA, question, None)(check)
    check()
    assert len(reached) == 7
    for kind, counts in reached.items():
        assert counts[True] > counts.total() / 100, f"{kind} hardly ever moves as far as it may"


def _load(connection: psycopg.Connection, data: Data, *, single: bool = False) -> Data:
    """Fill the table; `single`: with one row of each unit."""
    kept = {unit: rows[:1] if single and unit is not None else rows for unit, rows in data.items()}
    load(connection, kept)
    return kept
