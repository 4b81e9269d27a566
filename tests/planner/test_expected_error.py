"""The errors that `noisegate check` tells are those of the noise that answers get, and its report says them once."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from math import exp
from pathlib import Path

import pytest

from proxy.commands.rules_file import CheckReport
from rules.catalog import TableName, TypeName
from rules.planner.expected_error import TableUse, expected_errors
from rules.policy.finding import Finding, Severity
from rules.policy.rules_yaml import Source
from rules.policy.suggest import FOOTER
from tests.planner.planned import Planner
from tests.support import shop as shop_data

EPSILONS = (Decimal("0.1"), Decimal(1), Decimal(5))


@pytest.fixture(scope="module")
def uses(planner: Planner) -> dict[str, TableUse]:
    return {use.table.name.name: use for use in expected_errors(planner.policy, planner.catalog, EPSILONS)}


def within(epsilon: float, share: float = 0.95) -> int:
    """The least m of which so large a share of discrete Laplace draws is within m, by summing its law."""
    ratio = exp(-epsilon)
    m = 0
    while 2 * ratio ** (m + 1) / (1 + ratio) > 1 - share:
        m += 1
    return m


@pytest.mark.parametrize(("table", "rows"), [("customers", 1), ("orders", 40), ("order_items", 120)])
def test_a_count_has_the_error_of_its_noise(uses: dict[str, TableUse], table: str, rows: int) -> None:
    (count, *_) = uses[table].questions

    assert count.words == "count of rows"
    assert {epsilon: int(error) for epsilon, error in count.errors.items()} == {
        epsilon: within(float(epsilon) / rows) for epsilon in EPSILONS
    }


def test_what_is_known_is_counted_by_and_what_is_bounded_is_summed(uses: dict[str, TableUse]) -> None:
    words = {name: [question.words for question in use.questions] for name, use in uses.items()}

    assert words["customers"] == [
        "count of rows",
        "count by city, country, is_vip, segment, month of birth_date",
        "count by name, joined, of groups that are large enough",
    ]
    assert [word for word in words["order_items"] if "sum" in word] == ["sum of quantity", "sum of unit_price"]
    assert uses["products"].public and not words["products"]
    amount = next(question for question in uses["orders"].questions if question.words == "sum of amount")
    assert 500 * within(1 / 40) * 0.9 < float(amount.errors[Decimal(1)]) < 500 * within(1 / 40) * 1.1


def test_a_group_needs_what_noise_alone_does_not_reach_in_a_list_so_long(uses: dict[str, TableUse]) -> None:
    by_city = next(question for question in uses["customers"].questions if question.by == "city")

    needed = {epsilon: within(float(epsilon), share=1 - 0.05 / 5) + 1 for epsilon in EPSILONS}  # four, and NULL
    assert {epsilon: int(size.number) for epsilon, size in by_city.sizes.items()} == needed
    assert not any(question.sizes for question in uses["customers"].questions if question.by == "name")


def test_a_draft_says_what_a_group_needs_at_its_epsilon() -> None:
    needed = within(0.1, share=1 - 0.05 / 10) + 1

    assert f"At ε 0.1 a group in a list of 10 needs about {needed} units to be shown" in FOOTER


def test_what_is_missing_is_named(planner: Planner) -> None:
    rules = shop_data.RULES.replace("      amount: {lower: 0, upper: 500}\n", "").replace(", delta: 1e-6", "")
    rules = rules.replace("    rows_per_unit: 120\n", "").replace(", delta: 1e-9", "")
    found = expected_errors(shop_data.policy(rules=rules), planner.catalog, EPSILONS)

    missing = {use.table.name.name: " ".join(use.not_covered) for use in found}
    assert "groups by amount, note: no values and no δ" in missing["orders"]
    assert "count of rows: " in missing["order_items"]


def test_what_is_of_no_use_to_analysts_is_warned_of(planner: Planner) -> None:
    begin, end = shop_data.RULES.index("      city:"), shop_data.RULES.index("  orders:")
    names = ("name", "email", "city", "country", "is_vip", "segment", "birth_date", "joined")
    rules = shop_data.RULES[:begin] + "".join(f"      {name}: hidden\n" for name in names) + shop_data.RULES[end:]
    policy = shop_data.policy(
        rules=rules.replace("      unit_price: {lower: 0, upper: 100}\n", "      product_id: {}\n")
    )

    kinds = {
        "quantity": TypeName("smallint", "int2"),
        "unit_price": TypeName("numeric(6,2)", "numeric", (6 << 16 | 2) + 4),
    }
    items = next(each for each in planner.catalog.tables if each.name.name == "order_items")
    columns = tuple(replace(each, type=kinds.get(each.name, each.type)) for each in items.columns)
    tables = [replace(items, columns=columns, checks=()) if each is items else each for each in planner.catalog.tables]

    uses = expected_errors(policy, replace(planner.catalog, tables=tuple(tables)), EPSILONS)
    warned = {finding.path: finding.message for use in uses for finding in use.findings(policy)}

    wide = "without bounds its sums have noise as wide as the whole range of its type"
    assert warned == {
        "tables.customers": "only its rows can be counted: no column can be grouped or summed",
        "tables.order_items.columns.quantity": wide,
        "tables.order_items.columns.unit_price": wide,
    }


def test_a_report_groups_notes_and_is_read_by_programs(planner: Planner, uses: dict[str, TableUse]) -> None:
    found = [
        Finding(Severity.WARNING, "budget.epsilon", "is large", "less"),
        Finding(Severity.NOTE, "tables.customers.columns.email", "hidden"),
        Finding(Severity.NOTE, "tables.orders.columns.note", "hidden"),
    ]
    report = _report(planner, found, tuple(uses.values()))

    _, *lines = report.as_text()
    assert lines[:2] == [
        "r.yaml:25: warning: budget.epsilon: is large (less)",
        "r.yaml:10: note: customers.email, orders.note: hidden",
    ]
    assert "    count of rows: ±30 at ε 0.1, ±3 at ε 1, ±0 at ε 5" in lines
    assert any(line.endswith(": all together 1,000, ada 1,000, bob 500.") for line in lines)
    assert "Supported queries, and how far noise moves 95% of their answers:" in lines
    assert lines[-1] == "r.yaml: fine, with 1 warning"
    tree = json.loads(report.as_json())
    assert tree["statements"] == {"all together": 1000, "ada": 1000, "bob": 500}
    assert tree["findings"][0]["line"] == 25
    assert tree["tables"][0]["questions"][0]["error_at_95%"] == {"0.1": 30.0, "1": 3.0, "5": 0.0}


def test_a_report_of_a_hundred_tables_has_a_line_for_what_they_have_in_common(
    planner: Planner, uses: dict[str, TableUse]
) -> None:
    names = [f"t{number}" for number in range(100)]
    found = [Finding(Severity.WARNING, f"tables.{name}.unit", "can be null") for name in names]
    orders = uses["orders"]
    alike = [replace(orders, table=replace(orders.table, name=TableName("public", name))) for name in names]
    report = _report(planner, found, (uses["customers"], *alike))

    unit, *lines = report.as_text()
    listed = ", ".join(f"{name}.unit" for name in names[:8])
    assert unit.startswith("unit: customers.id: ")
    assert lines[0].endswith(f": warning: {listed} and 92 others: can be null")
    assert "  t0, t1, t2, t3, t4, t5, t6, t7 and 92 others" in lines and len(lines) < 60
    assert lines[-1] == "r.yaml: fine, with 100 warnings"
    assert len(json.loads(report.as_json())["findings"]) == 100


def _report(planner: Planner, found: Sequence[Finding], uses: Sequence[TableUse]) -> CheckReport:
    source = Source(shop_data.RULES, "r.yaml", {"NOISEGATE_DATABASE": "x"})
    return CheckReport(Path("r.yaml"), source, planner.policy, found, uses, EPSILONS)
