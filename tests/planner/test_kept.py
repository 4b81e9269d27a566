"""What is kept between statements says of the next one what it would have said anew."""

from contextlib import suppress
from itertools import count

import pytest

from rules.bind import table
from rules.bind.table import scan
from rules.catalog import TableName
from rules.refusal import Refusal
from rules.sql import grammar
from rules.sql.grammar import names_of, parse, parse_kept
from rules.sql.read import read
from rules.sql.selects import query_of
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of


@pytest.mark.parametrize("first", [1, 40])
@pytest.mark.parametrize("name", ["customers", "orders"])
def test_a_scan_that_is_kept_has_the_numbers_of_one_that_is_made(
    shop: RealDatabase, monkeypatch: pytest.MonkeyPatch, name: str, first: int
) -> None:
    catalog, policy = catalog_of(shop.dsn), shop_data.policy()
    known, rules = catalog.find_table(TableName("public", name)), policy.tables[name]
    assert known is not None
    made = []
    for kept in (table._KNOWN, table._KNOWN, {}):
        monkeypatch.setattr(table, "_KNOWN", kept)
        numbers = count(first)
        made.append((scan(known, rules, policy, catalog, numbers.__next__), next(numbers)))

    assert made[0] == made[1] == made[2]


def test_new_rules_of_a_table_are_read_anew(shop: RealDatabase) -> None:
    catalog, policy = catalog_of(shop.dsn), shop_data.policy()
    customers = catalog.find_table(TableName("public", "customers"))
    assert customers is not None
    first, _ = scan(customers, policy.tables["customers"], policy, catalog, count(1).__next__)
    rules = policy.tables["customers"].model_copy(update={"columns": {}})

    second, _ = scan(customers, rules, policy, catalog, count(1).__next__)

    declared = [[column.declared for column in made.facts.columns] for made in (first, second)]
    assert declared[0] != declared[1]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("select a from t where b = 'x' and c in (1, 2)", "SELECT a FROM t WHERE b = ? AND c IN (?, ?)"),
        ("select a from t where b = $1 and c in (1, 2)", "SELECT a FROM t WHERE b = $1 AND c IN (?, ?)"),
        ("select a from t where b = NULL and c in (1, 2)", "SELECT a FROM t WHERE b = ? AND c IN (?, ?)"),
        ("select a, b from t limit 3", "SELECT a, b FROM t LIMIT ?"),
    ],
)
def test_shapes_are_the_same_whatever_was_asked_before(text: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = query_of(parse(text)[0].tree)

    assert names_of(text, query)[1] == names_of(text, query)[1] == shape
    monkeypatch.setattr(grammar, "_SHAPES", {})
    assert names_of(text, query) == names_of(text, query)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.city, avg(o.amount) FROM public.customers AS c JOIN orders AS o ON o.customer_id = c.id GROUP BY 1",
        "WITH o AS (SELECT city FROM customers) SELECT city, noisegate.margin(count(*)) FROM o GROUP BY city LIMIT 3",
        "EXPLAIN (COSTS off) SELECT count(*) FROM customers WHERE birth_date > date '1990-01-01'",
        "SELECT email FROM customers LIMIT 3",
        "SELECT interval '1' day, count(*) / 0 FROM customers GROUP BY customers.id",
    ],
)
def test_the_trees_that_reading_keeps_are_changed_by_nobody(planner: Planner, text: str) -> None:
    read(text)
    with suppress(Refusal):
        planner.plan(text)

    assert parse_kept(text) == parse(text)
