"""Several foreign keys of a table into a synopsis: each refers to a row that is there, and to whom the others tell."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.rulebook import Rulebook
from proxy.synopses.make import Maker
from proxy.synopses.shelf import Shelf
from proxy.twin.embedded import Cluster
from proxy.twin.twin import TwinLimits
from proxy.twin.twins import Twins
from rules.mechanisms.draw import OpenDPNoise
from rules.policy.load import load_policy
from tests.support import shop as shop_data
from tests.support.ledgers import SqliteLedger

SCHEMA = """
CREATE TABLE people (id integer PRIMARY KEY, city text NOT NULL);
CREATE TABLE places (id integer PRIMARY KEY, person integer NOT NULL REFERENCES people, kind text NOT NULL);
CREATE TABLE visits (
    id integer PRIMARY KEY, person integer NOT NULL REFERENCES people, place integer NOT NULL REFERENCES places,
    guide integer NOT NULL REFERENCES people, guest integer REFERENCES people, mood text NOT NULL,
    CHECK (guide > 0)
);
CREATE TABLE bills (
    id integer PRIMARY KEY, visit integer NOT NULL REFERENCES visits, person integer REFERENCES people,
    place integer REFERENCES places, kind text NOT NULL
);
CREATE TABLE pets (id integer PRIMARY KEY, person integer NOT NULL REFERENCES people, kind text NOT NULL);
CREATE TABLE walks (
    id integer PRIMARY KEY, place integer NOT NULL REFERENCES places, pet integer NOT NULL REFERENCES pets, mood text
);
INSERT INTO people SELECT i, CASE WHEN i % 3 = 0 THEN 'Lyon' ELSE 'Porto' END FROM generate_series(1, 300) AS i;
INSERT INTO places SELECT i, 1 + i % 300, CASE WHEN i % 2 = 0 THEN 'flat' ELSE 'shop' END
    FROM generate_series(1, 600) AS i;
INSERT INTO visits SELECT i, p.person, p.id, 1 + i % 7, NULL, 'glad'
    FROM generate_series(1, 900) AS i JOIN places AS p ON p.id = 1 + i % 600;
INSERT INTO pets SELECT i, 1 + i % 300, 'dog' FROM generate_series(1, 600) AS i;
INSERT INTO walks SELECT p.id, p.id, p.id, 'glad' FROM places AS p;
INSERT INTO bills SELECT v.id, v.id, v.person, v.place, 'paid' FROM visits AS v;
"""
TAIL = shop_data.RULES[shop_data.RULES.index("budget:") :]
RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: people.id
tables:
  people: {{unit: id, columns: {{city: {{values: [Lyon, Porto]}}}}}}
  places: {{unit: person, rows_per_unit: 4, columns: {{kind: {{values: [flat, shop]}}}}}}
  visits: {{unit: person, rows_per_unit: 6, columns: {{mood: {{values: [glad, sad]}}}}}}
  pets: {{unit: person, rows_per_unit: 4, columns: {{kind: {{values: [dog, cat]}}}}}}
  walks: {{unit: place -> places.id, rows_per_unit: 4, columns: {{mood: {{values: [glad, sad]}}}}}}
  bills: {{unit: visit -> visits.id, rows_per_unit: 6, columns: {{kind: {{values: [paid, open]}}}}}}
synopses:
  explore: {{epsilon: 20, tables: TABLES}}
{TAIL}"""
ALL = "{people: [city], places: [people.city, kind], visits: [people.city, places.kind, mood]}"
# Without places, visits are linked to people, and bills to visits.
BILLS = "{people: [city], visits: [people.city, mood], bills: [people.city, visits.mood, kind]}"
WALKS = "{people: [city], places: [people.city, kind], pets: [people.city, kind], walks: [people.city, mood]}"
FOREIGN = {ALL: 5, BILLS: 5, WALKS: 4}
# How many rows do not refer to whom their other key tells.
OTHERS = {
    ALL: "FROM explore.visits AS v JOIN explore.places AS p ON p.id = v.place WHERE p.person <> v.person",
    BILLS: "FROM explore.bills AS b JOIN explore.visits AS v ON v.id = b.visit"
    " WHERE b.person IS DISTINCT FROM v.person",
    WALKS: "FROM explore.walks AS w JOIN explore.pets AS d ON d.id = w.pet JOIN explore.places AS p ON p.id = w.place"
    " WHERE d.person <> p.person AND d.person IN (SELECT person FROM explore.places)",
}


@pytest.fixture(scope="module")
async def dsn(real_cluster: Cluster) -> str:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE referring")
    dsn = real_cluster.dsn("referring")
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(SCHEMA)
    return dsn


@pytest.fixture(params=[ALL, BILLS, WALKS], ids=["visits", "bills", "walks"])
async def made(
    request: pytest.FixtureRequest, dsn: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[str, Twins]]:
    folder = tmp_path_factory.mktemp("referring")
    policy = load_policy(RULES.replace("TABLES", request.param), "rules.yaml", {"NOISEGATE_DATABASE": dsn})
    engine = PostgresEngine(dsn)
    catalog = await engine.catalog()
    SqliteLedger.create(folder / "ledger", "1/referring")
    ledger = await SqliteLedger.open(folder / "ledger", "1/referring")
    twins = await Twins.open(catalog, policy, engine, TwinLimits())
    maker = Maker(engine, ledger, OpenDPNoise(), lambda: datetime(2026, 11, 21, tzinfo=UTC))
    await Shelf(maker, twins, lambda _: None).follow(Rulebook.of(policy, catalog, 0))
    yield request.param, twins
    await twins.close()
    await engine.close()
    await ledger.close()


def _row(twins: Twins, sql: str) -> tuple[int, ...]:
    with psycopg.connect(twins.of("ada").dsn("ada"), autocommit=True) as connection:
        (row,) = connection.execute(sql.encode()).fetchall()
    return row


async def test_every_foreign_key_refers_to_whom_the_others_tell(made: tuple[str, Twins]) -> None:
    tables, twins = made
    assert _row(twins, f"SELECT count(*) {OTHERS[tables]}") == (0,)
    found = _row(
        twins,
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated"
        " AND connamespace = 'explore'::regnamespace",
    )
    assert found == (FOREIGN[tables],)
    if tables != WALKS:
        rows, guides, guests = _row(twins, "SELECT count(*), count(DISTINCT guide), count(guest) FROM explore.visits")
        assert rows > 700
        assert guides > 100, "nothing says whom a guide guides: each is as likely"
        assert guests == 0, "nothing says who is a guest, and nobody has to be one"
