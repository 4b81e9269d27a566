"""Columns of public tables in a synopsis: rows refer to public rows that have what was counted."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from proxy.engines.postgres.snapshots import PostgresEngine
from proxy.execute.rulebook import Rulebook
from proxy.synopses.make import Maker
from proxy.synopses.shelf import Shelf
from proxy.twin.twin import TwinLimits
from proxy.twin.twins import Twins
from rules.catalog import TypeName
from rules.frozen import replace
from rules.kernel.ground import Ground
from rules.mechanisms.draw import OpenDPNoise
from rules.policy.finding import Severity
from rules.replay import Kernel
from rules.synopses.check import check_synopses
from rules.synopses.plan import NotPlanned, plan_synopsis
from rules.synopses.release import measured
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.support.ledgers import SqliteLedger

TABLES = """\
synopses:
  explore:
    epsilon: 200
    tables:
      order_items: [products.category, products.price by 5, quantity by 5]
"""
RULES = shop_data.RULES.replace(
    "  products: public\n", "  products: {public: true, columns: {price: {lower: 0, upper: 90}}}\n"
)
RULES = RULES.replace("      unit_price:", "      quantity: {lower: 1, upper: 5}\n      unit_price:")
EXACT = """
    SELECT p.category, width_bucket(p.price, ARRAY[0, 18, 36, 54, 72]), count(*) FROM order_items AS i
    JOIN products AS p ON p.id = i.product_id GROUP BY 1, 2
"""


@pytest.fixture(scope="module")
async def twins(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Twins]:
    folder: Path = tmp_path_factory.mktemp("partners")
    policy, engine = shop_data.policy(shop.reader_dsn, RULES + TABLES), PostgresEngine(shop.reader_dsn)
    catalog = await engine.catalog()
    SqliteLedger.create(folder / "ledger", "1/shop")
    ledger = await SqliteLedger.open(folder / "ledger", "1/shop")
    twins = await Twins.open(catalog, policy, engine, TwinLimits())
    maker = Maker(engine, ledger, OpenDPNoise(), lambda: datetime(2026, 11, 21, tzinfo=UTC))
    await Shelf(maker, twins, lambda _: None).follow(Rulebook.of(policy, catalog, 0))
    yield twins
    await twins.close()
    await engine.close()
    await ledger.close()


def _rows(twins: Twins, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(twins.of("ada").dsn("ada"), autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


async def test_every_row_refers_to_a_public_row_with_the_values_that_were_counted(
    twins: Twins, shop: RealDatabase
) -> None:
    synthetic = EXACT.replace("order_items", "explore.order_items")
    made = {(one, two): int(str(count)) for one, two, count in _rows(twins, synthetic)}
    with shop.connect() as real:
        exact = {(one, two): int(count) for one, two, count in real.execute(EXACT).fetchall()}
    ((rows, orphans, values),) = _rows(
        twins,
        "SELECT count(*), count(*) FILTER (WHERE p.id IS NULL), count(DISTINCT product_id) FROM explore.order_items "
        "AS i LEFT JOIN products AS p ON p.id = i.product_id",
    )

    assert (rows, orphans, values) == (sum(made.values()), 0, 30)
    apart = sum(abs(made.get(cell, 0) - exact.get(cell, 0)) for cell in made.keys() | exact.keys())
    assert apart / 2 < 0.2 * sum(exact.values()), "of which a tenth is beyond rows_per_unit"


async def test_rows_refer_to_what_is_there_when_public_rows_change(twins: Twins, shop: RealDatabase) -> None:
    asked = (
        "SELECT count(*), count(*) FILTER (WHERE p.id IS NULL), max(p.id) FROM explore.order_items AS i "
        "LEFT JOIN products AS p ON p.id = i.product_id"
    )
    ((rows, _, _),) = _rows(twins, asked)
    with shop.connect() as owner:
        owner.execute("INSERT INTO products SELECT 100 + id, name, category, price FROM products")
        try:
            await twins.refresh_public()
            changed = _rows(twins, asked)
        finally:
            owner.execute("DELETE FROM products WHERE id > 100")
        await twins.refresh_public()

    assert changed == [(rows, 0, 130)]
    assert _rows(twins, asked) == [(rows, 0, 30)]


def test_the_columns_of_public_rows_are_counted_with_the_rows_that_refer_to_them(shop: RealDatabase) -> None:
    """What the kernel counts is what a join counts: with all rows of a unit, since here nobody has more than count."""
    policy, catalog = shop_data.policy(rules=(RULES + TABLES).replace("120", "1000000")), catalog_of(shop.dsn)
    (table,) = plan_synopsis("explore", policy, catalog).tables
    made = Kernel(Ground(policy, catalog)).marginals(table.statement)
    with shop.connect() as connection:
        sent = [
            tuple(None if cell is None else str(cell).encode() for cell in row)
            for row in connection.execute(made.sql.encode())
        ]
        ((whole,),) = connection.execute("SELECT count(*) FROM order_items").fetchall()

    counts = measured(table, made, sent).counts

    assert {
        sum(count) for marginal, count in zip(made.marginals, counts, strict=True) if marginal.columns in ((), (1, 2))
    } == {whole}


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ("order_items: [products.id]", "it is part of a key"),
        ("order_items: [products.nothing]", "has no column"),
        ("customers: [products.category]", "no valid foreign key"),
        ("products: [category]", "is no protected table"),
    ],
)
def test_what_is_no_column_of_a_partner_is_refused(shop: RealDatabase, tables: str, words: str) -> None:
    rules = f"{RULES}synopses: {{explore: {{epsilon: 2, tables: {{{tables}}}}}}}\n"
    findings = check_synopses(shop_data.policy(rules=rules), catalog_of(shop.dsn))

    (error,) = [finding for finding in findings if finding.severity is Severity.ERROR]
    assert words in error.message


def test_columns_are_not_found_along_a_foreign_key_under_another_equality(shop: RealDatabase) -> None:
    """Several values of a bigint are equal to one double: rows would stand in the bins of another product."""
    policy, catalog = shop_data.policy(rules=RULES + TABLES), catalog_of(shop.dsn)
    kinds = {"product_id": TypeName("bigint", "int8"), "id": TypeName("double precision", "float8")}
    retyped = tuple(
        replace(table, columns=tuple(replace(each, type=kinds.get(each.name, each.type)) for each in table.columns))
        if table.name.name in ("order_items", "products")
        else table
        for table in catalog.tables
    )

    with pytest.raises(NotPlanned, match="no valid foreign key of one column of the same type"):
        plan_synopsis("explore", policy, replace(catalog, tables=retyped))
