"""Keys: which of a unit's groups count, and by which text equal values are known."""

import psycopg
import pytest

from rules.kernel.added import last_order
from rules.kernel.keys import Found, Listed
from rules.kernel.measures import Count, Distinct, Units
from rules.values.types import Type
from tests.kernel.facts import COLUMNS, Data, Row, bounded, column, load, rows_of_facts
from tests.kernel.statements import answer
from tests.properties.added import LONGEST


def _row(**cells: str | None) -> Row:
    return dict.fromkeys(COLUMNS) | cells


def test_a_label_that_is_listed_twice_counts_a_row_once(connection: psycopg.Connection) -> None:
    load(connection, {1: [_row(n="5.00")]})
    labels = (("5.0",), ("5",), ("5.000",), ("7",))
    statement = bounded(rows_of_facts(proved_one=True), (Listed((column("n"),), labels),), (Count(),), rows_per_unit=3)
    assert answer(connection, statement) == {(0,): (1,)}


@pytest.mark.parametrize("labels", [(("x",),), tuple((text,) for text in "12345x")], ids=["a CASE", "a join"])
def test_a_label_that_is_no_value_of_its_key_is_refused_before_any_row(
    connection: psycopg.Connection, labels: tuple[tuple[str], ...]
) -> None:
    load(connection, {})
    statement = bounded(rows_of_facts(proved_one=True), (Listed((column("a"),), labels),), (Count(),), rows_per_unit=3)
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        connection.execute(f"EXPLAIN {statement.sql}")


def test_no_unit_chooses_how_the_key_of_others_is_written(connection: psycopg.Connection) -> None:
    spellings = [_row(n="5.0", f="-0", r="-0"), _row(n="5.00", f="0", r="0")]
    for first, second in (spellings, spellings[::-1]):
        load(connection, {1: [first], 2: [second]})
        for name, text in (("n", "5"), ("f", "0"), ("r", "0")):
            statement = bounded(rows_of_facts(), (Found(column(name)),), (Units(),), rows_per_unit=3)
            assert answer(connection, statement) == {(text,): (2,)}
            different = bounded(rows_of_facts(), (), (Distinct(column(name)),), rows_per_unit=3)
            assert answer(connection, different) == {(): (1,)}


def test_a_key_that_is_too_long_is_not_counted(connection: psycopg.Connection) -> None:
    load(connection, {1: [_row(b="é" * 4096), _row(b="é" * 4096 + "x"), _row(n="1e9000")]})
    by_text = bounded(rows_of_facts(), (Found(column("b")),), (Count(),), rows_per_unit=5)
    assert {group for (group,) in answer(connection, by_text)} == {"é" * 4096, None}
    by_number = bounded(rows_of_facts(), (Found(column("n")),), (Count(),), rows_per_unit=5)
    assert {group for (group,) in answer(connection, by_number)} == {None}


LONG_AS_TEXT = {
    "bytea": "repeat('a', 560000000)::bytea",
    "bit varying": LONGEST,
    "text[]": "ARRAY[repeat('\"', 540000000)]",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", LONG_AS_TEXT)
def test_values_that_are_longer_as_text_than_postgresql_holds_have_an_order(
    connection: psycopg.Connection, kind: str
) -> None:
    source = f"(SELECT {LONG_AS_TEXT[kind]} AS body OFFSET 0) AS f"
    order = last_order(Type("other", name=kind), "body", is_stored=True, is_decided=False)

    with pytest.raises(psycopg.Error):
        connection.execute(f"SELECT body::text < 'b' FROM {source}")
    assert connection.execute(f"SELECT {order} < {order} FROM {source}").fetchone() == (False,)


def test_units_keep_groups_of_their_own(connection: psycopg.Connection) -> None:
    """Of two groups that everybody is in, each is the one that about half of the units count in."""
    data: Data = {unit: [_row(a="1", b="x"), _row(a="2", b="y")] for unit in range(1, 201)}
    load(connection, data)
    for name in ("a", "b"):
        statement = bounded(
            rows_of_facts(), (Found(column(name)),), (Units(), Count()), rows_per_unit=9, groups_per_unit=1
        )
        groups = answer(connection, statement)
        assert sum(units for units, _ in groups.values()) == 200
        assert all(60 < units < 140 for units, _ in groups.values())
        assert len({rows for _, rows in groups.values()}) == 1  # rows count in all groups of their unit
