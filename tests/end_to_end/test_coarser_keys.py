"""Foreign keys between types of different equality: a unique column proves nothing of the rows of one person there.

Every card number with blanks at its end refers to the same card, as a character(8) has none.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import command, noisegate

SCHEMA = f"""
CREATE TABLE customers (id integer PRIMARY KEY);
CREATE TABLE cards (code character(8) PRIMARY KEY, customer_id integer NOT NULL UNIQUE REFERENCES customers);
CREATE TABLE loans (card varchar UNIQUE REFERENCES cards, branch text);
CREATE TABLE accounts (id double precision PRIMARY KEY, customer_id integer NOT NULL UNIQUE REFERENCES customers);
CREATE TABLE debts (account bigint UNIQUE REFERENCES accounts);
INSERT INTO customers SELECT generate_series(1, 100);
INSERT INTO cards SELECT 'C' || id, id FROM customers;
INSERT INTO loans SELECT 'C' || id, 'town' FROM customers;
INSERT INTO loans SELECT rpad('C1', 2 + n), CASE WHEN n > 706 THEN 'only Ada''s' ELSE 'town' END
    FROM generate_series(1, 766) AS n;
INSERT INTO accounts SELECT 2 ^ 60 + 65536.0 * id, id FROM customers;
INSERT INTO debts SELECT id::bigint FROM accounts;
INSERT INTO debts SELECT (2 ^ 60 + 65536.0)::bigint + n FROM generate_series(1, 60) AS n;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO {shop_data.READER};
"""
RULES = f"""{shop_data.RULES[: shop_data.RULES.index("tables:")]}tables:
  customers: {{unit: id}}
  cards: {{unit: customer_id}}
  loans: {{unit: card -> cards.code, rows_per_unit: 3}}
  accounts: {{unit: customer_id}}
  debts: {{unit: account -> accounts.id, rows_per_unit: 3}}
{shop_data.RULES[shop_data.RULES.index("budget:") :]}"""


@pytest.fixture(scope="module")
def library(shop: RealDatabase) -> RealDatabase:
    """Beside the shop, in its cluster, where the role that the proxy uses exists."""
    with shop.connect() as owner:
        owner.execute("CREATE DATABASE library")
    made = RealDatabase(shop.cluster, "library")
    with made.connect() as owner:
        owner.execute(SCHEMA)
    return made


@pytest.fixture(scope="module")
def session(library: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    with (
        noisegate(tmp_path_factory.mktemp("library"), library.reader_dsn, rules=RULES, name="library") as running,
        psycopg.connect(running.dsn(), autocommit=True) as connection,
    ):
        connection.execute("SET noisegate.epsilon = 2")
        yield connection


@pytest.mark.parametrize("table", ["loans", "debts"])
def test_the_many_rows_of_one_person_are_cut(session: psycopg.Connection, table: str) -> None:
    """The noise is beyond 40 with a probability below 10^-11."""
    (count,) = session.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)

    assert 60 < count < 145


def test_a_group_with_rows_of_one_person_alone_is_not_found(session: psycopg.Connection) -> None:
    branches = {branch for branch, _ in session.execute("SELECT branch, count(*) FROM loans GROUP BY branch")}

    assert branches == {"town"}


def test_check_warns_of_the_keys_and_refuses_a_unit_column_that_splits_a_person(
    library: RealDatabase, tmp_path: Path
) -> None:
    made = command("check", str(shop_data.rules_file(tmp_path, RULES)), database=library.reader_dsn)

    assert made.returncode == 0
    assert "tables.loans: its foreign key card joins character varying with character(8)" in made.stdout
    assert "tables.debts: its foreign key account joins bigint with double precision" in made.stdout

    tables = "tables:\n  cards: {unit: code}\n  loans: {unit: card, rows_per_unit: 3}\n"
    split = RULES[: RULES.index("unit:")] + "unit: cards.code\n" + tables + RULES[RULES.index("budget:") :]
    made = command("check", str(shop_data.rules_file(tmp_path, split)), database=library.reader_dsn)

    assert made.returncode != 0
    assert (
        'which have different equalities: one unit could pass for several (write "card -> cards.code")' in made.stdout
    )
