"""Virtual relations in a statement: rows of an array in their place, under the same names."""

from dataclasses import replace

import pytest

from rules.refusal import NotSupported
from tests.planner.planned import Planner

BUDGET = "pg_catalog.unnest($1::pg_catalog.text[]::noisegate.budget[])"


@pytest.mark.parametrize(
    ("sql", "outer"),
    [
        ("SELECT account FROM noisegate.budget", f"SELECT account FROM {BUDGET} budget"),
        ("SELECT b FROM noisegate.budget AS b (a)", f"SELECT b FROM {BUDGET} b(a)"),
        (
            'SELECT "shop"."noisegate"."budget"."epsilon" FROM shop.noisegate.budget',
            f"SELECT budget.epsilon FROM {BUDGET} budget",
        ),
        ("SELECT noisegate.budget.* FROM noisegate.budget", f"SELECT budget.* FROM {BUDGET} budget"),
        (
            "SELECT 1 FROM noisegate.budget a, noisegate.budget b",
            f"SELECT 1 FROM {BUDGET} a, {BUDGET} b",
        ),
        (
            "WITH budget AS (SELECT * FROM noisegate.budget) TABLE budget",
            f"WITH budget AS (SELECT * FROM {BUDGET} budget) SELECT * FROM budget",
        ),
        (
            "DECLARE c CURSOR FOR SELECT account FROM noisegate.budget",
            f"DECLARE c CURSOR FOR SELECT account FROM {BUDGET} budget",
        ),
    ],
)
def test_a_virtual_relation_becomes_an_array_and_is_free(planner: Planner, sql: str, outer: str) -> None:
    plan = planner.plan(sql)

    assert plan.outer_with_parameters() == outer
    assert not plan.blocks
    assert plan.epsilon == 0
    assert plan.system_views == ("budget",)


def test_its_hole_comes_after_the_columns_of_private_blocks(planner: Planner) -> None:
    plan = planner.plan("SELECT city, count(*), (SELECT max(epsilon) FROM noisegate.budget) FROM customers GROUP BY 1")

    assert len(plan.blocks) == 1
    assert plan.system_views == ("budget",)
    # After city, its count, and the count as it is shown.
    assert "$4::pg_catalog.text[]::noisegate.budget[]" in plan.outer_with_parameters()


def test_one_that_was_only_read_by_a_cte_that_is_gone_is_not_told(planner: Planner) -> None:
    plan = planner.plan("WITH unused AS (TABLE noisegate.budget) SELECT count(*) FROM customers")

    assert plan.system_views == ()


def test_a_probe_of_one_has_its_columns(planner: Planner) -> None:
    plan = planner.plan("SELECT * FROM noisegate.budget LIMIT 0")

    assert plan.system_views == ("budget",)


def test_it_is_not_mixed_with_protected_rows(planner: Planner) -> None:
    refusal = planner.refusal("SELECT count(*) FROM customers, noisegate.budget")

    assert isinstance(refusal, NotSupported)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH customers AS (SELECT * FROM customers) SELECT * FROM customers LIMIT 0",
        "SELECT public.customers.id FROM public.customers LIMIT 0",
    ],
)
def test_a_probe_leaves_no_protected_table(planner: Planner, sql: str) -> None:
    outer = planner.plan(sql).outer_with_parameters()

    assert "public.customers" not in outer
    assert outer.count("WHERE false") == 1


def test_a_cte_hides_a_table_only_where_it_is_in_scope(planner: Planner) -> None:
    plan = planner.plan("SELECT (WITH customers AS (SELECT 1) SELECT 1), count(*) FROM customers")

    assert len(plan.blocks) == 1


@pytest.mark.parametrize(
    "private",
    [
        "SELECT count(*) FROM customers",
        "SELECT city, avg(amount) FROM customers JOIN orders ON customer_id = customers.id GROUP BY city",
        "SELECT name, count(*) FROM customers GROUP BY name",
    ],
)
def test_what_is_asked_inside_is_the_same_with_it_and_without(planner: Planner, private: str) -> None:
    beside = planner.plan(
        f"SELECT * FROM ({private}) AS answer, noisegate.budget, noisegate.ledger AS l, noisegate.columns"
    )

    alone = planner.plan(private).blocks
    assert [replace(block, shown=()) for block in beside.blocks] == [replace(block, shown=()) for block in alone]
    assert beside.system_views == ("budget", "ledger", "columns")
