"""What the catalog proves is what PostgreSQL enforces now, and nothing else."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.embedded import BINARIES, Cluster, server_binaries
from rules.catalog import Catalog, Column, Table, TableName
from tests.conftest import SERVER, RealDatabase

KEYS = """
CREATE TABLE plain (a int PRIMARY KEY, b text UNIQUE, c varchar(9));
CREATE UNIQUE INDEX plain_c ON plain (c) INCLUDE (b);
CREATE TABLE weak (a int, b text, c text, d int, e int, f int);
CREATE UNIQUE INDEX weak_partial ON weak (a) WHERE b IS NOT NULL;
CREATE UNIQUE INDEX weak_operators ON weak (b text_pattern_ops);
CREATE UNIQUE INDEX weak_collation ON weak (c COLLATE "C");
CREATE UNIQUE INDEX weak_invalid ON weak (d);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'weak_invalid'::regclass;
CREATE UNIQUE INDEX weak_expression ON weak ((e + 1));
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'weak_expression'::regclass;
CREATE UNIQUE INDEX weak_nulls ON weak (f) NULLS NOT DISTINCT;
CREATE TABLE deferred (a int PRIMARY KEY DEFERRABLE, b int UNIQUE DEFERRABLE INITIALLY DEFERRED, c int UNIQUE);
SET session_replication_role = replica;
INSERT INTO deferred VALUES (1, 2, 3), (1, 2, 4);
RESET session_replication_role;
CREATE COLLATION careless FROM "C";
CREATE TABLE loose (a text COLLATE careless UNIQUE);
UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'careless';
CREATE DOMAIN handle AS text;
CREATE DOMAIN nick AS handle;
CREATE TABLE named (a nick UNIQUE);
CREATE TYPE loud AS ENUM ('a', 'A');
CREATE TABLE voices (a loud PRIMARY KEY, b varchar(9) UNIQUE, c char(3) UNIQUE, d int[] UNIQUE, e int4range UNIQUE);
CREATE TABLE parent (a int PRIMARY KEY, b int NOT NULL, CHECK (b > 0) NO INHERIT);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE parted (a int PRIMARY KEY, b date) PARTITION BY RANGE (a);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
"""
# A type that is stored as text, with an equality of its own, as citext has: a key by text's equality is another thing.
OWN_EQUALITY = """
CREATE TYPE loud_text;
CREATE FUNCTION loud_in(cstring) RETURNS loud_text LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION loud_out(loud_text) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE loud_text (INPUT = loud_in, OUTPUT = loud_out, LIKE = text, COLLATABLE = true);
CREATE CAST (loud_text AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE FUNCTION loud_eq(loud_text, loud_text) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'texteq';
CREATE FUNCTION loud_cmp(loud_text, loud_text) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'bttextcmp';
CREATE OPERATOR = (LEFTARG = loud_text, RIGHTARG = loud_text, FUNCTION = loud_eq);
CREATE OPERATOR CLASS loud_ops DEFAULT FOR TYPE loud_text USING btree
    AS OPERATOR 3 = (loud_text, loud_text), FUNCTION 1 loud_cmp(loud_text, loud_text);
CREATE DOMAIN loud_domain AS loud_text;
CREATE TABLE shouts (a loud_text, b loud_text, c loud_domain, d loud_domain);
CREATE UNIQUE INDEX shouts_a ON shouts (a);
CREATE UNIQUE INDEX shouts_b ON shouts (b text_ops);
CREATE UNIQUE INDEX shouts_c ON shouts (c);
CREATE UNIQUE INDEX shouts_d ON shouts (d text_ops);
"""
LINKS = """
CREATE TABLE target (a int PRIMARY KEY, b int);
CREATE TABLE sound (a int REFERENCES target, b int CHECK (b > 0));
CREATE TABLE unsound (a int, b int, c int);
ALTER TABLE unsound ADD CONSTRAINT unvalidated_key FOREIGN KEY (a) REFERENCES target NOT VALID;
ALTER TABLE unsound ADD CONSTRAINT unvalidated_check CHECK (b > 0) NOT VALID;
CREATE TABLE switched_off (a int CONSTRAINT silent_key REFERENCES target);
ALTER TABLE switched_off DISABLE TRIGGER ALL;
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE abroad (a int NOT NULL, CONSTRAINT abroad_check CHECK (a > 0)) SERVER elsewhere;
CREATE TABLE spread (a int NOT NULL, b int CHECK (b > 0)) PARTITION BY RANGE (a);
CREATE TABLE spread_here PARTITION OF spread FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (a);
CREATE TABLE forebear (a int PRIMARY KEY);
CREATE TABLE heir () INHERITS (forebear);
CREATE FOREIGN TABLE heir_abroad () INHERITS (heir) SERVER elsewhere;
CREATE FOREIGN TABLE spread_abroad PARTITION OF spread_here FOR VALUES FROM (10) TO (15) SERVER elsewhere;
"""
ONLY_18 = """
ALTER TABLE unsound ADD CONSTRAINT unenforced_key FOREIGN KEY (a) REFERENCES target NOT ENFORCED;
ALTER TABLE unsound ADD CONSTRAINT unenforced_check CHECK (b > 0) NOT ENFORCED;
ALTER TABLE unsound ADD CONSTRAINT unvalidated_null NOT NULL c NOT VALID;
CREATE TABLE late_nulls (a int UNIQUE, b int);
ALTER TABLE late_nulls ADD CONSTRAINT late_a NOT NULL a NOT VALID, ADD CONSTRAINT late_b NOT NULL b NOT VALID;
CREATE TABLE temporal (a int4range, during daterange, PRIMARY KEY (a, during WITHOUT OVERLAPS));
CREATE TABLE computed (a int, b int GENERATED ALWAYS AS (a + 1) VIRTUAL);
"""
SHAPES = """
CREATE SCHEMA "Sales Dept";
COMMENT ON SCHEMA "Sales Dept" IS 'sells';
CREATE TYPE "Sales Dept".mood AS ENUM ('glad', 'sad');
ALTER TYPE "Sales Dept".mood ADD VALUE 'so so' BEFORE 'sad';
CREATE TYPE pair AS (a int, b int);
CREATE DOMAIN cents AS numeric(12,2) DEFAULT 0 CHECK (VALUE >= 0);
CREATE DOMAIN price AS cents NOT NULL;
CREATE DOMAIN temper AS "Sales Dept".mood;
CREATE COLLATION careful FROM "C";
CREATE TABLE "Sales Dept"."Deals" (
    id int GENERATED ALWAYS AS IDENTITY,
    price price, temper temper, moods "Sales Dept".mood[], pair pair, tags text[], word varchar(5) COLLATE careful,
    twice numeric GENERATED ALWAYS AS (2.0) STORED, since timestamp(3) DEFAULT now(), gone int, span int4range
);
ALTER TABLE "Sales Dept"."Deals" DROP COLUMN gone;
COMMENT ON COLUMN "Sales Dept"."Deals".word IS 'a word';
CREATE VIEW deals AS SELECT id, word FROM "Sales Dept"."Deals";
CREATE MATERIALIZED VIEW kept AS SELECT 1 AS one;
CREATE TABLE secured (a int);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
"""


@pytest.fixture(scope="module", params=[SERVER] if SERVER else map(server_binaries, BINARIES))
async def catalog(request: pytest.FixtureRequest) -> AsyncIterator[Catalog]:
    cluster = Cluster.start(binaries=request.param)
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        version = connection.info.server_version
        for part in (KEYS, OWN_EQUALITY, LINKS, SHAPES, ONLY_18 if version >= 180000 else ""):
            connection.execute(part if version >= 150000 else part.replace(" NULLS NOT DISTINCT", ""))
    engine = PostgresEngine(cluster.dsn())
    yield await engine.catalog()
    await engine.close()
    cluster.stop()


def table(catalog: Catalog, name: str, schema: str = "public") -> Table:
    found = catalog.find_table(TableName(schema, name))
    assert found is not None, name
    return found


def column(catalog: Catalog, table_name: str, name: str, schema: str = "public") -> Column:
    found = table(catalog, table_name, schema).find_column(name)
    assert found is not None, name
    return found


def test_whole_valid_unique_keys_are_proofs(catalog: Catalog) -> None:
    keys = {key.name: key for key in table(catalog, "plain").keys}
    assert {name: (key.columns, key.primary, key.constraint, key.proves) for name, key in keys.items()} == {
        "plain_pkey": (("a",), True, True, True),
        "plain_b_key": (("b",), False, True, True),
        "plain_c": (("c",), False, False, True),
    }


def test_partial_invalid_expression_and_foreign_operator_indexes_prove_nothing(catalog: Catalog) -> None:
    assert table(catalog, "weak").unfinished == ("weak_expression", "weak_invalid")
    proofs = {key.name: key.proves for key in table(catalog, "weak").keys}
    assert proofs == {
        "weak_collation": False,
        "weak_invalid": False,
        "weak_nulls": True,
        "weak_operators": False,
        "weak_partial": False,
    }


def test_a_key_that_can_be_deferred_proves_nothing(catalog: Catalog) -> None:
    """A trigger holds it, which does not fire for logical replication nor where it is off: rows came in twice."""
    assert {key.columns: key.proves for key in table(catalog, "deferred").keys} == {
        ("a",): False, ("b",): False, ("c",): True
    }  # fmt: skip


def test_a_key_proves_by_deterministic_texts_and_the_types_own_operators(catalog: Catalog) -> None:
    assert [key.proves for key in table(catalog, "loose").keys] == [False]
    assert [key.proves for key in table(catalog, "named").keys] == [True]
    assert {key.columns: key.proves for key in table(catalog, "voices").keys} == {
        (name,): True for name in ("a", "b", "c", "d", "e")
    }


def test_a_key_by_another_types_equality_proves_nothing(catalog: Catalog) -> None:
    assert {key.name[-1]: key.proves for key in table(catalog, "shouts").keys} == {
        "a": True, "b": False, "c": True, "d": False
    }  # fmt: skip


def test_a_key_whose_nulls_may_be_ruled_out_while_a_statement_runs_cannot_be_read(catalog: Catalog) -> None:
    if catalog.version >= 180000:
        assert [bool(found.unreadable) for found in table(catalog, "late_nulls").columns] == [True, False]
        assert not any(found.unreadable for found in table(catalog, "plain").columns)


def test_inheritance_takes_all_proofs_of_the_parent_away(catalog: Catalog) -> None:
    parent = table(catalog, "parent")
    assert parent.has_children
    assert not parent.is_unique(("a",))
    assert not column(catalog, "parent", "b").not_null
    assert [check.proves for check in parent.checks] == [False]


def test_a_partitioned_table_keeps_its_proofs_and_its_parts_are_known_as_such(catalog: Catalog) -> None:
    parted = table(catalog, "parted")
    assert (parted.kind, parted.partition_key, parted.has_children) == ("partitioned", "RANGE (a)", False)
    assert parted.is_unique(("a",))
    assert table(catalog, "part").kind == "partition"


def test_a_partition_in_another_database_takes_all_proofs_of_the_whole_away(catalog: Catalog) -> None:
    """Nobody looks there whether NOT NULL and CHECK hold."""
    assert table(catalog, "spread").has_children
    assert not column(catalog, "spread", "a").not_null


def test_rows_of_other_servers_are_known_wherever_they_lie(catalog: Catalog) -> None:
    foreign = {str(table.name) for table in catalog.tables if table.foreign}
    assert foreign == {"abroad", "spread", "spread_here", "spread_abroad", "forebear", "heir", "heir_abroad"}


def test_only_validated_enforced_links_and_checks_are_proofs(catalog: Catalog) -> None:
    sound = table(catalog, "sound")
    assert [(key.columns, key.target, key.target_columns, key.proves) for key in sound.foreign_keys] == [
        (("a",), TableName("public", "target"), ("a",), True)
    ]
    assert [(check.columns, check.proves) for check in sound.checks] == [(("b",), True)]
    unsound = table(catalog, "unsound")
    assert {key.proves for key in unsound.foreign_keys} == {check.proves for check in unsound.checks} == {False}
    assert [key.proves for key in table(catalog, "switched_off").foreign_keys] == [False]
    assert [check.proves for check in table(catalog, "abroad").checks] == [False]
    assert not column(catalog, "abroad", "a").not_null


def test_what_only_18_knows_is_no_proof_either(catalog: Catalog) -> None:
    if catalog.version >= 180000:
        assert len(table(catalog, "unsound").foreign_keys) == len(table(catalog, "unsound").checks) == 2
        assert not column(catalog, "unsound", "c").not_null
        assert table(catalog, "temporal").keys == ()
        assert column(catalog, "computed", "b").generated == "v"


def test_types_are_followed_through_domains_and_arrays(catalog: Catalog) -> None:
    deals = {column.name: column.type for column in table(catalog, "Deals", "Sales Dept").columns}
    assert (deals["price"].sql, deals["price"].base, deals["price"].scale) == ("public.price", "numeric", 2)
    assert (deals["temper"].base, deals["temper"].labels) == ("enum", ("glad", "so so", "sad"))
    assert (deals["moods"].sql, deals["moods"].base) == ('"Sales Dept".mood[]', "array")
    assert (deals["moods"].schema, deals["moods"].name) == ("Sales Dept", "mood")
    assert (deals["pair"].base, deals["span"].base, deals["tags"].base) == ("other", "other", "array")
    assert (deals["word"].sql, deals["word"].base, deals["word"].modifier) == ("character varying(5)", "varchar", 9)
    assert {domain.name: domain.type.sql for domain in catalog.domains} == {
        TableName("public", "cents"): "numeric(12,2)",
        TableName("public", "price"): "public.cents",
        TableName("public", "temper"): '"Sales Dept".mood',
        TableName("public", "handle"): "text",
        TableName("public", "nick"): "public.handle",
        TableName("public", "loud_domain"): "public.loud_text",
    }


def test_columns_keep_what_tools_show(catalog: Catalog) -> None:
    deals = {column.name: column for column in table(catalog, "Deals", "Sales Dept").columns}
    assert "gone" not in deals
    assert deals["id"].identity == "a"
    assert (deals["twice"].generated, deals["twice"].default) == ("s", "2.0")
    assert deals["since"].default == "now()"
    assert (deals["word"].collation, deals["word"].comment) == ("public.careful", "a word")
    assert deals["span"].number == 11
    assert ("Sales Dept", "sells") in catalog.schemas


def test_views_and_row_security_are_told(catalog: Catalog) -> None:
    view = table(catalog, "deals")
    assert view.kind == "view"
    assert view.definition is not None
    assert '"Sales Dept"."Deals"' in view.definition
    assert table(catalog, "kept").kind == "materialized view"
    assert table(catalog, "secured").row_security
    assert catalog.bypasses_row_security


async def test_the_readers_role_reads_the_whole_catalog_and_not_one_table(shop: RealDatabase) -> None:
    with shop.connect() as connection:
        connection.execute("CREATE ROLE nobody_else LOGIN")
    engine = PostgresEngine(shop.cluster.dsn(shop.name, "nobody_else"))
    catalog = await engine.catalog()
    await engine.close()

    assert [str(table.name) for table in catalog.tables] == ["customers", "order_items", "orders", "products", "staff"]
    assert column(catalog, "customers", "city").comment == "where they live"
    assert not catalog.bypasses_row_security
    assert catalog.system_identifier.isdigit()
    assert (catalog.database, catalog.encoding) == ("shop", "UTF8")


def test_the_time_zones_are_those_that_the_server_has_files_of(catalog: Catalog) -> None:
    assert catalog.time_zones is not None
    assert {"UTC", "Europe/Berlin", "America/New_York"} < catalog.time_zones
    assert "Nowhere/Atlantis" not in catalog.time_zones
