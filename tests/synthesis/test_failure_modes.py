"""What synthetic rows get wrong, as the page says it: so that nobody finds it out by a decision."""

import time
from fractions import Fraction

import numpy as np

from rules.synthesis.fit import fit, link
from rules.synthesis.model import Between, Column, Label, Parent
from rules.synthesis.values import values_of
from rules.values.types import INT4
from tests.synthesis.generated import distances, job, measured, price


def test_what_three_columns_do_together_is_a_guess() -> None:
    random = np.random.default_rng(1)
    two = random.integers(0, 2, size=(20_000, 2))
    rows = np.column_stack([two, two[:, 0] ^ two[:, 1]])  # of which each pair is even
    table = measured(rows, (2, 2, 2), price("4"))

    made = fit(job(table), time.monotonic).tables[0].bins

    assert max(distances(rows, made, table)) < 0.01
    assert np.mean((made[:, 0] ^ made[:, 1]) == made[:, 2]) < 0.9, "in the data it is always so"


def test_what_three_columns_do_together_is_kept_where_it_is_measured() -> None:
    random = np.random.default_rng(1)
    two = random.integers(0, 2, size=(20_000, 2))
    rows = np.column_stack([two, two[:, 0] ^ two[:, 1]])
    table = measured(rows, (2, 2, 2), price("4"), wanted=[(0, 1, 2)])

    fitted = fit(job(table), time.monotonic)
    made = fitted.tables[0].bins

    assert max(distances(rows, made, table)) < 0.01
    assert np.mean((made[:, 0] ^ made[:, 1]) == made[:, 2]) > 0.99
    assert [len(pair.columns) for pair in fitted.pairs] == [2, 2, 2, 3]


def test_within_a_bin_values_are_even() -> None:
    found = values_of((Between(0, 99, Fraction(1), INT4),), np.zeros(20_000, dtype=np.int64), np.random.default_rng(1))

    assert abs(float(np.median([int(str(text)) for text in found])) - 49.5) < 3, "whatever the median in the data is"


def test_cells_that_few_rows_have_are_empty_or_of_noise_alone() -> None:
    rows = np.zeros((20_000, 2), dtype=np.int64)
    rows[:3] = [[7, 9], [8, 3], [5, 5]]
    table = measured(rows, (10, 10), price("0.25"))

    made = fit(job(table), time.monotonic).tables[0].bins

    rare = {(7, 9), (8, 3), (5, 5)}
    shown = {(int(one), int(two)) for one, two in made if one or two}
    assert shown != rare


def test_what_one_person_does_over_several_rows_is_lost() -> None:
    """In the data everybody keeps to one channel, and synthetic rows of a class are dealt out to its people."""
    people, number = 2_000, 4
    channels = np.repeat(np.arange(people) % 2, number).reshape(-1, 1)
    count = Column("count(orders) by 3", tuple(Between(low, low, Fraction(1), INT4) for low in (0, number)))
    columns = (Column("city", (Label("a"),)), count)
    parents = np.column_stack([np.zeros(people, dtype=np.int64), np.ones(people, dtype=np.int64)])
    children = np.column_stack([np.zeros(len(channels), dtype=np.int64), channels])

    found, _ = link(children, parents, Parent(0, ((0, 0),), 1, number, "id"), columns, np.random.default_rng(1))

    web, store = (set(found[channels[:, 0] == channel].tolist()) for channel in (0, 1))
    assert len(web & store) > people / 2, "in the data nobody has both"
