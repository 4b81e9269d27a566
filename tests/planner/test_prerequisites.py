# ruff: noqa: E501  (a statement a line)
"""Inner queries that are answered first: which they are, what is asked, and what their answers become."""

from decimal import Decimal

import pytest

from rules.bind.inner_answers import InnerAnswer
from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.refusal import NotSupported
from tests.planner.planned import Planner, whole

Rows = tuple[tuple[str | None, ...], ...]


def request(sql: str, *released: InnerAnswer) -> Request:
    return Request(
        sql, ("pg_catalog", "public"), epsilon=Decimal(1), delta=Decimal("1e-9"), released=released,
        now="2025-06-15 12:00:00+00:00",
    )  # fmt: skip


def first(planner: Planner, sql: str) -> NeedsInner:
    made = plan(request(sql), planner.policy, planner.catalog)
    assert isinstance(made, NeedsInner)
    return made


def planned(planner: Planner, sql: str, names: tuple[str, ...], types: tuple[str, ...], rows: Rows) -> Plan:
    """The plan, once the inner query has given these rows."""
    released = InnerAnswer(first(planner, sql).inner, names, types, rows)
    return whole(plan(request(sql, released), planner.policy, planner.catalog))


@pytest.mark.parametrize(
    ("sql", "inner"),
    [
        (
            "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
            "SELECT (SELECT avg(amount) FROM orders)",
        ),
        (
            "SELECT count(*) FROM customers WHERE city IN (SELECT city FROM customers GROUP BY 1 ORDER BY count(*) DESC LIMIT 3)",
            "SELECT city FROM customers GROUP BY 1 ORDER BY count(*) DESC LIMIT 3",
        ),
        (
            "SELECT count(*) FROM customers WHERE EXISTS (SELECT 1 FROM orders HAVING count(*) > 5)",
            "SELECT EXISTS (SELECT 1 FROM orders HAVING count(*) > 5)",
        ),
        (
            "WITH a AS (SELECT count(*) AS n FROM orders), b AS (SELECT n FROM a) SELECT count(*) FROM orders CROSS JOIN b",
            "WITH a AS (SELECT count(*) AS n FROM orders) SELECT n FROM a",
        ),
        (
            "WITH a AS (SELECT 1 AS n) SELECT count(*) FROM orders, (WITH b AS (SELECT n FROM a) SELECT n FROM b) AS c",
            'WITH a AS (SELECT 1 AS n) SELECT * FROM (WITH b AS (SELECT n FROM a) SELECT n FROM b) "inner"',
        ),
        (
            "SELECT sum(CASE WHEN amount > (SELECT count(*) FROM customers UNION SELECT 5) THEN 1 END) FROM orders",
            "SELECT (SELECT count(*) FROM customers UNION SELECT 5)",
        ),
        (
            "SELECT count(*) FROM customers WHERE city IN ((SELECT city FROM customers GROUP BY 1 UNION SELECT 'a') EXCEPT SELECT 'b')",
            "(SELECT city FROM customers GROUP BY 1 UNION SELECT 'a') EXCEPT SELECT 'b'",
        ),
    ],
)  # fmt: skip
def test_an_inner_query_is_a_statement_of_its_own(planner: Planner, sql: str, inner: str) -> None:
    assert first(planner, sql).text.replace('""', "") == inner


def test_each_answer_keeps_its_place_where_a_subquery_becomes_a_query_in_from(planner: Planner) -> None:
    """The correlated subquery is rewritten only when the others are known, and their SELECTs have other numbers then."""
    each = "SELECT p.name, (SELECT count(*) FROM order_items AS i WHERE i.product_id = p.id) FROM products AS p"
    between = "amount > (SELECT avg(amount) FROM orders) AND amount < (SELECT avg(amount) * 2 FROM orders)"
    sql = f"{each}, (SELECT count(*) FROM orders WHERE {between}) AS t"
    answers = {"(SELECT avg(amount) FROM orders)": "111", "(SELECT avg(amount) * 2 FROM orders)": "222"}
    known: list[InnerAnswer] = []
    while isinstance(made := plan(request(sql, *known), planner.policy, planner.catalog), NeedsInner):
        value = "1" if made.inner.use == "groups" else answers.pop(made.text.removeprefix("SELECT "))
        known.append(InnerAnswer(made.inner, ("avg",), ("numeric",), ((value,),)))

    assert not answers
    (text,) = (planner.sql_of(block) for block in made.blocks if "order_items" not in planner.sql_of(block))
    assert """"amount" > '111'::numeric""" in text
    assert """"amount" < '222'::numeric""" in text


