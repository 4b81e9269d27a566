"""A database that looks distributed: Citus's catalogs, made by hand, are read, judged, and no obstacle to answers."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.engines.postgres.opening import PINNED
from proxy.engines.postgres.snapshots import PostgresEngine
from rules.catalog import Catalog, Distribution, TableName
from rules.planner.check_rules import check_all
from rules.policy.rule_values import ALLOWED
from rules.policy.rules_yaml import RulesError
from tests.conftest import RealDatabase, make_shop
from tests.support import shop as shop_data
from tests.support.running import command, noisegate

CATALOGS = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (
    logicalrelid regclass NOT NULL, partmethod "char" NOT NULL, partkey text,
    colocationid integer NOT NULL DEFAULT 0, repmodel "char" NOT NULL DEFAULT 'c', autoconverted bool DEFAULT false);
GRANT SELECT ON pg_catalog.pg_dist_partition TO public;
RESET allow_system_table_mods;
CREATE ACCESS METHOD columnar TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE archive (customer_id integer NOT NULL, amount integer) USING columnar;
GRANT SELECT ON archive TO noisegate_reader;
"""
KEY = "{{VAR :varno 1 :varattno {} :vartype 23 :vartypmod -1 :varcollid 0 :varlevelsup 0 :varnoold 1}}"


def distribute(database: RealDatabase, *rows: tuple[str, str, int | None, int, str]) -> None:
    """Table, method, number of the column, co-location group and replication model, as Citus keeps them."""
    with database.connect() as owner:
        owner.execute("DELETE FROM pg_catalog.pg_dist_partition")
        for table, method, column, group, model in rows:
            key = None if column is None else KEY.format(column)
            owner.execute(
                "INSERT INTO pg_catalog.pg_dist_partition VALUES (%s::regclass, %s, %s, %s, %s)",
                (table, method, key, group, model),
            )


@pytest.fixture(scope="module")
def citus(shop: RealDatabase) -> Iterator[RealDatabase]:
    database = make_shop(shop.cluster, "citus")
    with database.connect() as owner:
        owner.execute(CATALOGS)
    yield database


async def read(database: RealDatabase) -> Catalog:
    engine = PostgresEngine(database.reader_dsn)
    try:
        return await engine.catalog()
    finally:
        await engine.close()


def said(catalog: Catalog, dsn: str, more: str = "") -> dict[str, str]:
    """What is said of tables and settings, by path."""
    findings = check_all(shop_data.policy(dsn, shop_data.RULES + more), catalog)
    kept = [
        finding
        for finding in findings
        if "distribut" in str(finding) or "node" in str(finding) or "Citus" in str(finding)
    ]
    return {finding.path: str(finding) for finding in kept}


async def test_distributed_reference_local_and_columnar_tables_are_read(citus: RealDatabase) -> None:
    distribute(
        citus,
        ("customers", "h", 1, 7, "s"),
        ("orders", "h", 2, 7, "s"),
        ("products", "n", None, 3, "t"),
        ("staff", "n", None, 0, "s"),
    )

    catalog = await read(citus)

    assert catalog.is_citus
    kept = {table.name.name: table.distribution for table in catalog.tables}
    assert kept == {
        "customers": Distribution("distributed", "id", 7),
        "orders": Distribution("distributed", "customer_id", 7),
        "products": Distribution("reference", "", 3),
        "staff": Distribution("local", "", 0),
        "order_items": None,
        "archive": None,
    }
    archive = catalog.find_table(TableName("public", "archive"))
    assert archive is not None
    assert [column.name for column in archive.columns] == ["customer_id", "amount"]


async def test_a_database_without_citus_is_none(shop: RealDatabase) -> None:
    catalog = await read(shop)

    assert not catalog.is_citus
    assert said(catalog, shop.reader_dsn) == {}
    warned = said(catalog, shop.reader_dsn, "engine_settings: {citus.enable_repartition_joins: on}\n")
    assert "the database has no Citus" in warned["engine_settings"]


