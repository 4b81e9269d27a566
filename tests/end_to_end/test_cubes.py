"""Cubes as a DBA and analysts meet them: made and charged once, then questions about the table itself are free."""

import json
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import Noisegate, command, noisegate, start

CUBES = """\
synopses:
  daily:
    epsilon: 60
    analysts: [ada]
    cube: [ordered_at by month, status]
    measures: [count, sum(amount)]
    table: orders
"""
RULES = shop_data.RULES + CUBES
MONTHS = "date_trunc('month', ordered_at)"
Session = psycopg.Connection


@pytest.fixture(scope="module")
def proxy(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    with noisegate(tmp_path_factory.mktemp("cubes"), shop.reader_dsn, rules=RULES) as running:
        running.wait_for("synopsis_shown")
        yield running


@pytest.fixture
def ada(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn("ada"), autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


FREE = (
    f"SELECT {MONTHS}, count(*) FROM orders GROUP BY 1",
    f"SELECT {MONTHS}, status, sum(amount), avg(amount) FROM orders GROUP BY 1, 2",
    "SELECT extract(year FROM ordered_at), sum(amount) FROM orders GROUP BY 1",
    "SELECT status, sum(amount) FROM orders GROUP BY status",
    "SELECT count(*) FROM orders",
    "SELECT sum(amount) FROM orders WHERE status = 'paid' AND ordered_at >= '2024-03-01' AND ordered_at < '2025-01-01'",
    "SELECT count(*) FROM orders WHERE status::text LIKE '%e%'",
    "SELECT status, sum(amount) FROM orders JOIN customers ON customers.id = customer_id GROUP BY status",
    "SELECT CASE WHEN status IN ('open', 'paid') THEN 'here' ELSE 'gone' END, sum(amount) FROM orders GROUP BY 1",
    "SELECT to_char(ordered_at, 'YYYY-MM'), count(*) FROM orders WHERE ordered_at < '2024-07-01' OR status = 'paid'"
    " GROUP BY 1",
)


@pytest.mark.parametrize("query", FREE)
def test_questions_whose_keys_and_filters_lie_in_one_set_cost_nothing(
    proxy: Noisegate, ada: Session, query: str
) -> None:
    ada.execute("SET noisegate.epsilon = 0.1")
    before = proxy.ledger_length()
    explained = plan_of(ada, query)
    rows = ada.execute(query).fetchall()

    assert "charge now: epsilon=0," in explained, explained
    assert "from cube daily made 20" in explained and "where a fresh answer has" in explained, explained
    assert "rows of a unit are cut over all cells of the cube" in explained
    assert rows == ada.execute(query).fetchall()
    assert proxy.ledger_length() == before, "it was charged"


def plan_of(session: Session, query: str) -> str:
    return "\n".join(row[0] for row in session.execute(f"EXPLAIN {query}"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM orders WHERE amount > 7",
        "SELECT count(*) FROM orders WHERE ordered_at >= '2024-03-02' AND ordered_at < '2025-01-01'",
        "SELECT city, count(*) FROM orders JOIN customers ON customers.id = customer_id GROUP BY city",
        "SELECT count(DISTINCT customer_id) FROM orders",
    ],
)
def test_all_others_are_asked_afresh(ada: Session, query: str) -> None:
    ada.execute("SET noisegate.epsilon = 0.1")
    explained = plan_of(ada, query)

    assert "charge now: epsilon=0.1" in explained, explained
    assert "served again: nothing" in explained and "cube" not in explained, explained


def test_a_cube_serves_only_what_is_asked_with_no_more_precision_and_its_readers(
    proxy: Noisegate, ada: Session
) -> None:
    by_month = f"SELECT {MONTHS}, count(*) FROM orders GROUP BY 1"
    ada.execute("SET noisegate.epsilon = 10")
    assert "charge now: epsilon=10" in plan_of(ada, by_month)
    ada.execute("SET noisegate.epsilon = 0.1")
    ada.execute("SET noisegate.reuse = off")
    assert "charge now: epsilon=0.1" in plan_of(ada, by_month)
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob:
        bob.execute("SET TimeZone = 'UTC'")
        assert "charge now: epsilon=1," in plan_of(bob, by_month)
        assert "served again: nothing" in plan_of(bob, by_month)
        assert bob.execute("SELECT name FROM noisegate.synopses").fetchall() == []


def test_its_numbers_are_those_of_the_table_within_their_bars(shop: RealDatabase, ada: Session) -> None:
    """Statuses of all orders: 95% of answers lie within the margin, and what is beyond four of them is a fault."""
    ada.execute("SET noisegate.epsilon = 0.1; SET noisegate.empty_groups = show")
    query = "SELECT status, count(*), noisegate.margin(count(*)) FROM orders WHERE {} GROUP BY status"
    shown = ada.execute(query.format("ordered_at < '2027-01-01'")).fetchall()
    with shop.connect() as real:
        counted: dict[str, Decimal] = dict(
            real.execute(
                "SELECT status::text, sum(least(1, 40.0 / units)) FROM orders JOIN (SELECT customer_id, count(*) AS"
                " units FROM orders GROUP BY 1) AS u USING (customer_id) GROUP BY 1"
            ).fetchall()
        )

    assert {status for status, _, _ in shown} == counted.keys()
    assert all(abs(count - float(counted[status])) <= 4 * margin for status, count, margin in shown), shown


def test_a_proxy_that_starts_knows_it_before_its_first_statement(proxy: Noisegate, shop: RealDatabase) -> None:
    another = start(proxy.rules, shop.reader_dsn)
    try:
        another.wait_for("ready")
        events = [json.loads(line)["event"] for line in another.lines if line.startswith("{")]
    finally:
        another.stop()

    assert "synopsis_shown" in events[: events.index("ready")]
    assert "synopsis_made" not in events


def test_the_command_line_makes_lists_and_drops_it(proxy: Noisegate, shop: RealDatabase, ada: Session) -> None:
    listed = ada.execute("SELECT name, kind, state, epsilon, tables, rows FROM noisegate.synopses").fetchall()
    assert [(*each[:3], float(each[3]), *each[4:]) for each in listed] == [
        ("daily", "cube", "ready", 60.0, ["orders"], 2 * (36 + 4 + 144))
    ]
    ((made_at,),) = ada.execute("SELECT made_at FROM noisegate.synopses").fetchall()

    told = command("synopsis", "make", str(proxy.rules), "daily", database=shop.reader_dsn)

    assert "made daily: 3 sets of keys, 184 cells, charged to the budget of all (ε 60, paid as ρ" in told.stdout
    refused = command("synopsis", "report", str(proxy.rules), "daily", database=shop.reader_dsn)
    assert refused.returncode and "daily is a cube" in refused.stderr
    proxy.wait_for("synopsis_shown", count=2)
    assert ada.execute("SELECT made_at > %s FROM noisegate.synopses", [made_at]).fetchall() == [(True,)]

    told = command("synopsis", "drop", str(proxy.rules), "daily", database=shop.reader_dsn)

    assert told.stdout.startswith("dropped daily: a running proxy takes it away within some seconds"), told.stderr
    proxy.wait_for("synopsis_dropped")
    assert ada.execute("SELECT name FROM noisegate.synopses").fetchall() == []
    refused = command("synopsis", "drop", str(proxy.rules), "daily", database=shop.reader_dsn)
    assert refused.returncode and "there is nothing of daily" in refused.stderr
