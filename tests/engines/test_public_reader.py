"""A login for public tables runs nothing as soon as it may do more than read them, by whatever way."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from proxy.engines.engine import EngineAway, Readable, SchemaChanged, StatementFailed, TooPowerful
from proxy.engines.engines import find_excess
from proxy.engines.postgres.public_reader import PublicReader, public_grants
from proxy.twin.embedded import Cluster
from rules.catalog import Catalog, TableName
from rules.planner.plan import PublicQuery
from rules.policy.model import Policy
from rules.refusal import Mismatch
from tests.conftest import RealDatabase, make_shop
from tests.support import shop
from tests.support.catalogs import catalog_of

ROLE = "noisegate_public_powers"
PRODUCTS = TableName("public", "products")
NAMES = PublicQuery('SELECT "name" FROM "public"."products"', (PRODUCTS,))
FAILING = PublicQuery("SELECT pg_catalog.count(1) / (1 OPERATOR(pg_catalog.=) 0)::int4", (PRODUCTS,))
RULES = shop.RULES.replace("products: public", "products: {public: true, columns: {price: hidden}}")
POWERS = {
    "a protected table": ("GRANT SELECT ON customers TO {}", "REVOKE SELECT ON customers FROM {}"),
    "a protected column": ("GRANT SELECT (city) ON customers TO {}", "REVOKE SELECT (city) ON customers FROM {}"),
    "a table without rules": ("GRANT SELECT ON staff TO {}", "REVOKE SELECT ON staff FROM {}"),
    "a table of everybody": ("GRANT SELECT ON staff TO PUBLIC", "REVOKE SELECT ON staff FROM PUBLIC"),
    "a hidden column": ("GRANT SELECT (price) ON products TO {}", "REVOKE SELECT (price) ON products FROM {}"),
    "a view": ("GRANT SELECT ON spy TO {}", "REVOKE SELECT ON spy FROM {}"),
    "a sequence": ("GRANT SELECT ON SEQUENCE orders_id_seq TO {}", "REVOKE SELECT ON SEQUENCE orders_id_seq FROM {}"),
    "all data": ("GRANT pg_read_all_settings TO {}", "REVOKE pg_read_all_settings FROM {}"),
    "a role": ("GRANT noisegate_reader TO {}", "REVOKE noisegate_reader FROM {}"),
    "superuser": ("ALTER ROLE {} SUPERUSER", "ALTER ROLE {} NOSUPERUSER"),
    "row security": ("ALTER ROLE {} BYPASSRLS", "ALTER ROLE {} NOBYPASSRLS"),
    "roles": ("ALTER ROLE {} CREATEROLE", "ALTER ROLE {} NOCREATEROLE"),
    "replication": ("ALTER ROLE {} REPLICATION", "ALTER ROLE {} NOREPLICATION"),
    "an owner": ("ALTER TABLE staff OWNER TO {}", "ALTER TABLE staff OWNER TO CURRENT_USER"),
    "another's rights": (
        "CREATE FUNCTION emails() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT min(email) FROM customers'",
        "DROP FUNCTION emails()",
    ),
    "another's rights, by an operator": (
        "CREATE SCHEMA inside; CREATE FUNCTION inside.any(integer, boolean) RETURNS boolean LANGUAGE sql"
        " SECURITY DEFINER AS 'SELECT count(*) > 100 FROM public.customers';"
        "CREATE OPERATOR === (leftarg = integer, rightarg = boolean, function = inside.any)",
        "DROP SCHEMA inside CASCADE",
    ),
    "a large object": (
        "SELECT lo_from_bytea(4711, 'private'); GRANT SELECT ON LARGE OBJECT 4711 TO PUBLIC",
        "SELECT lo_unlink(4711)",
    ),
    "all large objects": (
        "SELECT lo_from_bytea(4713, 'private'); ALTER ROLE {} SET lo_compat_privileges = on",
        "SELECT lo_unlink(4713); ALTER ROLE {} RESET lo_compat_privileges",
    ),
    "a large object of its own": (
        "SELECT lo_from_bytea(4712, 'private'); ALTER LARGE OBJECT 4712 OWNER TO {}",
        "SELECT lo_unlink(4712)",
    ),
    "a cast": ("CREATE CAST (boolean AS bigint) WITH FUNCTION leak(boolean)", "DROP CAST (boolean AS bigint)"),
    "a function": (
        "SET allow_system_table_mods = on;"
        "CREATE FUNCTION pg_catalog.count(boolean, boolean) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "SET allow_system_table_mods = on; DROP FUNCTION pg_catalog.count(boolean, boolean)",
    ),
    "an operator": (
        "SET allow_system_table_mods = on;"
        "CREATE OPERATOR pg_catalog.= (leftarg = boolean, rightarg = bigint, function = public.same)",
        "SET allow_system_table_mods = on; DROP OPERATOR pg_catalog.= (boolean, bigint)",
    ),
}


@pytest.fixture(scope="module")
def database(real_cluster: Cluster) -> RealDatabase:
    made = make_shop(real_cluster, "public_powers")
    with made.connect() as owner:
        owner.execute("CREATE VIEW spy AS SELECT email FROM customers")
        owner.execute("CREATE FUNCTION leak(boolean) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
        owner.execute("CREATE FUNCTION same(boolean, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
        owner.execute(public_grants(Readable.of(policy(), catalog_of(made.dsn)), catalog_of(made.dsn), ROLE))
    return made


def policy() -> Policy:
    return shop.policy(rules=RULES)


@pytest.fixture(scope="module")
def catalog(database: RealDatabase) -> Catalog:
    return catalog_of(database.dsn)


@pytest.fixture
def owner(database: RealDatabase) -> Iterator[psycopg.Connection]:
    with database.connect() as connection:
        yield connection


async def read(database: RealDatabase, catalog: Catalog, query: PublicQuery = NAMES) -> list[tuple[str | None, ...]]:
    reader = PublicReader(database.cluster.dsn(database.name, ROLE))
    tables = {table.name: table for table in catalog.tables}
    try:
        await reader.bind(catalog.system_identifier)
        readable = Readable.of(policy(), catalog)
        return list(await reader.read(query, 1, readable, tables, time_zone="UTC", timeout_seconds=10))
    finally:
        await reader.close()


async def test_a_login_that_reads_public_tables_alone_is_used(database: RealDatabase, catalog: Catalog) -> None:
    assert sorted(await read(database, catalog)) == sorted((f"Product {number}",) for number in range(1, 31))


@pytest.mark.parametrize("power", POWERS)
async def test_a_login_that_may_do_more_runs_nothing(
    power: str, database: RealDatabase, catalog: Catalog, owner: psycopg.Connection
) -> None:
    grant, revoke = (text.replace("{}", ROLE) for text in POWERS[power])
    owner.execute(grant)
    try:
        with pytest.raises(TooPowerful):
            await read(database, catalog, FAILING)
    finally:
        owner.execute(revoke)


async def test_check_names_a_function_so_that_it_can_be_revoked(
    database: RealDatabase, catalog: Catalog, owner: psycopg.Connection
) -> None:
    create, drop = POWERS["another's rights, by an operator"]
    owner.execute(create)
    reader = PublicReader(database.cluster.dsn(database.name, ROLE))
    try:
        (reason,) = await reader.find_excess(Readable.of(policy(), catalog))
        assert reason == 'it may call inside."any"(integer, boolean), which runs with its owner\'s rights'
    finally:
        await reader.close()
        owner.execute(drop)


async def test_the_same_tables_of_another_database_are_not_read(database: RealDatabase, catalog: Catalog) -> None:
    other, dsn = replace(catalog, system_identifier="4711"), database.cluster.dsn(database.name, ROLE)

    with pytest.raises(EngineAway) as refused:
        await read(database, other)

    assert refused.value.cause.reason == "other_database"
    assert await find_excess(dsn, policy(), catalog) == []
    (reason,) = await find_excess(dsn, policy(), other)
    assert reason.startswith("it is another database")


async def test_a_table_that_was_replaced_gives_no_rows(
    database: RealDatabase, catalog: Catalog, owner: psycopg.Connection
) -> None:
    """What is read has been planned for another table of the name; its locks hold until the transaction ends."""
    with owner.transaction():
        owner.execute("ALTER TABLE products RENAME TO products_of_before")
        owner.execute("CREATE TABLE products AS SELECT id, email AS name FROM customers")
        owner.execute(f"GRANT SELECT ON products TO {ROLE}")
    try:
        with pytest.raises((SchemaChanged, TooPowerful)):
            await read(database, catalog)
    finally:
        owner.execute("DROP TABLE products; ALTER TABLE products_of_before RENAME TO products")


async def test_even_a_query_that_reads_more_finds_the_door_closed(database: RealDatabase, catalog: Catalog) -> None:
    """The list of what is printed is one wall, the privileges of the role are another."""
    for source in ("email FROM public.customers", "email FROM public.spy", "price FROM public.products"):
        with pytest.raises(StatementFailed) as failure:
            await read(database, catalog, PublicQuery(f"SELECT {source}", (PRODUCTS,)))
        assert failure.value.sqlstate == "42501"


COUNTED = (
    'SELECT CAST("reltuples" AS pg_catalog."text") FROM {}',
    "SELECT pg_catalog.pg_stat_get_live_tuples(c.oid) FROM {} AS c",
    "SELECT n_live_tup FROM pg_stat_user_tables",
    'SELECT "n_live_tup" FROM "pg_catalog"."pg_stat_all_tables"',
    'SELECT U&"n_live_tup" FROM U&"\\0070g_stat_all_tables"',
    "SELECT pg_relation_size('public.customers')",
    "SELECT pg_catalog.current_setting('data_directory')",
    "SELECT current_setting ( 'data_directory' )",
    "SELECT \"query_to_xml\"('SELECT 1', true, true, '')",
    "SELECT xmlforest(1 AS a)",
    "SELECT 'customers'::pg_catalog.regclass",
    "SELECT 'customers'::regclass",
    "SELECT table_name FROM information_schema.tables",
    "SELECT 1) AS a (c0); SELECT ('x'",
    "SELECT 1) AS a (c0) UNION SELECT (SELECT 'x'",
    "SELECT 1; COMMIT",
    "SELECT 1 -- ",
    "SELECT 1 /* ",
    "SELECT $$x$$",
    "SELECT E'\\'' || $1",
    "SELECT (c).reltuples FROM (SELECT 1) AS c",
    "SELECT a.b.c FROM {}",
    "",
)


@pytest.mark.parametrize("sql", COUNTED)
async def test_what_a_taken_over_planner_writes_finds_no_way_to_a_catalog(
    database: RealDatabase, catalog: Catalog, sql: str
) -> None:
    """Catalogs are open to every role, and count the rows of protected tables."""
    with pytest.raises(Mismatch):
        await read(database, catalog, PublicQuery(sql.format('"pg_class"'), (PRODUCTS,)))


async def test_an_order_of_dates_ends_no_setting(database: RealDatabase, catalog: Catalog) -> None:
    with pytest.raises(Mismatch):
        await read(database, catalog, replace(NAMES, date_order="MDY'; COMMIT; SET x.y = '1"))


async def test_a_table_that_is_read_is_named(database: RealDatabase, catalog: Catalog) -> None:
    """It is held against its fingerprint."""
    with pytest.raises(Mismatch):
        await read(database, catalog, replace(NAMES, tables=()))


async def test_a_relation_of_somebody_elses_in_pg_catalog_is_read_by_no_name(
    database: RealDatabase, catalog: Catalog, owner: psycopg.Connection
) -> None:
    """As an extension may have it: citus_tables counts bytes."""
    owner.execute("SET allow_system_table_mods = on; CREATE VIEW pg_catalog.sizes AS SELECT '1'::text AS name")
    try:
        with pytest.raises(TooPowerful):
            await read(database, catalog, PublicQuery('SELECT "name" FROM "sizes"', (PRODUCTS,)))
    finally:
        owner.execute("DROP VIEW pg_catalog.sizes")
