"""What is in two domains at once."""

from fractions import Fraction

from rules.values.domain import ONE, Range, Values, intersect
from tests.properties.planning import Lab
from tests.properties.test_meaning import RULES

HALVES = Values((Fraction(1), Fraction(3, 2), Fraction(2)))


def test_a_list_and_steps_have_only_the_steps_in_common() -> None:
    whole = Range(Fraction(0), Fraction(10), ONE)

    assert intersect(HALVES, whole) == intersect(whole, HALVES) == Values((Fraction(1), Fraction(2)))
    assert intersect(HALVES, Range(Fraction(0), Fraction(10))) == HALVES


def test_whole_numbers_that_equal_a_fraction_are_none(lab: Lab) -> None:
    """The outer statement reads groups as the column's type: one that it cannot read would fail when all is paid."""
    counts = "(SELECT person_id, count(*) AS n FROM visits GROUP BY 1) AS u"
    made = lab.plan(f"SELECT n, count(*) FROM {counts} WHERE n = 0.001 GROUP BY 1", RULES)

    assert lab.run(lab.outer(made), made).fetchall() == []
