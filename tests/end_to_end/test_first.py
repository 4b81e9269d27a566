# ruff: noqa: E501  (a statement a line)
"""Statements with an inner query whose answer enters the rest, through a running proxy."""

from decimal import Decimal
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate
from tests.support.shop import RULES

BUSY = "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"
NESTED = "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders WHERE amount > (SELECT avg(amount) FROM orders))"
TOP = "(SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY n DESC LIMIT 2)"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def session(proxy: Noisegate, told: list[str]) -> psycopg.Connection:
    made = psycopg.connect(proxy.dsn(), autocommit=True)
    made.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    return made


def spent(told: list[str]) -> Decimal:
    """What the notices say that was paid."""
    return sum((Decimal(text.split("ε ")[1].split(" spent")[0]) for text in told if " spent" in text), Decimal(0))


def test_both_parts_together_cost_what_the_statement_may(session: psycopg.Connection, told: list[str]) -> None:
    session.execute("SET noisegate.epsilon = 0.5; SET noisegate.reuse = off")

    row = session.execute(BUSY).fetchone()

    assert row is not None and isinstance(row[0], int)
    assert spent(told) == Decimal("0.5")


def test_asked_again_both_parts_are_free(session: psycopg.Connection, told: list[str]) -> None:
    answers = {session.execute(BUSY).fetchone() for _ in range(2)}
    told.clear()
    answers.add(session.execute(BUSY).fetchone())

    assert len(answers) == 1
    assert spent(told) == 0


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT c.city, count(*), max(t.n) FROM customers AS c JOIN {TOP} AS t ON t.city = c.city GROUP BY 1",
        f"WITH t AS {TOP} SELECT c.city, count(*), max(t.n) FROM t JOIN customers AS c USING (city) GROUP BY 1",
        "SELECT city, count(*), 1 FROM customers WHERE city IN (SELECT city FROM customers GROUP BY 1 ORDER BY count(*) DESC LIMIT 2) GROUP BY 1",
    ],
)
def test_a_ranking_chooses_the_groups(session: psycopg.Connection, sql: str) -> None:
    assert len(session.execute(sql).fetchall()) == 2


def test_parameters_are_known_in_both_parts(session: psycopg.Connection) -> None:
    sql = "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) + %s FROM orders WHERE status = %s::status) AND amount < %s"
    for binary in (False, True):
        row = session.execute(sql, (Decimal("1.5"), "paid", 400), binary=binary, prepare=binary).fetchone()
        assert row is not None and row[0] > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders AS o WHERE amount > (SELECT avg(amount) FROM orders AS p WHERE p.status = o.status)",
        "SELECT avg(i.quantity) FROM order_items AS i, products AS p WHERE p.id = i.product_id AND i.quantity < (SELECT 0.8 * avg(quantity) FROM order_items WHERE order_items.product_id = p.id)",
        "SELECT city, count(*) FILTER (WHERE 3 < (SELECT count(*) FROM customers AS d WHERE d.city = c.city AND d.is_vip)) FROM customers AS c GROUP BY 1",
    ],
)
def test_an_inner_query_may_depend_on_the_row_around_it_by_equality(session: psycopg.Connection, sql: str) -> None:
    assert session.execute(sql).fetchall()


