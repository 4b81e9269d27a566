"""EXPLAIN of a private statement shows what it would cost and reads, and costs nothing itself."""

import re
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
import yaml
from psycopg.sql import Literal

from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate


@pytest.fixture
def session(proxy: Noisegate) -> psycopg.Connection:
    return psycopg.connect(proxy.dsn(), autocommit=True)


def lines(session: psycopg.Connection, sql: str) -> str:
    return "\n".join(str(row[0]) for row in session.execute(sql).fetchall())


def test_a_private_statement_is_explained_and_nothing_is_spent(session: psycopg.Connection) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

    text = lines(session, "EXPLAIN SELECT status, count(*), avg(amount) FROM orders GROUP BY status")

    assert "Private answer  (epsilon=" in text
    for words in ("tables: orders", "unit: customers.id", "rows per unit: 40", "sensitivity 40", "inner SQL: WITH"):
        assert words in text
    assert told == []


def test_a_choice_is_explained_in_rows_and_by_the_statement_that_it_is_made_from(session: psycopg.Connection) -> None:
    median = "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)"

    alone = " ".join(lines(session, f"EXPLAIN SELECT {median} FROM orders").split())
    both = " ".join(lines(session, f"EXPLAIN SELECT {median}, max(ordered_at), count(*) FROM orders").split())

    assert re.search(r"sensitivity 40, epsilon \d+, one of \d+ candidates", alone)
    assert "histogram SQL: WITH" in alone
    assert "inner SQL" not in alone
    for words in ("inner SQL: WITH", "histogram SQL: WITH", "histogram SQL 2: WITH"):
        assert words in both


def test_the_json_form_is_json(session: psycopg.Connection) -> None:
    cursor = session.execute("EXPLAIN (FORMAT JSON) SELECT count(*) FROM orders")
    assert cursor.description is not None
    assert (cursor.description[0].name, cursor.description[0].type_code) == ("QUERY PLAN", 114)

    row = cursor.fetchone()

    assert row is not None
    (whole,) = row[0]
    (block,) = whole["Plan"]["Plans"]
    assert block["tables"] == ["orders"]


def test_the_yaml_form_says_what_the_json_form_says(session: psycopg.Connection) -> None:
    sql = "SELECT status, count(*), avg(amount) FROM orders WHERE note = 'it''s: \"\\ é' GROUP BY status"
    cursor = session.execute(f"EXPLAIN (FORMAT YAML) {sql}")
    assert cursor.description is not None
    assert (cursor.description[0].name, cursor.description[0].type_code) == ("QUERY PLAN", 25)

    row = session.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchone()
    assert row is not None
    assert yaml.safe_load(lines(session, f"EXPLAIN (FORMAT YAML) {sql}")) == row[0]


def test_lines_are_not_longer_than_a_terminal_and_their_sql_is_not_broken_in_a_value(
    session: psycopg.Connection,
) -> None:
    value = "a  value with 'quotes' and spaces " * 3
    sql = f"SELECT status, count(*), avg(amount) FROM orders WHERE note = {Literal(value).as_string()} GROUP BY status"

    text = lines(session, f"EXPLAIN {sql}")

    assert Literal(value).as_string() in text
    assert all(len(line) <= 120 or value[:12] in line for line in text.splitlines())


def test_groups_that_are_in_the_data_are_not_counted(session: psycopg.Connection) -> None:
    text = lines(session, "EXPLAIN SELECT name, count(*) FROM customers GROUP BY name")

    assert "groups: found in the data, by threshold" in text


