"""What one statement may ask of the real database has limits, and is refused beyond them before anything is charged."""

from collections.abc import Iterator

import psycopg
import pytest

from proxy.execute.load_limits import MOST_REFUSALS
from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate

ARGUMENTS = (
    "--max-inner-statements",
    "5",
    "--max-cost",
    "20000",
    "--max-running",
    "2",
    "--max-running-per-analyst",
    "1",
)
COSTLY = (
    "SELECT count(*) FROM orders JOIN orders AS b USING (customer_id) JOIN orders AS c USING (customer_id) "
    "JOIN orders AS d USING (customer_id) "
    "WHERE c.id > {}"
)


@pytest.fixture(scope="module")
def limited(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    with noisegate(tmp_path_factory.mktemp("load"), shop.reader_dsn, rules=RULES, arguments=ARGUMENTS) as running:
        yield running


@pytest.fixture
def ada(limited: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(limited.dsn(), autocommit=True) as connection:
        yield connection


def test_a_statement_of_many_parts_is_refused_and_one_of_some_is_not(
    limited: Noisegate, ada: psycopg.Connection
) -> None:
    def united(parts: int) -> str:
        return " UNION ALL ".join(f"SELECT count(*) FROM orders WHERE amount < {n + 1}" for n in range(parts))

    with pytest.raises(psycopg.errors.StatementTooComplex, match="needs 6 statements"):
        ada.execute(united(6))
    assert limited.ledger_length() == 0
    assert len(ada.execute(united(5)).fetchall()) == 5


def test_what_the_planner_expects_too_much_of_is_refused_a_few_times_a_day(
    limited: Noisegate, ada: psycopg.Connection
) -> None:
    assert ada.execute("SELECT count(*) FROM customers").fetchone()
    spent = limited.ledger_length()
    for number in range(MOST_REFUSALS):
        for _ in range(2):  # the same again tells nothing new
            with pytest.raises(psycopg.errors.StatementTooComplex, match="estimated cost"):
                ada.execute(COSTLY.format(number))
    with pytest.raises(psycopg.errors.StatementTooComplex, match="within a day"):
        ada.execute("SELECT count(*) FROM customers WHERE is_vip")
    assert limited.ledger_length() == spent
    assert ada.execute("SELECT count(*) FROM customers").fetchone()
    with psycopg.connect(limited.dsn("bob"), autocommit=True) as bob:
        assert bob.execute("SELECT count(*) FROM customers WHERE is_vip").fetchone()


def test_hundreds_of_alternatives_are_answered(limited: Noisegate) -> None:
    condition = " OR ".join(f"amount = {number}" for number in range(700))
    with psycopg.connect(limited.dsn("bob"), autocommit=True) as bob:
        assert bob.execute(f"SELECT count(*) FROM orders WHERE {condition}").fetchone()
