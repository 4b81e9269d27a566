"""Public rows that are compared with an answer: the twin computes them, and nobody tries to bind them as a relation."""

from unittest.mock import patch

import pytest

from rules.bind import query as bind_queries
from rules.bind.answers_inside import has_answer
from rules.bind.state import Ctes
from rules.bind.where import bind_where
from rules.planner.find_blocks import context_of
from rules.planner.plan import Plan, Request
from rules.sql import syntax as s
from rules.sql.grammar import parse
from rules.sql.lower import lowered
from rules.sql.tree import made_canonical
from tests.planner.planned import Planner

ANSWER = "(SELECT avg(amount) FROM orders)"


def tells(planner: Planner, sql: str) -> bool:
    query = lowered(made_canonical(parse(sql)[0].tree)).query
    assert isinstance(query, s.Select)
    known = {cte.name: (cte, Ctes()) for cte in query.ctes}
    return has_answer(
        query, context_of(Request(sql, ("pg_catalog", "public")), planner.policy, planner.catalog), Ctes(known)
    )


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT name FROM products WHERE price > {ANSWER}",
        f"SELECT name, price - 2 * {ANSWER} FROM products",
        f"SELECT name FROM products WHERE id IN (SELECT id FROM products WHERE price > {ANSWER})",
        f"SELECT name FROM products WHERE EXISTS (SELECT 1 FROM products WHERE id IN (SELECT id FROM products WHERE price > {ANSWER}))",  # noqa: E501
        "SELECT name FROM products WHERE price > (SELECT max(amount) FROM public.orders JOIN customers ON true)",
        "SELECT name FROM products AS p WHERE 3 < (SELECT count(*) FROM order_items AS i WHERE i.product_id = p.id)",
    ],
)
def test_it_is_told_at_any_depth(planner: Planner, sql: str) -> None:
    assert tells(planner, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM products WHERE price > (SELECT avg(price) FROM products)",
        "WITH orders AS (SELECT 1 AS amount) SELECT name FROM products WHERE price > (SELECT avg(amount) FROM orders)",
        "SELECT name FROM products WHERE price > (WITH orders AS (SELECT 1 AS amount) SELECT avg(amount) FROM orders)",
        "SELECT name FROM products WHERE price > (SELECT avg(amount) FROM other.orders)",
        "SELECT name FROM products WHERE id IN (SELECT product_id FROM order_items)",
        f"SELECT name FROM products WHERE id IN (SELECT id FROM customers WHERE id > {ANSWER})",
    ],
)
def test_what_is_not_sure_is_not_told(planner: Planner, sql: str) -> None:
    assert not tells(planner, sql)


def test_only_the_rows_of_the_answer_are_bound(planner: Planner) -> None:
    """Conditions over public rows were read once for each query around them, with all that stands below."""
    sql = f"SELECT id FROM products WHERE price > {ANSWER}"
    for _ in range(6):
        sql = f"SELECT id FROM products WHERE price > 1 AND id IN ({sql})"

    with patch.object(bind_queries, "bind_where", side_effect=bind_where) as bound:
        made = planner.plan(sql)

    assert isinstance(made, Plan)
    assert {call.args[1].source for call in bound.call_args_list} == {s.TableSource("orders")}
