"""rows_per_unit: auto — how much of each customer counts is chosen privately, for a stated part of ε."""

import re
from pathlib import Path

import psycopg
import pytest

from rules.release.bound_ladder import rungs_to
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import Noisegate, noisegate

COUNT = "SELECT count(*) FROM orders"


class Session:
    """A session whose bounds are chosen, and what it is told."""

    def __init__(self, proxy: Noisegate, user: str = "ada") -> None:
        self.connection = psycopg.connect(proxy.dsn(user), autocommit=True)
        self.told: list[str] = []
        self.connection.add_notice_handler(lambda notice: self.told.append(notice.message_primary or ""))
        self.connection.execute("SET noisegate.rows_per_unit = auto; SET noisegate.epsilon = 1")

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        self.told.clear()
        return self.connection.execute(sql).fetchall()

    def notice(self, pattern: str) -> re.Match[str] | None:
        return next((found for text in self.told if (found := re.search(pattern, text))), None)


@pytest.fixture
def session(proxy: Noisegate) -> Session:
    return Session(proxy)


def test_the_chosen_bound_is_told_and_its_choice_is_part_of_the_price(session: Session) -> None:
    session.ask(COUNT)

    assert session.notice("ε 1 spent")
    chosen = session.notice(
        r"rows of each unit: up to (\d+) counted, chosen with ε 0.3.*; the rules allow 40; margins do"
    )
    assert chosen is not None and int(chosen[1]) in rungs_to(40)


def test_asked_again_the_same_bound_and_noise_are_served_at_no_cost(session: Session) -> None:
    once = session.ask(COUNT)
    bound = session.notice("rows of each unit: up to (.*) counted")
    again = session.ask(COUNT)

    assert again == once
    assert session.notice("ε 0 spent")
    other = session.notice("rows of each unit: up to (.*) counted")
    assert bound is not None and other is not None and other[0] == bound[0]


def test_another_measure_of_the_block_needs_no_other_choice(session: Session) -> None:
    session.ask("SELECT count(*) FROM orders WHERE status = 'sent'")
    session.ask("SELECT sum(amount) FROM orders WHERE status = 'sent'")

    assert session.notice("ε 0.7 spent")


def test_explain_shows_the_ladder_and_never_what_was_chosen(session: Session) -> None:
    before = _explained(session)
    session.ask(COUNT)

    after = _explained(session)

    assert after == before
    text = "\n".join(after)
    assert "bound of rows: chosen privately with epsilon 0.3 among 1; 2; 3; 4; 6; 8; 12; 16; 24; 32; 40" in text
    assert "sensitivity at most 40" in text
    assert "inner SQL with the highest bounds" in text
    assert "c <= 40" in text
    assert "tally SQL: WITH r AS" in text


def _explained(session: Session) -> list[str]:
    """Without what the ledger says, which is of this account and its past."""
    lines = [str(row[0]) for row in session.ask(f"EXPLAIN {COUNT}")]
    return [line for line in lines if "charge now" not in line and "served again" not in line]


def test_explain_foresees_that_a_bound_is_chosen_once(session: Session) -> None:
    where = "FROM orders WHERE amount BETWEEN 17 AND 400"
    session.ask(f"SELECT count(*) {where}")

    text = "\n".join(str(row[0]) for row in session.ask(f"EXPLAIN SELECT count(amount), sum(amount) {where}"))

    assert "charge now: epsilon=0." in text
    assert "served again: 1 of" in text or "served again: 2 of" in text


def test_margins_are_those_of_the_chosen_bound(session: Session) -> None:
    ((margin,),) = session.ask("SELECT noisegate.margin(count(*)) FROM orders")

    chosen = session.notice(r"rows of each unit: up to (\d+) counted")
    assert chosen is not None
    assert float(str(margin)) == pytest.approx(4.28 * int(chosen[1]), rel=0.1, abs=2)  # ln(20) of m/0.7


def test_a_number_goes_back_to_a_bound_that_is_not_chosen(session: Session) -> None:
    session.connection.execute("SET noisegate.rows_per_unit = 40")
    session.ask(COUNT)

    assert session.notice("of each unit") is None


