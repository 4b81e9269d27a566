# ruff: noqa: E501  (a statement a line)
"""Subqueries that depend on their row, written as one grouped query: to PostgreSQL it is the same."""

from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest

from rules.bind.correlated_subquery import Correlated, known_or_needed
from rules.bind.inner_answers import InnerAnswer
from rules.planner.find_blocks import context_of, find_blocks
from rules.planner.inner_queries import decorrelate
from rules.planner.plan import NeedsInner, Request
from rules.planner.planner import plan
from rules.refusal import NotAllowed, NotSupported
from rules.sql.grammar import deparse, parse
from rules.sql.lower import lowered
from rules.sql.tree import made_canonical
from tests.conftest import RealDatabase
from tests.planner.planned import Planner

CORRELATED = [
    "SELECT p.name, (SELECT count(*) FROM order_items AS i WHERE i.product_id = p.id) FROM products AS p ORDER BY 1",
    "SELECT p.id, 1 + (SELECT sum(quantity) FROM order_items WHERE product_id = p.id AND quantity > 2)::float FROM products AS p ORDER BY 1",
    "SELECT p.id, (SELECT avg(quantity) FROM order_items WHERE p.id = product_id) AS a FROM products AS p WHERE price > 20 ORDER BY 1",
    "SELECT c.city, (SELECT count(*) FROM orders AS o JOIN customers AS k ON k.id = o.customer_id WHERE k.city = c.city AND k.is_vip = c.vip) FROM (SELECT city, is_vip AS vip FROM customers GROUP BY 1, 2) AS c ORDER BY 1, 2",
    "SELECT d::date, (SELECT count(*) FROM orders WHERE ordered_at::date = d::date) FROM generate_series('2025-01-01'::date, '2025-01-09', '1 day') AS d ORDER BY 1",
    "SELECT p.id, (SELECT sum(quantity) FROM order_items WHERE product_id = p.id AND product_id = p.id) FROM products AS p ORDER BY 1",
    "SELECT s, (SELECT max(amount) FROM orders WHERE status = s), (SELECT count(id) FROM orders WHERE s = status AND amount < 50) FROM unnest('{open,paid}'::status[]) AS u(s) ORDER BY 1",
]

ITEMS = [
    "coalesce(sum(amount), 0)",
    "coalesce(avg(amount), -1)::numeric(12, 2)",
    "sum(amount) IS NULL",
    "CASE WHEN avg(amount) > 10 THEN 'much' ELSE 'little' END",
    "greatest(max(amount), 5)",
    "concat('sum: ', sum(amount))",
    "round(avg(amount), 2)",
    "regr_count(amount, amount)",
    "count(*) + 1",
    "(count(*) || ' orders')::varchar(20)",
    "sum(amount) / nullif(count(*), 0)",
]
OF_NO_ROWS = "SELECT c, (SELECT {} FROM orders JOIN customers AS k ON k.id = customer_id WHERE city = c) FROM unnest('{{Graz,Rome}}'::text[]) AS u(c) ORDER BY 1"
CORRELATED += [OF_NO_ROWS.format(item) for item in ITEMS]


def rewritten(planner: Planner, sql: str) -> str:
    (piece,) = parse(sql)
    tree = made_canonical(piece.tree)
    world = context_of(Request(sql, ("pg_catalog", "public")), planner.policy, planner.catalog)
    for _ in range(5):
        syntax = lowered(tree)
        match known_or_needed(find_blocks)(syntax.query, world):
            case Correlated() as found:
                decorrelate(tree, syntax.selects[found.select], found.links)
            case _:
                break
    return deparse(tree)


@pytest.mark.parametrize("sql", CORRELATED)
def test_the_rows_and_names_are_the_same(planner: Planner, shop: RealDatabase, sql: str) -> None:
    text = rewritten(planner, sql)

    assert "_ng_by" in text
    with psycopg.connect(shop.dsn) as connection:
        one, other = connection.execute(sql), connection.execute(text)
        assert [column.name for column in one.description or ()] == [column.name for column in other.description or ()]
        assert one.fetchall() == other.fetchall()