def test_nothing_is_paid_for_an_inner_query_when_the_rest_cannot_be_paid(shop: RealDatabase, tmp_path: Path) -> None:
    rules = RULES.replace("budget: {epsilon: 1000, delta: 1e-6}", "budget: {epsilon: 0.9}").replace("epsilon: 500", "")
    left = "SELECT epsilon_left FROM noisegate.budget WHERE account = 'yours'"
    with (
        noisegate(tmp_path, shop.reader_dsn, rules=rules) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        for sql in (NESTED, BUSY):
            with pytest.raises(psycopg.errors.Error, match="would exceed your privacy budget") as refused:
                session.execute(sql)
        untouched = session.execute(left).fetchone()
        session.execute("SET noisegate.epsilon = 0.8")
        session.execute(BUSY)
        (again,) = {session.execute(BUSY).fetchone() for _ in range(2)}

    assert "ε 1 is needed, and ε 0.9 of 0.9 is left" in (refused.value.diag.message_detail or "")
    assert untouched == (Decimal("0.9"),)
    assert again is not None


def test_with_an_inner_query_four_plans_are_made(shop: RealDatabase, tmp_path: Path) -> None:
    """Of the whole, of the inner query, and of the whole with a stand-in for its answer and then with that itself."""
    with noisegate(tmp_path, shop.reader_dsn, arguments=("--metrics-port", "0")) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            session.execute(BUSY)
        page = f"http://127.0.0.1:{running.wait_for('operator_port')['port']}/metrics"
        text = urlopen(page, timeout=30).read().decode()

    assert 'noisegate_stage_seconds_count{stage="plan"} 4.0' in text


def test_in_a_transaction_a_cursor_and_a_copy(session: psycopg.Connection) -> None:
    with session.transaction():
        with session.cursor(name="c") as cursor:
            assert len(cursor.execute(BUSY).fetchall()) == 1
        with session.cursor().copy(f"COPY ({BUSY}) TO STDOUT") as copy:
            assert len(list(copy.rows())) == 1
    session.execute(f"PREPARE p AS {BUSY}")
    assert len(session.execute("EXECUTE p").fetchall()) == 1


def test_a_list_of_values_is_rows_that_are_known(session: psycopg.Connection, told: list[str]) -> None:
    session.execute("SET noisegate.epsilon = 0.25; SET noisegate.reuse = off")

    rows = session.execute(
        "SELECT label, count(*) FROM customers JOIN (VALUES ('Berlin', 'big'), ('Lyon', 'big'), ('Porto', 'small')) AS v(city, label) USING (city) GROUP BY 1 ORDER BY 1"
    ).fetchall()

    assert [label for label, _ in rows] == ["big", "small"]
    assert spent(told) == Decimal("0.25")


def test_a_calendar_has_all_its_days(session: psycopg.Connection) -> None:
    days = "generate_series(timestamptz '2025-01-01', '2025-01-05', '1 day') AS d"
    sql = f"SELECT d, count(o.id) FROM {days} LEFT JOIN orders AS o ON date_trunc('day', o.ordered_at) = d GROUP BY 1"

    assert len(session.execute(sql).fetchall()) == 5


def test_public_rows_cost_nothing_before(session: psycopg.Connection, told: list[str]) -> None:
    session.execute("SET noisegate.epsilon = 0.25; SET noisegate.reuse = off")
    session.execute(
        "SELECT count(*) FROM order_items WHERE product_id IN (SELECT id FROM products WHERE price > (SELECT avg(price) FROM products))"
    )

    assert spent(told) == Decimal("0.25")


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        (
            "SELECT string_agg(note, ',') FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
            "42501",
        ),
        ("SELECT * FROM orders WHERE amount > (SELECT avg(amount) FROM orders)", "42501"),
        ("SELECT count(*) FROM orders WHERE amount > (SELECT amount FROM orders LIMIT 1)", "42501"),
        ("SELECT count(*) FROM orders WHERE amount IN (SELECT array_agg(city) FROM customers)", "42883"),
        (
            "SELECT count(*) FROM orders AS o WHERE amount > (SELECT avg(amount) FROM orders AS p WHERE p.amount < o.amount)",
            "0A000",
        ),
    ],
)
def test_what_is_refused_anyway_is_refused_before_anything_is_paid(
    session: psycopg.Connection, told: list[str], sql: str, sqlstate: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql)

    assert (caught.value.sqlstate, told) == (sqlstate, [])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT o.id FROM orders AS o, (SELECT avg(amount) AS low FROM orders) AS a, "
        "(SELECT avg(amount) + 9 AS high FROM orders) AS b WHERE o.amount > a.low AND o.amount < b.high",
        "SELECT o.id FROM orders AS o WHERE o.amount > "
        "(SELECT avg(amount) FROM orders WHERE amount > (SELECT avg(amount) FROM orders WHERE id < 7001))",
    ],
    ids=["beside each other", "one inside the other"],
)
def test_of_two_inner_queries_neither_is_paid_when_the_rest_is_refused(proxy: Noisegate, sql: str) -> None:
    before = proxy.ledger_length()

    words = "rows of a protected table cannot be returned"
    with psycopg.connect(proxy.dsn(), autocommit=True) as session, pytest.raises(psycopg.Error, match=words):
        session.execute(sql)

    assert proxy.ledger_length() == before


