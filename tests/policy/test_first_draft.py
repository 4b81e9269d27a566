"""A first draft protects those whom the DBA means, and gives away nobody's rows, over the shapes of real databases."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.catalog import Catalog, Column, Key, Table, TableName, TypeName
from rules.frozen import replace
from rules.policy.check import check_policy
from rules.policy.finding import Severity, in_lines
from rules.policy.load import load_policy
from rules.policy.suggest import suggest_rules
from rules.policy.units import find_candidates, unit_line_of
from tests.policy.test_load import VERIFIER
from tests.support.catalogs import catalog_of

SCHEMAS = sorted((Path(__file__).parent / "schemas").glob("*.sql"))
UNITS = {
    "chinook": ("Customer", "Employee"),
    "clinical": ("clinical.patient", "clinical.physician"),
    "northwind": ("customers", "employees"),
    "pagila": ("customer", "staff"),
    "ugly": ("sbcustomer",),
}
LINES = {
    "chinook": "Customer.CustomerId: each row of Customer is one protected individual; 2 tables belong to it",
    "clinical": "clinical.patient.patient_id: each row of clinical.patient is one protected individual; "
    "1 table belongs to it",
    "northwind": "customers.customer_id: each row of customers is one protected individual; 3 tables belong to it",
    "pagila": "customer.customer_id: each row of customer is one protected individual; 2 tables belong to it",
    "ugly": "sbcustomer.sbcustid: each row of sbcustomer is one protected individual; no other table belongs to it",
}
PUBLIC = {
    "chinook": {"Artist", "Album", "Genre", "MediaType", "Track", "Playlist", "PlaylistTrack"},
    "clinical": {"clinical.ward", "clinical.diagnosis", "clinical.unit_of_measure"},
    "northwind": {"categories", "region", "territories", "shippers"},
    "pagila": {"country", "city", "language", "category", "film", "film_category"},
    "ugly": {"sbticker", "sbdailyprice", "holidays", "fx"},
}
LOOK: dict[str, dict[str, str]] = {
    "chinook": {},
    "clinical": {
        "clinical.vitals": "pid has the type of clinical.patient.patient_id, and a similar name",
        "clinical.lab_result": "ptid has the type of clinical.patient.patient_id, and a similar name",
        "clinical.note": "lab_id leads to clinical.lab_result",
        "clinical.shift": "physician_id leads to clinical.physician: first_name, last_name may be about people",
        "clinical.on_call": "physician_id is named like a key of clinical.physician",
    },
    "northwind": {
        "customer_demographics": "customer_desc has the type of customers.customer_id",
        "products": "units_on_order ends like orders.order_id",
        "employee_territories": "employee_id leads to employees",
    },
    "pagila": {"film_actor": "actor_id leads to actor"},
    "ugly": {
        "sbtransaction": "sbtxcustid has the type of sbcustomer.sbcustid, and a similar name",
        "sbtxfee": "sbfeetxid leads to sbtransaction",
        "tmp_export": "it has no key, and any of c1 may be",
        "cust_bak": "it has no key, and any of cno, segment may be sbcustomer.sbcustid by its type",
    },
}
VARIABLES = {"NOISEGATE_DATABASE": "x", "ADA_VERIFIER": VERIFIER}


@pytest.fixture(scope="module", params=SCHEMAS, ids=lambda path: path.stem)
def schema(request: pytest.FixtureRequest, real_cluster: Cluster) -> Iterator[tuple[str, Catalog]]:
    name = f"first_{request.param.stem}"
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(real_cluster.dsn(name), autocommit=True) as connection:
        connection.execute(request.param.read_text(encoding="utf-8"))
    yield request.param.stem, catalog_of(real_cluster.dsn(name))


def lines_of(draft: str, word: str) -> dict[str, str]:
    """Why a draft says a word of each table, in lines that are commented out."""
    return dict(re.findall(rf"^  # (\S+): {word} +# (.*)$", draft, re.MULTILINE))


def test_the_table_that_is_proposed_holds_those_whom_the_database_serves(schema: tuple[str, Catalog]) -> None:
    name, catalog = schema

    assert tuple(str(each.table) for each in find_candidates(catalog) if each.is_likely) == UNITS[name]


def test_the_first_line_of_a_draft_says_whose_protection_it_is_as_check_does(schema: tuple[str, Catalog]) -> None:
    name, catalog = schema
    draft = suggest_rules(catalog, find_candidates(catalog)[0].table)

    policy = load_policy(draft, "rules.yaml", VARIABLES)

    assert draft.startswith(f"# unit: {LINES[name]}\n")
    assert unit_line_of(policy) == f"unit: {LINES[name]}"


def test_a_draft_proposes_no_rows_about_people_as_public(schema: tuple[str, Catalog]) -> None:
    name, catalog = schema

    draft = suggest_rules(catalog, find_candidates(catalog)[0].table)

    assert set(lines_of(draft, "public")) == PUBLIC[name]
    look = lines_of(draft, "LOOK AT IT")
    assert {table: why[: len(LOOK[name].get(table, ""))] for table, why in look.items()} == LOOK[name]


def test_check_warns_of_each_of_these_that_is_made_public_all_the_same(schema: tuple[str, Catalog]) -> None:
    name, catalog = schema
    draft = suggest_rules(catalog, find_candidates(catalog)[0].table)
    for table in (*LOOK[name], *PUBLIC[name]):
        rules = re.sub(rf"^  # {table}: .*$", f"  {table}: public", draft, count=1, flags=re.MULTILINE)

        found = check_policy(load_policy(rules, "rules.yaml", VARIABLES), catalog)

        of_it = [each for each in found if each.message.startswith("look whether") or each.severity is Severity.ERROR]
        assert [each.severity for each in of_it] == [Severity.WARNING] * (table in LOOK[name]), (table, of_it)
        assert all(LOOK[name][table] in each.message for each in of_it)


def test_the_notes_of_check_have_each_public_table_with_its_columns(schema: tuple[str, Catalog]) -> None:
    name, catalog = schema
    draft = suggest_rules(catalog, find_candidates(catalog)[0].table)
    for table in PUBLIC[name]:
        draft = re.sub(rf"^  # {table}: .*$", f"  {table}: public", draft, flags=re.MULTILINE)

    lines = [line for _, line in in_lines(check_policy(load_policy(draft, "x", VARIABLES), catalog), Severity.NOTE)]

    for shown in (table for table in catalog.tables if str(table.name) in PUBLIC[name]):
        columns = ", ".join(column.name for column in shown.columns)
        assert sum(line.endswith(f"every row of {shown.name} can be read: {columns}") for line in lines) == 1


def with_key(name: str) -> Table:
    column = Column("id", TypeName("integer", "int4"), 1)
    return Table(TableName("public", name), "table", (column,), (Key("pk", ("id",), primary=True),))


def test_a_draft_says_how_to_protect_what_may_be_a_units_and_hides_its_other_keys() -> None:
    pid, mrn = Column("pid", TypeName("integer", "int4"), 1), Column("mrn", TypeName("text", "text"), 2)
    vitals = Table(TableName("public", "vitals"), "table", (pid,))
    patients = with_key("patients")
    patients = replace(patients, columns=(*patients.columns, mrn), keys=(*patients.keys, Key("mrn", ("mrn",))))

    draft = suggest_rules(Catalog("x", 180000, "7", "UTF8", (vitals, patients)), patients.name)

    assert "  # vitals: {unit: pid, rows_per_unit: auto up to 100}     # IF pid is patients.id\n" in draft
    assert "      mrn: hidden     # may identify a person\n" in draft


@pytest.mark.parametrize(
    ("names", "likely"),
    [
        (("employee", "account", "customer", "patient"), ["customer", "patient", "employee", "account"]),
        (("staff", "app_users", "user_roles", "superuser_log"), ["app_users", "staff"]),
        (("SalesPerson", "tbl_member_master", "customer_address"), ["tbl_member_master", "SalesPerson"]),
        (("dimcustomer", "product", "process"), ["dimcustomer"]),
        (("product", "sale"), []),
    ],
)
def test_words_for_people_rank_and_are_read_at_the_end_of_a_name(names: tuple[str, ...], likely: list[str]) -> None:
    catalog = Catalog("x", 180000, "7", "UTF8", tuple(map(with_key, names)))

    assert [str(each.table) for each in find_candidates(catalog) if each.is_likely] == likely


@pytest.mark.parametrize("name", ["order_id", "orderid", "OrderId", "order", "orders", "billing_order_id"])
def test_a_column_with_the_words_of_a_protected_key_is_an_error_and_what_ends_alike_a_warning(name: str) -> None:
    order = Column("order_id", TypeName("integer", "int4"), 1)
    orders = Table(TableName("public", "orders"), "table", (order,), (Key("pk", ("order_id",), primary=True),))
    said = {}
    for column in (name, "units_on_order"):
        columns = (with_key("products").columns[0], Column(column, TypeName("smallint", "int2"), 2))
        products = replace(with_key("products"), columns=columns)
        rules = f"""
database: x
unit: orders.order_id
tables: {{orders: {{unit: order_id}}, products: public}}
budget: {{epsilon: 20}}
analysts: {{ada: {{password: "{VERIFIER}", epsilon: 5}}}}
"""
        catalog = Catalog("x", 180000, "7", "UTF8", (orders, products))
        found = check_policy(load_policy(rules, "x", {}), catalog)
        said[column] = {each.severity for each in found if each.path == "tables.products"} - {Severity.NOTE}

    assert said == {name: {Severity.ERROR}, "units_on_order": {Severity.WARNING}}