def test_parameters_are_explained_as_bound(session: psycopg.Connection) -> None:
    text = lines(session, "EXPLAIN SELECT count(*) FROM orders WHERE note = 'it''s' OR note = 'back\\slash'")

    assert "it''s" in text


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_values_of_the_extended_protocol_are_explained(session: psycopg.Connection, *, binary: bool) -> None:
    sql = "EXPLAIN SELECT count(*) FROM orders WHERE amount > %s AND id IN (SELECT id FROM products WHERE id > %s)"

    for _ in range(7):  # after five a driver prepares it
        rows = session.execute(sql, (Decimal("5.25"), 3), binary=binary).fetchall()

    assert any("inner SQL" in str(line) for (line,) in rows)
    assert any("5.25" in str(line) for (line,) in rows)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("EXPLAIN SELECT * FROM customers", "42501"),
        ("EXPLAIN ANALYZE SELECT count(*) FROM orders", "0A000"),
        ("EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM orders", "0A000"),
        ("EXPLAIN (FORMAT XML) SELECT count(*) FROM orders", "0A000"),
        ("EXPLAIN (VERBOSE, NOPE) SELECT count(*) FROM orders", "42601"),
        ("EXPLAIN (ANALYZE off, ANALYZE 1) SELECT count(*) FROM orders", "0A000"),
        ("EXPLAIN (GENERIC_PLAN) SELECT count(*) FROM orders WHERE amount > $1", "0A000"),
        ("EXPLAIN SELECT count(*) FROM orders WHERE amount > $1", "42P02"),
        ("EXPLAIN SELECT nope FROM orders", "42703"),
    ],
)
def test_what_cannot_be_explained_is_refused(session: psycopg.Connection, sql: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql)

    assert caught.value.sqlstate == sqlstate
    assert session.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "options", ["(ANALYZE 0)", "(ANALYZE 'OFF')", "(GENERIC_PLAN)", "(COSTS off, VERBOSE)", "VERBOSE"]
)
def test_options_that_change_nothing_are_taken(session: psycopg.Connection, options: str) -> None:
    assert "Private answer" in lines(session, f"EXPLAIN {options} SELECT count(*) FROM orders")


def test_a_generic_plan_without_values_is_told_how_values_are_given(session: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="needs the values of parameters") as refused:
        session.execute("EXPLAIN (GENERIC_PLAN) SELECT count(*) FROM orders WHERE amount > $1")

    assert "EXPLAIN EXECUTE q(" in (refused.value.diag.message_hint or "")


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("EXPLAIN (VERBOSE, nope) SELECT count(*) FROM orders", "nope"),
        ("EXPLAIN ANALYZE SELECT count(*) FROM products, orders", "orders"),
        ("/* ü */ COPY orders (amount) TO STDOUT", "orders"),
        ("SELECT 1; COPY public.orders TO STDOUT", "public"),
    ],
)
def test_a_refusal_of_explain_or_copy_points_at_its_word(session: psycopg.Connection, sql: str, word: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        session.execute(sql.encode())

    assert refused.value.diag.statement_position == str(sql.index(word) + 1)


def test_explain_of_public_tables_is_postgresqls_own(session: psycopg.Connection) -> None:
    assert "Scan on products" in lines(session, "EXPLAIN SELECT * FROM products")


@pytest.mark.parametrize("prepare", [None, True], ids=["simple", "extended"])
def test_execute_of_a_prepared_statement_is_explained_with_its_values(
    session: psycopg.Connection, *, prepare: bool | None
) -> None:
    session.execute("PREPARE p (numeric, text) AS SELECT count(*), $2 AS tag FROM orders WHERE amount > $1")

    for options in ("", "(FORMAT TEXT) ", "VERBOSE "):
        cursor = session.execute(f"EXPLAIN {options}EXECUTE p (100 + 23, 'it''s')", prepare=prepare)
        text = "\n".join(str(row[0]) for row in cursor.fetchall())

        assert "Private answer  (epsilon=" in text
        assert "123" in text


def test_execute_of_what_a_driver_has_prepared_is_explained(session: psycopg.Connection) -> None:
    session.prepare_threshold = 0
    session.execute("SELECT count(*) FROM orders WHERE amount > %s::numeric AND status = %s", (5, "paid"))
    (name,) = (
        session.execute("SELECT name FROM pg_prepared_statements WHERE statement LIKE '%amount%' LIMIT 1").fetchone()
        or ()
    )

    text = lines(session, f"EXPLAIN EXECUTE {name} (7, 'open')")

    assert "Private answer" in text
    assert "'open'" in text


def test_execute_of_a_public_statement_is_explained_by_postgresql(session: psycopg.Connection) -> None:
    session.execute("PREPARE public_one AS SELECT name FROM products")

    assert "Scan on products" in lines(session, "EXPLAIN EXECUTE public_one")


@pytest.mark.parametrize("prepare", [None, True], ids=["simple", "extended"])
@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("EXPLAIN EXECUTE nothing", "26000"),
        ("EXPLAIN ANALYZE EXECUTE p (1)", "0A000"),
        ("EXPLAIN (ANALYZE) EXECUTE p (1)", "0A000"),
        ("EXPLAIN EXECUTE p", "42601"),
        ("EXPLAIN EXECUTE p (1, 2)", "42601"),
        ("EXPLAIN EXECUTE p ('x')", "22P02"),
    ],
)
def test_execute_that_cannot_be_is_not_explained(
    session: psycopg.Connection, sql: str, sqlstate: str, *, prepare: bool | None
) -> None:
    session.execute("PREPARE p (numeric) AS SELECT count(*) FROM orders WHERE amount > $1")

    with pytest.raises(psycopg.Error) as refusal:
        session.execute(sql, prepare=prepare)

    assert refusal.value.sqlstate == sqlstate
    assert session.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("prepare", [None, True], ids=["simple", "extended"])
