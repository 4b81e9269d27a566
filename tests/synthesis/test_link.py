"""Rows are linked to parents of their class: within caps, and without parents that want none."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rules.synthesis.fit import link
from rules.synthesis.model import Between, Column, Label, Parent
from rules.values.types import INT4
from tests.properties.planning import thorough

MOST = 6
BUCKETS = tuple(Between(low, high, Fraction(1), INT4) for low, high in ((0, 0), (1, 1), (2, 3), (4, MOST)))
COLUMNS = (Column("city", (Label("a"), Label("b"), Label(None))), Column("count(children) by 4", BUCKETS))


@thorough
@given(
    parents=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=30),
    children=st.lists(st.integers(0, 2), max_size=80),
    counts=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_no_parent_has_more_than_the_cap_and_none_that_wants_none_has_any(
    parents: list[tuple[int, int]], children: list[int], counts: bool, seed: int
) -> None:
    above = np.array(parents, dtype=np.int64).reshape(-1, 2)
    rows = np.array(children, dtype=np.int64).reshape(-1, 1)
    how = Parent(0, ((0, 0),), 1 if counts else None, MOST, "parent_id")

    found, moved = link(rows, above, how, COLUMNS, np.random.default_rng(seed))

    linked = found[found >= 0]
    has = np.bincount(linked, minlength=len(parents))
    open_to = [place for place, (_, bucket) in enumerate(parents) if bucket or not counts]
    room = MOST * len(open_to)
    assert linked.size == min(len(children), room), "a row was lost although somebody had room"
    assert not has.size or has.max() <= MOST
    assert all(has[place] == 0 for place in range(len(parents)) if place not in open_to)
    elsewhere = sum(parents[place][0] != child for place, child in zip(found, children, strict=True) if place >= 0)
    assert elsewhere <= moved
