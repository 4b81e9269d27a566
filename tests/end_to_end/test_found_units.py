"""Units are counted in all groups that were found, not in one of them, for one charge."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support.running import Noisegate

Session = psycopg.Connection

# Months as Roman numerals: a mask whose texts nobody lists, so that the groups are found.
BY_MONTH = (
    "SELECT to_char(ordered_at AT TIME ZONE 'UTC', 'RM') AS k, count(DISTINCT customer_id) AS n FROM orders GROUP BY 1"
)


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("SET noisegate.epsilon = 8")
        yield connection


def told(session: Session, sql: str) -> tuple[dict[str, int], str]:
    words: list[str] = []
    session.add_notice_handler(lambda notice: words.append(notice.message_primary or ""))
    return dict(session.execute(sql).fetchall()), "\n".join(words)


def spent(session: Session) -> object:
    return session.execute("SELECT count(*), sum(epsilon) FROM noisegate.ledger").fetchone()


def test_a_unit_counts_in_every_found_group(session: Session, shop: RealDatabase) -> None:
    with shop.connect() as real:
        truth: dict[str, int] = dict(real.execute(BY_MONTH).fetchall())

    found, words = told(session, BY_MONTH)

    assert found.keys() == truth.keys()  # of some 90 units each, where about 17 are enough
    assert all(abs(number - truth[month]) < 120 for month, number in found.items()), (found, truth)
    assert sum(found.values()) > 700  # of 355 customers with orders, each of whom counted once before
    assert "groups of each unit: up to " in words and "groups of fewer than about" in words
    assert "a unit counts in at most 1 group" not in words


def test_it_is_one_charge_and_is_served_again(session: Session) -> None:
    sql = BY_MONTH.replace("id) AS", "id) + count(*) AS")
    before = spent(session)

    first, _ = told(session, sql)
    charged = spent(session)
    again, words = told(session, sql)

    assert isinstance(before, tuple) and isinstance(charged, tuple)
    assert charged[0] == before[0] + 1 and first == again and "ε 0 spent" in words
    assert spent(session) == charged


def test_the_same_list_serves_another_question_over_the_same_rows(session: Session) -> None:
    """A sum over the groups that a count of units has found costs its own part alone."""
    sql = BY_MONTH.replace("GROUP BY", "WHERE amount < 400 GROUP BY")
    found, _ = told(session, sql)

    more, words = told(
        session, sql.replace("count(DISTINCT customer_id)", "count(DISTINCT customer_id) FILTER (WHERE amount > 200)")
    )

    assert more.keys() == found.keys() and "ε 8 spent" not in words


def test_the_session_may_say_in_how_many_groups_a_unit_counts(session: Session) -> None:
    session.execute("SET noisegate.groups_per_unit = 1")

    found, words = told(session, BY_MONTH)

    assert sum(found.values()) < 700
    assert "a unit counts in at most 1 group" in words


def test_explain_says_how_groups_are_found_and_how_units_count(session: Session) -> None:
    lines = "\n".join(row[0] for row in session.execute(f"EXPLAIN {BY_MONTH}"))

    assert "found in the data, by threshold: from about" in lines