@pytest.mark.parametrize(
    ("sql", "written", "type_name", "rows"),
    [
        ("SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)", "SELECT count(*) FROM orders WHERE amount > 12.5", "numeric", (("12.5",),)),
        ("SELECT city, count(*) FROM customers WHERE city IN (SELECT city FROM customers GROUP BY 1) GROUP BY 1", "SELECT city, count(*) FROM customers WHERE city IN ('Berlin', 'Lyon') GROUP BY 1", "text", (("Lyon",), ("Berlin",))),
        ("SELECT status, count(*) FROM orders WHERE status NOT IN (SELECT status FROM orders GROUP BY 1 LIMIT 1) GROUP BY 1", "SELECT status, count(*) FROM orders WHERE status NOT IN ('paid') GROUP BY 1", "status", (("paid",),)),
        ("SELECT count(*) FROM orders WHERE EXISTS (SELECT FROM customers HAVING count(*) > 3)", "SELECT count(*) FROM orders", "boolean", (("true",),)),
        ("SELECT count(*) FROM orders WHERE amount > 1 OR NOT EXISTS (SELECT FROM customers HAVING count(*) > 3)", "SELECT count(*) FROM orders WHERE amount > 1 OR NOT true", "boolean", (("true",),)),
    ],
)  # fmt: skip
def test_an_answer_enters_as_if_the_analyst_had_written_it(
    planner: Planner, sql: str, written: str, type_name: str, rows: Rows
) -> None:
    (block,) = planned(planner, sql, ("x",), (type_name,), rows).blocks
    (other,) = planner.plan(written).blocks

    assert (planner.sql_of(block), block.groups, block.measures) == (
        planner.sql_of(other),
        other.groups,
        other.measures,
    )


_OF_CITY = "(SELECT count(*) FROM orders AS o JOIN customers AS k ON k.id = o.customer_id WHERE k.city = c.city)"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {_OF_CITY} AS orders, count(*) FROM customers AS c GROUP BY {_OF_CITY}",
        f"SELECT {_OF_CITY} + 1, is_vip, count(*) FROM customers AS c GROUP BY {_OF_CITY}, is_vip",
        f"SELECT {_OF_CITY}, count(*) FROM customers AS c GROUP BY ROLLUP ({_OF_CITY}, is_vip)",
        f"SELECT count(*) FROM customers AS c GROUP BY GROUPING SETS (({_OF_CITY}), ())",
    ],
)
def test_a_subquery_that_is_a_key_is_one_wherever_it_stands(planner: Planner, sql: str) -> None:
    """Its SELECT has another number in each place."""
    rows = (("true", "Berlin", "7"), ("true", "Lyon", "9"), ("false", None, "0"))
    made = planned(planner, sql, ("found", "city", "count"), ("boolean", "text", "bigint"), rows)

    assert [len(block.keys) for block in made.blocks] == [1 + ("is_vip" in sql)]
    assert "SELECT count" not in made.outer_with_parameters()


def test_a_guessed_constant_is_another_question_than_an_answer(planner: Planner) -> None:
    """Else the age of an answer would tell what others were given."""
    inner = first(planner, "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)").inner
    sql = "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"
    known = InnerAnswer(inner, ("avg",), ("numeric",), (("12.5",),), "the blocks that it was made of")

    (block,) = whole(plan(request(sql, known), planner.policy, planner.catalog)).blocks
    (guess,) = planner.plan("SELECT count(*) FROM orders WHERE amount > 12.5").blocks

    assert planner.sql_of(block) == planner.sql_of(guess)
    assert block.canonical != guess.canonical


