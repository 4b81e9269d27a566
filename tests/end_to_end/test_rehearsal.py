"""What PostgreSQL refuses around a query, where it is run, is refused before the query is paid."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.running import Noisegate

COUNT = "SELECT count(*) FROM customers WHERE id > 123"


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as session:
        yield session


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        (f"COPY ({COUNT}) TO STDOUT WITH (FORMAT json5)", "22023"),
        (f"COPY ({COUNT}) TO STDOUT WITH (colour 'red')", "42601"),
        (f"COPY ({COUNT}) TO STDOUT (FORMAT csv, FORCE_QUOTE (number))", "42703"),
        (f"DECLARE open CURSOR FOR {COUNT}", "42P03"),
    ],
)
def test_an_analysts_own_mistake_costs_nothing(
    proxy: Noisegate, session: psycopg.Connection, sql: str, sqlstate: str, *, prepared: bool
) -> None:
    session.execute("SET noisegate.reuse = off; BEGIN; DECLARE open CURSOR FOR SELECT 1")
    before = proxy.ledger_length()

    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql, prepare=prepared)

    assert (caught.value.sqlstate, proxy.ledger_length()) == (sqlstate, before)
    assert caught.value.diag.statement_position is None


def test_a_type_without_a_binary_form_costs_nothing(proxy: Noisegate, session: psycopg.Connection) -> None:
    before = proxy.ledger_length()

    for _ in range(2):
        with pytest.raises(psycopg.errors.UndefinedFunction, match="no binary output function"):
            session.execute("SELECT count(*), NULL::aclitem FROM customers WHERE id > 124", binary=True)

    assert proxy.ledger_length() == before


def test_what_stands_around_a_query_is_kept(session: psycopg.Connection) -> None:
    session.execute("SET noisegate.reuse = on")
    (count,) = session.execute(COUNT, binary=True).fetchone() or (0,)
    with session.cursor().copy(f"COPY ({COUNT}) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE *)") as copy:
        assert b"".join(copy) == b'count\n"%d"\n' % count
    with session.transaction():
        for _ in range(2):
            session.execute(f'DECLARE "An odd ""name" SCROLL CURSOR FOR {COUNT}')
            assert session.execute('FETCH "An odd ""name"').fetchall() == [(count,)]
            session.execute('CLOSE "An odd ""name"')
    session.execute(f"DECLARE kept CURSOR WITH HOLD FOR {COUNT}")
    assert session.execute("FETCH kept").fetchall() == [(count,)]
