"""Every attack that we know of, through the running proxy: refused in the expected way, by both protocols."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.end_to_end.attacks import ATTACKS, Attack
from tests.support.running import Noisegate

BOTH = pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])


class Analyst:
    """A session that pays for every answer, beside the ledger that it pays into."""

    def __init__(self, connection: psycopg.Connection, proxy: Noisegate) -> None:
        self.connection, self._proxy = connection, proxy
        connection.execute("SET noisegate.reuse = off")
        connection.execute("SET noisegate.epsilon = 0.1")

    def outcome(self, sql: str, *, extended: bool) -> str:
        """The SQLSTATE of a refusal, which must not have been charged; "answer" or "free", as the ledger says."""
        before = self._proxy.ledger_length()
        try:
            self._run(sql, extended=extended)
        except psycopg.Error as error:
            assert error.sqlstate is not None, error
            assert self._proxy.ledger_length() == before
            return error.sqlstate
        return "free" if self._proxy.ledger_length() == before else "answer"

    def _run(self, sql: str, *, extended: bool) -> None:
        if sql.startswith("COPY"):
            with self.connection.cursor().copy(sql) as copy:
                assert not list(copy)
            return
        cursor = self.connection.execute(sql, prepare=extended or None)
        if cursor.description:
            cursor.fetchall()


@pytest.fixture(scope="module")
def analyst(proxy: Noisegate) -> Iterator[Analyst]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield Analyst(connection, proxy)


@BOTH
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_is_refused_and_the_session_goes_on(analyst: Analyst, attack: Attack, *, extended: bool) -> None:
    assert analyst.outcome(attack.sql, extended=extended) in attack.outcome

    assert analyst.connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "wrap",
    [
        "PREPARE trick AS {}; EXECUTE trick",
        "BEGIN; DECLARE trick CURSOR FOR {}; FETCH ALL FROM trick; COMMIT",
        "COPY ({}) TO STDOUT",
        "EXPLAIN ANALYZE {}",
        "SELECT 1; {}",
        "BEGIN; {}; COMMIT",
        "WITH w AS ({}) SELECT * FROM w",
        "SELECT * FROM ({}) AS t",
        "SELECT EXISTS ({})",
        "({}) UNION ALL ({})",
    ],
)
def test_rows_are_not_had_by_any_route_and_never_as_an_empty_answer(proxy: Noisegate, wrap: str) -> None:
    """The twin's tables are empty: a route that ran there would give no rows, and no error."""
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        for rows in ("SELECT id FROM customers", "TABLE orders", "SELECT c FROM public.customers AS c"):
            with pytest.raises(psycopg.Error) as refusal:
                _all_of(connection, wrap.replace("{}", rows))
            assert refusal.value.sqlstate in ("42501", "0A000"), refusal.value
            connection.execute("ROLLBACK")
            connection.execute("DEALLOCATE ALL")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM customers",
        "WITH w AS (SELECT count(*) AS n FROM customers) SELECT n FROM w",
        "SELECT (SELECT count(*) FROM customers)",
        "SELECT n FROM (SELECT count(*) AS n FROM public.customers) AS t",
        "BEGIN; PREPARE honest AS SELECT count(*) FROM customers; EXECUTE honest",
        "BEGIN; DECLARE honest CURSOR FOR SELECT count(*) FROM customers; FETCH ALL FROM honest",
        "SELECT sum(n) FROM (SELECT city, count(*) AS n FROM customers GROUP BY city) AS t",
    ],
)
def test_an_aggregate_by_any_route_is_of_the_real_rows(proxy: Noisegate, sql: str) -> None:
    """400 customers, or thereabouts: the twin has none."""
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        *_, ((count,),) = _all_of(connection, sql)

        assert 350 < count < 450


def _all_of(connection: psycopg.Connection, sql: str) -> list[list[tuple[int, ...]]]:
    """All result sets of a string of statements; what COPY sends are results too."""
    if sql.startswith("COPY"):
        with connection.cursor().copy(sql) as copy:
            return [[tuple(map(int, bytes(line).split()))] for line in copy]
    cursor = connection.execute(sql)
    results = []
    while True:
        if cursor.description:
            results.append(cursor.fetchall())
        if not cursor.nextset():
            return results
