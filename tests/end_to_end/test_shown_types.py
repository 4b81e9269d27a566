# ruff: noqa: E501  (a statement a line)
"""Columns of answers through the whole proxy: type, length and precision are those that PostgreSQL gives them."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase
from tests.end_to_end.test_keys import made
from tests.support import shop
from tests.support.running import Noisegate, noisegate

RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: people.id
tables:
  people:
    unit: id
    columns:
      n: {{values: [0, 1, 2.5]}}
      c: {{values: [ab, cd]}}
      v: {{values: [xy]}}
      t: {{values: [2024-01-01]}}
  prices: public
budget: {{epsilon: 1000, delta: 1e-2}}
defaults: {{epsilon: 10, max_epsilon: 10, delta: 1e-4}}
analysts:
{shop.RULES[shop.RULES.index("analysts:") :].partition(chr(10))[2]}"""

TABLES = """
CREATE DOMAIN price AS numeric(7,3);
CREATE TABLE people (
    id integer PRIMARY KEY, n numeric(10,2) NOT NULL, c char(4) NOT NULL, v varchar(5) NOT NULL, t timestamp(1) NOT NULL,
    p price NOT NULL CHECK (p BETWEEN 0 AND 9)
);
CREATE TABLE prices (id integer PRIMARY KEY, cost money NOT NULL, place point NOT NULL, n numeric(4,1) NOT NULL);
"""
ROWS = f"""
INSERT INTO people SELECT i, (ARRAY[0, 1, 2.5])[1 + i % 3], (ARRAY['ab', 'cd'])[1 + i % 2], 'xy', '2024-01-01', i % 9
FROM generate_series(1, 600) AS i;
INSERT INTO prices SELECT i, (2 * i)::money, point(i, 1), i FROM generate_series(1, 3) AS i;
DO $$ BEGIN CREATE ROLE {shop.READER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT SELECT ON people, prices TO {shop.READER};
"""

# Each has something of its groups in its first column, of which nothing is noised.
STATEMENTS = """
SELECT e, count(*) FROM people JOIN (VALUES (1::numeric(4,1)), (2.5::numeric(4,1))) v(e) ON n = e GROUP BY e ORDER BY e
SELECT e, count(*) FROM people JOIN (VALUES ('xy'::varchar(3))) x(e) ON e = v GROUP BY e
SELECT e, count(*) FROM people JOIN (VALUES ('xy'::varchar)) x(e) ON e = v GROUP BY e
SELECT e, count(*) FROM people JOIN (VALUES ('ab'::char(3))) x(e) ON e = c GROUP BY e
SELECT e, count(*) FROM people JOIN (SELECT 'ab'::name AS e) x ON e = c GROUP BY e
SELECT e, count(*) FROM people JOIN (VALUES (timestamp(1) '2024-01-01')) x(e) ON e = t GROUP BY e
SELECT p.n, count(*) FROM people JOIN (SELECT n, count(*) FROM prices GROUP BY n) p ON p.n = people.n WHERE p.n = 1 GROUP BY p.n
SELECT n, count(*) FROM (SELECT n::numeric AS n FROM people) s GROUP BY n ORDER BY n
SELECT c::bpchar, count(*) FROM people GROUP BY 1 ORDER BY 1
SELECT 1, percentile_disc(0.5) WITHIN GROUP (ORDER BY p::numeric), percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM people
SELECT 1, count(l) FROM (SELECT lag(p::numeric) OVER (PARTITION BY id ORDER BY p) AS l FROM people) s
SELECT l IS NULL, l, count(*) FROM (SELECT lag(p::numeric) OVER (PARTITION BY id ORDER BY p) AS l FROM people) s GROUP BY l HAVING l IS NULL
SELECT x, count(*) FROM (SELECT id, max(c) AS x FROM people GROUP BY id) s GROUP BY x ORDER BY x
SELECT (SELECT max(cost / cost) FROM prices), count(*) FROM people
SELECT (SELECT max((place / place)::text) FROM prices), count(*) FROM people
""".strip().splitlines()


@pytest.fixture(scope="module")
def database(real_cluster: Cluster) -> RealDatabase:
    return made(real_cluster, "shown_types", TABLES, ROWS)


@pytest.fixture(scope="module")
def analyst(database: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    directory: Path = tmp_path_factory.mktemp("shown_types")
    with noisegate(directory, database.reader_dsn, rules=RULES) as running:
        proxied: Noisegate = running
        with psycopg.connect(proxied.dsn(dbname="shown_types"), autocommit=True) as connection:
            yield connection


Shown = tuple[list[tuple[int, int]], list[object]]


def shown(connection: psycopg.Connection, text: str) -> Shown:
    """Types and modifiers, and the texts of the first column as the server wrote them."""
    result = connection.pgconn.exec_(text.encode())
    assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message.decode()
    types = [(result.ftype(column), result.fmod(column)) for column in range(result.nfields)]
    return types, [result.get_value(row, 0) for row in range(result.ntuples)]


@pytest.mark.parametrize("text", STATEMENTS)
def test_columns_look_as_they_do_in_postgresql(database: RealDatabase, analyst: psycopg.Connection, text: str) -> None:
    with database.connect() as owner:
        assert shown(analyst, text) == shown(owner, text)


def test_a_parameter_of_type_character_keeps_all_its_letters(analyst: psycopg.Connection) -> None:
    """Its type has no length, and is not that of one letter."""
    analyst.execute("PREPARE of_c (char) AS SELECT $1, count(*) FROM people WHERE c = $1")
    ((letters, people),) = analyst.execute("EXECUTE of_c ('ab')").fetchall()
    assert letters == "ab"
    assert 280 < people < 320


@pytest.mark.parametrize(
    "undefined",
    [
        *("sqrt(n - 1e6)", "|/ (n - 1e6)", "ln(n - 1e6)", "log(0 * n)", "log(2, n - 1e6)", "(n - 1e6) ^ 0.5"),
        *("power(0 * n, -1)", "power(n::float8, 200)", "exp(n * 2)", "exp(n * 100.0)", "acos(n)", "acosh(-n)"),
        *("atanh(n)", "n / (n - n)", "n % (n - n)", "n::int::money / (n - n)::int::money"),
    ],
)
def test_what_is_not_defined_of_an_answer_is_null(analyst: psycopg.Connection, undefined: str) -> None:
    """Noise takes numbers there, and the answer is paid."""
    ((value, people),) = analyst.execute(f"SELECT {undefined}, n FROM (SELECT count(*) AS n FROM people) s").fetchall()
    assert value is None
    assert 580 < people < 620


def test_an_array_of_the_values_of_a_domain_is_refused_with_the_cast_that_helps(analyst: psycopg.Connection) -> None:
    """Values that are put into a domain are checked by its CHECK, which a released number need not pass."""
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="ORDER BY p::numeric"):
        analyst.execute("SELECT percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY p) FROM people")
    asked = "SELECT percentile_disc(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY p::numeric) FROM people"
    ((found,),) = analyst.execute(asked).fetchall()
    assert [0 <= value <= 9 for value in found] == [True, True], found
