"""ROLLUP and its like: every level is the sum of the cells below it."""

from hypothesis import given
from hypothesis import strategies as st

from rules.release.outputs import roll_up

CELLS = st.dictionaries(
    st.tuples(st.sampled_from(("a", "b", None)), st.sampled_from(("x", "y"))),
    st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)),
)
CUBE = ((0, 1), (0,), (1,), ())


@given(CELLS)
def test_all_levels_have_the_same_total(cells: dict[tuple[str | None, str], tuple[int, int]]) -> None:
    groups, totals = roll_up(tuple(cells), list(cells.values()), CUBE, keys=2, measures=2)

    for number in range(1, 5):
        level = [total for group, total in zip(groups, totals, strict=True) if group[-1] == str(number)]
        assert sum(numbers[0] for numbers in level) == sum(cell[0] for cell in cells.values())
        assert sum(numbers[1] for numbers in level) == sum(cell[1] for cell in cells.values())


def test_the_empty_set_has_a_row_over_nothing_and_other_sets_have_none() -> None:
    assert roll_up((), [], CUBE, keys=2, measures=1) == (((None, None, "4"),), [(0,)])


def test_a_null_key_is_a_group_of_its_own_beside_the_total() -> None:
    groups, totals = roll_up(((None,), ("a",)), [(1,), (2,)], ((0,), ()), keys=1, measures=1)

    assert groups == ((None, "1"), ("a", "1"), (None, "2"))
    assert totals == [(1,), (2,), (3,)]
