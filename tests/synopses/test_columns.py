"""Columns of synopses as they are written, and what cannot be measured, with its place and what to write instead."""

from itertools import pairwise

import pytest

from rules.catalog import Catalog
from rules.policy.finding import Finding, Severity
from rules.policy.rules_yaml import RulesError
from rules.policy.synopses import read_listed
from rules.synopses.check import check_synopses
from rules.synopses.columns import counted
from rules.synopses.plan import plan_synopsis
from rules.synthesis.model import Between
from rules.values.expression import Column
from rules.values.types import INT8
from tests.conftest import RealDatabase
from tests.support import shop
from tests.support.catalogs import catalog_of


def _rules(tables: str, more: str = "") -> str:
    return f"{shop.RULES}synopses: {{explore: {{epsilon: 2{more}, tables: {{{tables}}}}}}}\n"


@pytest.mark.parametrize(
    ("tables", "words", "hint"),
    [
        ("customers: [name]", "", ""),
        ("customers: [email]", 'customers has no column "email"', "hidden"),
        ("customers: [nothing]", 'customers has no column "nothing"', ""),
        ("customers: [id]", "it is part of a key", "leave it out"),
        ("customers: [joined by year]", "it has no bounds", "lower and upper"),
        ("customers: [birth_date]", "by which step of the calendar", 'write "birth_date by month"'),
        ("customers: [birth_date by year]", "it has more than 64 bins", "coarser"),
        ("customers: [count(orders) by 10]", "orders is no table of this synopsis", "list it"),
        ("orders: [amount]", "into how many bins", 'write "amount by 20"'),
        ("orders: [amount by 500]", "a column has 2 to 64 bins", 'write "by 20"'),
        ("orders: [customers.city]; customers: [segment]", "is not listed in customers", "list it there too"),
        ("orders: [customer_id]", "it refers to another table", "linked by themselves"),
        ("products: [category]", "is no protected table", "as they are"),
        ("staff: [salary]", "not in the rules file", ""),
        ("orders: [ordered_at by month, amount by 64]; customers: [city]", "", ""),
    ],
)
def test_what_cannot_be_measured_is_told_with_what_can(
    shop_catalog: Catalog, tables: str, words: str, hint: str
) -> None:
    found = _findings(shop_catalog, _rules(tables.replace(";", ",")))
    errors = [finding for finding in found if finding.severity is Severity.ERROR]

    assert bool(errors) == bool(words), errors
    if words:
        assert words in errors[0].message
        assert hint in errors[0].hint
        assert errors[0].path.startswith("synopses.explore")


@pytest.mark.parametrize(
    ("rules", "severity", "words"),
    [
        (_rules("customers: [city]").replace("explore", "public"), "error", "a schema has this name already"),
        (_rules("customers: [city]").replace("explore", "noisegate"), "error", "a schema has this name already"),
        (_rules("customers: [city]", ", analysts: [eve]"), "error", "there is no analyst eve"),
        (_rules("customers: [city]").replace("epsilon: 2,", "epsilon: 999.9,"), "warning", "bob cannot read it"),
        (_rules("customers: [city]"), "note", "charged once to the budget of all"),
        (_rules("customers: [city, segment]"), "note", "lie in another cell"),
    ],
)
def test_check_says_who_pays_and_how_good_it_will_be(
    shop_catalog: Catalog, rules: str, severity: str, words: str
) -> None:
    assert any(finding.severity == severity and words in finding.message for finding in _findings(shop_catalog, rules))


def test_a_digest_changes_with_what_is_measured_alone(shop_catalog: Catalog) -> None:
    texts = [
        _rules("customers: [city, segment]"),
        _rules("customers: [city, segment]").replace("epsilon: 2,", "epsilon: 3,"),
        _rules("customers: [segment, city]"),
        _rules("customers: [city, segment]").replace("[Berlin,", "[Bremen,"),
        _rules("customers: [city, segment]") + "group_size: 2\n",
    ]
    one, other_price, *others = [
        plan_synopsis("explore", shop.policy(rules=text), shop_catalog).digest for text in texts
    ]

    assert one == other_price
    assert len({one, *others}) == 4


TRIPLE = "customers: [city, segment, country]}, marginals: {customers: [[country, city, segment]]"


def test_a_marginal_that_is_asked_for_is_measured_beside_the_pairs(shop_catalog: Catalog) -> None:
    (table,) = plan_synopsis("explore", shop.policy(rules=_rules(TRIPLE)), shop_catalog).tables

    assert [each.columns for each in table.statement.counted] == [(), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert not [finding for finding in _findings(shop_catalog, _rules(TRIPLE)) if finding.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("{customers: [[country, city]]}", "3 or more items"),
        ("{customers: [[country, city, name]]}", "name in marginals is not listed"),
        ("{customers: [[country, city, city]]}", "has a column twice"),
        ("{customers: [[country, city, segment], [segment, city, country]]}", "a marginal is listed twice"),
        ("{orders: [[country, city, segment]]}", "orders, which is not listed under tables"),
    ],
)
def test_what_is_no_marginal_is_refused(asked: str, words: str) -> None:
    with pytest.raises(RulesError, match=words):
        shop.policy(rules=_rules(f"customers: [city, segment, country]}}, marginals: {asked[:-1]}"))


@pytest.mark.parametrize("text", ["city by", "count()", "a b", "city by fortnight", "city by 0", ""])
def test_what_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write a column|must be one of"):
        read_listed(text)
    with pytest.raises(RulesError):
        shop.policy(rules=_rules(f'customers: ["{text}"]'))


@pytest.mark.parametrize(("most", "buckets"), [(40, 10), (1, 3), (5, 64), (1_000_000, 12)])
def test_buckets_of_a_count_are_without_gaps(most: int, buckets: int) -> None:
    shown = [bin_ for bin_ in counted(Column(1, INT8), most, buckets).shown if isinstance(bin_, Between)]

    assert shown[0].low == 0
    assert shown[0].high == 0
    assert shown[-1].high == most
    assert all(one.high + 1 == two.low for one, two in pairwise(shown))
    assert len(shown) <= buckets + 1


@pytest.fixture(scope="module")
def shop_catalog(shop: RealDatabase) -> Catalog:
    return catalog_of(shop.dsn)


def _findings(catalog: Catalog, rules: str) -> list[Finding]:
    return list(check_synopses(shop.policy(rules=rules), catalog))
