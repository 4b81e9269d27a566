"""The living twin follows the real schema and the rules, in place, and is always what a new one would be."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest
from psycopg import AsyncConnection

from proxy.engines.engine import EngineError, SchemaChanged
from proxy.engines.postgres.catalog import read_catalog
from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.twin.embedded import OWNER, Cluster
from proxy.twin.twin import Twin, TwinError, TwinLimits
from rules.catalog import Catalog, Collation, Table, TableName
from rules.policy.model import Policy
from tests.conftest import RealDatabase
from tests.support import shop as shop_data

RULES = shop_data.RULES.replace(
    "  products: public\n",
    """\
  products: public
  extra: public
  sales.deals: {unit: customer, rows_per_unit: 3, columns: {secret: hidden}}
  parted: {unit: a, rows_per_unit: 1}
  totals: {unit: customer_id, rows_per_unit: 1}
""",
)
CHANGES = [
    "SELECT 1",
    "ALTER TABLE orders ADD COLUMN channel text DEFAULT 'web' NOT NULL",
    "COMMENT ON COLUMN orders.channel IS 'from'; COMMENT ON TABLE orders IS 'all'; COMMENT ON SCHEMA public IS 'shop'",
    "ALTER TABLE orders ALTER channel DROP NOT NULL, ALTER channel DROP DEFAULT, ALTER status SET DEFAULT 'open'",
    "ALTER TYPE status ADD VALUE 'lost' BEFORE 'sent'; ALTER TYPE status ADD VALUE 'first' BEFORE 'open'",
    "ALTER TABLE orders DROP COLUMN channel",
    "ALTER TABLE orders ALTER amount TYPE numeric(12,3)",
    "ALTER TABLE products RENAME COLUMN name TO title",
    "ALTER TABLE customers DROP CONSTRAINT customers_pkey CASCADE; CREATE UNIQUE INDEX by_id ON customers (id)",
    "ALTER TABLE customers ADD PRIMARY KEY (id)",
    "ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers",
    "ALTER TYPE segment RENAME VALUE 'business' TO 'trade'",
    """
CREATE SCHEMA sales;
CREATE DOMAIN sales.cents AS numeric(12,2) CHECK (VALUE >= 0);
CREATE TYPE sales.pair AS (a int, b int);
CREATE TABLE sales.deals (
    customer int NOT NULL, price sales.cents, pairs sales.pair[], secret text UNIQUE, open text, UNIQUE (open),
    UNIQUE (customer, secret), CHECK (secret <> open), twice sales.cents GENERATED ALWAYS AS (2.0) STORED)""",
    """
