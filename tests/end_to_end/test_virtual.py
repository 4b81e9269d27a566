"""noisegate.budget, ledger and columns: what a tool sees of them, and what an analyst reads there, free of charge."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from rules.sql.session_settings import SETTINGS
from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate

Session = psycopg.Connection


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def first(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session of a proxy that nobody else asks, where so little is spent that what is spent is a sum of ε."""
    with (
        noisegate(tmp_path_factory.mktemp("virtual"), shop.reader_dsn, rules=RULES) as running,
        psycopg.connect(running.dsn(), autocommit=True) as connection,
    ):
        yield connection


def budget(session: Session) -> dict[str, tuple[Decimal, Decimal, Decimal]]:
    rows = session.execute("SELECT account, epsilon, epsilon_spent, epsilon_left FROM noisegate.budget").fetchall()
    return {str(account): (limit, spent, left) for account, limit, spent, left in rows}


def own_spent(session: Session) -> Decimal:
    return budget(session)["yours"][1]


def test_the_budget_tells_of_both_accounts_that_bind_an_analyst(first: Session) -> None:
    before = budget(first)
    first.execute("SET noisegate.reuse = off; SET noisegate.epsilon = 0.25")
    first.execute("SELECT count(*) FROM customers")
    after = budget(first)

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
    assert row[1] == own_spent(session) > spent
    assert session.execute("SELECT epsilon FROM noisegate.ledger ORDER BY time DESC LIMIT 1").fetchone() == (
        Decimal("0.5"),
    )


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT ctid FROM noisegate.budget", "42703"),
        ("SELECT nonsense FROM noisegate.budget", "42703"),
        ("INSERT INTO noisegate.budget (account) VALUES ('mine')", "25006"),
        ("UPDATE noisegate.budget SET epsilon = 1000", "25006"),
        ("SELECT * FROM noisegate.budget TABLESAMPLE SYSTEM (1)", "0A000"),
        ("SELECT count(*) FROM customers, noisegate.budget", "0A000"),
        ("COPY noisegate.budget TO STDOUT", "42501"),
        ("EXPLAIN ANALYZE SELECT * FROM noisegate.budget", "0A000"),
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
    silent = session.execute(
        "SELECT attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
        " WHERE relnamespace = 'noisegate'::regnamespace AND col_description(c.oid, attnum) IS NULL"
    ).fetchall()

    ours = ("budget", "columns", "last", "ledger", "requests", "settings", "synopses", "synopsis_pairs")
    assert tables == [(name, "VIEW") for name in ours]
    assert silent == []
    assert session.execute("SELECT has_table_privilege('noisegate.budget', 'SELECT')").fetchone() == (True,)


def test_the_ledger_lists_own_charges_as_they_come(session: Session) -> None:
    session.execute("SET noisegate.reuse = off")
    session.execute("SET noisegate.epsilon = 0.125")
    session.execute("SELECT status, count(*), sum(amount) FROM orders GROUP BY status")

    row = session.execute(
        "SELECT state, epsilon, epsilon_shared, fresh, seen, tables, now() - time < '1 minute'"
        " FROM noisegate.ledger ORDER BY time DESC LIMIT 1"
    ).fetchone()

    assert row == ("settled", Decimal("0.125"), Decimal("0.125"), 2, 0, ["orders"], True)


def test_the_charges_of_the_ledger_are_the_budget_that_is_spent(first: Session) -> None:
    """Read in one statement, they are of one moment. Each is told in six digits, rounded up; the budget in twelve."""
    for epsilon in ("0.3333333", "1", "0.0123456789"):
        first.execute(f"SET noisegate.epsilon = {epsilon}")
        first.execute("SELECT count(*), avg(amount) FROM orders")
    row = first.execute(
        "SELECT (SELECT array_agg(epsilon) FROM noisegate.ledger), epsilon_ever FROM noisegate.budget"
        " WHERE account = 'yours'"
    ).fetchone()

    assert row is not None
    charges, spent = row
    rounded = sum(Decimal(1).scaleb(charge.adjusted() - 5) for charge in charges)
    assert spent - Decimal("1e-8") <= sum(charges) <= spent + rounded


def test_columns_tell_what_may_be_asked(session: Session) -> None:
    rows = session.execute(
        "SELECT column_name, lower, upper, known_values, can_be_summed, groups, rows_per_unit FROM noisegate.columns"
        " WHERE table_name = 'orders' AND column_name IN ('amount', 'status', 'note') ORDER BY 1"
    ).fetchall()

    assert rows == [
        ("amount", "0.00", "500.00", None, True, "found", 40),
        ("note", None, None, None, False, "found", 40),
        ("status", None, None, ["open", "paid", "sent", "returned"], False, "known", 40),
    ]


def test_columns_are_those_that_the_catalog_shows(session: Session) -> None:
    told = "SELECT table_schema, table_name, column_name FROM noisegate.columns"
    shown = (
        "SELECT table_schema, table_name, column_name FROM information_schema.columns"
        " WHERE table_schema NOT IN ('pg_catalog', 'information_schema', 'noisegate')"
    )

    assert session.execute(f"({told} EXCEPT {shown}) UNION ALL ({shown} EXCEPT {told})").fetchall() == []


