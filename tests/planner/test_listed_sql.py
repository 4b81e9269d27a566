"""What stands in the statements of the cases: functions and casts of the kernel's lists alone."""

from pathlib import Path

import psycopg
import pytest

from rules.mechanisms.release_plan import Choice, GroupsFoundFirst
from rules.refusal import Refusal
from tests.cases.case_file import all_cases
from tests.planner.planned import Planner
from tests.planner.planned import planned as planned_whole
from tests.support.listed_sql import ON_NO_LIST, unlisted

CASES = Path(__file__).parents[1] / "cases"


def test_a_function_and_a_type_on_no_list_are_found() -> None:
    assert unlisted("SELECT lower(a), md6(b), c::text, d::regclass, 'e(f)::g'") == {"md6", "::regclass"}


@pytest.mark.extended
def test_the_statements_of_the_cases_have_functions_and_casts_of_the_lists_alone(planner: Planner) -> None:
    planned = 0
    for step in (step for case in all_cases(CASES) for step in case.steps if step.outcome == "answer"):
        try:
            plan = planned_whole(planner, step.sql)
        except (Refusal, ValueError, psycopg.Error):  # of parameters, settings and synopses, which it does not have
            continue
        except AssertionError as error:  # what has to be answered first
            assert ON_NO_LIST not in str(error)
            continue
        for block in plan.blocks:  # each statement is looked at when it is made
            statements = [block.statement, *(m.statement for m in block.measures if isinstance(m, Choice))]
            if isinstance(block.groups, GroupsFoundFirst):
                statements.append(block.groups.finder.statement)
            planned += len([planner.kernel.bounded(statement) for statement in statements])
            if block.tally is not None:
                planned += len([planner.kernel.tally(block.tally)])
    assert planned > 100
