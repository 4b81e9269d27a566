"""What `noisegate check` says of a policy over a catalog."""

from dataclasses import replace

import pytest

from rules.catalog import Catalog, Column, ForeignKey, Key, Table, TableName, TypeName
from rules.policy.check import Severity, check_policy
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.policy.suggest import suggest_rules
from tests.policy.test_load import VERIFIER

INT = TypeName("integer", "int4")
TEXT = TypeName("text", "text")
STATUS = TypeName("public.status", "enum", labels=("open", "paid"), schema="public")


def table(name: str, *columns: Column, keys: tuple[Key, ...] = (), foreign_keys: tuple[ForeignKey, ...] = ()) -> Table:
    return Table(TableName("public", name), "table", columns, keys, foreign_keys)


def column(name: str, kind: TypeName = INT, *, not_null: bool = True) -> Column:
    return Column(name, kind, 1, not_null)


CUSTOMERS = table("customers", column("id"), column("city", TEXT), keys=(Key("pk", ("id",), primary=True),))
ORDERS = table(
    "orders",
    column("id"),
    column("customer_id"),
    column("amount", TypeName("numeric(10,2)", "numeric", 655366)),
    column("status", STATUS),
    keys=(Key("pk", ("id",), primary=True),),
    foreign_keys=(ForeignKey("fk", ("customer_id",), CUSTOMERS.name, ("id",)),),
)
ITEMS = table(
    "items",
    column("order_id"),
    column("price"),
    foreign_keys=(ForeignKey("fk", ("order_id",), ORDERS.name, ("id",)),),
)
CATALOG = Catalog("shop", 180004, "7", "UTF8", (CUSTOMERS, ORDERS, ITEMS), schemas=(("public", None),))
RULES = f"""\
database: x
unit: customers.id
tables:
  customers: {{unit: id, columns: {{city: {{values: [Berlin]}}}}}}
  orders: {{unit: customer_id, rows_per_unit: 40, columns: {{amount: {{lower: 0, upper: 9}}}}}}
  items: {{unit: order_id -> orders.id, rows_per_unit: 200}}
budget: {{epsilon: 20, delta: 1e-6}}
analysts: {{ada: {{password: "{VERIFIER}"}}}}
"""


def policy(text: str = RULES) -> Policy:
    return load_policy(text, "rules.yaml", {})


def errors(text: str, catalog: Catalog = CATALOG) -> str:
    findings = check_policy(policy(text), catalog)
    return "\n".join(str(each) for each in findings if each.severity is Severity.ERROR)


def test_a_sound_policy_has_no_error_and_no_warning() -> None:
    assert [each for each in check_policy(policy(), CATALOG) if each.severity is not Severity.NOTE] == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("  orders:", "  order:", 'tables.order: no such table in the database (did you mean "orders"?)'),
        ("{amount:", "{amuont:", 'orders has no such column (did you mean "amount"?)'),
        ("unit: customer_id", "unit: customer", 'orders has no column "customer"'),
        ("unit: customers.id", "unit: customers.city", "unit: customers.city is not proved unique"),
        ("[Berlin]", "[7]", "7 is not a text here"),
        ("{amount: {lower: 0, upper: 9}}", "{status: {values: [lost]}}", '"lost" is not a label of public.status'),
        ("{lower: 0, upper: 9}", "{lower: 2020-01-01, upper: 2021-01-01}", "is not a value of type numeric(10,2)"),
        ("{unit: customer_id, rows", "{rows", "tables.orders: a protected table needs a unit"),
        ("orders.id", "customers.city", "customers.city is not proved unique"),
        ("ada:", "pg_ada:", "this name cannot be a role"),
        (
            "{values: [Berlin]}",
            "{sum_per_unit: auto}",
            "customers.columns.city.sum_per_unit: text is not summed",
        ),
    ],
)
def test_what_cannot_be_kept_is_an_error(old: str, new: str, complaint: str) -> None:
    assert old in RULES

    assert complaint in errors(RULES.replace(old, new, 1))