def test_execute_with_values_is_answered_in_both_protocols(
    session: psycopg.Connection, *, prepare: bool | None
) -> None:
    session.execute("PREPARE counted (numeric, text) AS SELECT count(*) > 500, $2 AS tag FROM orders WHERE amount > $1")

    assert session.execute("EXECUTE counted (1, 'mine')", prepare=prepare).fetchall() == [(True, "mine")]


def charge_now(session: psycopg.Connection, sql: str) -> str:
    """What EXPLAIN says that a statement would be charged."""
    (line,) = (line for line in lines(session, f"EXPLAIN {sql}").splitlines() if "charge now" in line)
    return line.partition(": ")[2].partition(",")[0]


def test_what_would_be_served_again_is_told_and_is_free(session: psycopg.Connection) -> None:
    counted, more = (
        "count(*) FROM orders WHERE amount < 77.31",
        "count(*), sum(amount) FROM orders WHERE amount < 77.31",
    )
    session.execute("SET noisegate.epsilon = 0.5")
    assert charge_now(session, f"SELECT {counted}") == "epsilon=0.5"

    session.execute(f"SELECT {counted}")

    assert charge_now(session, f"SELECT {counted}") == "epsilon=0"
    assert "served again: all, as noised at 20" in lines(session, f"EXPLAIN SELECT {counted}")
    assert "served again: 1 of 2 draws of noise, the rest" in lines(session, f"EXPLAIN SELECT {more}")
    assert charge_now(session, f"SELECT {more}") == "epsilon=0.25"
    session.execute("SET noisegate.reuse = off")
    assert charge_now(session, f"SELECT {counted}") == "epsilon=0.5"


def test_it_is_told_of_how_many_releases_an_answer_is_the_mean(session: psycopg.Connection) -> None:
    sql = "SELECT count(*), sum(amount) FROM orders WHERE amount < 78.32"
    session.execute("SET noisegate.reuse = off; SET noisegate.epsilon = 0.1")
    for _ in range(2):
        session.execute(sql)
    session.execute("SELECT count(*) FROM orders WHERE amount < 78.32")
    session.execute("SET noisegate.reuse = on")

    assert "combined from up to 3 releases" in lines(session, f"EXPLAIN {sql}")
    first, again = (session.execute(sql).fetchall() for _ in range(2))
    assert first == again
    session.execute("SET noisegate.epsilon = 0.15")  # the sum had 0.041 twice
    assert "served again: 1 of 2 draws of noise" in lines(session, f"EXPLAIN {sql}")


def test_what_is_told_to_be_charged_is_charged(session: psycopg.Connection, proxy: Noisegate) -> None:
    """First sights of others' releases too: paid in full, once."""
    sql = "SELECT status, count(*) FROM orders WHERE amount BETWEEN 20 AND 321 GROUP BY status"
    session.execute("SET noisegate.epsilon = 0.5")
    session.execute(sql)
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob:
        bob.execute("SET noisegate.epsilon = 0.25")
        text = lines(bob, f"EXPLAIN {sql}")
        spent = "SELECT epsilon_spent FROM noisegate.budget WHERE account = 'yours'"
        before = bob.execute(spent).fetchone()
        bob.execute(sql)
        after = bob.execute(spent).fetchone()

        assert "which are not on your account yet and cost epsilon=0.5 at first sight" in text
        assert "charge now: epsilon=0.5, with" in text
        assert before is not None
        assert after is not None
        assert after[0] - before[0] == Decimal("0.5")
        assert charge_now(bob, sql) == "epsilon=0"


