"""Views that the rules name: what they say is what their definitions say, and they prove no more."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.planner.check_rules import check_all
from rules.planner.column_facts import column_facts
from rules.policy.finding import Severity
from rules.policy.rules_yaml import RulesError
from tests.planner.planned import Planner
from tests.properties.planning import PINNED, Lab
from tests.support import shop

SCHEMA = """
CREATE SCHEMA sales;
CREATE TABLE people (id integer PRIMARY KEY, town text NOT NULL, email text);
CREATE TABLE sales.orders (
    id integer PRIMARY KEY, person integer NOT NULL REFERENCES people, amount integer CHECK (amount BETWEEN 0 AND 10));
CREATE TABLE secrets (person integer);
INSERT INTO people SELECT k, (ARRAY['Lyon', 'Graz'])[1 + k % 2] FROM generate_series(1, 90) AS k;
INSERT INTO sales.orders SELECT k, 1 + k % 60, k % 11 FROM generate_series(1, 150) AS k;
CREATE VIEW sales.large AS
    SELECT o.id, o.person, o.amount AS "How much", p.town FROM sales.orders AS o JOIN people AS p ON p.id = o.person
    WHERE o.amount > 3;
CREATE VIEW largest AS SELECT * FROM sales.large WHERE "How much" > 8;
CREATE VIEW towns AS SELECT town, count(*) AS people FROM people GROUP BY town;
CREATE VIEW ranked AS SELECT *, row_number() OVER (ORDER BY amount DESC) AS place FROM sales.orders;
CREATE VIEW mails AS SELECT id, email FROM people;
CREATE VIEW walks AS WITH RECURSIVE r(n) AS (SELECT id FROM people UNION ALL SELECT n FROM r)
    CYCLE n SET again TO 'Y' DEFAULT 'N' USING path SELECT n FROM r;
CREATE VIEW gossip AS SELECT p.id FROM people AS p JOIN secrets AS s ON s.person = p.id;
CREATE VIEW "not named" AS SELECT * FROM people;
CREATE MATERIALIZED VIEW stored AS SELECT * FROM people;
"""
RULES = """\
database: ${NOISEGATE_DATABASE}
unit: people.id
tables:
  people: {unit: id, columns: {town: {values: [Lyon, Graz]}, email: hidden}}
  sales.orders: {unit: person, rows_per_unit: 4}
  sales.large: view
  largest: view
  towns: view
""" + shop.RULES[shop.RULES.index("budget:") :]


@pytest.fixture(scope="module")
def planner(real_cluster: Cluster) -> Iterator[Planner]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE views")
    with psycopg.connect(real_cluster.dsn("views"), autocommit=True) as connection:
        connection.execute(SCHEMA)
    yield Planner(real_cluster.dsn("views"), RULES)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM sales.large",
        'SELECT town, count(*), sum("How much") FROM sales.large AS l GROUP BY 1 ORDER BY 1',
        'SELECT sum(x."How much") FROM largest AS x',
        'SELECT count(*) FROM largest JOIN people ON people.id = largest.person WHERE "How much" = 10',
        "SELECT avg(n) FROM (SELECT person, count(*) AS n FROM sales.large GROUP BY person) AS u",
        "SELECT sum(l.amount) FROM sales.large AS l(id, person, amount, town) WHERE amount < 9 AND town = 'Lyon'",
        'SELECT count(*) FILTER (WHERE sales.large."How much" > 5) FROM sales.large',
        "SELECT max(people) - min(people) FROM towns",
        "WITH large AS (SELECT * FROM people) SELECT count(*) FROM large",
    ],
)
def test_a_view_is_the_query_that_defines_it(planner: Planner, sql: str) -> None:
    with psycopg.connect(planner.dsn, autocommit=True) as connection:
        truth = connection.execute(sql).fetchall()
        connection.execute(PINNED)
        lab = Lab(connection, planner.catalog)
        made = lab.plan(sql, planner.policy)

        assert [tuple(map(float_of, row)) for row in lab.run(lab.outer(made), made)] == [
            tuple(map(float_of, row)) for row in truth
        ]


def float_of(cell: object) -> object:
    return float(cell) if isinstance(cell, Decimal) else cell


def test_a_view_proves_what_its_tables_prove(planner: Planner) -> None:
    assert planner.sensitivities("SELECT count(*) FROM sales.large") == [4]
    assert planner.sensitivities("SELECT people FROM towns") == [1]


def test_a_view_and_its_definition_are_one_question(planner: Planner) -> None:
    (of_view,), (of_tables,) = (
        planner.plan(f"SELECT count(*) FROM {source}").blocks
        for source in ("sales.large", "sales.orders AS o JOIN people AS p ON p.id = o.person WHERE amount > 3")
    )

    assert (of_view.canonical, planner.sql_of(of_view)) == (of_tables.canonical, planner.sql_of(of_tables))


def test_what_may_be_done_with_the_columns_of_a_view_is_told(planner: Planner) -> None:
    told = {
        (str(fact.table.name), fact.column.name): (fact.can_be_summed, fact.groups, fact.rows.most)
        for fact in column_facts(planner.policy, planner.catalog)
    }

    assert told["sales.large", "How much"] == (True, "known", 4)
    assert told["sales.large", "town"] == (False, "known", 4)
    assert told["sales.large", "person"][1] is None
    assert told["towns", "people"] == (False, None, None)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM largest", "rows of a protected table cannot be returned"),
        ("SELECT person, count(*) FROM sales.large GROUP BY 1", "would show single units"),
        ('SELECT "How much" FROM sales.large LIMIT 3', "single rows of a protected table"),
    ],
)
def test_a_view_opens_nothing(planner: Planner, sql: str, words: str) -> None:
    refusal = planner.refusal(sql)

    assert refusal.sqlstate == "42501"
    assert words in refusal.message


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("ranked: view", "the definition of the view is refused: a window function over rows of different units"),
        ("mails: view", "the view reads people.email, which the rules hide"),
        ("walks: view", 'the definition of the view is refused: the definition of view "walks" cannot be parsed'),
        ("gossip: view", "the view reads secrets, which the rules file does not name"),
        ("people2: view", "no such table"),
        ("stored: view", "it is not a view but a materialized view"),
        ("secrets: view", "it is not a view but a table"),
        ("not named: public", "it reads people, which is protected"),
        ("not named: {unit: id}", "a view cannot be protected"),
    ],
)
def test_a_view_that_cannot_be_read_is_found_before_the_start(planner: Planner, rule: str, words: str) -> None:
    changed = Planner(planner.dsn, RULES.replace("  towns: view\n", f"  towns: view\n  {rule}\n"))
    errors = [finding for finding in check_all(changed.policy, changed.catalog) if finding.severity is Severity.ERROR]

    assert [error.path for error in errors] == [f"tables.{rule.split(':')[0]}"]
    assert words in errors[0].message


def test_the_views_of_good_rules_are_no_errors(planner: Planner) -> None:
    found = check_all(planner.policy, planner.catalog)

    assert not [finding for finding in found if finding.severity is Severity.ERROR]
    assert sum("read as its defining query" in finding.message for finding in found) == 3


def test_a_view_has_no_rules_of_its_own(planner: Planner) -> None:
    rules = RULES.replace("towns: view", "towns: {view: true, unit: town}")

    with pytest.raises(RulesError, match="the rules of its tables apply"):
        Planner(planner.dsn, rules).policy  # noqa: B018