def test_bounds_that_are_chosen_are_told_with_their_price() -> None:
    text = RULES.replace("rows_per_unit: 40", "rows_per_unit: auto up to 40, sum_per_unit: auto")

    notes = "\n".join(map(str, check_policy(policy(text), CATALOG)))

    assert "tables.orders.rows_per_unit: auto: how many rows of a unit count is chosen privately" in notes
    assert "up to 40, for a fifth of ε or less" in notes
    assert "tables.orders.sum_per_unit: auto: how much of a unit's sums counts" in notes


def test_a_public_table_that_refers_to_a_protected_one_is_an_error() -> None:
    text = RULES.replace("{unit: order_id -> orders.id, rows_per_unit: 200}", "public")

    assert "it refers to orders, which is protected" in errors(text)


def test_uniqueness_is_no_proof_over_inheritance_children() -> None:
    parents = replace(CUSTOMERS, has_children=True)

    assert "customers.id is not proved unique" in errors(RULES, replace(CATALOG, tables=(parents, ORDERS, ITEMS)))


def test_a_second_way_to_a_unit_is_told() -> None:
    both = replace(
        ORDERS,
        columns=(*ORDERS.columns, column("giver_id")),
        foreign_keys=(*ORDERS.foreign_keys, ForeignKey("fk2", ("giver_id",), CUSTOMERS.name, ("id",))),
    )

    findings = check_policy(policy(), replace(CATALOG, tables=(CUSTOMERS, both, ITEMS)))

    assert any("refer to other units too, by giver_id" in each.message for each in findings)


def test_a_suggested_file_is_a_policy_without_errors() -> None:
    text = suggest_rules(CATALOG, CUSTOMERS.name)

    drafted = load_policy(text, "rules.yaml", {"NOISEGATE_DATABASE": "x", "ADA_VERIFIER": VERIFIER})

    assert [each for each in check_policy(drafted, CATALOG) if each.severity is Severity.ERROR] == []
    assert drafted.tables["items"].unit == "order_id -> orders.id"


def test_a_table_that_there_is_not_is_no_table_without_a_key() -> None:
    with pytest.raises(ValueError, match=r"there is no table (public.)?custmers; did you mean (public.)?customers"):
        suggest_rules(CATALOG, TableName("public", "custmers"))


def test_a_draft_has_no_bounds_for_names_of_rows() -> None:
    text = suggest_rules(CATALOG, CUSTOMERS.name)

    assert not any(line.lstrip("# ").startswith(("id:", "customer_id:", "order_id:")) for line in text.splitlines())


@pytest.mark.parametrize(
    ("version", "word"),
    [
        (120022, "error: database: it is PostgreSQL 12, which is too old (13 to 18 are served)"),
        (190000, "error: database: it is PostgreSQL 19, newer than this release knows"),
        (130023, "warning: database: it is PostgreSQL 13, which gets no fixes after November 2025"),
        (150018, ""),
    ],
)
def test_a_server_that_is_too_old_or_too_new_is_told_by_its_version(version: int, word: str) -> None:
    said = [str(each) for each in check_policy(policy(), replace(CATALOG, version=version))]
    told = [line for line in said if "PostgreSQL" in line]
    assert len(told) == (word != "")
    assert all(line.startswith(word) for line in told)


def test_the_least_charge_is_told_with_how_many_fit() -> None:
    notes = "\n".join(map(str, check_policy(policy(RULES), CATALOG)))

    assert "note: defaults.min_epsilon: 0.001: no statement may ask for less ε, and " in notes
    assert "000 of it (more where zCDP grants them) use up a period's budget" in notes


def test_gaussian_noise_needs_a_delta_and_is_warned_of() -> None:
    text = f"{RULES}noise: gaussian\n"
    told = [str(each) for each in check_policy(policy(text), CATALOG)]

    assert not errors(text)
    assert any(
        each.startswith("warning: noise: gaussian: less noise where a person is in many groups") for each in told
    )
    assert "budget.delta: 0: nothing with Gaussian noise" in errors(text.replace(", delta: 1e-6", ""))
    assert "analysts.ada.delta: 0: nothing with" in errors(text.replace(f'"{VERIFIER}"', f'"{VERIFIER}", delta: 0'))
