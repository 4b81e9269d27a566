"""Typical values as they are planned: names, bounds, blocks, what is told of them, and what is refused."""

from decimal import Decimal

import psycopg
import pytest

from rules.mechanisms.release_plan import Choice
from rules.planner.plan import Plan
from tests.planner.planned import Planner

RATIO = "sum(amount) / nullif(count(*), 0)"


def choices(made: Plan) -> list[Choice]:
    return [measure for block in made.blocks for measure in block.measures if isinstance(measure, Choice)]


@pytest.mark.parametrize(
    "written",
    [
        f"noisegate.typical({RATIO}, 0, 500, 60)",
        f"noisegate.typical({RATIO}, 0, 500, blocks => 60)",
        f"noisegate.typical({RATIO}, upper => 500, lower => 0.0, blocks => 30 + 30)",
        f"noisegate.typical(value => {RATIO}, upper => 5e2, blocks => 60, lower => -0)",
        "noisegate.typical(sum(orders.amount) / nullif(count(*), 0), 0, 500, 60)",
    ],
)
def test_one_question_has_one_name_however_it_is_written(planner: Planner, written: str) -> None:
    (choice,) = choices(planner.plan(f"SELECT {written} FROM orders"))
    (first,) = choices(planner.plan(f"SELECT noisegate.typical({RATIO}, 0, 500, 60) FROM orders"))

    assert choice.name == first.name and choice.statement == first.statement
    assert choice.blocks == 60 and choice.sensitivity == 2


def test_other_bounds_blocks_and_statistics_are_other_questions(planner: Planner) -> None:
    asked = (f"{RATIO}, 0, 500", f"{RATIO}, 0, 400", f"{RATIO}, 0, 500, 60", "avg(amount), 0, 500")
    names = [choices(planner.plan(f"SELECT noisegate.typical({text}) FROM orders"))[0].name for text in asked]

    assert len(set(names)) == len(names)


def test_one_statistic_may_stand_in_several_typical_values(planner: Planner) -> None:
    asked = (f"{RATIO}, 0, 500", f"{RATIO}, 0, 400", f"{RATIO}, 0, 500, 60", f"{RATIO}, 0, 500")
    together = choices(planner.plan(f"SELECT {', '.join(f'noisegate.typical({text})' for text in asked)} FROM orders"))
    alone = [choices(planner.plan(f"SELECT noisegate.typical({text}) FROM orders"))[0] for text in asked[:3]]

    assert [choice.candidates for choice in together] == [choice.candidates for choice in alone]
    assert len({choice.name for choice in together}) == 3


def test_blocks_follow_from_epsilon_and_from_the_groups_of_a_unit(planner: Planner) -> None:
    by_status = "SELECT status, noisegate.typical(avg(amount), 0, 500) FROM orders GROUP BY status"
    (whole,) = choices(planner.plan("SELECT noisegate.typical(avg(amount), 0, 500) FROM orders"))
    (counting,) = choices(planner.plan(by_status))
    (four,) = choices(planner.plan(by_status, empty_groups="show"))
    (one,) = choices(planner.plan(by_status, groups_per_unit=1, empty_groups="show"))

    assert (whole.blocks, whole.sensitivity) == (56, 2)
    assert (four.blocks, four.sensitivity) == (222, 8)
    assert (one.blocks, one.sensitivity) == (56, 2)
    assert counting.epsilon == four.epsilon * Decimal("0.9")  # a tenth counts the rows that tell which groups are empty


def test_rows_of_a_unit_have_no_cap_and_nothing_is_cut(planner: Planner) -> None:
    (block,) = planner.plan("SELECT noisegate.typical(avg(amount), 0, 500) FROM orders").blocks

    assert not block.cuts and not block.ladders
    assert "rows per unit" not in dict(block.explanation)
    assert dict(block.explanation)["bias"] == "that of a sample of 1/56 of the units"


