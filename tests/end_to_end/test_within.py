"""SET noisegate.within through a running proxy: the least ε, two charges, refusals that say what it takes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from proxy.session.accuracy import too_small
from rules.sql.session_settings import Within
from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate, start

Session = psycopg.Connection


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


def charges(session: Session) -> list[Decimal]:
    return [row[0] for row in session.execute("SELECT epsilon FROM noisegate.ledger ORDER BY time")]


def margins(session: Session) -> list[Decimal]:
    return [row[0] for row in session.execute("SELECT margin FROM noisegate.last")]


def test_an_absolute_error_takes_one_charge_of_the_least_epsilon(session: Session) -> None:
    session.execute("SET noisegate.within = 25")
    before = charges(session)
    session.execute("SELECT segment, count(*) FROM customers WHERE id <= 387 GROUP BY segment")
    (least,) = charges(session)[len(before) :]

    (margin,) = margins(session)
    assert 23 <= margin <= 25
    assert Decimal("0.1") < least < Decimal("0.13")  # ln 20 / 25


def test_a_relative_error_takes_a_probe_and_the_rest(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True, options="-c noisegate.within=1%") as session:
        before = charges(session)
        row = session.execute("SELECT count(*) FROM customers WHERE id <= 399").fetchone()
        paid = charges(session)[len(before) :]
        again = session.execute("SELECT count(*) FROM customers WHERE id <= 399").fetchone()

        assert row == again is not None
        assert len(paid) == 2
        assert paid[0] < paid[1] < 3
        assert margins(session)[0] <= 4
        assert charges(session)[len(before) :] == paid


def test_asked_again_it_is_the_same_answer_at_no_cost_whatever_the_noise_was(proxy: Noisegate) -> None:
    """After a probe that is almost precise enough, it often bounds the number from nearer by than the answer does."""
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as session:
        for most in range(360, 380):
            sql = f"SELECT count(*) FROM customers WHERE id < {most}"
            session.execute("RESET noisegate.within; SET noisegate.epsilon = 0.5")
            session.execute(sql)
            session.execute("SET noisegate.within = '1%'")
            first, paid = session.execute(sql).fetchall(), charges(session)

            assert session.execute(sql).fetchall() == first
            assert charges(session) == paid


@pytest.mark.extended
def test_what_was_promised_outlives_the_proxy(shop: RealDatabase, tmp_path: Path) -> None:
    asked = "SELECT count(*) FROM customers WHERE id < 370"
    answers = []
    with noisegate(tmp_path, shop.reader_dsn) as running:
        with psycopg.connect(running.dsn(), autocommit=True, options="-c noisegate.within=1%") as session:
            answers.append((session.execute(asked).fetchall(), charges(session)))
        running.stop()
        again = start(running.rules, shop.reader_dsn)
        try:
            again.wait_for("ready")
            with psycopg.connect(
                again.dsn(sslmode="disable"), autocommit=True, options="-c noisegate.within=1%"
            ) as session:
                answers.append((session.execute(asked).fetchall(), charges(session)))
        finally:
            again.stop()

    assert answers[0] == answers[1]
    with closing(sqlite3.connect(running.rules.with_suffix(".ledger"))) as ledger:
        assert ledger.execute("SELECT count(*) FROM entries WHERE kind = 'promise'").fetchone() == (1,)


def test_what_takes_more_than_the_rules_allow_is_refused_with_what_it_takes(session: Session) -> None:
    session.execute("SET noisegate.within = 0.5")
    before = charges(session)
    with pytest.raises(psycopg.Error, match=r"noisegate\.within = 0\.5 takes epsilon [\d,.E+]+ here") as refusal:
        session.execute("SELECT sum(amount) FROM orders")

    assert refusal.value.sqlstate == "53400"
    assert charges(session) == before


def test_what_a_probe_cannot_tell_from_noise_is_refused_and_the_probe_is_kept(session: Session) -> None:
    session.execute("SET noisegate.within = '1%'")
    sql, first = refused_after_its_probe(session)
    paid = charges(session)
    with pytest.raises(psycopg.Error) as second:
        session.execute(sql)

    assert charges(session) == paid
    for error, detail in (
        (first, f"The probe cost epsilon {paid[-1]}; while its answer is kept, it is not charged again."),
        (second.value, "The probe is an earlier answer; nothing was charged."),
    ):
        assert "the probe cannot tell these numbers from noise" in str(error)
        assert (error.sqlstate, error.diag.message_detail) == ("53400", detail)
        assert error.diag.message_hint is not None


def test_where_no_epsilon_is_enough_the_refusal_names_none() -> None:
    """A probe without noise may say that a number is zero, of which any share is zero too."""
    refusal = too_small(Within(Fraction(1, 20), True, "5%"), Decimal(10), None, "paid")

    assert "no epsilon is enough, and the rules allow 10" in refusal.message
    assert "None" not in refusal.hint


def refused_after_its_probe(session: Session) -> tuple[str, psycopg.Error]:
    """Count few customers: a probe in twenty has so much noise that the number seems large, and is answered."""
    for day in range(1, 8):
        sql = f"SELECT count(*) FROM customers WHERE is_vip AND birth_date > '2008-01-0{day}'"
        before = charges(session)
        try:
            session.execute(sql)
        except psycopg.Error as error:
            assert len(charges(session)) == len(before) + 1
            return sql, error
    pytest.fail("seven probes in a row had much noise")


REFUSED = [
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders",
    "SELECT stddev(amount) FROM orders",
    "SELECT sum(amount) / nullif(count(*), 0) FROM orders",
    "SELECT status, count(*) FROM orders GROUP BY ROLLUP (status)",
    "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_promised_is_refused_before_anything_is_paid(session: Session, sql: str) -> None:
    session.execute("SET noisegate.within = '5%'")
    before = charges(session)
    with pytest.raises(psycopg.Error, match=r"noisegate\.within cannot be promised") as refusal:
        session.execute(sql)

    assert refusal.value.sqlstate == "0A000"
    assert charges(session) == before


def test_explain_tells_the_epsilon_and_pays_nothing(session: Session) -> None:
    before = charges(session)
    told = {}
    for within in ("25", "5%"):
        session.execute(f"SET noisegate.within = '{within}'")
        lines = session.execute("EXPLAIN SELECT city, count(*) FROM customers GROUP BY city").fetchall()
        told[within] = str(lines[0][0])

    assert "epsilon=0.1" in told["25"]
    assert "epsilon=" in told["5%"]
    assert charges(session) == before


def test_explain_tells_what_is_missing_beside_an_answer_that_serves_as_the_probe(session: Session) -> None:
    """And that nothing is, once it was bought."""
    sql, told = "SELECT country, count(*) FROM customers WHERE id < 350 GROUP BY country", list[str]()
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    session.execute("SET noisegate.epsilon = 0.5")
    session.execute(sql)
    session.execute("SET noisegate.within = '3%'")
    before = charges(session)

    session.execute(f"EXPLAIN {sql}")
    (words,) = [text for text in told if "beside an answer that you have" in text]
    assert charges(session) == before
    session.execute(sql)
    (paid,) = charges(session)[len(before) :]
    assert f"takes ε {paid.normalize():f} beside" in words
    session.execute(f"EXPLAIN {sql}")

    assert any("an answer that you have is enough: nothing is charged" in text for text in told)
    session.execute(sql)
    assert len(charges(session)) == len(before) + 1


@pytest.mark.parametrize("value", ["0", "-1", "5x", "100%", "NaN", "%"])
def test_a_value_that_means_nothing_is_refused_when_it_is_set(session: Session, value: str) -> None:
    with pytest.raises(psycopg.Error, match=r"noisegate\.within takes a number above 0") as refusal:
        session.execute(f"SET noisegate.within = '{value}'")

    assert refusal.value.sqlstate == "22023"


def test_public_rows_and_our_own_relations_are_read_as_ever(session: Session) -> None:
    session.execute("SET noisegate.within = '5%'")
    assert session.execute("SELECT count(*) FROM products").fetchone() == (30,)
    assert session.execute("SELECT setting FROM noisegate.settings WHERE name = 'noisegate.within'").fetchone() == (
        "5%",
    )
    session.execute("SET noisegate.within = off")
    session.execute("SELECT count(*) FROM customers")


def test_what_the_budget_does_not_pay_is_told_with_a_hint_that_works(shop: RealDatabase, tmp_path: Path) -> None:
    """Under noisegate.within a smaller noisegate.epsilon alone changes nothing."""
    rules = RULES.replace("budget: {epsilon: 1000,", "budget: {epsilon: 0.1,").replace("    epsilon: 500\n", "")
    with (
        noisegate(tmp_path, shop.reader_dsn, rules=rules) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        session.execute("SET noisegate.within = 10")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded) as refused:
            session.execute("SELECT count(*) FROM customers")
        hint = refused.value.diag.message_hint or ""
        assert hint.startswith(
            "Allow more error; or RESET noisegate.within, then SET noisegate.epsilon = 0.1 would fit."
        )
        session.execute("RESET noisegate.within; SET noisegate.epsilon = 0.1")
        assert session.execute("SELECT count(*) FROM customers").fetchone()


def test_a_refusal_of_the_rest_says_that_the_probe_was_charged(shop: RealDatabase, tmp_path: Path) -> None:
    """Answers are padded, and there is time for one of them."""
    with (
        noisegate(tmp_path, shop.reader_dsn, rules=f"pad_to: 500ms\n{RULES}") as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        session.execute("SET noisegate.within = '1%'; SET statement_timeout = '900ms'")
        with pytest.raises(psycopg.Error, match="statement_timeout must exceed") as refused:
            session.execute("SELECT count(*) FROM customers WHERE id <= 399")
        assert len(charges(session)) == 1

    said = "Only the part that was answered first was charged. Set statement_timeout to more, or to 0."
    assert refused.value.diag.message_hint == said
