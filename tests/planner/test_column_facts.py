"""noisegate.columns is right: what it says of a column is what becomes of a statement over it."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rules.mechanisms.release_plan import PrivateGroups, PublicGroups
from rules.planner.column_facts import ColumnFacts, column_facts
from rules.planner.plan import Plan
from rules.policy.check import check_policy
from rules.policy.finding import Severity
from rules.policy.model import ColumnRules, Policy, TableRules
from rules.refusal import NotAllowed, NotSupported, Refusal
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.properties.planning import EXAMPLES
from tests.support import shop

UNDECLARED = """\
database: ${NOISEGATE_DATABASE}
unit: customers.id
tables:
  customers: {unit: id, columns: {birth_date: {lower: 2000-01-01, upper: 2000-12-31}, country: hidden}}
  orders: {unit: customer_id, columns: {amount: {values: [1, 2.5]}}}
  order_items: {unit: order_id -> orders.id, rows_per_unit: 7, columns: {product_id: {lower: 1, upper: 30}}}
groups_limit: 400
"""
EVERY_ROW = """\
database: ${NOISEGATE_DATABASE}
unit: row
tables: {customers: {}, orders: {}, order_items: {}, products: {}}
"""
REST = shop.RULES[shop.RULES.index("budget:") :]
RULES = {"the shop's": shop.RULES, "undeclared": UNDECLARED + REST, "every row": EVERY_ROW + REST}


@pytest.fixture(scope="module", params=list(RULES.values()), ids=list(RULES))
def planner(request: pytest.FixtureRequest, shop: RealDatabase) -> Planner:
    return Planner(shop.dsn, request.param)


@pytest.fixture(scope="module")
def facts(planner: Planner) -> list[ColumnFacts]:
    return [fact for fact in column_facts(planner.policy, planner.catalog) if not fact.is_public]


def named(facts: list[ColumnFacts], table: str, column: str) -> ColumnFacts:
    (found,) = (facts_of for facts_of in facts if (facts_of.table.name.name, facts_of.column.name) == (table, column))
    return found


def planned(planner: Planner, sql: str, *, delta: str = "0") -> Plan | None:
    try:
        return planner.plan(sql, rows_per_unit=9, delta=delta)
    except Refusal as refusal:
        assert isinstance(refusal, NotAllowed | NotSupported)
        return None


def test_a_column_can_be_summed_exactly_if_it_says_so(planner: Planner, facts: list[ColumnFacts]) -> None:
    for facts_of in facts:
        plan = planned(planner, f"SELECT sum({facts_of.column.name}) FROM {facts_of.table.name}")

        assert (plan is not None) == facts_of.can_be_summed, facts_of


def test_groups_are_as_it_says(planner: Planner, facts: list[ColumnFacts]) -> None:
    for facts_of in facts:
        sql = f"SELECT {facts_of.column.name}, count(*) FROM {facts_of.table.name} GROUP BY 1"
        without, with_delta = planned(planner, sql), planned(planner, sql, delta="1e-9")

        assert (without is not None) == (facts_of.groups == "known"), facts_of
        assert (with_delta is not None) == (facts_of.groups is not None), facts_of
        if with_delta is not None and with_delta.blocks:  # none where a constraint leaves no declared value
            expected = PublicGroups if facts_of.groups == "known" else PrivateGroups
            assert isinstance(with_delta.blocks[0].groups, expected), facts_of


def test_known_values_are_the_groups(planner: Planner, facts: list[ColumnFacts]) -> None:
    for facts_of in facts:
        if facts_of.bounds.values is not None and facts_of.groups == "known":
            sql = f"SELECT DISTINCT {facts_of.column.name} FROM {facts_of.table.name}"
            groups = [block.groups for block in planner.plan(sql, rows_per_unit=9).blocks]
            assert len(groups) <= 1 and all(isinstance(each, PublicGroups) for each in groups)
            texts = [text for each in groups for (text,) in getattr(each, "rows", ()) if text is not None]
            assert sorted(texts) == sorted(facts_of.bounds.values), facts_of


def test_the_rows_of_a_unit_that_count_are_as_it_says(planner: Planner, facts: list[ColumnFacts]) -> None:
    for facts_of in facts:
        (block,) = planner.plan(f"SELECT count(*) FROM {facts_of.table.name}").blocks
        most = "at most 1000000" if facts_of.rows.most is None else facts_of.rows.most
        assert dict(block.explanation)["rows per unit"].startswith(f"{most}, ")


def test_the_unit_is_what_counts_people(planner: Planner, facts: list[ColumnFacts]) -> None:
    for facts_of in facts:
        plan = planned(planner, f"SELECT count(DISTINCT {facts_of.column.name}) FROM {facts_of.table.name}")
        if facts_of.is_unit:
            assert plan is not None
            (measure,) = plan.blocks[0].measures
            assert measure.name.startswith("units"), facts_of


def test_hidden_columns_are_not_told_of(shop: RealDatabase) -> None:
    planner = Planner(shop.dsn)

    names = {(fact.table.name.name, fact.column.name) for fact in column_facts(planner.policy, planner.catalog)}

    assert ("customers", "email") not in names
    assert ("customers", "name") in names
    assert not any(table == "staff" for table, _ in names)


def test_bounds_come_from_the_rules_or_from_what_the_catalog_proves(shop: RealDatabase) -> None:
    planner = Planner(shop.dsn)
    facts = list(column_facts(planner.policy, planner.catalog))

    amount, quantity = named(facts, "orders", "amount").bounds, named(facts, "order_items", "quantity").bounds
    assert (amount.lower, amount.upper, amount.source) == ("0.00", "500.00", "rules")
    assert (quantity.lower, quantity.upper, quantity.source) == ("1", "100", "catalog")
    assert named(facts, "orders", "id").bounds.lower is None
    assert named(facts, "customers", "segment").bounds.values == ("consumer", "business", "public sector")


@dataclass
class Ruled(Planner):
    """The planner of the shop by any rules."""

    given: Policy | None = None

    @property
    def policy(self) -> Policy:
        assert self.given is not None
        return self.given


NUMBERS = st.decimals("-1000", "1000", places=2)
DATES = st.dates(date(1990, 1, 1), date(1992, 12, 31))


def column_rules(values: st.SearchStrategy[Any], *, bounds: bool) -> st.SearchStrategy[ColumnRules]:
    """Nothing, a range, or a list."""
    ranges = st.tuples(values, values).map(sorted).map(lambda pair: ColumnRules(lower=pair[0], upper=pair[1]))
    lists = st.lists(values, min_size=1, max_size=4, unique=True).map(lambda found: ColumnRules(values=tuple(found)))
    return st.one_of(st.just(ColumnRules()), lists, *([ranges] if bounds else []))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Rules for the shop, with whatever ranges and lists."""
    columns = {
        "customers": {
            "birth_date": column_rules(DATES, bounds=True),
            "city": column_rules(st.text("ab'\\", max_size=3), bounds=False),
            "id": column_rules(st.integers(-9, 9), bounds=True),
        },
        "orders": {"amount": column_rules(NUMBERS, bounds=True), "ordered_at": column_rules(DATES, bounds=True)},
        "order_items": {
            "quantity": column_rules(st.integers(-20, 200), bounds=True),
            "unit_price": column_rules(NUMBERS, bounds=True),
        },
    }
    units = {"customers": "id", "orders": "customer_id", "order_items": "order_id -> orders.id"}
    rows = st.one_of(st.none(), st.integers(1, 50))
    tables = {
        name: TableRules(unit=units[name], rows_per_unit=draw(rows), columns=draw(st.fixed_dictionaries(columns[name])))
        for name in units
    }
    return shop.policy().model_copy(update={"tables": tables, "groups_limit": draw(st.integers(1, 600))})


@settings(max_examples=max(1, EXAMPLES // 10), deadline=None)
@given(policy=policies())
def test_it_is_right_by_any_rules(shop: RealDatabase, policy: Policy) -> None:
    planner = Ruled(shop.dsn, given=policy)
    assume(not any(found.severity is Severity.ERROR for found in check_policy(policy, planner.catalog)))
    facts = list(column_facts(policy, planner.catalog))

    test_a_column_can_be_summed_exactly_if_it_says_so(planner, facts)
    test_groups_are_as_it_says(planner, facts)
    test_known_values_are_the_groups(planner, facts)
    test_the_rows_of_a_unit_that_count_are_as_it_says(planner, facts)