def test_the_session_may_lower_the_ceiling_of_the_choice(session: Session) -> None:
    session.connection.execute("SET noisegate.rows_per_unit = 'auto up to 6'")

    session.ask(COUNT)

    assert session.notice("the rules allow 6;")


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM customers", "SELECT count(DISTINCT customer_id) FROM orders"])
def test_where_nothing_can_be_gained_nothing_is_chosen(session: Session, sql: str) -> None:
    session.ask(sql)

    assert session.notice("of each unit") is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT status, count(*), sum(amount), avg(amount) FROM orders GROUP BY status",
        "SELECT name, count(*) FROM customers JOIN orders ON customer_id = customers.id GROUP BY name",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), max(amount) FROM orders",
        "SELECT count(DISTINCT ordered_at) FROM orders",
        "SELECT city, count(DISTINCT customer_id), stddev(amount) FROM customers JOIN orders "
        "ON customer_id = customers.id GROUP BY city",
        "SELECT status, count(*) FROM orders GROUP BY ROLLUP (status)",
        "SELECT count(*) FROM orders WHERE amount > (SELECT avg(amount) FROM orders)",
        "SELECT p.id, count(order_id) FROM products AS p LEFT JOIN order_items ON product_id = p.id GROUP BY 1",
        "SELECT (SELECT count(*) FROM orders), (SELECT sum(amount) FROM orders WHERE status = 'open')",
    ],
)
def test_all_kinds_of_answers_have_chosen_bounds(session: Session, sql: str) -> None:
    session.connection.execute("SET noisegate.reuse = off")

    session.ask(sql)

    assert session.notice("rows of each unit: up to")


@pytest.fixture
def summing(session: Session) -> Session:
    """A session that has the bounds of sums chosen, but not those of rows."""
    session.connection.execute("RESET noisegate.rows_per_unit; SET noisegate.sum_per_unit = auto")
    return session


def test_a_sum_has_a_ladder_of_its_own_in_what_its_numbers_stand_for(summing: Session) -> None:
    summing.ask("SELECT sum(amount) FROM orders")

    chosen = summing.notice(
        r"^sum\(amount\) of each unit: up to (\S+) counted, chosen with ε 0.\d+.*; the rules allow 20,000; "
    )
    assert chosen is not None
    assert float(chosen[1].replace(",", "")) <= 20_000


@pytest.mark.parametrize(
    ("sql", "sums"),
    [
        ("SELECT status, sum(amount), count(*), avg(amount) FROM orders GROUP BY status", 1),
        ("SELECT city, sum(amount) FROM customers JOIN orders ON customer_id = customers.id GROUP BY city", 1),
        ("SELECT sum(amount), sum(amount) FILTER (WHERE status = 'sent') FROM orders", 2),
        ("SELECT name, sum(amount) FROM customers JOIN orders ON customer_id = customers.id GROUP BY name", 1),
        ("SELECT sum(id % 1000) FROM customers", 1),
        ("SELECT avg(amount), count(*), max(amount) FROM orders", 0),
    ],
)
def test_only_plain_sums_have_ladders_of_their_own(summing: Session, sql: str, sums: int) -> None:
    summing.connection.execute("SET noisegate.reuse = off")

    summing.ask(sql)

    assert sum("of each unit: up to" in text for text in summing.told) == sums


def test_both_kinds_of_bounds_are_chosen_for_one_price(session: Session) -> None:
    session.connection.execute("SET noisegate.sum_per_unit = auto; SET noisegate.reuse = off")

    session.ask("SELECT status, count(*), sum(amount) FROM orders GROUP BY status")

    assert session.notice("ε 1 spent")
    assert session.notice("rows of each unit: up to") and session.notice(r"sum\(amount\) of each unit: up to")


def test_a_setting_that_cannot_be_is_refused(session: Session) -> None:
    for setting in ("sum_per_unit = 5", "rows_per_unit = 'auto up to x'", "rows_per_unit = 'auto 5'"):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="must be"):
            session.connection.execute(f"SET noisegate.{setting}")


