"""What a private look makes of noised counts: a range that holds most of them, whatever the bins."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from rules.catalog import Column, Table, TableName, TypeName
from rules.policy.look_bins import ColumnLook, column_look, found_range, found_rows

TABLE = TableName("public", "orders")


def look_of(type_name: str) -> ColumnLook:
    column = Column("x", TypeName(type_name, type_name), 1, False)
    look = column_look(Table(TABLE, "table", (column,)), column)
    assert look is not None
    return look


@given(
    values=st.lists(st.integers(-(10**6), 10**6), min_size=100, max_size=200),
    type_name=st.sampled_from(["int4", "numeric"]),
)
def test_a_range_holds_all_but_the_outermost_values(values: list[int], type_name: str) -> None:
    look = look_of(type_name)
    counts = [0] * (len(look.edges) + 1)
    for value in values:
        counts[sum(edge <= value for edge in look.edges)] += 1

    found = found_range(look, [(str(label), count) for label, count in enumerate(counts)], reach=0.0)

    assert isinstance(found.lower, int | Decimal) and isinstance(found.upper, int | Decimal)
    for beyond in (sum(value < found.lower for value in values), sum(value > found.upper for value in values)):
        assert beyond <= 0.02 * len(values)
    assert type_name != "int4" or (isinstance(found.lower, int) and isinstance(found.upper, int))


def test_a_few_far_away_do_not_make_the_range() -> None:
    look = look_of("numeric")
    places = {edge: place for place, edge in enumerate(look.edges)}
    counts = {places[Decimal(16)]: 300, places[Decimal(32)]: 200, places[Decimal(2**20)]: 8}

    found = found_range(look, [(str(label), count) for label, count in counts.items()], reach=5.0)

    assert (found.lower, found.upper) == (0, 32) or (found.lower, found.upper) == (8, 32)


def test_noise_alone_makes_no_range_and_no_cap() -> None:
    counts = [(str(label), 9) for label in range(20)]
    assert found_range(look_of("numeric"), counts, reach=10.0).lower is None
    assert found_rows(counts, reach=10.0).rows is None
    assert found_rows([("0", 500), ("3", 400), ("12", 20)], reach=10.0).rows == 8