async def test_tables_that_are_not_beside_their_units_are_named_with_their_cost(citus: RealDatabase) -> None:
    distribute(citus, ("customers", "h", 1, 7, "s"), ("orders", "h", 1, 7, "s"), ("order_items", "h", 1, 7, "s"))
    found = said(await read(citus), citus.reader_dsn)

    assert "customers" not in str(found.get("tables.customers"))
    assert "distributed by id, not by its unit (customer_id): rows are sent between nodes" in found["tables.orders"]
    assert "create_distributed_table('orders', 'customer_id')" in found["tables.orders"]
    assert "its unit is found through another table" in found["tables.order_items"]
    assert "engine_settings: {citus.enable_repartition_joins: on}" in found["engine_settings"]
    pinned = said(await read(citus), citus.reader_dsn, "engine_settings: {citus.enable_repartition_joins: on}\n")
    assert "engine_settings" not in pinned

    distribute(citus, ("customers", "h", 1, 7, "s"), ("orders", "h", 2, 8, "s"))
    found = said(await read(citus), citus.reader_dsn)
    assert "not co-located with customers" in found["tables.orders"]
    assert "it is not distributed: one node reads it alone" in found["tables.order_items"]


@pytest.mark.extended
def test_settings_are_pinned_where_rows_are_read_and_change_no_answer(citus: RealDatabase, tmp_path: Path) -> None:
    distribute(citus, ("customers", "h", 1, 7, "s"), ("orders", "h", 2, 7, "s"))
    pinned = "engine_settings: {citus.enable_repartition_joins: on, work_mem: 9MB, jit: off, random_page_cost: 1.1}\n"
    with (
        noisegate(tmp_path, citus.reader_dsn, rules=shop_data.RULES + pinned, name="citus") as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):
        ((count,),) = session.execute("SELECT count(*) FROM customers").fetchall()
        assert abs(count - shop_data.CUSTOMERS) < 60


async def test_the_settings_are_those_of_the_transaction(shop: RealDatabase) -> None:
    engine = PostgresEngine(shop.reader_dsn, settings={"work_mem": "9MB", "citus.enable_repartition_joins": "on"})
    try:
        async with engine.snapshot(time_zone="UTC", timeout_seconds=20) as snapshot:
            names = "current_setting('work_mem'), current_setting('citus.enable_repartition_joins')"
            assert await snapshot.read_public(f"SELECT {names}") == [(b"9MB", b"on")]
        assert await engine.find_refused({"work_mem": "1B", "jit": "on"}) == ["work_mem"]
    finally:
        await engine.close()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{row_security: on}", "engine_settings: row_security cannot be set here"),
        ("{work_men: 4MB}", 'did you mean "work_mem"?'),
        ('{work_mem: "4MB\'; DROP TABLE x"}', "is not a value of work_mem"),
        ("{jit: maybe}", '"maybe" is not a value of jit'),
        ("on", "must be a list of settings"),
    ],
)
def test_only_what_changes_plans_and_no_meaning_may_be_set(shop: RealDatabase, line: str, words: str) -> None:
    with pytest.raises(RulesError, match=words.replace("?", r"\?")):
        shop_data.policy(shop.reader_dsn, f"{shop_data.RULES}engine_settings: {line}\n")


@pytest.mark.extended
def test_a_value_that_the_database_does_not_take_stops_the_start(shop: RealDatabase, tmp_path: Path) -> None:
    path = shop_data.rules_file(tmp_path, f"{shop_data.RULES}engine_settings: {{work_mem: 1B}}\n")

    checked = command("check", str(path), database=shop.reader_dsn)

    assert (checked.returncode, "does not take this value of work_mem" in checked.stderr) == (1, True)


def test_nothing_that_the_proxy_pins_itself_is_allowed() -> None:
    assert not {name.lower() for name in PINNED} & set(ALLOWED)
