"""What is kept between statements says of the next one what it would have said anew."""

from contextlib import suppress
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.execute.pipe import PLANNED
from rules.bind import table
from rules.bind.table import scan
from rules.catalog import Catalog, TableName
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.replay import Kernel
from rules.sql.grammar import fingerprint, names_of, parse, parse_kept
from rules.sql.read import read
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.support.kept import forget


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


def test_an_earlier_catalog_is_let_go(shop: RealDatabase) -> None:
    policy, catalogs = shop_data.policy(), [catalog_of(shop.dsn) for _ in range(3)]
    for catalog in catalogs:
        for name in ("customers", "orders"):
            known = catalog.find_table(TableName("public", name))
            assert known is not None
            scan(known, policy.tables[name], policy, catalog, count(1).__next__)

    assert {id(kept.origin[3]) for kept in table._KNOWN.values()} == {id(catalogs[-1])}


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
        ("select a from t where b = 'x' and c in (1, 2)", "select a from t where b = ? and c in (?, ?)"),
        ("select a from t where b = $1 and c in (1, 2)", "select a from t where b = ? and c in (?, ?)"),
        ("select a from t where b = NULL and c in (-1, $$it's$$)", "select a from t where b = ? and c in (?, ?)"),
        ("select a, b\n\tfrom t\n limit 3;", "select a, b from t limit ?"),
        ("/* x */ select a from t /* y /* z */ */ where b = '--' -- who asks", "select a from t where b = ?"),
        ("select 'a'\n'b', \"--\" /* c */ from t", 'select ?, "--" from t'),
        ('select 1 as "it\'s  $1", \'it\' as """" from t', 'select ? as "it\'s  $1", ? as """" from t'),
        ("select cast(a as numeric(5, 2)) from t group by 1", "select cast(a as numeric(5, 2)) from t group by 1"),
        ("copy (select a from t where b = 'x') to stdout", "SELECT a FROM t WHERE b = ?"),
        ("prepare p as select a from t where b = $1 and c = 1", "SELECT a FROM t WHERE b = ? AND c = ?"),
        ("execute p(1, 'x')", ""),
        ("select * from json_table('[1]', '$[*]' columns (a int path '$'))", ""),
    ],
)
def test_a_shape_is_the_query_without_its_constants(text: str, shape: str) -> None:
    (statement,) = read(text).statements

    assert statement.shape == shape


def test_comments_make_no_other_statement() -> None:
    texts = [f"select a -- asked by {who}\nfrom t where b = {who} /* {who} */" for who in range(3)]

    names = set(map(names_of, texts))

    assert names == {(fingerprint("select a from t where b = 1"), "select a from t where b = ?")}


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


def test_an_explanation_stands_on_the_clock_as_its_statement_does(planner: Planner) -> None:
    count = "SELECT count(*) FROM orders WHERE ordered_at < "

    depend = [planner.plan(f"{before}{count}now()").depends_on_time for before in ("", "EXPLAIN ")]

    assert depend == [True, True]
    assert not planner.plan(f"EXPLAIN {count}'2025-06-15'").depends_on_time


STATEMENTS = (
    "SELECT count(*), {0} FROM orders WHERE amount BETWEEN SYMMETRIC {1} AND {2} GROUP BY 2",
    "SELECT city, count(*) FROM customers WHERE city IN ({0}, {1}, 'Graz') GROUP BY 1 ORDER BY {2} LIMIT {1} OFFSET 3",
    "SELECT date_trunc({0}, ordered_at), sum(amount) FROM orders WHERE ordered_at > ({1})::date GROUP BY 1",
    "SELECT count(*) FROM orders WHERE note = {0} AND note LIKE {1} AND id = ANY (ARRAY[{2}, {0}, 1])",
    "SELECT CASE WHEN amount > {0} THEN {1} ELSE {2} END, count(*) FROM orders GROUP BY 1",
    "SELECT count(*) FILTER (WHERE amount > {0}), count(*) FILTER (WHERE amount > {1}), sum({2}) FROM orders",
    "SELECT max(n) FROM (SELECT sum(amount) OVER (ORDER BY id ROWS {0} PRECEDING) AS n FROM orders WHERE id > {1}) w",
    "SELECT p.category, count(*) FROM order_items JOIN products AS p ON p.id = product_id WHERE p.price > {0} "
    "AND quantity < {1} GROUP BY GROUPING SETS ((1), ({2}), ())",
    "SELECT percentile_cont({0}) WITHIN GROUP (ORDER BY amount) FROM orders WHERE ordered_at > now() - ({1})::interval",
    "SELECT id + {0}, ({1})::integer, - ({2}) FROM customers ORDER BY 1 FETCH FIRST ({1}) ROWS WITH TIES",
)
CONSTANTS = (
    *("0", "1", "2", "-1", "1.0", "1.00", "0.5", ".5", "1e2", "1000000000000", "1000000000001", "-1000000000001"),
    *("1000000000000.0", "0x1F", "1_000", "9223372036854775808", "'0'", "'1'", "'2'", "'1000000000000'", "''", "NULL"),
    *("'Berlin'", "'it''s'", "E'\\x41'", "U&'\\0041'", "'%a'", "'month'", "'day'", "'1 day'", "'2024-02-03'", "'now'"),
    *("true", "'t'", "B'101'", "'NaN'", "'ROWS'", "'integer'", "$1", "$2"),
)


@given(
    statements=st.lists(
        st.tuples(st.sampled_from(STATEMENTS), *[st.sampled_from(CONSTANTS)] * 3), min_size=2, max_size=4
    ),
    zones=st.lists(st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]), min_size=4, max_size=4),
)
@settings(max_examples=60)
def test_a_plan_is_the_same_whatever_was_planned_before(
    planner: Planner, statements: list[tuple[str, str, str, str]], zones: list[str]
) -> None:
    kernel, policy = planner.kernel, planner.policy
    requests = [
        Request(
            *(statement.format(*constants), ("pg_catalog", "public"), ("numeric", "text"), ("1.50", "1000000000000")),
            epsilon=Decimal(1),
            delta=Decimal("1e-9"),
            time_zone=zone,
            now="2025-06-15 12:00:00+00:00",
        )
        for (statement, *constants), zone in zip(statements, zones, strict=False)
    ]
    kept = [_encoded(request, policy, planner.catalog, kernel) for request in [*requests, *requests]]
    anew = []
    for request in requests:
        forget()
        anew.append(_encoded(request, policy, planner.catalog, None))

    assert kept == [*anew, *anew]


def _encoded(request: Request, policy: Policy, catalog: Catalog, kernel: Kernel | None) -> bytes:
    """What a worker says of a request."""
    try:
        made: Plan | NeedsInner | Refusal = plan(request, policy, catalog, kernel)
    except Refusal as refusal:
        made = refusal
    return PLANNED.encode(made)