@pytest.mark.parametrize(
    ("item", "test"),
    [
        ("coalesce(sum(price), 70)", "= 70"),
        ("count(*) - 1", "< 0"),
        ("round(avg(price), 1)", "IS NULL"),
        ("max(price) IS NULL", ""),
        ("CASE WHEN min(price) > 0 THEN 'sold' ELSE 'unsold' END", "= 'unsold'"),
    ],
)
def test_protected_rows_meet_what_a_subquery_gives_of_no_rows(
    planner: Planner, shop: RealDatabase, item: str, test: str
) -> None:
    """Of products there are thirty, and Berlin has six letters."""
    sql = f"SELECT count(*) FROM customers WHERE (SELECT {item} FROM products WHERE id = length(city) + 25) {test}"
    request = Request(sql, ("pg_catalog", "public"), epsilon=Decimal(1))
    needed = plan(request, planner.policy, planner.catalog)
    assert isinstance(needed, NeedsInner)
    with psycopg.connect(shop.dsn) as connection:
        shown = connection.execute(f"SELECT a::text, b::text, c::text FROM ({needed.text}) AS t(a, b, c)").fetchall()
        ((kind,),) = connection.execute(f"SELECT pg_typeof(c) FROM ({needed.text}) AS t(a, b, c) LIMIT 1").fetchall()
    answer = InnerAnswer(needed.inner, ("a", "b", "c"), ("boolean", "integer", kind), tuple(shown))

    made = planner.whole(replace(request, released=(answer,)))

    assert planner.numbers(made.blocks[0]) == [planner.truth(sql)[0][0]]


@pytest.mark.parametrize("sql", CORRELATED)
def test_each_subquery_is_one_block(planner: Planner, sql: str) -> None:
    assert len(planner.plan(sql).blocks) == sql.count("(SELECT")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT p.name, (SELECT count(*) FROM order_items AS i WHERE i.product_id > p.id) FROM products AS p",
        "SELECT p.name, (SELECT count(*) FROM order_items AS i WHERE i.product_id = p.id OR p.id = 3) FROM products AS p",
        "SELECT p.name, (SELECT count(*) + p.id FROM order_items AS i WHERE i.product_id = p.id) FROM products AS p",
        "SELECT p.name, (SELECT count(*) + (SELECT 1) FROM order_items AS i WHERE i.product_id = p.id) FROM products AS p",
        "SELECT p.name, (SELECT count(*) FROM order_items AS i WHERE i.product_id = p.id LIMIT 1) FROM products AS p",
    ],
)
def test_other_dependences_are_refused(planner: Planner, sql: str) -> None:
    with pytest.raises(NotSupported):
        planner.plan(sql)


@pytest.mark.parametrize("join", ["LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("where", ["", " WHERE i.product_id = p.id"])
def test_answers_stand_in_conditions_of_outer_joins(planner: Planner, join: str, where: str) -> None:
    on = f"p.id = q.id AND q.price < (SELECT count(*) FROM order_items AS i{where})"
    made = planner.plan(f"SELECT p.id, q.id FROM products AS p {join} JOIN products AS q ON {on}")

    assert len(made.blocks) == 1


@pytest.mark.parametrize("test", ["EXISTS (SELECT FROM orders)", "p.id IN (SELECT id FROM orders)"])
def test_rows_do_not_stand_in_conditions_of_outer_joins(planner: Planner, test: str) -> None:
    with pytest.raises(NotAllowed, match="the subquery would return protected rows"):
        planner.plan(f"SELECT p.id, q.id FROM products AS p LEFT JOIN products AS q ON p.id = q.id AND {test}")


@pytest.mark.parametrize("aggregate", ["count(*)", "avg(amount)"])
def test_what_is_tied_by_the_unit_would_be_of_single_units(planner: Planner, aggregate: str) -> None:
    """It selects one aggregate: what is wrong with it is whose numbers these are."""
    inner = f"(SELECT {aggregate} FROM orders AS o WHERE o.customer_id = p.id)"
    for text in (f"SELECT p.name, {inner} FROM products AS p", f"SELECT p.name FROM products AS p WHERE {inner} > 3"):
        with pytest.raises(NotAllowed, match="would show numbers of single units") as refused:
            planner.plan(text)
        assert refused.value.position == text.index("orders") + 1