def test_explain_shows_what_is_answered_first(session: psycopg.Connection, told: list[str]) -> None:
    text = "\n".join(str(row[0]) for row in session.execute(f"EXPLAIN {BUSY}").fetchall())

    assert "answered first" in text and "Block 2" in text
    assert told == []


def test_explain_answers_no_inner_query_however_deep(session: psycopg.Connection) -> None:
    inner = (
        "SELECT avg(amount) FROM orders WHERE amount < (SELECT 321.75 + avg(amount) FROM orders WHERE amount < 123.5)"
    )
    spent = "SELECT epsilon_spent FROM noisegate.budget WHERE account = 'yours'"
    session.execute("SET noisegate.epsilon = 1")
    before = session.execute(spent).fetchone()

    lines = session.execute(f"EXPLAIN SELECT count(*) FROM orders WHERE amount > ({inner})").fetchall()
    text = "\n".join(str(line) for (line,) in lines)

    assert session.execute(spent).fetchone() == before
    assert text.count("answered first: the blocks below") == 2 and "Block 3" in text
    assert "Private answer  (epsilon=1)" in text


def test_more_than_one_row_where_one_value_is_asked_is_postgresqls_own_error(session: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.CardinalityViolation):
        session.execute("SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders GROUP BY status)")


def test_groups_of_a_public_table_are_listed_from_its_rows(session: psycopg.Connection, told: list[str]) -> None:
    sql = "SELECT p.category, count(*) FROM order_items AS i JOIN products AS p ON p.id = i.product_id GROUP BY 1"
    session.execute("SET noisegate.epsilon = 0.25; SET noisegate.empty_groups = show")

    answered = {category for category, _ in session.execute(sql).fetchall()}
    planned = "\n".join(str(row[0]) for row in session.execute(f"EXPLAIN {sql}").fetchall())

    assert answered == {category for (category,) in session.execute("SELECT DISTINCT category FROM products")}
    assert f"groups: {len(answered)}" in planned
    assert not any("groups of each unit" in notice for notice in told)


def test_what_others_were_answered_first_cannot_be_guessed(shop: RealDatabase, tmp_path: Path) -> None:
    """A constant beside an own answer is as cheap if it is what somebody else's answer was."""
    above = "SELECT count(*) FROM orders WHERE amount > (SELECT {} FROM orders)"
    told: list[str] = []
    with noisegate(tmp_path, shop.dsn, rules=RULES) as proxy:
        with psycopg.connect(proxy.dsn("ada"), autocommit=True) as ada:
            ada.execute("SET noisegate.epsilon = 0.5")
            ada.execute(above.format("round(avg(amount))"))
            ada.execute("SET noisegate.epsilon = 0.01")
            row = ada.execute("SELECT round(avg(amount)) FROM orders").fetchone()
        with psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob:
            bob.execute("SET noisegate.epsilon = 0.2; SET noisegate.reuse = off")
            bob.execute("SELECT avg(amount) FROM orders")
            bob.execute("SET noisegate.reuse = on")
            bob.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
            assert row is not None
            for guessed in (row[0], row[0] + 1000):
                told.clear()
                bob.execute(above.format(f"{guessed} + 0 * round(avg(amount))"))
                assert spent(told) == Decimal("0.1"), guessed
