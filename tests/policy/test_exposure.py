"""No table or view that may tell of protected people is called public without a word, whatever hides the way there."""

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.twin.embedded import Cluster
from rules.catalog import Catalog, Column, ForeignKey, Key, Table, TableName, TypeName
from rules.policy.check import check_policy
from rules.policy.exposure import Exposure
from rules.policy.finding import Severity
from rules.policy.load import load_policy
from rules.policy.suggest import suggest_rules
from tests.policy.test_load import VERIFIER
from tests.support.catalogs import catalog_of

SCHEMA = """
CREATE SCHEMA crm;
CREATE SCHEMA archive;
CREATE TABLE crm.customer (
    customer_id integer PRIMARY KEY, email text UNIQUE, store_id integer, address_id integer, household_ref integer,
    first_name text, last_name text, loyalty integer, segment text
);
CREATE TABLE crm.rental (
    rental_id bigint PRIMARY KEY, customer_id integer NOT NULL REFERENCES crm.customer, film_id integer, day date
);

-- keys of partitions alone, at every depth, of one partition only, through another schema
CREATE TABLE payment (id integer, who integer, amount numeric, at date) PARTITION BY RANGE (at);
CREATE TABLE payment_a PARTITION OF payment FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE payment_b PARTITION OF payment FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
ALTER TABLE payment_a ADD FOREIGN KEY (who) REFERENCES crm.customer;
ALTER TABLE payment_b ADD FOREIGN KEY (who) REFERENCES crm.customer;
CREATE TABLE fine (id integer, who integer, at date) PARTITION BY RANGE (at);
CREATE TABLE fine_a PARTITION OF fine FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') PARTITION BY LIST (id);
CREATE TABLE archive.fine_a1 PARTITION OF fine_a FOR VALUES IN (1) PARTITION BY HASH (id);
CREATE TABLE archive.fine_a1x PARTITION OF archive.fine_a1 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE fine_b PARTITION OF fine FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
ALTER TABLE archive.fine_a1x ADD FOREIGN KEY (who) REFERENCES crm.customer NOT VALID;
CREATE TABLE points (id integer, who integer REFERENCES crm.customer) PARTITION BY LIST (id);
CREATE TABLE points_1 PARTITION OF points FOR VALUES IN (1);

-- inheritance: a key on the child, a key on the parent
CREATE TABLE event (id integer, at date);
CREATE TABLE visit (who integer REFERENCES crm.customer) INHERITS (event);
CREATE TABLE note (id integer, who integer REFERENCES crm.customer);
CREATE TABLE letter (text text) INHERITS (note);
CREATE TABLE archive.rental_old () INHERITS (crm.rental);

-- keys of several columns, keys that were never checked, keys through tables of which the rules say nothing
CREATE TABLE crm.account (
    bank integer, number integer, owner integer REFERENCES crm.customer, PRIMARY KEY (bank, number)
);
CREATE TABLE transfer (id integer, bank integer, number integer, FOREIGN KEY (bank, number) REFERENCES crm.account);
CREATE TABLE fee (id integer, transfer integer);
ALTER TABLE transfer ADD PRIMARY KEY (id);
ALTER TABLE fee ADD FOREIGN KEY (transfer) REFERENCES transfer NOT VALID;

-- no key at all: names
CREATE TABLE complaint (id integer, customer_id bigint, words text);
CREATE TABLE "Invoice" ("InvoiceId" integer, "billingCustomerId" integer, total numeric);
CREATE TABLE basket (id integer, customerid text);
CREATE TABLE mailing (id integer, customer_ids integer[]);
CREATE TABLE newsletter (id integer, subscriber_email varchar(80));
CREATE TABLE damage (id integer, rental_id integer, words text);
CREATE TABLE click (c_custno integer, c_customer_number integer);
CREATE TABLE archive.export_2023 (nr integer, first_name text, last_name text, loyalty integer, segment text);

-- what a protected table refers to
CREATE TABLE address (address_id integer PRIMARY KEY, phone text, street text, city_id integer);
CREATE TABLE household (id integer PRIMARY KEY, size integer);
CREATE TABLE doorbell (id integer PRIMARY KEY, street text);
ALTER TABLE household ADD bell integer REFERENCES doorbell;
ALTER TABLE crm.customer ADD FOREIGN KEY (household_ref) REFERENCES household;
CREATE TABLE store (store_id integer PRIMARY KEY, postal_code text);

-- views over all of these, views over views, materialized ones, functions
CREATE VIEW v_rental AS SELECT film_id, count(*) FROM crm.rental GROUP BY 1;
CREATE VIEW v_payment AS SELECT who, sum(amount) FROM payment GROUP BY who;
CREATE VIEW v_over_view AS SELECT * FROM v_rental;
CREATE MATERIALIZED VIEW m_over_view AS SELECT * FROM v_over_view;
CREATE VIEW v_in_subquery AS SELECT 1 AS one WHERE EXISTS (SELECT FROM archive.fine_a1x);
CREATE FUNCTION looks() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM crm.customer); END';
CREATE VIEW v_by_function AS SELECT looks() AS n;
CREATE VIEW v_of_nothing AS SELECT 1 AS one;

-- fine
CREATE TABLE film (film_id integer PRIMARY KEY, title text NOT NULL, length integer, description text);
CREATE TABLE category (id integer PRIMARY KEY, name text);
CREATE TABLE customer_type (customer_type_id integer PRIMARY KEY, name text);
CREATE TABLE price (film_id integer REFERENCES film, rate numeric, at date) PARTITION BY RANGE (at);
CREATE TABLE price_a PARTITION OF price FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
"""
RULES = f"""
database: x
unit: crm.customer.customer_id
tables:
  crm.customer: {{unit: customer_id}}
  crm.rental: {{unit: customer_id, rows_per_unit: 9}}
  NAME: public
budget: {{epsilon: 20}}
analysts: {{ada: {{password: "{VERIFIER}", epsilon: 5}}}}
"""
TELLING = {
    "payment": "payment_a, of which it has rows, refers to crm.customer",
    "payment_a": "it refers to crm.customer",
    "fine": "archive.fine_a1x, of which it has rows, refers to crm.customer",
    "fine_a": "archive.fine_a1x, of which it has rows, refers to crm.customer",
    "archive.fine_a1": "archive.fine_a1x, of which it has rows, refers to crm.customer",
    "archive.fine_a1x": "it refers to crm.customer",
    "points": "it refers to crm.customer",
    "points_1": "points, of which it has rows, refers to crm.customer",
    "event": "visit, of which it has rows, refers to crm.customer",
    "letter": "note, of which it has rows, refers to crm.customer",
    "archive.rental_old": "its rows are those of crm.rental, which is protected",
    "transfer": "it refers to crm.account, of which the rules say nothing: it refers to crm.customer",
    "fee": "it refers to transfer, of which the rules say nothing",
    "complaint": 'its column "customer_id" is named like crm.customer.customer_id',
    '"Invoice"': 'its column "billingCustomerId" is named like crm.customer.customer_id',
    "basket": 'its column "customerid" is named like crm.customer.customer_id',
    "mailing": 'its column "customer_ids" is named like crm.customer.customer_id',
    "newsletter": 'its column "subscriber_email" is named like crm.customer.email',
    "damage": 'its column "rental_id" is named like crm.rental.rental_id',
    "click": 'its column "c_customer_number" is named like crm.customer.customer_id',
    "archive.export_2023": "like a copy of it",
    "address": 'crm.customer refers to it, and it has the personal columns "phone", "street"',
    "doorbell": 'crm.customer refers to it, and it has the personal column "street"',
    "store": 'crm.customer refers to it, and it has the personal column "postal_code"',
    "v_rental": "it reads crm.rental, which is protected",
    "v_over_view": "it reads v_rental, of which the rules say nothing: it reads crm.rental",
    "m_over_view": "it reads v_over_view, of which the rules say nothing",
    "v_in_subquery": "it reads archive.fine_a1x, of which the rules say nothing: it refers to crm.customer",
    "v_by_function": "may come from protected tables, by functions too",
    "v_of_nothing": "may come from protected tables, by functions too",
}
INNOCENT = ("film", "category", "customer_type", "price", "price_a")


