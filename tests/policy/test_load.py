"""A rules file says what it means, or exactly what is wrong with it."""

from datetime import date, timedelta
from decimal import Decimal
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.catalog import TableName
from rules.policy.load import load_policy
from rules.policy.model import Policy, UnitStep
from rules.policy.rules_yaml import RulesError, Source

VERIFIER = (
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
)
GOOD = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: customers.id
tables:
  customers:
    unit: id
    columns:
      city:       {{values: [Berlin, no, Porto]}}
      birth_date: {{lower: 1920-01-01, upper: 2012-12-31}}
      email:      hidden
  shop.orders:
    unit: customer_id
    rows_per_unit: 40
    columns:
      amount: {{lower: 0, upper: 500.50}}
  order_items:
    unit: order_id -> shop.orders.id
    rows_per_unit: 200
  products: public
budget:
  epsilon: 20
  delta: 1e-6
  per: month
defaults: {{epsilon: 0.1, max_epsilon: 1, delta: 1e-9}}
fresh_for: 1 day
pad_to: 100 ms
analysts:
  ada: {{password: "{VERIFIER}", epsilon: 5}}
"""


def load(text: str) -> Policy:
    return load_policy(dedent(text), "rules.yaml", {"NOISEGATE_DATABASE": "postgresql://shop"})


def complaints(text: str) -> str:
    with pytest.raises(RulesError) as caught:
        load(text)
    return str(caught.value)


def test_the_documented_file_is_read_exactly() -> None:
    policy = load(GOOD)

    assert policy.database == "postgresql://shop"
    assert policy.budget.delta == Decimal("0.000001")
    assert policy.defaults.epsilon == Decimal("0.1")
    assert (policy.fresh_for, policy.pad_to) == (timedelta(days=1), timedelta(milliseconds=100))
    assert policy.tables["products"].public
    assert policy.tables["customers"].columns["email"].hidden
    assert policy.tables["customers"].columns["birth_date"].lower == date(1920, 1, 1)
    assert policy.tables["order_items"].unit_step() == UnitStep("order_id", TableName("shop", "orders"), "id")
    assert policy.find_table(TableName("shop", "orders")) is policy.tables["shop.orders"]
    assert policy.find_table(TableName("public", "orders")) is None


def test_a_country_called_no_is_not_a_boolean() -> None:
    assert load(GOOD).tables["customers"].columns["city"].values == ("Berlin", "no", "Porto")


@pytest.mark.parametrize(
    ("written", "ceiling"), [("auto", 1_000_000), ("auto up to 200", 200), ("' auto  up to  7 '", 7)]
)
def test_how_many_rows_count_may_be_left_to_a_choice_below_a_ceiling(written: str, ceiling: int) -> None:
    rules = load(GOOD.replace("rows_per_unit: 40", f"rows_per_unit: {written}")).tables["shop.orders"]

    assert (rules.rows_per_unit, rules.rows_auto) == (ceiling, True)


def test_what_counts_of_a_sum_may_be_left_to_a_choice() -> None:
    text = GOOD.replace("upper: 500.50}", "upper: 500.50, sum_per_unit: auto}")
    orders = load(text.replace("rows_per_unit: 200", "rows_per_unit: 200\n    sum_per_unit: auto")).tables

    assert orders["shop.orders"].columns["amount"].sum_per_unit == "auto"
    assert orders["order_items"].sum_per_unit == "auto"


@pytest.mark.parametrize(
    ("defaults", "least"),
    [
        ("{epsilon: 0.1, max_epsilon: 1}", "0.001"),
        ("{epsilon: 1, max_epsilon: 10}", "0.01"),
        ("{epsilon: 0.0002, max_epsilon: 1}", "0.0002"),
        ("{epsilon: 0.1, max_epsilon: 1, min_epsilon: 0.05}", "0.05"),
    ],
)
def test_the_least_epsilon_of_a_statement_is_a_thousandth_of_the_most_or_what_the_rules_say(
    defaults: str, least: str
) -> None:
    text = GOOD.replace("{epsilon: 0.1, max_epsilon: 1, delta: 1e-9}", defaults)
    assert load(text).defaults.least_epsilon == Decimal(least)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("rows_per_unit: 40", "rows_per_units: 40", "rules.yaml:12: tables.shop.orders.rows_per_units: unknown key"),
        ("rows_per_unit: 40", "rows_per_unit: 0", "rules.yaml:12: tables.shop.orders.rows_per_unit: must be at least"),
        ("rows_per_unit: 40", "rows_per_unit: 2.5", "rules.yaml:12: tables.shop.orders.rows_per_unit: must be a whole"),
        (
            "rows_per_unit: 40",
            "rows_per_unit: auto up to 0",
            "rules.yaml:12: tables.shop.orders.rows_per_unit: must be at least",
        ),
        (
            "rows_per_unit: 40",
            "rows_per_unit: auto 40",
            "rules.yaml:12: tables.shop.orders.rows_per_unit: must be a whole",
        ),
        ("upper: 500.50}", "upper: 500.50, sum_per_unit: 7}", "columns.amount.sum_per_unit: must be 'auto'"),
        (
            "products: public",
            "products: {public: true, sum_per_unit: auto}",
            "a public table cannot have unit, rows_per",
        ),
        ("upper: 500.50", "upper: .inf", "rules.yaml:14:"),
        (
            "lower: 0, upper: 500.50",
            "lower: 9, upper: 5",
            "rules.yaml:14: tables.shop.orders.columns.amount: lower (9)",
        ),
        ("lower: 0, upper: 500.50", "lower: 9", "lower and upper must be given together"),
        ("lower: 1920-01-01", "lower: 1920-02-31", '"1920-02-31" is not a date'),
        ("lower: 1920-01-01", "lower: 7", "of different kinds"),
        ("[Berlin, no, Porto]", "[]", "rules.yaml:7: tables.customers.columns.city.values:"),
        ("[Berlin, no, Porto]", "[Berlin, Berlin, Graz]", "a value is listed twice: Berlin"),
        ("epsilon: 20", "epsilon: -1", "rules.yaml:20: budget.epsilon: must be above 0"),
        ("epsilon: 20", "epsilon: nan", "rules.yaml:20: budget.epsilon:"),
        ("per: month", "per: fortnight", "rules.yaml:22: budget.per: must be 'ever', 'day', 'week' or 'month'"),
        ("epsilon: 0.1,", "epsilon: 2,", "epsilon (2) is above max_epsilon (1)"),
        ("epsilon: 0.1,", "epsilon: 0.1, min_epsilon: 0.2,", "min_epsilon (0.2) is above epsilon (0.1)"),
        ("epsilon: 0.1,", "epsilon: 0.1, min_epsilon: 1e-7,", "defaults.min_epsilon: must be"),
        ("fresh_for: 1 day", "fresh_for: soon", "write a duration as a number and a unit"),
        ("fresh_for: 1 day", "max_faults: 3", "max_faults: unknown key (a failure that a row can have caused"),
        ("unit: order_id -> shop.orders.id", "unit: order_id -> orders", "write a unit as"),
        (f'"{VERIFIER}"', "hunter2", "noisegate password"),
        (
            "products: public",
            "products: publik",
            "rules.yaml:18: tables.products: must be public or view, or keys with their values",
        ),
        ("  per: month", "  per: month\n  per: day", "rules.yaml:23: budget.per: this key is repeated"),
        ("${NOISEGATE_DATABASE}", "${NOISEGATE_DATABSE}", "the variable NOISEGATE_DATABSE is not set"),
        (
            "  products: public",
            "  products: public\n  public.products: public",
            "rules.yaml:19: tables.public.products: tables named twice: products",
        ),
        (
            "analysts:\n",
            f'operators:\n  ada: {{password: "{VERIFIER}"}}\nanalysts:\n',
            "operators.ada: a name cannot be both an operator and an analyst: ada",
        ),
        ("epsilon: 5", "role: x", 'analysts.ada.role: the role "x" of ada is not in roles'),
        ("email:      hidden", "email: {hidden: true, nullable: false}", "a hidden column cannot have nullable"),
        ("budget:", "budgets:", 'budgets: unknown key (did you mean "budget"?)'),
        ("unit: customers.id", "unit: [", "not YAML"),
        ("    unit: customer_id", "\tunit: customer_id", "(indent with spaces, not with tabs)"),
        (
            "    unit: customer_id",
            "    unit: customer_id\n      delta: 0",
            "(lines that belong together begin in the same column; quote",
        ),
        ("    unit: customer_id", "   unit: customer_id", "(lines that belong together begin in the same column"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, complaint: str) -> None:
    assert old in GOOD

    assert complaint in complaints(GOOD.replace(old, new, 1))


def test_all_mistakes_are_told_at_once() -> None:
    broken = GOOD.replace("epsilon: 20", "epsilon: 0").replace("fresh_for: 1 day", "fresh_for: soon")

    assert len(complaints(broken).splitlines()) == 2


def test_a_bound_of_the_wrong_kind_is_told_once() -> None:
    said = complaints(GOOD.replace("lower: 0, upper: 500.50", "lower: cheap, upper: 500.50"))

    assert said == (
        "rules.yaml:14: tables.shop.orders.columns.amount.lower: must be a number, or a date or a time, as 2027-01-31"
    )


@pytest.mark.parametrize(
    ("values", "complaint"),
    [("[]", ": must have 1 or more items"), ("[a, null]", ".1: must be a text, a number, a date or true or false")],
)
def test_a_list_of_values_without_one_is_told_once(values: str, complaint: str) -> None:
    said = complaints(GOOD.replace("lower: 0, upper: 500.50", f"values: {values}"))

    assert said == f"rules.yaml:14: tables.shop.orders.columns.amount.values{complaint}"


def test_a_bound_that_cannot_be_read_is_not_missing() -> None:
    said = complaints(GOOD.replace("lower: 1920-01-01", "lower: 1920-02-31"))

    assert len(said.splitlines()) == 1


def test_a_password_never_stands_in_a_complaint() -> None:
    assert "hunter2" not in complaints(GOOD.replace(f'"{VERIFIER}"', "hunter2"))


def test_a_variable_that_is_not_set_is_said_once_and_what_it_stands_for_is_not_judged() -> None:
    said = complaints(GOOD.replace(VERIFIER, "${ADA_VERIFIER}"))

    assert said == "rules.yaml:27: analysts.ada.password: the variable ADA_VERIFIER is not set"


def test_without_logins_a_verifier_is_not_needed_but_everything_else_is() -> None:
    text = GOOD.replace(VERIFIER, "${ADA_VERIFIER}")

    policy = load_policy(text, "rules.yaml", {"NOISEGATE_DATABASE": "x"}, needs_verifiers=False)

    assert policy.analysts["ada"].password is None
    with pytest.raises(RulesError, match=r"^rules\.yaml:1: database: the variable NOISEGATE_DATABASE is not set$"):
        load_policy(text, "rules.yaml", {}, needs_verifiers=False)


@given(st.text())
def test_any_text_is_a_policy_or_a_rules_error(text: str) -> None:
    with pytest.raises(RulesError):
        load_policy(text, "rules.yaml", {})


@given(st.integers(0, len(GOOD)), st.text(max_size=5))
def test_any_edit_of_a_good_file_is_a_policy_or_a_rules_error(place: int, text: str) -> None:
    edited = GOOD[:place] + text + GOOD[place + 1 :]
    try:
        load_policy(edited, "rules.yaml", {"NOISEGATE_DATABASE": "x"})
    except RulesError as error:
        assert error.problems


def test_a_variable_that_is_not_set_hides_no_other_mistake() -> None:
    with pytest.raises(RulesError) as caught:
        load_policy(GOOD.replace("columns:", "colums:", 1), "rules.yaml", {})

    assert "rules.yaml:1: database: the variable NOISEGATE_DATABASE is not set" in str(caught.value)
    assert 'tables.customers.colums: unknown key (did you mean "columns"?)' in str(caught.value)


def test_a_word_for_a_number_of_rows_is_answered_with_what_may_stand_there() -> None:
    with pytest.raises(RulesError, match='rows_per_unit: must be a whole number, or "auto up to 200"'):
        load_policy(GOOD.replace("rows_per_unit: 40", "rows_per_unit: some"), "rules.yaml", {"NOISEGATE_DATABASE": "x"})


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("database", 1),
        ("tables.customers.columns.city", 7),
        ("tables.customers.columns.nope", 6),
        ("tables.shop.orders", 10),
    ],
)
def test_what_is_said_of_a_key_has_its_line(path: str, line: int) -> None:
    assert Source(GOOD, "rules.yaml", {}).line_of(path) == line