def test_a_block_that_is_answered_first_is_not_asked_again(planner: Planner) -> None:
    sql = "WITH top AS (SELECT city, count(*) AS n FROM customers GROUP BY city) SELECT c.segment, count(*) FROM customers AS c JOIN top ON top.city = c.city WHERE top.n > 3 GROUP BY 1"

    made = planned(planner, sql, ("city", "n"), ("text", "bigint"), (("Lyon", "12"), ("Berlin", "7")))

    assert len(made.blocks) == 1
    assert "top" not in made.outer_with_parameters()


def test_groups_are_the_combinations_that_an_answer_has(planner: Planner) -> None:
    sql = "SELECT c.city, top.n, count(*) FROM customers AS c JOIN (SELECT city, count(*) AS n FROM customers GROUP BY 1) AS top ON top.city = c.city GROUP BY 1, 2"

    (block,) = planned(planner, sql, ("city", "n"), ("text", "bigint"), (("Lyon", "12"), ("Berlin", "7"))).blocks

    assert isinstance(block.groups, PublicGroups)
    assert block.groups.rows == (("Berlin", "7"), ("Lyon", "12"))


def test_rows_that_an_answer_has_twice_multiply_a_units_rows(planner: Planner) -> None:
    sql = "SELECT count(*) FROM customers AS c JOIN (SELECT city AS s, count(*) FROM customers GROUP BY city, segment) AS r ON r.s = c.city"

    once = planned(planner, sql, ("s", "count"), ("text", "bigint"), (("Lyon", "1"), ("Berlin", "2")))
    twice = planned(planner, sql.replace("FROM customers AS c", "FROM customers AS c JOIN orders AS o ON o.customer_id = c.id"), ("s", "count"), ("text", "bigint"), (("Lyon", "1"), ("Lyon", "2")))  # fmt: skip

    assert once.blocks[0].statement.rows_per_unit == 1
    assert twice.blocks[0].statement.rows_per_unit == 2 * 40
    assert once.notices == twice.notices == ()


def test_values_of_a_type_that_cannot_be_bounded_are_refused(planner: Planner) -> None:
    sql = "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"
    with pytest.raises(NotSupported, match="has type json"):
        planned(planner, sql, ("x",), ("json",), (("{}",),))


def test_an_interval_with_fields_is_one_like_any_other(planner: Planner) -> None:
    """What it comes with has been cut to them."""
    sql = "SELECT count(*) FROM orders WHERE ordered_at > timestamptz '2025-01-01 00:00:00+00' - (SELECT interval '1' month)"
    written = ("interval", "interval month", "interval(0)", "interval day to second(2)")
    plans = [planned(planner, sql, ("interval",), (each,), (("1 mon",),)) for each in written]

    assert all(made == plans[0] for made in plans)
    with pytest.raises(NotSupported, match=r"type interval month\[\]"):
        planned(planner, sql, ("interval",), ("interval month[]",), (("{}",),))


@pytest.mark.parametrize(
    ("condition", "depends"),
    [
        ("p.price > extract(day FROM now())", True),
        ("p.price > extract(day FROM current_date)", True),
        ("p.price > 15", False),
        ("p.name <> 'now()'", False),
        ("i.order_id IN (SELECT id FROM orders WHERE ordered_at < now())", True),
    ],
)
def test_a_list_says_whether_the_clock_stands_in_it(planner: Planner, condition: str, depends: bool) -> None:
    tables = "order_items AS i JOIN products AS p ON p.id = i.product_id"

    needed = first(planner, f"SELECT p.category, count(*) FROM {tables} WHERE {condition} GROUP BY 1")

    assert (needed.inner.use, needed.depends_on_time) == ("groups", depends)
