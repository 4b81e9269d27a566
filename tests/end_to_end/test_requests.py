"""More budget: asked for in SQL, answered at the command line, in force with the next statement; and roles."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import Noisegate, command, noisegate

RULES = (
    shop_data.RULES.replace("  ada:\n", "  ada:\n    role: team\n")
    .replace("  bob:\n", "  bob:\n    role: team\n")
    .replace("    epsilon: 500\n", "")
    + "roles:\n  team: {epsilon: 6, per_analyst: 2}\n"
)
ASK = "SELECT noisegate.request(5, 'the quarterly report')"


@pytest.fixture(scope="module")
def guarded(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    directory: Path = tmp_path_factory.mktemp("requests")
    with noisegate(directory, shop.reader_dsn, rules=RULES) as running:
        yield running


def requests(guarded: Noisegate, shop: RealDatabase, *options: str) -> list[dict[str, object]]:
    done = command("requests", str(guarded.rules), "--all", "--json", *options, database=shop.reader_dsn)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_a_request_is_listed_granted_and_in_force_with_the_next_statement(
    guarded: Noisegate, shop: RealDatabase
) -> None:
    with psycopg.connect(guarded.dsn("bob"), autocommit=True) as session:
        session.execute("SET noisegate.reuse = off; SET noisegate.epsilon = 2")
        session.execute("SELECT count(*) FROM customers")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            session.execute("SELECT count(*) FROM customers")
        (said,) = session.execute(ASK).fetchone() or ()
        number = int(str(said).split()[1])
        (mine,) = [request for request in requests(guarded, shop) if request["request"] == number]
        assert (mine["analyst"], mine["epsilon"], mine["reason"]) == ("bob", "5", "the quarterly report")

        done = command(
            *("requests", str(guarded.rules), "--grant", str(number), "--epsilon", "2", "--say", "half of it"),
            database=shop.reader_dsn,
        )

        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "bob may spend ε 2 more from now on",
            'left now: ε 2; the role "team" has 4, all analysts together have 998',
        ]
        session.execute("SELECT count(*) FROM customers")
        rows = session.execute("SELECT state, granted, answer FROM noisegate.requests").fetchall()
        assert rows == [("granted", 2, "half of it")]
    event = guarded.events("budget_requested")[-1]
    assert (event["analyst"], event["request"], "quarterly" in str(event)) == ("bob", number, False)


ROUTES = [
    (ASK, ()),
    ("SELECT noisegate.request(%s, %s) AS filed", (1.5, "a parameter")),
    ("SELECT noisegate.request('2'::numeric, 'a cast'::text)", ()),
    ("SELECT noisegate.request(reason => 'by name', epsilon => 0.75)", ()),
    ("PREPARE p AS SELECT noisegate.request($1, 'prepared'); EXECUTE p (0.5)", ()),
    ("SELECT noisegate.request(%s, %s)", (Decimal("1.25"), "a decimal")),
    ("BEGIN; DECLARE c CURSOR FOR SELECT noisegate.request(1, 'by a cursor'); FETCH ALL FROM c", ()),
]


@pytest.mark.parametrize(("sql", "values"), ROUTES, ids=str)
def test_it_is_filed_once_whatever_way_it_comes(
    guarded: Noisegate, shop: RealDatabase, sql: str, values: tuple[object, ...]
) -> None:
    before = len(requests(guarded, shop))
    with psycopg.connect(guarded.dsn(), autocommit=True) as session:
        for text in sql.split("; "):
            session.execute(text, values or None)
    assert len(requests(guarded, shop)) == before + 1


REFUSED = [
    ("SELECT noisegate.request(0, 'nothing')", "22023"),
    ("SELECT noisegate.request(1001, 'more than all')", "22023"),
    ("SELECT noisegate.request(1, '')", "22023"),
    ("SELECT noisegate.request(1, E'\\x1b[2J')", "22023"),
    ("SELECT noisegate.request(1, 'why') FROM products", "0A000"),
    ("SELECT noisegate.request(1, 'why'), noisegate.request(1, 'why')", "0A000"),
    ("SELECT noisegate.request(id, name) FROM products", "0A000"),
    ("SELECT count(*) FROM customers WHERE noisegate.request(1, 'why') > ''", "0A000"),
    ("EXPLAIN SELECT noisegate.request(1, 'why')", "0A000"),
    ("BEGIN; CREATE TEMP VIEW v AS SELECT noisegate.request(1, 'why'); SELECT * FROM v", "0A000"),
    ("BEGIN; SET search_path = noisegate; SELECT request(1, 'why')", "0A000"),
]


@pytest.mark.parametrize(("sql", "code"), REFUSED)
def test_it_stands_alone_and_says_so(guarded: Noisegate, shop: RealDatabase, sql: str, code: str) -> None:
    before = len(requests(guarded, shop))
    with (
        psycopg.connect(guarded.dsn(), autocommit=True) as session,
        pytest.raises(psycopg.Error) as refused,
    ):
        for text in sql.split("; "):
            session.execute(text)
    assert refused.value.sqlstate == code
    assert len(requests(guarded, shop)) == before


def test_a_number_that_is_no_open_request_is_refused(guarded: Noisegate, shop: RealDatabase) -> None:
    done = command("requests", str(guarded.rules), "--grant", "100000", database=shop.reader_dsn)
    assert (done.returncode, done.stderr) == (1, "noisegate: there is no request 100000\n")


def test_ten_requests_of_an_analyst_may_be_open(guarded: Noisegate, shop: RealDatabase) -> None:
    with psycopg.connect(guarded.dsn(), autocommit=True) as session:
        with pytest.raises(psycopg.Error) as refused:
            for _ in range(11):
                session.execute(ASK)
        assert refused.value.sqlstate == "54000"
        (number, *_) = session.execute("SELECT request FROM noisegate.requests WHERE state = 'open'").fetchone() or ()
        done = command("requests", str(guarded.rules), "--refuse", str(number), database=shop.reader_dsn)
        assert done.stdout == f"request {number} of ada is refused\n"
        session.execute(ASK)


def test_the_role_ends_before_its_analysts(guarded: Noisegate) -> None:
    with psycopg.connect(guarded.dsn(), autocommit=True) as session:
        told: list[str] = []
        session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        session.execute("SET noisegate.reuse = off; SET noisegate.epsilon = 1.5")
        session.execute("SELECT count(*) FROM customers")
        accounts = [row[0] for row in session.execute("SELECT account FROM noisegate.budget")]
    assert accounts == ["yours", "role", "shared"]
    assert "left" in told[0]