@pytest.fixture(scope="module")
def catalog(real_cluster: Cluster) -> Iterator[Catalog]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE exposure")
    with psycopg.connect(real_cluster.dsn("exposure"), autocommit=True) as connection:
        connection.execute(SCHEMA)
    yield catalog_of(real_cluster.dsn("exposure"))


def findings(catalog: Catalog, name: str, rule: str = "public") -> dict[Severity, str]:
    policy = load_policy(RULES.replace("NAME: public", f"{name}: {rule}"), "rules.yaml", {})
    path = f"tables.{name.strip(chr(34))}"
    found = [finding for finding in check_policy(policy, catalog) if finding.path == path]
    return {level: "\n".join(str(finding) for finding in found if finding.severity is level) for level in Severity}


@pytest.mark.parametrize(("name", "reason"), TELLING.items())
def test_a_table_that_may_tell_of_people_is_not_public_without_a_word(catalog: Catalog, name: str, reason: str) -> None:
    told = findings(catalog, name)

    assert reason in told[Severity.ERROR]


@pytest.mark.parametrize("name", sorted(TELLING.keys() - {"archive.rental_old"}))
def test_a_reason_in_the_rules_outweighs_it_and_is_told(catalog: Catalog, name: str) -> None:
    told = findings(catalog, name, '{public: {because: "made up for training"}}')

    assert told[Severity.ERROR] == ""
    assert 'public, because: "made up for training"' in told[Severity.NOTE]