def test_what_is_told_beside_it(planner: Planner) -> None:
    plan = planner.plan("SELECT noisegate.typical(avg(amount), 0, 500) FROM orders")
    few = planner.plan("SELECT noisegate.typical(avg(amount), 0, 500, blocks => 20) FROM orders")

    biased = "statistics that are biased in small samples are biased here"
    assert plan.notices == (f"typical value of 56 blocks of units: {biased}; compare with blocks => 28",)
    assert few.notices[-1] == (
        "20 blocks are too few at epsilon 1: the answer would be near random; 56 or more are needed"
    )


def test_error_bars_are_two_more_draws_over_the_same_blocks(planner: Planner) -> None:
    typical = "noisegate.typical(avg(amount), 0, 500)"
    plan = planner.plan(f"SELECT {typical}, noisegate.low({typical}), noisegate.high({typical}) FROM orders")

    middle, low, high = choices(plan)
    assert middle.statement == low.statement == high.statement
    assert 0.999 < plan.epsilon <= 1
    assert [choice.end and choice.end.side for choice in (middle, low, high)] == [None, -1, 1]


REFUSED = (
    ("^noisegate.typical(count(*), 0, 9)", "0A000", "total says nothing of the whole"),
    ("^noisegate.typical(sum(amount)::float8, 0, 9)", "0A000", "total says nothing"),
    ("^noisegate.typical(avg(amount), 9, 0)", "22023", "must be below its upper bound"),
    ("^noisegate.typical(avg(amount), 0, NULL)", "22023", "upper bound"),
    ("^noisegate.typical(avg(amount), 0, 9, blocks => 5000)", "22023", "from 1 to 4,096"),
    ("^noisegate.typical(avg(amount), 0, 9, blocks => 0)", "22023", "from 1 to 4,096"),
    ("noisegate.typical(avg(amount) + length(^status::text), 0, 9)", "0A000", "must be used in an aggregate"),
    ("noisegate.typical(length(^string_agg(note, ',')), 0, 9)", "42501", "values of single rows"),
    ("noisegate.typical(^bit_and(id), 0, 9)", "0A000", '"bit_and"'),
    ("noisegate.typical(^avg(DISTINCT amount), 0, 9)", "0A000", "DISTINCT"),
    ("noisegate.typical(avg(length(^nobody)), 0, 9)", "42501", "does not exist"),
    ("noisegate.low(^noisegate.typical(avg(amount), 0, 9, 30))", "0A000", "too few for an error bar"),
)


@pytest.mark.parametrize(("marked", "code", "words"), REFUSED, ids=lambda text: text[:60])
def test_a_refusal_says_why_and_where(planner: Planner, marked: str, code: str, words: str) -> None:
    before, _, after = marked.partition("^")
    refusal = planner.refusal(f"SELECT {before}{after} FROM orders GROUP BY status")

    assert refusal.sqlstate == code
    assert words in refusal.message
    assert refusal.position == len(f"SELECT {before}") + 1


def test_a_typical_value_of_each_unit_is_refused(planner: Planner) -> None:
    sql = (
        "SELECT avg(t) FROM (SELECT customer_id, noisegate.typical(avg(amount), 0, 9) AS t FROM orders GROUP BY 1) AS o"
    )

    assert '"typical"' in planner.refusal(sql).message


FAR = ("power(amount + 100000, 36)", "power(amount + 100000, 36)::float8", "power(amount + 100000, 20)::float8")
OF_TWO = (
    "corr covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_sxx regr_syy regr_sxy regr_avgx regr_avgy".split()
)
FORMS = [*("var_pop({x})", "var_samp({x})", "stddev({x})", "avg({x})"), *(f"{name}({{x}}, {{x}})" for name in OF_TWO)]


@pytest.mark.extended
@pytest.mark.parametrize("x", FAR)
@pytest.mark.parametrize("form", FORMS)
def test_no_block_fails_where_squares_are_beyond_what_a_double_can_be(planner: Planner, form: str, x: str) -> None:
    (choice,) = choices(planner.plan(f"SELECT noisegate.typical({form.format(x=x)}, 0, 1, blocks => 1) FROM orders"))
    with psycopg.connect(planner.dsn) as connection:
        connection.execute("SET LOCAL search_path = ''")
        connection.execute(planner.kernel.bounded(choice.statement).sql).fetchall()
