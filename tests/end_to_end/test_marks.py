"""SET noisegate.mark through a running proxy: what noise could have made is NULL, by every way of asking."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.running import Noisegate

Session = psycopg.Connection


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("SET noisegate.epsilon = 2; SET noisegate.confidence = 0.999")
        yield connection


SQL = "SELECT is_vip, count(*), count(*) FILTER (WHERE birth_date < '1900-01-01') AS old FROM customers GROUP BY is_vip"


def test_cells_of_noise_are_null_and_the_answer_is_the_same_and_free(session: Session) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
    released = session.execute(SQL).fetchall()
    session.execute("SET noisegate.mark = on")
    marked = session.execute(SQL).fetchall()

    assert [row[:2] for row in marked] == [row[:2] for row in released]
    assert [row[2] for row in marked].count(None) >= 1  # each is seen in at most one of 4,000 cases
    assert any("of 4 numbers are marked" in notice for notice in told)
    assert any(text.startswith("ε 0 spent") for text in told)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_it_holds_for_parameters_cursors_and_copies(session: Session, *, binary: bool) -> None:
    session.execute("SET noisegate.mark = on")
    sql = "SELECT count(*)::integer AS n FROM customers WHERE birth_date < %s"
    assert len(session.execute(sql, ("1890-01-01",), binary=binary).fetchall()) == 1
    with session.transaction():
        session.execute(f"DECLARE c CURSOR FOR {SQL} ORDER BY count(*) DESC")
        vip = [row[0] for row in session.execute("FETCH ALL FROM c").fetchall()]
    with session.cursor().copy(f"COPY ({SQL}) TO STDOUT") as copy:
        copied = b"".join(copy)

    assert vip == [False, True]
    assert b"\\N" in copied


@pytest.mark.parametrize("value", ["maybe", "2", "all", "rows"])
def test_a_mark_that_there_is_not_is_refused_when_it_is_set(session: Session, value: str) -> None:
    with pytest.raises(psycopg.Error, match=r"noisegate\.mark takes off, on or cell"):
        session.execute(f"SET noisegate.mark = '{value}'")