def test_all_is_told_when_nothing_is_left(shop: RealDatabase, tmp_path: Path) -> None:
    rules = RULES.replace("budget: {epsilon: 1000,", "budget: {epsilon: 10,")
    with (
        noisegate(tmp_path, shop.reader_dsn, rules=rules) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        session.execute("SELECT count(*) FROM customers")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            session.execute("SELECT count(*) FROM orders")

        assert budget(session)["yours"] == (Decimal(10), Decimal(10), Decimal(0))
        assert session.execute("SELECT state FROM noisegate.ledger").fetchall() == [("settled",)]
        assert session.execute("SELECT count(*) > 10 FROM noisegate.columns").fetchone() == (True,)


def test_the_last_answer_is_told_as_numbers_where_notices_are_hidden(session: Session) -> None:
    session.execute("SET client_min_messages = error; SET noisegate.reuse = off; SET noisegate.epsilon = 0.5")
    session.execute("SET noisegate.empty_groups = show")
    session.execute("SELECT city, count(*) AS people, avg(extract(year FROM birth_date)) FROM customers GROUP BY city")
    rows = session.execute(
        "SELECT column_name, margin_least, margin, margin_in, confidence, epsilon, groups_left_out, time <= now()"
        " FROM noisegate.last"
    ).fetchall()
    ((left,),) = session.execute("SELECT DISTINCT epsilon_left FROM noisegate.last").fetchall()

    people, born = rows
    assert people[:2] == ("people", people[2])  # a count has one margin in all groups
    assert people[3:] == ("value", Decimal("0.95"), Decimal("0.5"), "none", True)
    assert born[0] == "avg"
    assert 0 < born[1] < born[2]
    assert 0 <= min(account[2] for account in budget(session).values()) - left < Decimal("0.001")  # rounded down


def test_the_last_answer_tells_which_groups_may_be_missing_and_belongs_to_one_session(
    session: Session, proxy: Noisegate
) -> None:
    session.execute("SELECT name, count(*) FROM customers GROUP BY name")
    left_out = session.execute("SELECT groups_left_out FROM noisegate.last").fetchone()
    with psycopg.connect(proxy.dsn(), autocommit=True) as other:
        assert other.execute("TABLE noisegate.last").fetchall() == []

    assert left_out is not None
    assert re.fullmatch(r"those of fewer than about \d+ units", left_out[0])


def test_an_answer_that_serves_again_tells_of_the_threshold_by_which_its_groups_were_found(session: Session) -> None:
    """A later statement of less ε, or δ, would have a higher one, below which groups are shown."""
    told = list[str]()
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    for setting in ("epsilon = 1", "epsilon = 0.1", "delta = 1e-12"):
        session.execute(f"SET noisegate.{setting}")
        session.execute("SELECT birth_date, count(*) FROM customers WHERE id < 1201 GROUP BY birth_date")
        told += [left_out for (left_out,) in session.execute("SELECT DISTINCT groups_left_out FROM noisegate.last")]

    assert sum(notice.startswith("reused the answer") for notice in told) == 2
    said = [words for words in told if "of fewer than about" in words]
    assert len(said) == 6
    assert len({re.findall(r"\d+ units", words)[0] for words in said}) == 1


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT count(*) FROM customers WHERE id < 394", "nothing"),
        ("SELECT count(*) FROM orders WHERE amount < 397", r"what is beyond 40 rows of a unit \(the rules' cap\)"),
    ],
)
def test_the_last_answer_tells_what_is_cut(session: Session, sql: str, words: str) -> None:
    session.execute(sql)
    (cut,) = session.execute("SELECT DISTINCT cut FROM noisegate.last").fetchone() or ("",)

    assert re.fullmatch(words, cut)


def test_the_last_answer_tells_of_chosen_caps_and_how_much_they_have_cut(session: Session) -> None:
    session.execute("SET noisegate.rows_per_unit = auto; SET noisegate.cut = on")
    session.execute("SELECT count(*) FROM orders WHERE amount < 397")
    (cut,) = session.execute("SELECT DISTINCT cut FROM noisegate.last").fetchone() or ("",)

    chosen, report = cut.split("; ")
    assert re.fullmatch(r"what is beyond \d+ as the rows of a unit \(chosen\)", chosen)
    assert report.endswith("were cut")


def test_the_settings_are_listed_with_their_limits(session: Session) -> None:
    session.execute("SET noisegate.epsilon = 0.25")
    rows = session.execute("SELECT name, setting, default_value, least, most FROM noisegate.settings").fetchall()
    epsilon = rows[0]

    assert [row[0] for row in rows] == list(SETTINGS)
    assert epsilon[1] == "0.25"
    for bound in epsilon[3:]:
        session.execute(f"SET noisegate.epsilon = {bound}")
    with pytest.raises(psycopg.Error):
        session.execute(f"SET noisegate.epsilon = {Decimal(epsilon[4]) + 1}")
