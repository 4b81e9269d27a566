"""noisegate.budget and its like: what a tool sees of them, and what an analyst reads in them, free of charge."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from tests.running import Noisegate

Session = psycopg.Connection


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


def budget(session: Session) -> dict[str, tuple[Decimal, Decimal, Decimal]]:
    rows = session.execute("SELECT account, epsilon, epsilon_spent, epsilon_left FROM noisegate.budget").fetchall()
    return {str(account): (limit, spent, left) for account, limit, spent, left in rows}


def own_spent(session: Session) -> Decimal:
    return budget(session)["yours"][1]


def test_the_budget_tells_of_both_accounts_that_bind_an_analyst(session: Session) -> None:
    before = budget(session)
    session.execute("SET noisegate.reuse = off; SET noisegate.epsilon = 0.25")
    session.execute("SELECT count(*) FROM customers")
    after = budget(session)

    assert list(after) == ["yours", "shared"]
    for account, (limit, spent, left) in after.items():
        assert spent == before[account][1] + Decimal("0.25")
        assert left == limit - spent


ROUTES = [
    "SELECT account FROM noisegate.budget",
    "WITH b AS (TABLE noisegate.budget) SELECT account FROM b",
    "SELECT (b).account FROM (SELECT b FROM noisegate.budget AS b) AS t",
    'SELECT "shop"."noisegate"."budget"."account" FROM "shop"."noisegate"."budget"',
    "SELECT b.account FROM noisegate.budget AS b JOIN pg_class AS c ON c.relname = 'budget'",
    "SELECT account FROM noisegate.budget AS b, LATERAL (SELECT b.epsilon) AS e",
    "SELECT row_to_json(b) ->> 'account' FROM noisegate.budget AS b",
    "BEGIN; PREPARE p AS SELECT account FROM noisegate.budget; EXECUTE p",
    "BEGIN; DECLARE c CURSOR FOR SELECT account FROM noisegate.budget; FETCH ALL FROM c",
]


@pytest.mark.parametrize("sql", ROUTES)
def test_it_is_read_by_every_route_that_a_table_is(session: Session, sql: str) -> None:
    spent = own_spent(session)

    cursor = session.execute(sql)
    while cursor.nextset():
        pass

    assert cursor.fetchall() == [("yours",), ("shared",)]
    session.execute("ROLLBACK")
    assert own_spent(session) == spent


def test_by_its_bare_name_where_the_search_path_has_it(session: Session) -> None:
    session.execute("SET search_path = noisegate")

    assert session.execute("SELECT account FROM budget").fetchall() == [("yours",), ("shared",)]


def test_it_is_copied_out(session: Session) -> None:
    with session.cursor().copy("COPY (SELECT account, period FROM noisegate.budget) TO STDOUT") as copy:
        assert b"".join(copy) == b"yours\tever\nshared\tever\n"


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_it_is_read_with_parameters_in_both_formats(session: Session, *, binary: bool) -> None:
    sql = "SELECT account, epsilon > %b FROM noisegate.budget WHERE account = %s"
    cursor = session.execute(sql, (1, "yours"), prepare=True, binary=binary)

    assert cursor.fetchall() == [("yours", True)]


def test_it_stands_beside_private_answers_that_are_charged_once(session: Session) -> None:
    spent = own_spent(session)
    session.execute("SET noisegate.reuse = off; SET noisegate.epsilon = 0.5")

    row = session.execute(
        "SELECT count(*), (SELECT epsilon_spent FROM noisegate.budget WHERE account = 'yours') FROM customers"
    ).fetchone()

    assert row is not None
    assert 350 < row[0] < 450
    assert row[1] == own_spent(session) == spent + Decimal("0.5")


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT ctid FROM noisegate.budget", "42703"),
        ("SELECT nonsense FROM noisegate.budget", "42703"),
        ("INSERT INTO noisegate.budget (account) VALUES ('mine')", "25006"),
        ("UPDATE noisegate.budget SET epsilon = 1000", "25006"),
        ("SELECT * FROM noisegate.budget TABLESAMPLE SYSTEM (1)", "0A000"),
        ("SELECT count(*) FROM customers, noisegate.budget", "0A000"),
    ],
)
def test_what_no_view_can_do_it_cannot(session: Session, sql: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        session.execute(sql)

    assert refusal.value.sqlstate == sqlstate


def test_tools_see_it_with_its_comments(session: Session) -> None:
    tables = session.execute(
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'noisegate' ORDER BY 1"
    ).fetchall()
    comments = session.execute(
        "SELECT count(*) FILTER (WHERE col_description(a.attrelid, a.attnum) IS NULL), count(*)"
        " FROM pg_attribute AS a WHERE attrelid = 'noisegate.budget'::regclass AND attnum > 0"
    ).fetchone()

    assert ("budget", "VIEW") in tables
    assert comments == (0, 12)
    assert session.execute("SELECT has_table_privilege('noisegate.budget', 'SELECT')").fetchone() == (True,)
