"""Empty groups through a running proxy: an answer has the groups that its released numbers tell from noise."""

import re
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.running import Noisegate

Session = psycopg.Connection[tuple[object, ...]]

MONTHS = "SELECT date_trunc('month', ordered_at)::date AS month, count(*) AS n FROM orders GROUP BY 1"
RELEASED = f"WITH m AS ({MONTHS}) SELECT month, n + 0 FROM m ORDER BY month"  # what is computed is not cut at 0
SIZE = re.compile(r"A group of about (\d+) rows or more is shown")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def session(proxy: Noisegate, told: list[str]) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("SET noisegate.epsilon = 3")
        connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        yield connection


def shown_and_all(session: Session, told: list[str]) -> tuple[list[tuple[object, ...]], dict[object, int], int]:
    """The rows of the answer, all released numbers, and the size that the NOTICE names."""
    shown = session.execute(RELEASED).fetchall()
    (size,) = {int(found[1]) for notice in told if (found := SIZE.search(notice))}
    session.execute("SET noisegate.empty_groups = show")
    released = {month: int(str(n)) for month, n in session.execute(RELEASED).fetchall()}
    session.execute("RESET noisegate.empty_groups")
    return shown, released, size


def test_which_groups_are_shown_follows_from_the_released_numbers_alone(session: Session, told: list[str]) -> None:
    shown, released, size = shown_and_all(session, told)

    assert len(released) == 36
    assert shown == [(month, n) for month, n in released.items() if abs(n) >= size]
    left_out = sum(abs(n) < size for n in released.values())
    assert any(notice.startswith(f"{left_out} of 36 groups left out: their numbers") for notice in told)
    assert any("Together they have" in notice for notice in told)


@pytest.mark.parametrize(
    "around",
    [
        "SELECT month FROM ({}) AS s ORDER BY n LIMIT 36",
        "SELECT month FROM (SELECT *, row_number() OVER (ORDER BY n) AS rank FROM ({}) AS s) AS r WHERE rank < 37",
        "WITH m AS ({}) SELECT a.month FROM m AS a JOIN m AS b USING (month)",
        "{} HAVING count(*) < 1000000",
    ],
)
def test_nothing_around_a_block_sees_a_hidden_group(session: Session, told: list[str], around: str) -> None:
    shown, _, _ = shown_and_all(session, told)

    rows = session.execute(around.format(MONTHS)).fetchall()

    assert sorted(str(row[0]) for row in rows) == [str(month) for month, _ in shown]


def test_a_calendar_keeps_its_days_and_totals_all_rows(session: Session, told: list[str]) -> None:
    shown, released, _ = shown_and_all(session, told)

    calendar = session.execute(
        "SELECT d::date, coalesce(s.n + 0, 0) "
        "FROM generate_series(timestamp '2024-01-01', '2026-12-01', '1 month') AS d "
        f"LEFT JOIN ({MONTHS}) AS s ON s.month = d ORDER BY 1"
    ).fetchall()
    totals = session.execute(f"WITH m AS ({MONTHS.replace('1', 'ROLLUP (1)')}) SELECT month, n + 0 FROM m").fetchall()

    assert len(calendar) == 36
    assert [row for row in calendar if row[1] != 0] == shown
    assert [int(str(n)) for month, n in totals if month is None] == [sum(released.values())]


def test_where_no_group_is_left_the_answer_is_empty_and_charged(session: Session, told: list[str]) -> None:
    sql = "SELECT city, count(*) FROM customers WHERE name = 'nobody' GROUP BY city"
    answers = [session.execute(sql).fetchall()]
    spent = [notice for notice in told if notice.startswith("ε 3 spent")]
    for _ in range(8):  # one in twenty shows a group of nobody
        session.execute("SET noisegate.reuse = off")
        answers.append(session.execute(sql).fetchall())

    assert spent and [] in answers
    assert any("no group is left: all 5 were left out" in notice for notice in told)


def test_the_last_answer_and_the_plan_say_it_too(session: Session, told: list[str]) -> None:
    _, _, size = shown_and_all(session, told)
    session.execute(RELEASED)
    rows = session.execute("SELECT noise, advice, groups_left_out FROM noisegate.last").fetchall()
    plan = " ".join(str(line).strip() for (line,) in session.execute(f"EXPLAIN {MONTHS}").fetchall())

    ((noise, advice, left_out),) = rows
    assert noise in ("low", "medium", "high", "too high")
    assert (advice is None) == (noise == "low")
    assert "of 36 groups left out (noisegate.empty_groups); together " in str(left_out)
    assert f"a group of about {size} rows or more is shown" in plan
    assert "noise in count(*): none from " in plan


def test_a_mark_of_rows_is_refused_with_what_does_it_better(session: Session) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        session.execute("SET noisegate.mark = rows")

    assert refusal.value.diag.message_hint == "noisegate.empty_groups = hide leaves out groups that are only noise."


def test_distinct_values_of_some_rows_are_those_that_people_have(session: Session, told: list[str]) -> None:
    """They follow from the same numbers as GROUP BY with a count of people, and cost nothing once that was answered."""
    session.execute("SELECT status, count(DISTINCT customer_id) FROM orders WHERE amount < 450 GROUP BY status")
    told.clear()

    rows = session.execute("SELECT DISTINCT status FROM orders WHERE amount < 450 ORDER BY status").fetchall()

    assert rows == [("open",), ("paid",), ("sent",), ("returned",)]
    assert any("ε 0 spent" in notice for notice in told)
    assert not any("every value that is listed" in notice for notice in told)


def test_distinct_values_of_a_whole_table_are_its_list(session: Session, told: list[str]) -> None:
    cities = session.execute("SELECT DISTINCT city FROM customers ORDER BY city").fetchall()

    assert cities == [("Berlin",), ("Graz",), ("Lyon",), ("Porto",)]
    assert any("every value that is listed is shown: no row was counted" in notice for notice in told)