CREATE FUNCTION double(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
ALTER TABLE products ADD COLUMN weight int DEFAULT double(4) CHECK (double(weight) > 0)""",
    "CREATE OR REPLACE FUNCTION double(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $1'",
    "CREATE INDEX by_weight ON products (double(weight)); CREATE FUNCTION of(orders) RETURNS int LANGUAGE sql RETURN 1",
    "CREATE FUNCTION cents(c sales.cents) RETURNS int LANGUAGE sql IMMUTABLE RETURN (c * 100)::int",
    "CREATE TABLE parted (a int PRIMARY KEY, b date) PARTITION BY RANGE (a)",
    "CREATE INDEX by_date ON parted (b)",
    "ALTER TABLE parted ADD COLUMN c int",
    "CREATE VIEW totals AS SELECT customer_id, sum(amount) FROM orders GROUP BY 1",
    "CREATE OR REPLACE VIEW totals AS SELECT customer_id, sum(amount), count(*) AS number FROM orders GROUP BY 1",
    "COMMENT ON VIEW totals IS 'sums'; COMMENT ON COLUMN totals.sum IS 'all'",
    "DROP VIEW totals; CREATE MATERIALIZED VIEW totals AS SELECT customer_id, sum(amount) FROM orders GROUP BY 1",
    "CREATE INDEX by_sum ON totals (sum)",
    "DROP MATERIALIZED VIEW totals; CREATE VIEW totals AS SELECT customer_id, sum(amount) FROM orders GROUP BY 1",
    'ALTER DATABASE followed SET search_path = "$user", sales, nowhere, "Elsewhere, far", public',
    "ALTER DOMAIN sales.cents ADD CHECK (VALUE < 1000)",
    "CREATE TABLE extra (id serial PRIMARY KEY, kind text DEFAULT 'a\\b''c'); INSERT INTO extra VALUES (1, 'x')",
    "DROP TABLE extra; DROP VIEW totals; DROP SCHEMA sales CASCADE",
    "ALTER DATABASE followed SET TimeZone = 'Europe/Berlin'",
    "ALTER DATABASE followed RESET search_path",
    "ALTER DATABASE followed RESET TimeZone",
    "DROP FUNCTION of; DROP TABLE parted, order_items, orders, products, customers; DROP TYPE status, segment",
]
LIMITS = TwinLimits(public_rows=100, patience_seconds=1.5)


class Follower:
    """A real database that changes, and its twin."""

    def __init__(self, real: RealDatabase, engine: PostgresEngine, twin: Twin, policy: Policy) -> None:
        self.real, self.engine, self.twin, self.policy = real, engine, twin, policy

    def change(self, sql: str) -> None:
        with self.real.connect() as connection:
            connection.execute(sql)
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {shop_data.READER}")

    async def follow(self, policy: Policy | None = None) -> None:
        self.policy = policy or self.policy
        await self.twin.refresh(await self.engine.catalog(), self.policy)

    async def looks_right(self) -> None:
        """What PostgreSQL says of the twin is what was wanted."""
        async with await AsyncConnection.connect(self.twin.dsn("noisegate_owner"), autocommit=True) as owner:
            await owner.execute("SET search_path = ''")
            found = await read_catalog(owner)
        wanted = self.twin.shown
        assert {table.name: _look(table) for table in found.tables if table.name.schema != "noisegate"} == {
            table.name: _look(table) for table in wanted.tables
        }
        assert {(enum.name, enum.labels) for enum in found.enums} == {(enum.name, enum.labels) for enum in wanted.enums}
        assert set(found.domains) == set(wanted.domains)
        assert {routine for routine in found.routines if routine.name.schema != "noisegate" and routine.definition} == {
            routine for routine in wanted.routines if routine.definition
        }
        assert {schema for schema in found.schemas if schema[0] != "noisegate"} == set(wanted.schemas)
        assert found.search_path == wanted.search_path
        assert found.session_time_zone == wanted.session_time_zone

    async def oids(self) -> dict[str, int]:
        async with await AsyncConnection.connect(self.twin.dsn("noisegate_owner"), autocommit=True) as owner:
            cursor = await owner.execute(
                "SELECT relname, oid FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            )
            return dict(await cursor.fetchall())


def _look(table: Table) -> object:
    """All of a table that tools show."""
    columns = [
        (
            column.name,
            column.type.sql,
            column.not_null,
            column.default,
            (column.identity, column.generated, column.collation, column.comment),
        )
        for column in table.columns
    ]
    checks = {(check.name, check.definition) for check in table.checks}
    keys = {(key.name, key.columns, key.primary, key.constraint) for key in table.keys}
    links = {(key.name, key.definition) for key in table.foreign_keys}
    indexes = {(index.name, index.definition) for index in table.indexes}
    return table.kind, columns, keys, links, checks, indexes, table.comment, table.partition_key


@pytest.fixture(scope="module")
async def first(real_cluster: Cluster) -> AsyncIterator[Follower]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE followed")
    real = RealDatabase(real_cluster, "followed")
    policy = shop_data.policy(real.reader_dsn, RULES)
    begin(real)
    engine = PostgresEngine(real.reader_dsn)
    twin = await Twin.open(await engine.catalog(), policy, engine, LIMITS)
    yield Follower(real, engine, twin, policy)
    await twin.close()
    await engine.close()


def begin(real: RealDatabase) -> None:
    """The shop's tables, as they were first, and a few products."""
    with real.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS public, sales, odd, noisegate CASCADE; CREATE SCHEMA public")
        connection.execute("ALTER DATABASE followed RESET search_path; ALTER DATABASE followed RESET TimeZone")
        connection.execute("SET search_path = public")
        connection.execute(shop_data.SCHEMA)
        connection.execute("INSERT INTO products SELECT n, 'x', 'y', n FROM generate_series(1, 30) AS n")
        connection.execute(shop_data.GRANTS)


@pytest.fixture
async def follower(first: Follower) -> Follower:
    """The real database and its twin as they were first, whatever the test before has made of them."""
    begin(first.real)
    first.twin.on_signal = None
    await first.follow(shop_data.policy(rules=RULES))
    return first


async def test_the_twin_follows_every_change_of_the_schema(follower: Follower) -> None:
    for change in CHANGES:
        follower.change(change)
        await follower.follow()
        await follower.looks_right()
    assert follower.twin.shown.tables == ()


async def test_sessions_begin_with_the_search_path_of_the_real_database(follower: Follower) -> None:
    """Schemas that the rules do not name are left out: they do not exist for analysts."""
    follower.change("""CREATE SCHEMA sales; CREATE SCHEMA odd; CREATE TABLE sales.deals (customer int)""")
    follower.change("""ALTER DATABASE followed SET search_path = "$user", sales, odd, public""")
    await follower.follow()

    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        shown = await (await ada.execute("SHOW search_path")).fetchone()
        assert shown == ('"$user", sales, public',)
        await ada.execute("SET search_path = public; RESET search_path; SELECT 'deals'::regclass")


async def test_sessions_begin_with_the_time_zone_of_the_real_database(follower: Follower) -> None:
    """By another clock than that of the database, days and months would be others than its own users count."""
    follower.change("ALTER DATABASE followed SET TimeZone = 'Europe/Berlin'")
    await follower.follow()
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        assert await (await ada.execute("SHOW TimeZone")).fetchone() == ("Europe/Berlin",)

    follower.change("ALTER DATABASE followed RESET TimeZone")
    await follower.follow()
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        assert await (await ada.execute("SHOW TimeZone")).fetchone() == ("UTC",)


async def test_what_is_not_changed_keeps_its_oid_and_open_sessions_go_on(follower: Follower) -> None:
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        await ada.execute("PREPARE p AS SELECT price FROM products WHERE id = 1")
        before = await follower.oids()
        for change in CHANGES[:6]:
            follower.change(change)
            await follower.follow()
        assert await follower.oids() == before
        assert await (await ada.execute("EXECUTE p")).fetchone() is not None


async def test_temporary_views_of_open_sessions_do_not_stand_in_the_way(follower: Follower) -> None:
    async with (
        await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada,
        await AsyncConnection.connect(follower.twin.dsn("bob"), autocommit=True) as bob,
    ):
        for each in (ada, bob):
            await each.execute(
                "CREATE TEMP VIEW v AS SELECT note FROM orders; CREATE TEMP VIEW w AS SELECT note FROM v"
            )
        follower.change("ALTER TABLE orders DROP COLUMN note")
        await follower.follow()
        await follower.looks_right()
        with pytest.raises(psycopg.errors.UndefinedTable):
            await ada.execute("SELECT note FROM w")
        await bob.execute("CREATE TEMP VIEW v AS SELECT amount FROM orders")
        without = RULES[: RULES.index("  bob:")] + "  eve:" + RULES[RULES.index("  bob:") + 6 :]
        await follower.follow(shop_data.policy(rules=without))


async def test_new_rules_hide_show_open_and_close_at_once(follower: Follower) -> None:
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        hidden = RULES.replace("products: public", "products: {unit: id, columns: {price: hidden}}")
        await follower.follow(shop_data.policy(rules=hidden))
        await follower.looks_right()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            await ada.execute("SELECT price FROM products")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await ada.execute("SELECT id FROM products")

        closed = RULES.replace("products: public", "products: {unit: id}").replace("email: hidden", "email: {}")
        await follower.follow(shop_data.policy(rules=closed))
        await follower.looks_right()
        await ada.execute("PREPARE p AS SELECT email FROM customers")
        assert not (await (await ada.execute("SELECT pg_relation_size('customers')")).fetchall())[0][0]

        await follower.follow(shop_data.policy(rules=RULES))
        assert await (await ada.execute("SELECT count(price) FROM products")).fetchone() == (30,)
        await follower.follow(shop_data.policy(rules=closed))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await ada.execute("SELECT id FROM products")


async def test_analysts_come_and_go_with_the_rules(follower: Follower) -> None:
    async with await AsyncConnection.connect(follower.twin.dsn("bob"), autocommit=True) as bob:
        async with await AsyncConnection.connect(follower.twin.dsn(OWNER), autocommit=True) as owner:
            await owner.execute("ALTER DEFAULT PRIVILEGES FOR ROLE bob GRANT SELECT ON TABLES TO PUBLIC")  # keeps him
        await bob.execute("CREATE TEMP VIEW mine AS SELECT 1 AS a")
        text = RULES.replace("  bob:", "  Eve O'Neil:").replace("{epsilon: 1, max", "{epsilon: 0.5, max")
        await follower.follow(shop_data.policy(rules=text))
        with pytest.raises(psycopg.OperationalError):
            await bob.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        await AsyncConnection.connect(follower.twin.dsn("bob"))
    eve = f"host={follower.twin.socket.parent} dbname={follower.twin.database} user='Eve O\\'Neil'"
    async with await AsyncConnection.connect(eve) as connection:
        assert await (await connection.execute("SHOW noisegate.epsilon")).fetchone() == ("0.5",)


@pytest.mark.parametrize("name", ["pg_ada", "public", "none", "noisegate_owner"])
async def test_a_name_that_cannot_be_a_role_is_refused(follower: Follower, name: str) -> None:
    with pytest.raises(TwinError, match=name):
        await follower.follow(shop_data.policy(rules=RULES.replace("  bob:", f"  {name}:")))


async def test_a_schema_with_our_name_is_refused(follower: Follower) -> None:
    follower.change("CREATE SCHEMA noisegate")
    with pytest.raises(TwinError, match="noisegate"):
        await follower.follow()


async def test_collations_that_the_embedded_server_lacks_exist_by_name(follower: Follower) -> None:
    catalog = await follower.engine.catalog()
    missing = Collation(TableName("pg_catalog", "de-x-icu"), True)
    await follower.twin.refresh(replace(catalog, collations=(*catalog.collations, missing)), follower.policy)
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        await ada.execute('SELECT name FROM products ORDER BY name COLLATE "de-x-icu"')


async def test_a_change_waits_for_a_session_in_its_way_and_then_ends_it(follower: Follower) -> None:
    follower.change("ALTER TABLE orders DROP COLUMN note")
    async with (
        await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as blocker,
        await AsyncConnection.connect(follower.twin.dsn("bob"), autocommit=True) as bystander,
    ):
        await blocker.execute("BEGIN; PREPARE p AS SELECT note FROM orders")
        following = asyncio.create_task(follower.follow())
        await asyncio.sleep(0.5)
        assert not following.done()
        await bystander.execute("SELECT 1")
        await asyncio.wait_for(following, 20)
        with pytest.raises(psycopg.OperationalError):
            await blocker.execute("SELECT 1")
        await bystander.execute("SELECT 1")
    await follower.looks_right()


async def test_a_change_that_cannot_be_made_leaves_the_twin_as_it_was(follower: Follower) -> None:
    catalog = await follower.engine.catalog()
    broken = replace(catalog, tables=tuple(_with_a_wrong_type(table) for table in catalog.tables))
    with pytest.raises(psycopg.Error):
        await follower.twin.refresh(broken, follower.policy)
    await follower.looks_right()
    await follower.follow()
    await follower.looks_right()


def _with_a_wrong_type(table: Table) -> Table:
    wrong = replace(table.columns[-1], type=replace(table.columns[-1].type, sql="pg_catalog.no_such_type"))
    return replace(table, columns=(*table.columns[:-1], wrong))


async def test_public_rows_follow_and_a_table_that_grows_too_large_is_closed(follower: Follower) -> None:
    counted = "SELECT count(*), min(price) FROM products"
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        follower.change("UPDATE products SET price = 1; INSERT INTO products VALUES (31, 'e''\\\\\\t', 'x', 0)")
        await follower.twin.refresh_public()
        assert await (await ada.execute(counted)).fetchone() == (31, 0)
        assert await (await ada.execute("SELECT name FROM products WHERE id = 31")).fetchone() == ("e'\\\\\\t",)

        follower.change("INSERT INTO products SELECT n, 'x', 'x', 0 FROM generate_series(100, 200) AS n")
        await follower.twin.refresh_public()
        assert follower.twin.closed_tables == {
            TableName("public", "products"): "it has more than 100 rows (--max-public-rows)"
        }
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await ada.execute(counted)

        follower.change("DELETE FROM products WHERE id >= 100")
        await follower.twin.refresh_public()
        assert await (await ada.execute(counted)).fetchone() == (31, 0)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE OR REPLACE VIEW extra AS SELECT id, email AS name FROM customers",
        "LOCK TABLE extra_rows; CREATE TABLE child () INHERITS (extra_rows); INSERT INTO child VALUES (1, 'x')",
        "DROP VIEW extra; CREATE VIEW extra AS SELECT id, email AS name FROM customers; GRANT ALL ON extra TO PUBLIC",
    ],
)
async def test_rows_that_waited_for_a_change_of_the_schema_are_not_shown(follower: Follower, change: str) -> None:
    """Rows wait for a migration's lock, and are read by the definition that it leaves."""
    follower.change("CREATE TABLE extra_rows (id int, name text); INSERT INTO extra_rows VALUES (1, 'seen')")
    follower.change("CREATE VIEW extra AS SELECT id, name FROM extra_rows")
    await follower.follow()

    with psycopg.connect(follower.real.dsn) as migration:
        migration.execute(change)
        refresh = asyncio.create_task(follower.twin.refresh_public())
        await asyncio.sleep(1)
    with pytest.raises(SchemaChanged):
        await refresh

    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        assert await (await ada.execute("SELECT * FROM extra")).fetchall() == [(1, "seen")]


