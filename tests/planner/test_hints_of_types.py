"""A hint fits the type of the column that a refusal is about."""

from dataclasses import replace

import pytest

from rules.catalog import Catalog, Column, Table, TypeName
from tests.planner.planned import Planner

BASES = {"jsonb": "jsonb", "text[]": "array", "interval": "interval", "float8": "float8"}


@pytest.fixture(scope="module")
def wide(planner: Planner) -> Planner:
    """The shop, with columns of more types for each customer."""
    made = Planner(planner.dsn)
    kinds = {
        "profile": "jsonb", "allergies": "text[]", "stay": "daterange", "waited": "interval", "height": "float8",
    }  # fmt: skip
    columns = tuple(
        Column(name, TypeName(kind, BASES.get(kind, "other"), name=kind), -1, not_null=False)
        for name, kind in kinds.items()
    )
    made.catalog = _with(made.catalog, columns)
    return made


def _with(catalog: Catalog, columns: tuple[Column, ...]) -> Catalog:
    def widened(table: Table) -> Table:
        return replace(table, columns=(*table.columns, *columns)) if table.name.name == "customers" else table

    return replace(catalog, tables=tuple(map(widened, catalog.tables)))


@pytest.mark.parametrize("number", ["(profile->>'children')::int", "cardinality(allergies)"])
def test_a_document_or_an_array_has_no_bounds_in_the_rules(wide: Planner, number: str) -> None:
    hint = wide.refusal(f"SELECT avg({number}) FROM customers").hint

    assert hint == "Clamp the number that is made of it: avg(least(greatest(…, 0), 100))."
    assert wide.block(f"SELECT avg(least(greatest({number}, 0), 100)) FROM customers").measures


def test_a_range_is_no_document_and_no_text(wide: Planner) -> None:
    contains = wide.refusal("SELECT count(*) FROM customers WHERE stay @> date '2024-03-01'")
    upper = wide.refusal("SELECT count(*) FROM customers WHERE upper(stay) > '2024-03-01'")

    assert "jsonb" not in contains.message + contains.hint and '"@>"' in contains.message
    assert upper.hint == "Ask your DBA for columns with the two ends."


@pytest.mark.parametrize("number", ["waited", "extract(epoch FROM waited) / 60"])
def test_an_interval_is_clamped_by_intervals(wide: Planner, number: str) -> None:
    hint = wide.refusal(f"SELECT avg({number}) FROM customers").hint

    assert hint == "Clamp it, as in least(greatest(waited, interval '0'), interval '100 days')."
    clamped = number.replace("waited", "least(greatest(waited, interval '0'), interval '100 days')")
    assert wide.block(f"SELECT avg({clamped}) FROM customers").measures


@pytest.mark.parametrize("text", ["NaN", "-Infinity"])
def test_what_is_no_finite_number_is_left_out_by_a_comparison(wide: Planner, text: str) -> None:
    hint = wide.refusal(f"SELECT count(*) FROM customers WHERE height = '{text}'").hint

    assert hint == "Choose the finite numbers by a comparison instead: x < 1e9 leaves out NaN and infinity."
    assert wide.block("SELECT count(*) FROM customers WHERE height < 1e9").measures


def test_a_part_of_a_document_is_compared_as_text(wide: Planner) -> None:
    refusal = wide.refusal("""SELECT count(*) FROM customers WHERE profile->'app' = '"ios"'""")

    assert refusal.hint == "Compare a text of the document: document->>'key' = 'value'."
    assert wide.block("SELECT count(*) FROM customers WHERE profile->>'app' = 'ios'").measures


@pytest.mark.parametrize(
    ("column", "hint", "instead"),
    [
        ("waited", "Take its seconds: extract(epoch FROM x).", "extract(epoch FROM waited)"),
        ("profile", "Take a text of the document: document->>'key'.", "profile->>'key'"),
        ("allergies", "Take an item or their number: x[1], cardinality(x).", "cardinality(allergies)"),
        ("stay", "Ask your DBA for a column of a type such as text or numeric.", "city"),
    ],
)
def test_what_has_no_groups_is_not_told_to_be_cast(wide: Planner, column: str, hint: str, instead: str) -> None:
    """Casts of these are refused too."""
    assert wide.refusal(f"SELECT count(*) FROM customers GROUP BY {column}").hint == hint
    assert wide.refusal(f"SELECT count(DISTINCT {column}) FROM customers").hint == hint
    assert wide.plan(f"SELECT {instead}, count(*) FROM customers GROUP BY 1").blocks
    assert wide.plan(f"SELECT count(DISTINCT {instead}) FROM customers").blocks
