"""Synthetic rows in a real twin: whatever constraints the real tables have, the rows hold them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.rulebook import Rulebook
from proxy.synopses.make import Maker
from proxy.synopses.shelf import Shelf
from proxy.twin.embedded import Cluster
from proxy.twin.synthetic import SyntheticSchema, SyntheticTable
from proxy.twin.twin import TwinLimits
from proxy.twin.twins import Twins
from rules.catalog import Check, Column, Table, TableName, TypeName
from rules.mechanisms.draw import OpenDPNoise
from rules.policy.load import load_policy
from tests.support import shop as shop_data
from tests.support.ledgers import SqliteLedger

SCHEMA = """
CREATE DOMAIN cents AS numeric(8,2) CHECK (VALUE >= 1 AND VALUE <> 5);
CREATE DOMAIN pay AS cents CHECK (VALUE < 90);
CREATE TYPE mood AS ENUM ('glad', 'so ''so');
CREATE TABLE people (
    id uuid PRIMARY KEY, born date NOT NULL, died date, pay pay NOT NULL, mood mood, code varchar(3),
    is_new boolean NOT NULL DEFAULT true, CHECK (died IS NULL OR died >= born), CHECK (code IN ('a', 'b'))
);
CREATE TABLE visits (
    person uuid NOT NULL REFERENCES people, n integer NOT NULL, at timestamp NOT NULL, left_at timestamp NOT NULL,
    PRIMARY KEY (person, n), CHECK (left_at >= at)
);
INSERT INTO people SELECT gen_random_uuid(), date '1990-01-01' + (i * 37) % 4000,
    CASE WHEN i % 3 = 0 THEN date '1990-01-01' + (i * 37) % 4000 + 900 END, 6 + i % 80,
    CASE WHEN i % 4 > 0 THEN (enum_range(NULL::mood))[1 + i % 2] END, CASE WHEN i % 5 > 0 THEN 'a' END
FROM generate_series(1, 600) AS i;
INSERT INTO visits SELECT p.id, g, t, t + (g * 30) * interval '1 day' FROM people AS p, generate_series(1, 4) AS g,
    LATERAL (SELECT timestamp '2024-01-01' + (p.pay::int * g) * interval '1 day' AS t) AS x;
"""
TAIL = shop_data.RULES[shop_data.RULES.index("budget:") :]
RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: people.id
tables:
  people:
    unit: id
    columns:
      born: {{lower: 1990-01-01, upper: 2000-12-31}}
      died: {{lower: 1990-01-01, upper: 2004-12-31}}
      pay: {{lower: 0, upper: 100}}
  visits:
    unit: person
    rows_per_unit: 4
    columns:
      at: {{lower: 2024-01-01, upper: 2024-12-31}}
      left_at: {{lower: 2024-01-01, upper: 2025-06-30}}
synopses:
  'a "b':
    epsilon: 8
    tables:
      people: [born by quarter, died by quarter, pay by 10, mood, code, count(visits) by 5]
      visits: [people.mood, at by month, left_at by month]
{TAIL}"""
PEOPLE, VISITS = '"a ""b".people', '"a ""b".visits'


@pytest.fixture(scope="module")
async def twins(real_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Twins]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE constrained")
    with psycopg.connect(real_cluster.dsn("constrained"), autocommit=True) as owner:
        owner.execute(SCHEMA)
    dsn, folder = real_cluster.dsn("constrained"), tmp_path_factory.mktemp("constrained")
    policy, engine = load_policy(RULES, "rules.yaml", {"NOISEGATE_DATABASE": dsn}), PostgresEngine(dsn)
    catalog = await engine.catalog()
    SqliteLedger.create(folder / "ledger", "1/constrained")
    ledger = await SqliteLedger.open(folder / "ledger", "1/constrained")
    twins = await Twins.open(catalog, policy, engine, TwinLimits())
    maker = Maker(engine, ledger, OpenDPNoise(), lambda: datetime(2026, 11, 21, tzinfo=UTC))
    shelf = Shelf(maker, twins, lambda _: None)
    await shelf.follow(Rulebook.of(policy, catalog, 0))
    yield twins
    await twins.close()
    await engine.close()
    await ledger.close()


