"""A change of the rules or of the schema makes other answers of those that it has to do with, and leaves the rest."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from proxy.execute.meanings import Meanings
from rules.accounting.store import Promise
from rules.catalog import Catalog, Column, EnumType, Index, Table, TableName, TypeName
from rules.sql.session_settings import Within
from tests.conftest import RealDatabase
from tests.execute.desk import Desk
from tests.execute.plans import UNITS, block_of, plan_of
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of

RULES = shop_data.RULES
STAFF = "  products: public\n  staff: {unit: id}\n"  # a table of the shop that its rules do not name


@pytest.fixture(scope="module")
def catalog(shop: RealDatabase) -> Catalog:
    return catalog_of(shop.dsn)


def changed(catalog: Catalog, rules: str, change: Callable[[Table], Table] = lambda table: table) -> set[str]:
    """The tables whose answers are others by these rules, or with tables that were changed so."""
    before = Meanings(shop_data.policy(), catalog)
    after = Meanings(
        shop_data.policy(rules=rules), replace(catalog, tables=tuple(change(table) for table in catalog.tables))
    )
    return {
        name
        for name in ("customers", "orders", "order_items", "products")
        if before.of([name], "") != after.of([name], "")
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  products: public\n", STAFF, set()),
        ("  products: public\n", '  products: {public: {because: "no people in it"}}\n', set()),
        ("epsilon: 1000", "epsilon: 10", set()),
        (
            "  products: public\n",
            "  products: {public: true, columns: {price: {lower: 0, upper: 9}}}\n",
            {"products", "order_items"},
        ),
        ("upper: 500", "upper: 600", {"orders", "order_items"}),
        ("Graz]", "Graz, Wien]", {"customers", "orders", "order_items"}),
        ("budget:", "group_size: 2\nbudget:", {"customers", "orders", "order_items", "products"}),
    ],
)
def test_rules_mean_something_for_their_table_and_for_those_that_lead_to_it(
    catalog: Catalog, old: str, new: str, expected: set[str]
) -> None:
    assert RULES.count(old) == 1
    assert changed(catalog, RULES.replace(old, new)) == expected


def test_a_column_that_is_added_changes_its_table_and_an_index_nothing(catalog: Catalog) -> None:
    index = Index("orders_of_a_day", "CREATE INDEX …", ("ordered_at",))

    def with_column(table: Table) -> Table:
        return replace(table, columns=(*table.columns, replace(table.columns[-1], name="new")))

    assert not changed(catalog, RULES, lambda table: replace(table, indexes=(*table.indexes, index), comment="kept"))
    assert not changed(catalog, RULES, lambda table: replace(table, missing=True))  # as where a standby takes over
    assert not changed(catalog, RULES, lambda table: with_column(table) if str(table.name) == "staff" else table)
    assert changed(catalog, RULES, lambda table: with_column(table) if str(table.name) == "orders" else table) == {
        "orders",
        "order_items",
    }


def test_a_type_means_something_for_the_tables_and_blocks_that_name_it(catalog: Catalog) -> None:
    name, quoted = TableName("public", "hue"), TableName("public", 'h"ue')
    (customers,) = (table for table in catalog.tables if str(table.name) == "customers")
    hue = TypeName("public.hue[]", "array", schema="public", name="hue")
    with_hue = replace(customers, columns=(*customers.columns, Column("hues", hue, 99)))
    tables = (with_hue, *(table for table in catalog.tables if table != customers))

    def meanings(*labels: str) -> Meanings:
        made = (*catalog.enums, EnumType(name, labels), EnumType(quoted, labels))
        return Meanings(shop_data.policy(), replace(catalog, tables=tables, enums=made))

    before, after = meanings("red"), meanings("blue")
    assert before.of(["products"], "count") == after.of(["products"], "count")
    assert before.of(["customers"], "count") != after.of(["customers"], "count")
    assert before.of(["customers"], "'red'::public.hue") == before.of(["customers"], "count")
    for written in ("'red'::public.hue", """'red'::public."h""ue\""""):
        assert before.of(["products"], written) != after.of(["products"], written)


async def test_what_was_paid_is_served_again_when_a_table_has_come_to_the_rules(desk: Desk) -> None:
    answer = await desk.ask(block_of(UNITS))
    desk.noise.constant = 99
    for generation, (rules, price) in enumerate(
        [(RULES.replace("  products: public\n", STAFF), 1), (RULES.replace("Graz]", "Graz, Wien]"), 2)], start=1
    ):
        await desk.service.load(shop_data.policy(rules=rules), desk.catalog)
        plan = replace(plan_of(block_of(UNITS)), generation=generation)
        again = await desk.service.answer(plan, analyst="ada", session="s", timeout_seconds=9)
        assert (again.columns == answer.columns) == (price == 1)
        assert await desk.spent() == (price, price)


async def test_a_promise_is_one_by_the_rules_that_it_was_made_by_and_as_long_as_answers_are_fresh(desk: Desk) -> None:
    plan, within = plan_of(block_of(UNITS)), Within(Fraction(5, 100), is_relative=True, text="5%")
    promises, promise = desk.service.promises, Promise(Decimal("0.3"), ("told",))
    await promises.keep("ada", plan, within, promise)
    assert await promises.find("ada", plan, within) == promise

    for rules, kept in (
        (RULES.replace("Graz]", "Graz, Wien]"), None),
        (RULES.replace("epsilon: 1000", "epsilon: 99"), promise),
    ):
        await desk.service.load(shop_data.policy(rules=rules), desk.catalog)
        assert await promises.find("ada", plan, within) == kept

    desk.now += desk.policy.fresh_for + timedelta(seconds=1)
    assert await promises.find("ada", plan, within) is None
    await promises.keep("ada", plan, within, promise)
    assert await promises.find("ada", plan, within) == promise
