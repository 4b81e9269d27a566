"""What `noisegate check` says of a policy over a catalog."""

from dataclasses import replace

import pytest

from rules.catalog import Catalog, Column, ForeignKey, Key, Table, TableName, TypeName
from rules.policy.check import check_policy
from rules.policy.finding import Severity
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
budget: {{epsilon: 20, delta: 1e-6, per: month}}
analysts: {{ada: {{password: "{VERIFIER}"}}}}
"""


def policy(text: str = RULES) -> Policy:
    return load_policy(text, "rules.yaml", {})


def errors(text: str, catalog: Catalog = CATALOG) -> str:
    findings = check_policy(policy(text), catalog)
    return "\n".join(str(finding) for finding in findings if finding.severity is Severity.ERROR)


def test_a_sound_policy_has_no_error_and_no_warning() -> None:
    assert [finding for finding in check_policy(policy(), CATALOG) if finding.severity is not Severity.NOTE] == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("  orders:", "  order:", 'tables.order: no such table in the database (did you mean "orders"?)'),
        ("order_id -> orders.id", "order_id > orders.id", '"order_id > orders.id" (write "order_id -> orders.id")'),
        (
            "order_id -> orders.id",
            "order_id -> order.id",
            'order.id is not a column of the database (did you mean "orders.id"',
        ),
        ("{amount:", "{amuont:", 'orders has no such column (did you mean "amount"?)'),
        ("unit: customer_id", "unit: customer", 'orders has no column "customer"'),
        ("unit: customers.id", "unit: customer.id", 'a column of the database (did you mean "customers.id"?)'),
        ("unit: customers.id", "unit: people", 'a column of the database (write it as "customers.id", or "row")'),
        ("unit: customers.id", "unit: customers.city", "unit: customers.city is not proved unique"),
        ("[Berlin]", "[7]", "7 is not text"),
        ("{amount: {lower: 0, upper: 9}}", "{status: {values: [lost]}}", '"lost" is not a label of public.status'),
        ("{lower: 0, upper: 9}", "{lower: 2020-01-01, upper: 2021-01-01}", "is not a value of type numeric(10,2)"),
        ("{lower: 0, upper: 9}", "{lower: 0, upper: 1e131072}", "1E+131072 does not fit into numeric(10,2)"),
        ("{lower: 0, upper: 9}", "{lower: 0.001, upper: 0.004}", "no value of type numeric(10,2) lies between"),
        ("{lower: 0, upper: 9}", "{lower: 1e8, upper: 1e9}", "no value of type numeric(10,2) lies between"),
        ("{unit: customer_id, rows", "{rows", "tables.orders: a protected table needs a unit"),
        ("orders.id", "customers.city", "customers.city is not proved unique"),
        ("ada:", "pg_ada:", "this name is reserved for PostgreSQL or Noisegate"),
        (
            "{values: [Berlin]}",
            "{sum_per_unit: auto}",
            "customers.columns.city.sum_per_unit: values of type text cannot be summed",
        ),
    ],
)
def test_what_cannot_be_kept_is_an_error(old: str, new: str, complaint: str) -> None:
    assert old in RULES

    assert complaint in errors(RULES.replace(old, new, 1))


def test_no_table_is_suggested_that_has_rules_already() -> None:
    assert "did you mean" not in errors(RULES.replace("  orders:", "  customers2: {unit: id}\n  orders:", 1))


def test_bounds_that_are_chosen_are_told_with_their_price() -> None:
    text = RULES.replace("rows_per_unit: 40", "rows_per_unit: auto up to 40, sum_per_unit: auto")

    notes = "\n".join(map(str, check_policy(policy(text), CATALOG)))

    assert "tables.orders.rows_per_unit: auto: the most rows of a unit that count are chosen privately" in notes
    assert "up to 40, for a tenth to a third of ε" in notes
    assert "tables.orders.sum_per_unit: auto: how much of a unit's sums counts" in notes


def test_a_public_table_that_refers_to_a_protected_one_is_an_error() -> None:
    text = RULES.replace("{unit: order_id -> orders.id, rows_per_unit: 200}", "public")

    assert "it refers to orders, which is protected" in errors(text)


@pytest.mark.parametrize("between", [(), (table("mid", column("customer_id")),)])
def test_a_row_that_a_parent_has_too_is_of_one_unit(between: tuple[Table, ...]) -> None:
    parents = [CUSTOMERS, ORDERS]
    for child in (*between, table("old", column("customer_id"), column("other"))):
        parents.append(replace(child, parents=(parents[-1].name,)))
    catalog = replace(CATALOG, tables=(*parents, ITEMS))
    rules = RULES.replace("  items:", "  old: {unit: UNIT, rows_per_unit: 2}\n  items:")

    assert "its rows are rows of orders too" in errors(rules.replace("UNIT", "other"), catalog)
    assert not errors(rules.replace("UNIT", "customer_id"), catalog)


def test_uniqueness_is_no_proof_over_inheritance_children() -> None:
    parents = replace(CUSTOMERS, has_children=True)

    assert "customers.id is not proved unique" in errors(RULES, replace(CATALOG, tables=(parents, ORDERS, ITEMS)))


def test_a_unique_index_that_is_not_valid_is_warned_of() -> None:
    half = replace(ORDERS, unfinished=("half",))
    part = replace(table("orders_2027"), kind="partition", parents=(ORDERS.name,), unfinished=("first",))
    for tables, words in (
        ((half,), 'its unique index "half" is not valid'),
        ((ORDERS, part), 'of orders_2027, whose rows are in it, the unique index "first" is not valid'),
    ):
        findings = check_policy(policy(), replace(CATALOG, tables=(CUSTOMERS, *tables, ITEMS)))
        (warned,) = (finding for finding in findings if finding.severity == Severity.WARNING)
        assert warned.message.startswith(words)


def test_an_index_that_was_made_by_another_version_of_its_collation_is_warned_of() -> None:
    findings = check_policy(policy(), replace(CATALOG, tables=(CUSTOMERS, replace(ORDERS, outdated=("old",)), ITEMS)))

    (warned,) = (finding for finding in findings if finding.severity == Severity.WARNING)
    assert warned.message.startswith('its index "old" was made by another version of its collation')


def test_an_unlogged_table_of_a_standby_is_warned_of() -> None:
    part = replace(table("orders_2027"), kind="partition", parents=(ORDERS.name,), missing=True)
    for tables, words in (
        ((replace(ORDERS, missing=True),), "it is UNLOGGED, and this server is a standby"),
        ((ORDERS, part), "orders_2027, whose rows are in it, is UNLOGGED, and this server is a standby"),
    ):
        findings = check_policy(policy(), replace(CATALOG, tables=(CUSTOMERS, *tables, ITEMS)))
        (warned,) = (finding for finding in findings if finding.severity == Severity.WARNING)
        assert warned.message.startswith(words)


def test_a_second_way_to_a_unit_is_told() -> None:
    both = replace(
        ORDERS,
        columns=(*ORDERS.columns, column("giver_id")),
        foreign_keys=(*ORDERS.foreign_keys, ForeignKey("fk2", ("giver_id",), CUSTOMERS.name, ("id",))),
    )

    findings = check_policy(policy(), replace(CATALOG, tables=(CUSTOMERS, both, ITEMS)))

    assert any("refer to other units too, by giver_id" in finding.message for finding in findings)


def test_a_suggested_file_is_a_policy_without_errors() -> None:
    text = suggest_rules(CATALOG, CUSTOMERS.name)

    drafted = load_policy(text, "rules.yaml", {"NOISEGATE_DATABASE": "x", "ADA_VERIFIER": VERIFIER})

    assert [finding for finding in check_policy(drafted, CATALOG) if finding.severity is Severity.ERROR] == []
    assert drafted.tables["items"].unit == "order_id -> orders.id"


def test_a_table_that_there_is_not_is_no_table_without_a_key() -> None:
    with pytest.raises(ValueError, match=r"there is no table (public.)?custmers; did you mean (public.)?customers"):
        suggest_rules(CATALOG, TableName("public", "custmers"))


def test_a_draft_leads_to_the_units_rather_than_to_a_table_that_not_all_of_them_have() -> None:
    to_customers = (ForeignKey("fk", ("customer_id",), CUSTOMERS.name, ("id",)),)
    badges = table("badges", column("customer_id"), keys=(Key("k", ("customer_id",)),), foreign_keys=to_customers)
    contacts = replace(table("contacts", column("customer_id")), has_children=True)
    catalog = replace(CATALOG, tables=(badges, contacts, *CATALOG.tables))

    draft = suggest_rules(catalog, CUSTOMERS.name)

    assert "# contacts: {unit: customer_id, " in draft and "# IF customer_id is customers.id: " in draft


def test_a_draft_proposes_a_foreign_key_that_proves_nothing_whatever_its_name() -> None:
    key = ForeignKey("fk", ("buyer",), CUSTOMERS.name, ("id",), proves=False)
    catalog = replace(CATALOG, tables=(*CATALOG.tables, table("visits", column("buyer"), foreign_keys=(key,))))

    assert "# visits: {unit: buyer, " in suggest_rules(catalog, CUSTOMERS.name)


def test_a_draft_has_no_bounds_for_names_of_rows() -> None:
    text = suggest_rules(CATALOG, CUSTOMERS.name)

    assert not any(line.lstrip("# ").startswith(("id:", "customer_id:", "order_id:")) for line in text.splitlines())


@pytest.mark.parametrize(
    ("version", "word"),
    [
        (120022, "error: database: PostgreSQL 12 is too old (13 to 18 are served)"),
        (190000, "error: database: PostgreSQL 19 is newer than this release"),
        (130023, "warning: database: PostgreSQL 13 gets no fixes after November 2025"),
        (150018, ""),
    ],
)
def test_a_server_that_is_too_old_or_too_new_is_told_by_its_version(version: int, word: str) -> None:
    said = [str(finding) for finding in check_policy(policy(), replace(CATALOG, version=version))]
    told = [line for line in said if "PostgreSQL" in line]
    assert len(told) == (word != "")
    assert all(line.startswith(word) for line in told)


def test_the_least_charge_is_told_with_how_many_fit() -> None:
    notes = "\n".join(map(str, check_policy(policy(RULES), CATALOG)))

    assert "note: defaults.min_epsilon: 0.001: no statement may ask for less ε; " in notes
    assert "000 such statements (more where zCDP grants them) use up a period's budget" in notes


def test_gaussian_noise_needs_a_delta_and_is_warned_of() -> None:
    text = f"{RULES}noise: gaussian\n"
    told = [str(finding) for finding in check_policy(policy(text), CATALOG)]

    assert not errors(text)
    assert any(
        text.startswith("warning: noise: gaussian: less noise where a person is in many groups") for text in told
    )
    assert "budget.delta: 0: no statement with Gaussian noise" in errors(text.replace(", delta: 1e-6", ""))
    assert "analysts.ada.delta: 0: no statement with" in errors(
        text.replace(f'"{VERIFIER}"', f'"{VERIFIER}", delta: 0')
    )


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "MULE_INTERNAL", "EUC_TW"])
def test_a_database_whose_texts_cannot_be_read_is_an_error(encoding: str) -> None:
    assert f"the encoding {encoding}" in errors(RULES, replace(CATALOG, encoding=encoding))


def test_a_database_with_a_cast_of_its_own_between_postgresqls_types_is_an_error() -> None:
    cast, function = "the cast (text AS integer)", "the function pg_catalog.lower(character varying)"
    told = errors(RULES, replace(CATALOG, overrides=(cast, function)))
    assert f"{cast} is not PostgreSQL's own" in told
    assert f"{function} is not PostgreSQL's own" in told
    assert "WITH INOUT AS ASSIGNMENT" in told and "move it elsewhere" in told


def test_a_database_in_another_encoding_is_told_what_is_not_possible_there() -> None:
    rules = RULES.replace("values: [Berlin]", "values: [Málaga, Łódź]")

    assert not errors(rules, replace(CATALOG, encoding="LATIN1"))
    told = "\n".join(map(str, check_policy(policy(rules), replace(CATALOG, encoding="LATIN1"))))
    assert "its encoding is LATIN1, not UTF8: over protected rows ascii, lower, upper, initcap, ILIKE" in told
    assert '"Łódź" cannot be written in LATIN1' in told
    assert "Málaga" not in told
    assert "encoding" not in "\n".join(map(str, check_policy(policy(rules), CATALOG)))


def with_virtual(table_name: str, name: str) -> Catalog:
    """The catalog with one more column of a table, or with one of its columns, computed when it is read."""
    computed = replace(column(name), generated="v")
    changed = [
        replace(table, columns=(*(old for old in table.columns if old.name != name), computed))
        if table.name.name == table_name
        else table
        for table in CATALOG.tables
    ]
    return replace(CATALOG, tables=tuple(changed))


def test_a_column_that_is_computed_when_it_is_read_is_warned_of_unless_it_is_hidden() -> None:
    catalog = with_virtual("orders", "twice")
    warnings = [str(finding) for finding in check_policy(policy(), catalog) if finding.severity is Severity.WARNING]
    assert [warning for warning in warnings if '"twice" is a virtual generated column' in warning]
    hidden = RULES.replace("{amount:", "{twice: hidden, amount:")
    assert not [finding for finding in check_policy(policy(hidden), catalog) if "computed" in finding.message]


def test_a_unit_is_no_column_that_is_computed_when_it_is_read() -> None:
    assert '"customer_id" is a virtual generated column' in errors(RULES, with_virtual("orders", "customer_id"))


def test_trust_in_rows_that_are_not_foreign_is_said_to_be_idle() -> None:
    text = RULES.replace("{unit: customer_id,", "{unit: customer_id, foreign: trusted,")
    assert any("this has no effect" in finding.message for finding in check_policy(policy(text), CATALOG))


def test_public_rows_on_another_server_are_not_read_together_with_protected_ones() -> None:
    public = replace(table("rates", column("id")), kind="foreign table", foreign=True)
    catalog = replace(CATALOG, tables=(*CATALOG.tables, public))

    def said(rules: str) -> str:
        text = RULES.replace("  items:", f"  rates: {rules}\n  items:")
        return "\n".join(str(finding) for finding in check_policy(policy(text), catalog))

    assert "warning: tables.rates: it has rows on another server, so it can be read alone" in said("public")
    assert "another server" not in said("{public: true, foreign: trusted}")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("unit: customer_id,", "unit: status,", '"status" is of type public.status and customers.id of type integer'),
        ("order_id -> orders.id", "order_id -> orders.status", "integer and orders.status of type public.status"),
    ],
)
def test_a_way_to_the_unit_by_types_that_do_not_compare_is_an_error(old: str, new: str, words: str) -> None:
    assert words in errors(RULES.replace(old, new))


CHAR8, VARCHAR, DOUBLE = (
    TypeName("character(8)", "bpchar", 12),
    TypeName("character varying", "varchar"),
    TypeName("double precision", "float8"),
)
CARDS = table("cards", column("code", CHAR8), column("customer_id"), keys=(Key("pk", ("code",), primary=True),))
CARD = ForeignKey("fk", ("card",), CARDS.name, ("code",))
LOANS = table("loans", column("card", VARCHAR), keys=(Key("one", ("card",)),), foreign_keys=(CARD,))
LIBRARY = replace(CATALOG, tables=(CUSTOMERS, CARDS, LOANS))


def library(unit: str, cards: str, loans: str) -> Policy:
    head, tail = RULES[: RULES.index("unit:")], RULES[RULES.index("budget:") :]
    customers = "" if unit == "cards.code" else "  customers: {unit: id}\n"
    tables = f"{customers}  cards: {{unit: {cards}, rows_per_unit: 4}}\n  loans: {{unit: {loans}, rows_per_unit: 4}}\n"
    return policy(f"{head}unit: {unit}\ntables:\n{tables}{tail}")


def test_a_foreign_key_between_types_of_different_equality_is_warned_of() -> None:
    said = [
        str(finding) for finding in check_policy(library("customers.id", "customer_id", "card -> cards.code"), LIBRARY)
    ]

    assert not [line for line in said if line.startswith("error")]
    assert [line for line in said if "its foreign key card joins character varying with character(8)" in line] == [
        "warning: tables.loans: its foreign key card joins character varying with character(8), which have different "
        "equalities: different values may refer to the same row, so a unique key of them bounds no unit's rows "
        "(give both the same type)"
    ]
    alike = replace(LIBRARY, tables=(CUSTOMERS, CARDS, replace(LOANS, columns=(column("card", CHAR8),))))
    assert not [
        one
        for one in check_policy(library("customers.id", "customer_id", "card -> cards.code"), alike)
        if "foreign key card" in one.message
    ]


def test_a_unit_column_that_splits_a_unit_is_an_error_and_its_hint_is_a_way_that_does_not() -> None:
    assert str(check_policy(library("cards.code", "code", "card"), LIBRARY)[0]) == (
        'error: tables.loans.unit: "card" is of type character varying and cards.code of type character(8), which have '
        'different equalities: one unit could pass for several (write "card -> cards.code")'
    )
    hinted = library("cards.code", "code", "card -> cards.code")
    assert not [one for one in check_policy(hinted, LIBRARY) if one.severity is Severity.ERROR]
    doubles = replace(LIBRARY, tables=(CUSTOMERS, CARDS, replace(LOANS, columns=(column("card", DOUBLE),))))
    assert "give both the same type" in str(check_policy(library("cards.code", "code", "card"), doubles)[0])


def test_a_draft_leads_to_the_unit_by_its_key_where_the_column_that_refers_to_it_has_another_equality() -> None:
    assert "unit: card -> cards.code" in suggest_rules(LIBRARY, CARDS.name)
    numbers = replace(
        LIBRARY,
        tables=(
            CUSTOMERS,
            replace(CARDS, columns=(column("code", VARCHAR), column("customer_id"))),
            replace(LOANS, columns=(column("card", CHAR8),)),
        ),
    )
    assert "\n  loans:" not in suggest_rules(numbers, CARDS.name)


def test_a_budget_that_is_never_new_is_warned_of_with_its_number_of_statements() -> None:
    text = RULES.replace("epsilon: 20, delta: 1e-6, per: month", "epsilon: 5")
    (found,) = [finding for finding in check_policy(policy(text), CATALOG) if finding.path == "budget.per"]
    assert (str(found.severity), found.message) == (
        "warning",
        "ever: 50 statements at ε 0.1 use up the budget of all analysts, then nothing new is answered for ever",
    )


@pytest.mark.parametrize(
    ("budget", "severity", "path", "words"),
    [
        ("budget: {epsilon: 20, delta: 0.1}", "error", "budget.delta", "of 10 people one may be given out whole"),
        (
            "budget: {epsilon: 20, delta: 1e-4}",
            "warning",
            "budget.delta",
            "of 10,000 people one may be given out whole",
        ),
        (
            "budget: {epsilon: 1000}\ndefaults: {max_epsilon: 10}",
            "warning",
            "budget.epsilon",
            "an analyst with this budget can learn most people's rows: it buys 100 answers of ε 10",
        ),
        ("budget: {epsilon: 20}\ndefaults: {max_epsilon: 10}", "warning", "defaults.max_epsilon", "99.995% sure"),
        (
            "budget: {epsilon: 20}\ndefaults: {max_epsilon: 1000}",
            "warning",
            "defaults.max_epsilon",
            "sure, and a count",
        ),
        (
            "budget: {epsilon: 1}\ndefaults: {epsilon: 2, max_epsilon: 2}",
            "warning",
            "defaults.epsilon",
            "none is answered",
        ),
        (
            "budget: {epsilon: 1}\ndefaults: {max_epsilon: 2}",
            "warning",
            "defaults.max_epsilon",
            "above the whole budget",
        ),
        (
            "budget: {epsilon: 20, delta: 1e-6}\ndefaults: {delta: 1e-5}",
            "error",
            "defaults.delta",
            "no groups can be found in the data",
        ),
    ],
)
def test_an_absurd_budget_is_told_in_words(budget: str, severity: str, path: str, words: str) -> None:
    text = RULES.replace("budget: {epsilon: 20, delta: 1e-6, per: month}", budget)

    found = [
        finding for finding in check_policy(policy(text), CATALOG) if finding.path == path and words in finding.message
    ]
    assert [finding.severity for finding in found] == [severity]


def test_a_unit_column_that_refers_to_another_key_is_warned_of() -> None:
    text = RULES.replace("order_id -> orders.id", "order_id")
    found = check_policy(policy(text), CATALOG)

    (said,) = [finding for finding in found if finding.path == "tables.items.unit"]
    assert said.severity == Severity.WARNING
    assert said.message.startswith('"order_id" refers to orders.id, which is not the unit')
    assert said.hint == 'write "order_id -> orders.id"'
    assert not [finding for finding in check_policy(policy(), CATALOG) if "not the unit" in finding.message]


def test_a_public_column_that_is_compared_otherwise_than_its_copy_is_a_warning() -> None:
    citext = TypeName("public.citext", "citext", schema="public", extension="citext", name="citext")
    places = table("places", column("id"), column("name", citext), replace(column("city", TEXT), deterministic=False),
                   keys=(Key("k", ("id",), primary=True),))  # fmt: skip
    rules = RULES.replace("budget:", "  places: {public: true, columns: {other: hidden}}\nbudget:")
    other = replace(column("other", citext))
    shown = replace(CATALOG, tables=(*CATALOG.tables, replace(places, columns=(*places.columns, other))))

    warnings = [each for each in check_policy(policy(rules), shown) if each.severity is Severity.WARNING]

    assert [each.message.partition(":")[0] for each in warnings if each.path == "tables.places"] == [
        '"name" is public.citext',
        '"city" is text of a nondeterministic collation',
    ]


def test_a_type_with_casts_by_functions_of_the_database_is_told_with_their_names() -> None:
    shown = replace(column("mark"), type=TypeName("public.mark", "other", casts=("text by public.shown",)))
    marked = [replace(each, columns=(*each.columns, shown)) for each in CATALOG.tables if each.name.name == "orders"]
    catalog = replace(CATALOG, tables=(CUSTOMERS, *marked, ITEMS))

    told = "\n".join(str(finding) for finding in check_policy(policy(), catalog))
    assert '"mark" has a type that functions of the database cast or order (text by public.shown)' in told
    assert "functions of the database cast" not in "\n".join(map(str, check_policy(policy(), CATALOG)))


def test_an_enum_with_an_implicit_cast_is_told_with_what_would_be_right() -> None:
    mood = replace(column("mood"), type=TypeName("public.mood", "enum", labels=("a",), is_ambiguous=True))
    catalog = replace(CATALOG, tables=(replace(CUSTOMERS, columns=(*CUSTOMERS.columns, mood)), *CATALOG.tables[1:]))

    told = "\n".join(str(finding) for finding in check_policy(policy(), catalog))
    assert '"mood" is an enum with an implicit cast' in told and "AS ASSIGNMENT" in told
