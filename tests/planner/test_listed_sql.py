"""What stands in the statements of the cases: functions and casts of the kernel's lists alone."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rules.kernel import added
from rules.kernel.expressions import constant_sql
from rules.mechanisms.release_plan import Choice, GroupsFoundFirst
from rules.refusal import Refusal
from rules.values.expression import Constant
from rules.values.types import NUMERIC
from tests.cases.case_file import Step, all_cases
from tests.planner.planned import Planner
from tests.planner.planned import planned as planned_whole
from tests.support.listed_sql import ON_NO_LIST, WRITERS, casts_say_their_writer, unlisted, writers

CASES = Path(__file__).parents[1] / "cases"


def test_a_function_and_a_type_on_no_list_are_found() -> None:
    assert unlisted("SELECT lower(a), md6(b), c::text, d::regclass, 'e(f)::g'") == {"md6", "::regclass"}


def test_a_cast_says_which_function_of_the_kernel_wrote_it() -> None:
    with casts_say_their_writer():
        sql = added.canonical(NUMERIC, "(c1)::date") + constant_sql(Constant(NUMERIC, "5"))

    assert writers(sql, "a statement without templates") == {"added.canonical", "expressions.constant_sql", "::date"}
    assert writers(sql, "({0})::date") == {"added.canonical", "expressions.constant_sql"}
    assert added.canonical(NUMERIC, "c1") == "trim_scale((c1)::numeric)"


@pytest.mark.extended
def test_the_statements_of_the_cases_have_functions_and_casts_of_the_lists_alone(planner: Planner) -> None:
    with casts_say_their_writer():
        made = [each for case in all_cases(CASES) for step in case.steps for each in _made(planner, step)]

    assert len(made) > 100
    assert set().union(*(writers(sql, statement) for sql, statement in made)) <= WRITERS


def _made(planner: Planner, step: Step) -> Iterator[tuple[str, object]]:
    """What a step of a case has the kernel write, each looked at when it is made, and of which statement."""
    if step.outcome != "answer":
        return
    try:
        plan = planned_whole(planner, step.sql)
    except (Refusal, ValueError, psycopg.Error):  # of parameters, settings and synopses, which it does not have
        return
    except AssertionError as error:  # what has to be answered first
        assert ON_NO_LIST not in str(error)
        return
    for block in plan.blocks:
        statements = [block.statement, *(m.statement for m in block.measures if isinstance(m, Choice))]
        if isinstance(block.groups, GroupsFoundFirst):
            statements.append(block.groups.finder.statement)
        yield from ((planner.kernel.bounded(statement).sql, statement) for statement in statements)
        if block.tally is not None:
            yield planner.kernel.tally(block.tally).sql, block.tally