def test_how_far_noise_moves_each_output_is_told_in_its_own_unit(session: psycopg.Connection) -> None:
    outputs = (
        "count(*)",
        "count(*) FILTER (WHERE status = 'paid')",
        "sum(amount)",
        "avg(amount)",
        "max(amount)",
        "stddev(amount)",
    )
    text = lines(session, f"EXPLAIN SELECT {', '.join(outputs)} FROM orders")
    told = dict(re.findall(r"error of (.*?): (.*)", text))

    words = dict(re.findall(r"noise in (.*?): (.*)", text))
    assert told.keys() == set(outputs)
    assert words.keys() == {"count(*)", "count(*) FILTER (WHERE status = 'paid')", "sum(amount)"}
    assert all(re.match(r"none from [\d,.e+]+ on, low from [\d,.e+]+ on, ", each) for each in words.values())
    assert re.fullmatch(r"\+/- [\d,]+ in 95% of answers", told["count(*)"])
    assert re.fullmatch(r"\+/- [\d,.e+]+ in 95% of answers", told["sum(amount)"])
    assert re.fullmatch(r"at most about \+/- [\d.e+,]+ in a group of 1,000 rows, .*", told["avg(amount)"])
    maximum = r"its rank \+/- [\d,.e+]+ rows and its value another \+/- 0\.06 in 95% of answers"
    assert re.fullmatch(maximum, told["max(amount)"])
    assert told["stddev(amount)"].startswith("depends on the data; ")


def test_the_error_of_an_average_is_estimated_from_earlier_answers(session: psycopg.Connection) -> None:
    sql = "SELECT status, avg(amount) FROM orders WHERE amount > 1 GROUP BY status"
    before = lines(session, f"EXPLAIN {sql}")
    session.execute("SET noisegate.epsilon = 5")
    session.execute(sql)
    session.execute("SET noisegate.epsilon = 10")
    (estimate,) = re.findall(r"by your earlier answers \+/- ([\d.e+]+) to ([\d.e+]+)", lines(session, f"EXPLAIN {sql}"))
    session.execute("SET noisegate.reuse = off")
    session.execute(sql)
    answered = session.execute("SELECT margin_least, margin FROM noisegate.last").fetchone()

    assert "earlier answers" not in before
    assert answered is not None
    for foreseen, found in zip(estimate, answered, strict=True):
        assert 0.3 < float(foreseen) / float(found) < 3


@pytest.mark.extended
def test_a_charge_that_would_be_refused_is_told_so(shop: RealDatabase, tmp_path: Path) -> None:
    rules = RULES.replace("budget: {epsilon: 1000,", "budget: {epsilon: 5,")
    with (
        noisegate(tmp_path, shop.reader_dsn, rules=rules) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        text = lines(session, "EXPLAIN SELECT count(*) FROM orders")

    assert "charge now: none, since it is refused: this statement would exceed your privacy budget" in text


def test_what_waits_for_another_answer_is_not_foreseen(session: psycopg.Connection) -> None:
    text = lines(session, "EXPLAIN SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)")

    assert text.count("served again") == 1
    assert "charge now, for the inner queries: epsilon=" in text


def test_the_json_form_has_it_too(session: psycopg.Connection) -> None:
    sql = "SELECT count(*) FROM customers WHERE name = 'back\\slash' OR name = 'it''s \"'"
    row = session.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchone()

    assert row is not None
    ((whole,),) = row
    assert whole["Plan"]["charge now"].startswith("epsilon=10, with ")
    assert whole["Plan"]["Plans"][0]["served again"] == "nothing"
    assert r"E'back\\slash'" in whole["Plan"]["Plans"][0]["inner SQL"]


def test_what_others_have_paid_for_tells_nothing_before_it_is_paid(
    session: psycopg.Connection, proxy: Noisegate
) -> None:
    """How far noise moves a mean follows from its count, which is an answer."""
    sql = "SELECT status, avg(amount) FROM orders WHERE amount < 71.1 GROUP BY status"
    session.execute("SET noisegate.epsilon = 1")
    session.execute(sql)
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob:
        bob.execute("SET noisegate.epsilon = 1")
        text = lines(bob, f"EXPLAIN {sql}")
        assert "not on your account yet" in text
        assert "earlier answers" not in text
        bob.execute(sql)
        assert "earlier answers" in lines(bob, f"EXPLAIN {sql}")