async def test_a_public_table_that_our_role_may_not_read_stays_closed_and_the_others_open(follower: Follower) -> None:
    follower.change("CREATE TABLE extra (id int)")
    with follower.real.connect() as connection:
        connection.execute(f"REVOKE ALL ON extra FROM {shop_data.READER}")
    await follower.follow()
    assert follower.twin.closed_tables == {TableName("public", "extra"): "the proxy could not read it"}
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        assert await (await ada.execute("SELECT count(*) FROM products")).fetchone() == (30,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await ada.execute("SELECT count(*) FROM extra")


async def test_a_change_is_made_though_the_real_database_went_away_before_its_rows_were_copied(
    follower: Follower,
) -> None:
    follower.change("ALTER TABLE products ADD COLUMN size int NOT NULL DEFAULT 7")
    catalog = await follower.engine.catalog()
    with follower.real.connect() as connection:
        connection.execute(f"ALTER ROLE {shop_data.READER} NOLOGIN")
    await follower.engine._drop_idle()
    try:
        await follower.twin.refresh(catalog, follower.policy)
        await follower.looks_right()
        with pytest.raises(EngineError):
            await follower.twin.refresh_public()
    finally:
        with follower.real.connect() as connection:
            connection.execute(f"ALTER ROLE {shop_data.READER} LOGIN")
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await ada.execute("SELECT sum(size) FROM products")
        await follower.twin.refresh_public()
        assert await (await ada.execute("SELECT sum(size) FROM products")).fetchone() == (210,)


async def test_the_twin_comes_back_after_one_of_its_processes_died(follower: Follower) -> None:
    heard: list[tuple[str, int]] = []
    follower.twin.on_signal = lambda kind, process: heard.append((kind, process))
    async with (
        await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada,
        await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as witness,
    ):
        os.kill(ada.info.backend_pid, signal.SIGKILL)  # PostgreSQL ends all sessions and recovers
        with pytest.raises(psycopg.OperationalError):
            await witness.execute("SELECT pg_sleep(60)")
    async with await _once_it_answers(follower.twin.dsn("ada")) as ada:
        assert follower.twin.is_running()
        assert await (await ada.execute("SELECT count(*) FROM products")).fetchone() == (30,)
        async with asyncio.timeout(20):
            while not heard:  # the twin listens again a moment after it has come back
                await ada.execute(f"SELECT pg_catalog.noisegate_tell('cancel', {ada.info.backend_pid})")
                await asyncio.sleep(0.1)
        assert set(heard) == {("cancel", ada.info.backend_pid)}
    await follower.follow()


async def _once_it_answers(dsn: str) -> AsyncConnection:
    """A connection to a server that is just recovering."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await AsyncConnection.connect(dsn, autocommit=True)
            except psycopg.OperationalError:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("killed", ["the server", "its keeper"])
async def test_a_new_twin_takes_the_place_of_one_whose_server_is_gone(follower: Follower, killed: str) -> None:
    directory = follower.twin.socket.parent
    server = int((directory / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(server if killed == "the server" else follower.twin._cluster._keeper.pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        while follower.twin.socket.parent == directory:
            await asyncio.sleep(0.1)
    await follower.follow()
    await follower.looks_right()
    async with await AsyncConnection.connect(follower.twin.dsn("ada"), autocommit=True) as ada:
        assert await (await ada.execute("SELECT count(*) FROM products")).fetchone() == (30,)


@pytest.mark.long
async def test_a_twin_of_a_thousand_tables_is_built_in_seconds(real_cluster: Cluster, follower: Follower) -> None:
    catalog = await follower.engine.catalog()
    many = _many_tables(catalog, 1000)
    tables = "".join(f"  t{number}: {{unit: c0, rows_per_unit: 1}}\n" for number in range(1000))
    policy = shop_data.policy(rules=RULES.replace("tables:\n", f"tables:\n{tables}"))
    loop = asyncio.get_running_loop()
    started = loop.time()
    await follower.twin.refresh(many, policy)
    built = loop.time()
    await follower.twin.refresh(many, policy)
    print(f"\n1,000 tables of 20 columns: built in {built - started:.1f} s, compared in {loop.time() - built:.2f} s")
    await follower.looks_right()


def _many_tables(catalog: Catalog, size: int) -> Catalog:
    """Tables of twenty commented columns, each linked to the one before."""
    orders = next(table for table in catalog.tables if table.name.name == "orders")
    tables = []
    for number in range(size):
        columns = tuple(
            replace(orders.columns[0 if place == 0 else 1 + place % 5], name=f"c{place}", number=place + 1, identity="")
            for place in range(20)
        )
        columns = tuple(replace(column, comment=f"column {column.name}") for column in columns)
        key = replace(orders.keys[0], name=f"t{number}_pkey", columns=("c0",))
        link = replace(
            orders.foreign_keys[0],
            name=f"t{number}_link",
            columns=("c0",),
            target=TableName("public", f"t{number - 1}"),
            target_columns=("c0",),
            definition=f"FOREIGN KEY (c0) REFERENCES public.t{number - 1}(c0)",
        )
        links = (link,) if number else ()
        name = TableName("public", f"t{number}")
        tables.append(Table(name, "table", columns, (key,), links, comment=f"table {number}"))
    return replace(catalog, tables=(*catalog.tables, *tables))


async def test_a_twin_that_has_grown_too_large_is_made_anew(shop: RealDatabase) -> None:
    engine = PostgresEngine(shop.reader_dsn)
    limits = replace(LIMITS, disk_bytes=2**26)
    twin = await Twin.open(await engine.catalog(), shop_data.policy(shop.reader_dsn), engine, limits)
    try:
        before = twin.socket.parent
        async with await AsyncConnection.connect(twin.dsn(OWNER), autocommit=True) as owner:
            await owner.execute("CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 50000)")
        async with asyncio.timeout(60):
            while twin.socket.parent == before:
                await asyncio.sleep(0.1)
        async with await _once_it_answers(twin.dsn("ada")) as ada:
            assert await (await ada.execute("SELECT count(*) FROM pg_class WHERE relname = 'large'")).fetchone() == (0,)
    finally:
        await twin.close()
        await engine.close()
