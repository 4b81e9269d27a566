"""What appears in the schema after it was locked does not exist for analysts, whatever it is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.twin.schema import visible
from rules.catalog import Catalog, Column, Table, TableName, TypeName
from rules.policy.freeze import as_text, changes_between, find_unseen, from_text, hide_unseen, see
from rules.policy.suggest import NOTHING, suggest_changes
from tests.policy.test_check import CATALOG, CUSTOMERS, ITEMS, ORDERS, RULES, column, policy

TYPES = (TypeName("integer", "int4", name="int4"), TypeName("text", "text", name="text"))
VIEW = Table(TableName("public", "v"), "view", (column("id"),), definition="SELECT id FROM below")
BELOW = Table(TableName("public", "below"), "view", (column("id"),), definition="SELECT id\nFROM customers")


def changed(*tables: Table) -> Catalog:
    by_name = {table.name: table for table in (*CATALOG.tables, *tables)}
    return replace(CATALOG, tables=tuple(by_name.values()))


def test_a_lock_file_is_read_as_it_was_written() -> None:
    seen = see(policy(RULES.replace("tables:", "tables:\n  below: view", 1)), changed(BELOW))

    assert from_text(as_text(seen)) == seen
    assert "definition: |-\n      SELECT id\n      FROM customers\n" in as_text(seen)


@pytest.mark.parametrize("text", ["", "[]", "tables: 7", "a: b", "tables: {t: {kind: table, columns: [a]}}", "}"])
def test_another_file_is_no_lock_file(text: str) -> None:
    with pytest.raises(ValueError, match="no lock file"):
        from_text(text)


def test_a_new_column_and_a_changed_type_are_hidden_and_told() -> None:
    seen = see(policy(), CATALOG)
    amount = replace(ORDERS.columns[2], type=TypeName("double precision", "float8"))
    later = changed(
        replace(CUSTOMERS, columns=(*CUSTOMERS.columns, column("salary"))),
        replace(ORDERS, columns=(*ORDERS.columns[:2], amount, ORDERS.columns[3])),
    )

    hidden = hide_unseen(policy(), later, seen)

    assert hidden.tables["customers"].columns["salary"].hidden
    assert hidden.tables["orders"].columns["amount"].hidden
    assert [(unseen.place, unseen.change) for unseen in find_unseen(policy(), later, seen)] == [
        ("customers.salary", "appeared (integer)"),
        ("orders.amount", "became double precision (it was numeric(10,2))"),
    ]
    assert list(changes_between(seen, see(policy(), later))) == [
        "customers.salary: integer, new",
        "orders.amount: double precision, was numeric(10,2)",
    ]


def test_a_column_that_the_rules_name_was_seen_by_whoever_wrote_them() -> None:
    text = RULES.replace("{city:", "{salary: {lower: 0, upper: 9}, city:")
    later = changed(replace(CUSTOMERS, columns=(*CUSTOMERS.columns, column("salary"))))

    assert find_unseen(policy(text), later, see(policy(text), CATALOG)) == ()


def test_a_table_that_became_something_else_goes_with_all_that_rests_on_it() -> None:
    seen = see(policy(), CATALOG)
    later = changed(replace(ORDERS, kind="foreign table"))

    hidden = hide_unseen(policy(), later, seen)

    assert set(hidden.tables) == {"customers"}  # items find their unit through orders


def test_a_view_is_hidden_when_its_text_or_that_of_a_view_below_it_changes() -> None:
    view = replace(VIEW, sources=(BELOW.name,))
    rules = policy(RULES.replace("tables:", 'tables:\n  v: {public: {because: "made up here"}}', 1))
    seen = see(rules, changed(view, BELOW))

    for later in (
        changed(replace(view, definition="SELECT 1"), BELOW),
        changed(view, replace(BELOW, definition="SELECT salary FROM staff")),
    ):
        assert "v" not in hide_unseen(rules, later, seen).tables
    assert hide_unseen(rules, changed(view, BELOW), seen) == rules


def test_a_table_that_was_not_there_is_hidden_although_the_rules_name_it() -> None:
    assert "items" not in hide_unseen(policy(), CATALOG, see(policy(), replace(CATALOG, tables=(ORDERS,)))).tables
    assert ITEMS in CATALOG.tables


COLUMNS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(TYPES)), unique_by=lambda each: each[0])
TABLES = st.dictionaries(st.sampled_from(["s", "t", "u"]), st.tuples(st.sampled_from(["table", "view"]), COLUMNS))
FREE = policy(
    RULES[: RULES.index("  items")] + "  s: public\n  t: public\n  u: public\n" + RULES[RULES.index("budget") :]
)


@given(before=TABLES, after=TABLES)
def test_nothing_is_shown_that_was_not_there_as_it_is(
    before: dict[str, tuple[str, list[tuple[str, TypeName]]]], after: dict[str, tuple[str, list[tuple[str, TypeName]]]]
) -> None:
    old, new = _catalog(before), _catalog(after)

    shown = visible(new, hide_unseen(FREE, new, see(FREE, old)))

    for table in (table for table in shown.tables if table.name.name in "stu"):
        known = old.find_table(table.name)
        assert known is not None
        assert known.kind == table.kind
        assert {(column.name, column.type) for column in table.columns} <= {
            (column.name, column.type) for column in known.columns
        }


def _catalog(tables: dict[str, tuple[str, list[tuple[str, TypeName]]]]) -> Catalog:
    made = [
        Table(
            TableName("public", name), "view" if kind == "view" else "table",
            tuple(Column(text, type_name, number) for number, (text, type_name) in enumerate(columns)),
            definition=str(columns) if kind == "view" else None,
        )
        for name, (kind, columns) in tables.items()
    ]  # fmt: skip
    return changed(*made)


def test_what_a_changed_schema_needs_is_drafted() -> None:
    seen = see(policy(), CATALOG)
    new = Table(TableName("public", "visits"), "table", (column("customer_id"), column("length")))
    changed_customers = replace(CUSTOMERS, columns=(CUSTOMERS.columns[0], column("email", TYPES[1])))
    later = changed(changed_customers, replace(ORDERS, columns=(*ORDERS.columns, column("weight"))), new)

    assert suggest_changes(policy(), CATALOG, seen) == NOTHING
    assert suggest_changes(policy(), later, seen).splitlines() == [
        "# take out customers.columns.city: there is no such column any more",
        "  customers:",
        "      # email appeared (text): hidden until noisegate lock",
        "      email: hidden     # may identify a person",
        "  orders:",
        "      # weight appeared (integer): hidden until noisegate lock",
        "      # weight: {lower: LEAST, upper: MOST}     # integer: bounds are needed to sum it",
        "  # visits: {unit: customer_id, rows_per_unit: auto up to 100}     # IF customer_id is customers.id: "
        "no valid foreign key says so",
    ]
    assert "visits" not in suggest_changes(policy(), later, see(policy(), later))


def test_rows_that_a_table_got_by_inheritance_are_told_in_one_sentence() -> None:
    child = replace(Table(TableName("public", "late"), "table", ORDERS.columns), parents=(ORDERS.name,))

    (unseen,) = find_unseen(policy(), changed(child), see(policy(), CATALOG))

    assert (unseen.place, unseen.change) == ("orders", "got the rows of late by inheritance")