def _rows(twins: Twins, sql: str, user: str = "ada") -> list[tuple[object, ...]]:
    with psycopg.connect(twins.of(user).dsn(user), autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


async def test_all_constraints_are_there_and_valid(twins: Twins) -> None:
    kinds = _rows(
        twins,
        "SELECT r.relname, contype::text, convalidated FROM pg_constraint AS c JOIN pg_class AS r "
        "ON r.oid = c.conrelid JOIN pg_namespace AS n ON n.oid = r.relnamespace WHERE n.nspname = 'a \"b' "
        "AND contype <> 'n'",
    )

    assert all(is_valid for _, _, is_valid in kinds)
    found = sorted((str(table), str(kind)) for table, kind, _ in kinds)
    assert found == [("people", kind) for kind in "ccp"] + [("visits", kind) for kind in "cfp"]


async def test_rows_hold_domains_checks_enums_and_keys(twins: Twins) -> None:
    ((people, visits),) = _rows(twins, f"SELECT (SELECT count(*) FROM {PEOPLE}), (SELECT count(*) FROM {VISITS})")
    ((odd, of, codes, dates),) = _rows(
        twins,
        "SELECT count(*) FILTER (WHERE pay < 1 OR pay = 5 OR pay >= 90), min(pg_typeof(pay)::text), "
        f"string_agg(DISTINCT code, ''), count(*) FILTER (WHERE died < born) FROM {PEOPLE}",
    )
    ((replaced,),) = _rows(twins, "SELECT replaced FROM noisegate.synopses")

    assert 500 < int(str(people)) < 700
    assert 1500 < int(str(visits)) < 2600
    assert (odd, of, dates) == (0, "pay", 0)
    assert str(codes) in ("a", "b", "ab")
    assert int(str(replaced)) > 0
    assert _rows(twins, f"SELECT count(*) FROM {VISITS} WHERE left_at < at") == [(0,)]


async def test_a_row_that_breaks_a_check_is_drawn_again_within_its_bins(twins: Twins) -> None:
    """Of 400 rows in one bin half break the CHECK at first; none of them needs the values of another row."""
    name = TableName("drawn again", "t")
    integer = TypeName("integer", "int4")
    numbers = tuple(Column(text, integer, place, not_null=True) for place, text in enumerate("abc", 1))
    check = Check("t_check", "CHECK ((a <= b))", ("a", "b"))
    table = Table(name, "table", numbers, (), (), (check,), None)
    lines = [f"{row}\t{{0,0,{row % 2}}}\t{row * 37 % 400}\t{row * 71 % 400}\t{row % 2}\n" for row in range(400)]
    broken = sum(row * 37 % 400 > row * 71 % 400 for row in range(400))
    made = SyntheticTable(table, ("a", "b", "c"), tuple(enumerate("abc")), "".join(lines).encode(), name)
    made_at = datetime(2026, 11, 21, tzinfo=UTC)
    schema = SyntheticSchema(name.schema, (made,), ("ada",), made_at, Decimal(1), Decimal(0), 0)

    await twins.show_synopsis(schema)
    try:
        asked = 'SELECT count(*), bool_and(a <= b), sum(c), count(DISTINCT a) FROM "drawn again".t'
        ((rows, hold, ones, different),) = _rows(twins, asked)
        ((replaced,),) = _rows(twins, "SELECT replaced FROM noisegate.synopses WHERE name = 'drawn again'")
    finally:
        await twins.drop_synopsis(name.schema)

    assert 100 < broken < 300
    assert (rows, hold, replaced, ones) == (400, True, 0, 200)
    assert int(str(different)) > 200


async def test_the_schema_comes_back_with_the_twin(twins: Twins) -> None:
    before = _rows(twins, f"SELECT count(*), sum(pay) FROM {PEOPLE}")
    twin = twins.of("ada")
    await twin._begin_again()

    assert _rows(twins, f"SELECT count(*), sum(pay) FROM {PEOPLE}") == before
