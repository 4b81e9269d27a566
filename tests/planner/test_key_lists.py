"""Lists of a key's values: in the order of its type, with the texts that PostgreSQL shows, or none at all."""

from fractions import Fraction

import pytest

from rules.planner.select_partitions import listing_of, own_part
from rules.values.domain import Domain, Range, Values
from rules.values.expression import Apply, Expression
from rules.values.types import DATE, FLOAT8, INT4, NUMERIC, Type

LIMIT = 10_000
ONE = Fraction(1)


def key(sql_type: Type, domain: Domain, *, nullable: bool = False) -> Expression:
    return Apply("key", "{0}", (), sql_type, domain, nullable)


@pytest.mark.parametrize(
    ("listed", "texts"),
    [
        (key(INT4, Range(Fraction(-2), Fraction(2), ONE)), ["-2", "-1", "0", "1", "2"]),
        (key(INT4, Range(Fraction(-5), Fraction(7), Fraction(4))), ["-4", "0", "4"]),
        (key(NUMERIC, Range(Fraction(-1), Fraction(1), Fraction(1, 2))), ["-1", "-0.5", "0", "0.5", "1"]),
        (key(DATE, Range(Fraction(-1), ONE, ONE), nullable=True), ["1969-12-31", "1970-01-01", "1970-01-02", None]),
        (key(FLOAT8, Values((Fraction(10), Fraction(9))), nullable=True), ["9", "10", None]),
        (key(INT4, Range(Fraction(1), Fraction(0), ONE)), []),
    ],
)
def test_values_are_listed_in_the_order_of_their_type(listed: Expression, texts: list[str | None]) -> None:
    part = own_part(listed, 0, LIMIT, "UTC")
    assert part is not None

    listing = listing_of((listed,), (part,), LIMIT)

    assert listing is not None
    assert [text for (text,) in listing.keys[0].labels] == texts


@pytest.mark.parametrize(
    "domain",
    [Values((Fraction(0), Fraction(10) ** 400)), Values((Fraction(1, 2),)), Range(ONE, Fraction(10) ** 400, ONE)],
)
def test_doubles_whose_text_is_not_sure_have_no_list(domain: Domain) -> None:
    assert own_part(key(FLOAT8, domain), 0, LIMIT, "UTC") is None