def test_a_cap_that_nobody_declared_is_chosen_kept_and_told(shop: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.RULES.replace("    unit: customer_id\n    rows_per_unit: 40\n", "    unit: customer_id\n")
    with noisegate(tmp_path, shop.reader_dsn, rules=rules) as running:
        session = Session(running)
        session.connection.execute("RESET noisegate.rows_per_unit")

        session.ask("SELECT status, count(*) FROM orders GROUP BY status")
        bound = session.notice(
            r"^rows of each unit: up to (\d+) counted, chosen with ε 0.2.*not include what is beyond$"
        )
        assert bound is not None and int(bound[1]) in rungs_to(1_000_000) and "the rules allow" not in bound[0]
        assert session.notice("ε 1 spent")
        session.ask("SELECT status, count(*), sum(amount) FROM orders GROUP BY status")
        assert session.notice(f"^rows of each unit: up to {bound[1]} counted")
        assert not session.notice("ε 1 spent"), "the choice is paid already"
        session.connection.execute("SET noisegate.rows_per_unit = 12")
        session.ask("SELECT count(*) FROM orders")
        assert session.notice(r"within ±\d+; margins do not include what is beyond 12 rows of a unit \(your cap\)")
        session.ask("SELECT count(*) FROM customers")
        assert session.notice("no row is cut")


def test_a_lower_bound_of_what_is_cut_can_be_bought(session: Session) -> None:
    """Some 310 customers have more than one order, of 357 with any; four have more than forty. A bound is above what
    was cut by 46 rows, or by 57 times forty, with a probability of 1e-7 and less."""
    session.connection.execute(
        "SET noisegate.rows_per_unit = 1; SET noisegate.cut = on; SET noisegate.confidence = 0.999"
    )
    session.ask("SELECT status, count(*) FROM orders GROUP BY status")
    found = session.notice(r"^at least ([\d,]+) rows were cut \(99.95% sure; cost ε 0.2\)")
    assert found is not None and 100 < int(found[1].replace(",", "")) <= 357
    assert session.notice("ε 1 spent") and session.notice(r"what is beyond 1 row of a unit \(your cap\)")
    again = found[0]
    session.ask("SELECT status, count(*) FROM orders GROUP BY status")
    assert session.notice("ε 0 spent") and session.notice(re.escape(again))

    session.connection.execute("SET noisegate.rows_per_unit = 40")
    session.ask("SELECT status, count(*) FROM orders GROUP BY status")
    untold = session.notice(r"^it could not be told from noise whether rows were cut \(cost ε 0.2\)")
    told = session.notice(r"^at least ([\d,]+) rows were cut \(99.95% sure; cost ε 0.2\)")
    assert untold or (told is not None and int(told[1].replace(",", "")) < 57 * 40)
    session.ask("SELECT city, count(*) FROM customers GROUP BY city")
    assert session.notice("no row is cut") and not session.notice("were cut")


def test_no_row_is_cut_is_not_said_where_totals_of_a_unit_are_clamped(session: Session) -> None:
    session.ask("SELECT avg(n) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) AS t")
    assert session.notice(r"what is beyond 40 rows of a unit \(the rules' cap\)")
    session.ask("SELECT avg(n) FROM (SELECT customer_id, sum(amount) AS n FROM orders GROUP BY customer_id) AS t")
    assert session.notice(r"what is beyond 40 rows of a unit \(the rules' cap\)")
    session.ask("SELECT count(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id HAVING count(*) > 1) AS t")
    assert session.notice("no row is cut")


def test_no_report_is_bought_where_a_key_proves_that_no_row_is_cut(session: Session) -> None:
    session.connection.execute("RESET noisegate.rows_per_unit; SET noisegate.cut = on")
    session.ask("SELECT stddev(n) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) AS t")

    assert session.notice("spent") and not session.notice("rows were cut")


def test_the_rules_file_leaves_bounds_to_a_choice_and_a_session_may_not_want_it(
    shop: RealDatabase, tmp_path: Path
) -> None:
    chosen = "rows_per_unit: auto up to 40\n    sum_per_unit: auto"
    rules = shop_data.RULES.replace("rows_per_unit: 40\n    sum_per_unit: off", chosen)
    with noisegate(tmp_path, shop.reader_dsn, rules=rules) as running:
        session = Session(running)
        session.connection.execute("RESET noisegate.rows_per_unit")

        session.ask("SELECT count(*), sum(amount) FROM orders")
        assert session.notice("rows of each unit: up to") and session.notice(r"sum\(amount\) of each unit: up to")

        session.connection.execute("SET noisegate.rows_per_unit = 40; SET noisegate.sum_per_unit = off")
        session.ask("SELECT count(*), sum(amount) FROM orders")
        assert session.notice("of each unit") is None and session.notice("ε 1 spent")
