"""Keys of groups through the whole proxy: no type's name and no byte of a value makes a statement fail.

A statement that fails exactly when some group exists tells of that group, whatever noise its numbers have.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase
from tests.support import shop
from tests.support.running import Noisegate, noisegate

RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: people.id
tables:
  people: {{unit: id}}
budget: {{epsilon: 1000, delta: 1e-2}}
defaults: {{epsilon: 10, max_epsilon: 10, delta: 1e-4}}
analysts:
{shop.RULES[shop.RULES.index("analysts:") :].partition(chr(10))[2]}"""

# The SQL names of these types begin as those of numbers do.
NAMED_LIKE_NUMBERS = """
CREATE SCHEMA realm; CREATE SCHEMA integers; CREATE SCHEMA "numeric";
CREATE TYPE realm.tier AS ENUM ('gold', 'tin');
CREATE TYPE integers.kind AS ENUM ('odd', 'even');
CREATE DOMAIN "numeric".label AS text;
CREATE TABLE people (
    id integer PRIMARY KEY, tier realm.tier NOT NULL, kind integers.kind NOT NULL, label "numeric".label NOT NULL,
    note text
);
"""
PEOPLE = """
INSERT INTO people
SELECT i, 'gold', (enum_range(NULL::integers.kind))[1 + i % 2], 'label ' || i % 2, 'note ' || i % 3
FROM generate_series(1, 600) AS i;
"""
GRANTS = f"""
DO $$ BEGIN CREATE ROLE {shop.READER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT SELECT ON people TO {shop.READER};
"""


def made(cluster: Cluster, name: str, *parts: str, options: str = "") -> RealDatabase:
    """A new database with these tables and rows."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {options}")
    database = RealDatabase(cluster, name)
    with database.connect() as connection:
        for part in parts:
            connection.execute(part)
    return database


@pytest.fixture(scope="module")
def named_like_numbers(real_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    database = made(real_cluster, "realms", NAMED_LIKE_NUMBERS, PEOPLE, GRANTS)
    with noisegate(tmp_path_factory.mktemp("realms"), database.reader_dsn, rules=RULES, name="realms") as running:
        yield running


@pytest.mark.parametrize(
    ("key", "values"), [("tier", ["gold"]), ("kind", ["even", "odd"]), ("label", ["label 0", "label 1"])]
)
def test_a_type_whose_name_begins_as_that_of_a_number_is_none(
    named_like_numbers: Noisegate, key: str, values: list[str]
) -> None:
    """With labels read as numbers the statement failed after its charge exactly where a group was found."""
    sql = f"SELECT {key}::text, note, count(*) FROM people GROUP BY {key}, note"
    with psycopg.connect(named_like_numbers.dsn(), autocommit=True) as session:
        rows = session.execute(sql).fetchall()

    assert sorted({row[0] for row in rows}) == values
    assert {row[1] for row in rows} == {"note 0", "note 1", "note 2"}


# By encoding: labels as they are stored, and what is shown of them. Some are no letters there: to UTF8 the server
# converts none of these, so that asking for them as UTF8 fails exactly where somebody has them.
STORED = {
    "LATIN1": {b"M\xe1laga": "Málaga", b"\x81": "\x81"},
    "WIN1252": {b"\x80uro": "€uro", b"odd \x81": r"odd \x81"},
    "EUC_JP": {"東京".encode("euc_jp"): "東京", b"odd \xa9\xa1": r"odd \xa9\xa1"},
}
IN_ANOTHER_ENCODING = """
CREATE TABLE people (id integer PRIMARY KEY, label text NOT NULL, city text);
INSERT INTO people
SELECT i, convert_from(decode((ARRAY[{labels}])[1 + i % {many}], 'hex'), '{encoding}'),
       CASE WHEN i % 3 > 0 THEN 'Berlin' END
FROM generate_series(1, 600) AS i;
INSERT INTO people VALUES (1000, convert_from(decode('{alone}', 'hex'), '{encoding}'), 'nowhere');
"""
WITH_CITIES = RULES.replace(
    "people: {unit: id}", "people: {unit: id, columns: {city: {values: [Berlin, Łódź]}, label: {}}}"
)


def served(cluster: Cluster, tmp_path: Path, encoding: str, rules: str = RULES) -> AbstractContextManager[Noisegate]:
    """A proxy in front of a database in this encoding; one person's label there is no letter, and hers alone."""
    labels, name = STORED[encoding], f"served_{encoding}_{len(rules)}".lower()
    alone = {"LATIN1": b"\x9f", "WIN1252": b"\x8d", "EUC_JP": b"\xa9\xa2"}[encoding]
    rows = IN_ANOTHER_ENCODING.format(
        labels=", ".join(f"'{label.hex()}'" for label in labels), many=len(labels), encoding=encoding, alone=alone.hex()
    )
    options = f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    database = made(cluster, name, rows, GRANTS, options=options)
    return noisegate(tmp_path, database.reader_dsn, rules=rules, name=name)


@pytest.mark.parametrize("encoding", list(STORED))
def test_labels_that_cannot_be_converted_are_found_and_shown_and_known_again(
    real_cluster: Cluster, tmp_path: Path, encoding: str
) -> None:
    with (
        served(real_cluster, tmp_path, encoding) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        found = session.execute("SELECT label, count(*) FROM people GROUP BY label").fetchall()
        more = session.execute("SELECT label, count(*), count(city) FROM people GROUP BY label").fetchall()

    assert {label for label, _ in found} == set(STORED[encoding].values())
    assert all(abs(count - 300) < 30 for _, count in found)
    assert [(label, count) for label, count, _ in more] == found
    assert all(abs(with_city - 200) < 30 for *_, with_city in more)


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP"])
def test_what_an_encoding_does_not_have_is_refused_before_the_charge(
    real_cluster: Cluster, tmp_path: Path, encoding: str
) -> None:
    refused = [
        ("SELECT count(*) FROM people WHERE label = 'Ж🙂'", "'Ж🙂' has no equivalent in"),
        ("SELECT city, count(*) FROM people GROUP BY city", "'Łódź' has no equivalent in"),
        ("SELECT count(*) FROM people WHERE ascii(label) > 99", "ascii needs a database with encoding UTF8"),
        ("SELECT count(*) FROM people WHERE lower(label) = 'x'", "lower needs a database with encoding UTF8"),
        ("SELECT initcap(label), count(*) FROM people GROUP BY 1", "initcap needs a database with encoding UTF8"),
        ("SELECT count(*) FROM people WHERE label ILIKE 'm%'", "ILIKE needs a database with encoding UTF8"),
    ]
    with (
        served(real_cluster, tmp_path, encoding, WITH_CITIES) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        for sql, words in refused:
            if encoding == "EUC_JP" and "Łódź" in words:
                continue  # JIS X 0212 has these letters
            for asked in (sql, f"EXPLAIN {sql}"):
                with pytest.raises(psycopg.errors.FeatureNotSupported, match=f"^{words}.*{encoding}"):
                    session.execute(asked)
        spent = session.execute("SELECT epsilon_spent FROM noisegate.budget").fetchall()
        count = session.execute("SELECT count(*) FROM people WHERE label LIKE 'o%'").fetchone()

    assert all(epsilon == 0 for (epsilon,) in spent)
    assert count is not None