def test_no_reason_makes_rows_of_a_protected_table_public(catalog: Catalog) -> None:
    told = findings(catalog, "archive.rental_old", '{public: {because: "made up for training"}}')

    assert "it cannot be public" in told[Severity.ERROR]


@pytest.mark.parametrize("name", INNOCENT)
def test_a_table_that_nothing_leads_to_is_public_with_one_word(catalog: Catalog, name: str) -> None:
    told = findings(catalog, name)

    assert told[Severity.ERROR] == "" and told[Severity.WARNING] == ""


def test_personal_columns_that_are_hidden_speak_against_nothing(catalog: Catalog) -> None:
    told = findings(catalog, "address", "{public: true, columns: {phone: hidden, street: hidden}}")

    assert told[Severity.ERROR] == ""


def test_a_draft_proposes_public_for_what_nothing_leads_to_and_for_nothing_else(catalog: Catalog) -> None:
    draft = suggest_rules(catalog, TableName("crm", "customer"))

    proposed = {line.split(":")[0].strip("# ") for line in draft.splitlines() if ": public" in line}
    assert proposed == {"film", "category", "customer_type", "price"}
    assert (
        "# household: LOOK AT IT     # bell leads to doorbell: street may be about people. Columns: id, size, bell"
        in draft
    )
    assert "payment:     # by the foreign key of all its partitions who to crm.customer" in draft
    assert "complaint: {unit: customer_id, rows_per_unit: auto up to 100}     # IF customer_id is crm.customer" in draft
    assert "v_payment: view     # of payment" in draft and "v_by_function is left out" in draft


def test_a_draft_is_a_rules_file_that_fits(catalog: Catalog) -> None:
    draft = suggest_rules(catalog, TableName("crm", "customer"))
    policy = load_policy(draft, "rules.yaml", {"NOISEGATE_DATABASE": "x", "ADA_VERIFIER": VERIFIER})

    assert [finding for finding in check_policy(policy, catalog) if finding.severity is Severity.ERROR] == []
    assert policy.find_table(TableName("public", "payment")) is not None


ID = Column("id", TypeName("integer", "int4"), 1)
UNIT = Table(TableName("public", "people"), "table", (ID,), (Key("pk", ("id",), primary=True),))


@given(steps=st.lists(st.sampled_from(["key", "partition", "child", "view", "parent"]), min_size=1, max_size=8))
def test_whatever_leads_to_protected_rows_through_unnamed_tables_is_seen(steps: list[str]) -> None:
    tables, here = [UNIT], UNIT
    for number, step in enumerate(steps):
        name = TableName(f"s{number}", f"t{number}")
        plain = Column(f"x{number}", TypeName("text", "text"), 1)
        match step:
            case "key":
                made = Table(name, "table", (plain,), foreign_keys=(ForeignKey("f", ("x",), here.name, ("id",)),))
            case "view":
                made = Table(name, "view", (plain,), sources=(here.name,))
            case "partition" | "child":
                made = Table(name, "partition", (plain,), parents=(here.name,))
            case _:
                made = Table(name, "partitioned", (plain,))
                tables[tables.index(here)] = _below(here, name)
        tables.append(made)
        here = made
    catalog = Catalog("x", 180000, "7", "UTF8", tuple(tables))

    assert Exposure(catalog, protected=[UNIT.name], public=[here.name]).reasons(here.name)


def _below(table: Table, parent: TableName) -> Table:
    return Table(
        table.name, table.kind, table.columns, table.keys, table.foreign_keys, parents=(*table.parents, parent),
        sources=table.sources,
    )  # fmt: skip
