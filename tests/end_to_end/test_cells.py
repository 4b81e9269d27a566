"""What is a sum of released cells costs nothing, or makes what is paid for more precise, through a running proxy."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from tests.support.running import Noisegate

Session = psycopg.Connection

BY_CITY = "SELECT city, count(*) FROM customers WHERE {} GROUP BY city"
BY_DAY = (
    "SELECT ordered_at::date, count(*), noisegate.margin(count(*)) FROM orders"
    " WHERE ordered_at >= '{}' AND ordered_at < '{}' GROUP BY 1 ORDER BY 1"
)


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("SET noisegate.epsilon = 1; SET noisegate.empty_groups = show")
        yield connection


def spent(session: Session) -> Decimal:
    (row,) = session.execute("SELECT coalesce(sum(epsilon), 0) FROM noisegate.ledger")
    found: Decimal = row[0]
    return found


def numbers(session: Session, sql: str) -> dict[str, int]:
    return {str(label): number for label, number, *_ in session.execute(sql)}


def test_a_part_of_an_answer_is_served_from_it(session: Session) -> None:
    """The cities are told of those who were born before some day, which nobody else asks for."""
    born = "birth_date < '1990-05-17'"
    whole = numbers(session, BY_CITY.format(born))
    before = spent(session)

    assert numbers(session, BY_CITY.format(f"{born} AND city IN ('Lyon', 'Graz')")) == {
        city: whole[city] for city in ("Graz", "Lyon")
    }
    assert session.execute(f"SELECT count(*) FROM customers WHERE {born} AND city = 'Lyon'").fetchone() == (
        whole["Lyon"],
    )
    assert spent(session) == before


def test_what_follows_an_error_in_a_string_costs_nothing(session: Session) -> None:
    before = spent(session)

    with pytest.raises(psycopg.errors.DivisionByZero):
        session.execute(
            "SELECT count(*) FROM customers WHERE id < 17; SELECT 1/0; SELECT count(*) FROM orders WHERE id < 17"
        )

    assert spent(session) == before + 1


def test_a_sum_that_is_precise_enough_costs_nothing(session: Session) -> None:
    session.execute("SET noisegate.epsilon = 4")
    cells = session.execute(
        "SELECT segment, is_vip, count(*) FROM customers WHERE id < 391 GROUP BY segment, is_vip"
    ).fetchall()
    before = spent(session)
    session.execute("SET noisegate.epsilon = 1")
    explained = "\n".join(
        row[0]
        for row in session.execute("EXPLAIN SELECT is_vip, count(*) FROM customers WHERE id < 391 GROUP BY is_vip")
    )
    shown = numbers(session, "SELECT is_vip, count(*) FROM customers WHERE id < 391 GROUP BY is_vip")

    assert "as sums of up to 3 cells" in explained
    for is_vip in (True, False):
        assert shown[str(is_vip)] == max(0, sum(number for _, vip, number in cells if vip == is_vip))
    assert spent(session) == before
    assert session.execute("SELECT margin FROM noisegate.last").fetchall() == [(Decimal(1),)]


@pytest.mark.parametrize(("amount", "setting"), [(123.11, "rows_per_unit = auto"), (123.12, "cut = on")])
def test_what_was_released_for_all_groups_together_is_no_cell_of_one(
    session: Session, amount: float, setting: str
) -> None:
    by_status = f"SELECT status, count(*), sum(amount) FROM orders WHERE amount > {amount}{{}} GROUP BY status"
    session.execute(f"SET noisegate.{setting}")
    every = numbers(session, by_status.format(""))
    session.execute("RESET ALL; SET noisegate.empty_groups = show")

    assert (
        numbers(session, by_status.format(" AND status IN ('open', 'paid')")).keys() == {"open", "paid"} < every.keys()
    )
    assert session.execute(f"SELECT count(*) FROM orders WHERE amount > {amount} AND status = 'open'").fetchone()


def test_a_sum_that_is_not_makes_what_is_paid_for_more_precise_and_is_the_same_again(session: Session) -> None:
    numbers(session, "SELECT segment, count(*) FROM customers WHERE id < 392 GROUP BY segment")
    before = spent(session)
    total = "SELECT count(*), noisegate.margin(count(*)) FROM customers WHERE id < 392"
    first = session.execute(total).fetchone()

    assert spent(session) == before + 1
    assert first == session.execute(total).fetchone()
    assert first is not None
    assert first[1] <= 3
    assert spent(session) == before + 1
    session.execute("SET noisegate.reuse = off")
    session.execute(total)
    assert spent(session) == before + 2


def test_days_that_several_charts_have_shown_get_sharper(session: Session) -> None:
    session.execute(BY_DAY.format("2024-03-01", "2024-03-31"))
    rows = session.execute(BY_DAY.format("2024-03-02", "2024-04-01")).fetchall()
    margins = [row[2] for row in rows]

    assert margins[0] == margins[28] < margins[29]  # the last day is new


def test_a_filter_by_the_number_of_a_year_takes_the_months_that_were_shown(session: Session) -> None:
    orders = "FROM orders WHERE id < 2999 AND ordered_at >= '2024-01-01' AND ordered_at < '2026-01-01'"
    of_a_year = f"SELECT status, count(*) {orders} AND extract(year FROM ordered_at) = 2025 GROUP BY 1"
    session.execute("SET noisegate.epsilon = 5")
    session.execute(f"SELECT status, date_trunc('month', ordered_at), count(*) {orders} GROUP BY 1, 2")
    session.execute("SET noisegate.epsilon = 0.1")
    before = spent(session)

    explained = "\n".join(row[0] for row in session.execute(f"EXPLAIN {of_a_year}"))
    session.execute(of_a_year)

    assert "as sums of up to 12 cells" in explained
    assert spent(session) == before


def test_a_part_that_may_be_cut_by_more_is_told(session: Session) -> None:
    session.execute("SET noisegate.epsilon = 5")
    days = session.execute(BY_DAY.format("2024-05-01", "2024-06-01")).fetchall()
    session.execute("SET noisegate.epsilon = 1")
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    (row,) = session.execute(
        "SELECT count(*) FROM orders WHERE ordered_at >= '2024-05-06' AND ordered_at < '2024-05-13'"
    )

    assert row[0] == max(0, sum(number for _, number, _ in days[5:12])) or min(number for _, number, _ in days) == 0
    assert any("units were cut by all rows that the earlier answer counted" in text for text in told)


def test_what_others_have_paid_for_is_no_sum_for_free(proxy: Noisegate, session: Session) -> None:
    session.execute("SET noisegate.epsilon = 4")
    numbers(session, "SELECT segment, count(*) FROM customers WHERE id < 393 GROUP BY segment")
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as other:
        before = spent(other)
        other.execute("SET noisegate.epsilon = 1")
        other.execute("SELECT count(*) FROM customers WHERE id < 393")
        assert spent(other) == before + 1


def test_parts_and_totals_of_one_dashboard_agree_when_all_of_it_has_been_asked_for(session: Session) -> None:
    """The charts by segment and by whether they are VIPs, their table, and the total, which nobody else asks for."""
    count, since = "count(*) FROM customers WHERE id < 397", spent(session)
    charts = {
        "": f"SELECT {count}",
        "segment": f"SELECT segment, {count} GROUP BY segment",
        "is_vip": f"SELECT is_vip, {count} GROUP BY is_vip",
        "both": f"SELECT segment, is_vip, {count} GROUP BY segment, is_vip",
    }
    raw = {name: sql.replace("count(*)", "count(*) + 0") for name, sql in charts.items()}
    for sql in charts.values():
        session.execute(sql)
    paid = spent(session)
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

    shown = {name: session.execute(sql).fetchall() for name, sql in raw.items()}

    ((total,),), table = shown[""], shown["both"]
    assert sum(row[-1] for row in table) == total
    for place, name in enumerate(("segment", "is_vip")):
        for label, number in shown[name]:
            assert sum(row[-1] for row in table if row[place] == label) == number
    assert spent(session) == paid > since
    assert any("made to agree with 3 other answers of yours" in text for text in told)
    assert shown == {name: session.execute(sql).fetchall() for name, sql in raw.items()}


def test_what_another_answer_needs_stays_as_it_was_and_costs_nothing_again(session: Session) -> None:
    """The largest two cities are known first: were they told anew, all that rests on them would be asked anew."""
    tables, few = "orders AS o JOIN customers AS c ON c.id = o.customer_id", "WHERE o.id < 3001"
    largest = f"SELECT c.city, count(*) FROM {tables} {few} GROUP BY c.city ORDER BY 2 DESC LIMIT 2"
    series = (
        f"SELECT c.city, o.status, count(*) FROM {tables} JOIN ({largest}) AS l ON l.city = c.city {few} GROUP BY 1, 2"
    )
    before = session.execute(series).fetchall()
    session.execute(f"SELECT c.city, o.status, count(*) FROM {tables} {few} GROUP BY 1, 2").fetchall()
    paid = spent(session)

    again = session.execute(series).fetchall()

    assert spent(session) == paid
    assert {row[:2] for row in again} == {row[:2] for row in before}


def test_a_total_and_its_parts_agree_in_one_statement(session: Session) -> None:
    count = "count(*) FROM customers WHERE id < 398"
    (row,) = session.execute(
        f"SELECT (SELECT {count}), (SELECT sum(n) FROM (SELECT count(*) AS n FROM customers WHERE id < 398"
        " GROUP BY segment) AS parts)"
    )

    assert row[0] == row[1]


def test_a_part_of_what_others_have_paid_for_is_on_ones_own_account_once_and_not_on_the_datasets(
    proxy: Noisegate, session: Session
) -> None:
    """The cities of those who were born before another day, of which one is asked for."""
    born = "birth_date < '1990-05-18'"
    cities = numbers(session, BY_CITY.format(born))
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as other:
        other.execute("SET noisegate.epsilon = 1")
        asked = f"SELECT count(*) FROM customers WHERE {born} AND city = 'Lyon'"
        shared = "SELECT epsilon_spent FROM noisegate.budget WHERE account = 'shared'"
        before, of_all = spent(other), other.execute(shared).fetchall()
        (first,) = other.execute(asked).fetchall()
        again = other.execute(asked).fetchall()
        assert spent(other) == before + 1
        assert other.execute(shared).fetchall() == of_all
        assert first[0] == cities["Lyon"]
        assert again == [first]
