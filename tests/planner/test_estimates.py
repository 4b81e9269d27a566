"""Estimates as they are planned: what is measured, what they cost, and what is refused."""

import pytest

from rules.kernel.measures import Count
from rules.mechanisms.noised_outputs import Estimate
from rules.mechanisms.release_plan import Measure
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop

RANDOMIZED = """
      segment: {randomized: {by: k-ary, epsilon: 1, values: [consumer, business, public sector]}}
      is_vip: {randomized: {by: bit, epsilon: 1}}
      email: hidden
"""


@pytest.fixture(scope="session")
def survey(shop: RealDatabase) -> Planner:
    return Planner(shop.dsn, _rules())


def _rules() -> str:
    return shop.RULES.replace("      email: hidden\n", RANDOMIZED.lstrip("\n"))


def test_all_values_are_measured_and_paid_once(survey: Planner) -> None:
    block = survey.block("SELECT noisegate.estimate(segment, 'business') FROM customers")

    assert [isinstance(measure, Count) for measure in block.statement.measures] == [True] * 3
    vectors = [measure.vector for measure in block.measures if isinstance(measure, Measure)]
    assert len(set(vectors)) == 1 and None not in vectors
    (estimate,) = block.outputs
    assert isinstance(estimate, Estimate)
    assert (estimate.hits, estimate.reports, estimate.chance) == (1, (0, 1, 2), 3)
    assert block.epsilon == 1


def test_another_value_is_made_of_the_same_measures(survey: Planner) -> None:
    asked = "SELECT noisegate.estimate(segment, '{}') FROM customers"
    one, two = (survey.block(asked.format(value)) for value in ("consumer", "business"))
    assert [measure.name for measure in one.measures] == [measure.name for measure in two.measures]
    assert one.canonical == two.canonical


def test_by_groups_a_value_is_estimated_from_the_groups_of_the_others(survey: Planner) -> None:
    block = survey.block("SELECT segment, city, noisegate.estimate(segment) FROM customers GROUP BY segment, city")

    (estimate,) = block.outputs
    assert isinstance(estimate, Estimate)
    assert (estimate.key, estimate.groups) == (0, 3)
    assert len(block.measures) == 1


def test_a_filter_by_another_column_chooses_whose_reports_count(survey: Planner) -> None:
    sql = "SELECT noisegate.estimate(is_vip, true) FILTER (WHERE city = 'Lyon') FROM customers WHERE country = 'FR'"

    assert len(survey.block(sql).measures) == 2


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT segment, count(*) FROM customers GROUP BY segment", True),
        ("SELECT count(*) FROM customers WHERE segment = 'consumer'", True),
        ("SELECT count(*) FILTER (WHERE segment = 'consumer') FROM customers", True),
        ("SELECT count(DISTINCT segment) FROM customers", True),
        ("SELECT city, count(*) FROM customers GROUP BY city", False),
        ("SELECT noisegate.estimate(segment, 'consumer') FROM customers", False),
    ],
)
def test_what_counts_reports_is_told_so(survey: Planner, sql: str, told: bool) -> None:
    notice = '"segment" was randomized at epsilon 1: this counts reports; noisegate.estimate(segment) undoes it'

    assert (notice in survey.plan(sql).notices) == told


REFUSED = (
    ("noisegate.estimate(segment, ^'maybe')", "22023", "is not among the values"),
    ("noisegate.estimate(^segment, NULL)", "22023", "is not among the values"),
    ("noisegate.estimate(^city, 'Lyon')", "0A000", "was not randomized"),
    ("^noisegate.estimate(upper(country), 'FR')", "0A000", "was not randomized"),
    ("noisegate.estimate(^segment)", "0A000", "no value of"),
    ("noisegate.estimate(is_vip, true) FILTER (WHERE ^segment = 'business')", "0A000", "needs all reports"),
    ("^noisegate.estimate(DISTINCT segment, 'consumer')", "0A000", "a column and a value"),
)
IN_OTHER_PLACES = (
    ("SELECT segment, noisegate.estimate(segment, 'consumer') FROM customers GROUP BY 1", "is a group here"),
    ("SELECT noisegate.estimate(segment, 'consumer') FROM customers WHERE is_vip", "needs all reports"),
    ("SELECT segment, name, noisegate.estimate(segment) FROM customers GROUP BY 1, 2", "found in the data"),
    ("SELECT noisegate.estimate(v, true) FROM (SELECT id, is_vip AS v FROM customers GROUP BY 1, 2) t", "subquery"),
    ("SELECT noisegate.estimate(segment, 'consumer') OVER () FROM customers", "window function"),
    ("SELECT avg(e) FROM (SELECT id, noisegate.estimate(is_vip, true) AS e FROM customers GROUP BY 1) t", "estimate"),
)


@pytest.mark.parametrize(("sql", "words"), IN_OTHER_PLACES, ids=lambda text: text[:60])
def test_an_estimate_is_of_all_reports_of_a_table_or_refused(survey: Planner, sql: str, words: str) -> None:
    refusal = survey.refusal(sql)

    assert words in refusal.message
    assert refusal.position is not None


@pytest.mark.parametrize(("marked", "code", "words"), REFUSED, ids=lambda text: text[:60])
def test_a_refusal_says_why_and_where(survey: Planner, marked: str, code: str, words: str) -> None:
    before, _, after = marked.partition("^")
    refusal = survey.refusal(f"SELECT {before}{after} FROM customers")

    assert (refusal.sqlstate, words in refusal.message) == (code, True), refusal.message
    assert refusal.position == len(f"SELECT {before}") + 1
