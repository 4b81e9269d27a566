"""A difference of two moments whose bounds are those of a calendar comes with the clamp to write."""

import pytest

from rules.frozen import replace
from rules.mechanisms.noised_outputs import Sum
from rules.mechanisms.release_plan import Measure
from tests.planner.planned import Planner

ROWS = "FROM orders AS o JOIN customers AS c ON c.id = o.customer_id"


@pytest.fixture
def dated(planner: Planner) -> Planner:
    bounded = "joined: {lower: 2020-01-01, upper: 2026-12-31}"
    return replace(planner, rules=planner.rules.replace("email: hidden", f"email: hidden\n      {bounded}"))


@pytest.mark.parametrize(
    ("aggregate", "clamp"),
    [
        ("avg(extract(epoch FROM o.ordered_at - c.joined))", "extract(epoch FROM ordered_at - joined)"),
        ("avg(extract(epoch FROM o.ordered_at - c.joined) / 3600)", "extract(epoch FROM ordered_at - joined)"),
        ("avg(o.ordered_at - c.joined)", "extract(epoch FROM ordered_at - joined)"),
        ("sum(o.ordered_at::date - c.joined::date) FILTER (WHERE o.amount > 5)", "ordered_at - joined"),
        ("sum(CASE WHEN o.amount > 5 THEN o.ordered_at::date - c.joined::date ELSE 0 END)", "ordered_at - joined"),
        ("max(o.ordered_at::date - c.joined::date)", "ordered_at - joined"),
    ],
)
def test_a_difference_within_the_bounds_of_a_calendar_has_a_proposal(
    dated: Planner, aggregate: str, clamp: str
) -> None:
    block = dated.block(f"SELECT {aggregate} {ROWS}")

    (note,) = [note for note in block.notices if "clamp it" in note]
    assert note.startswith("ordered_at - joined may be anything within ")
    assert f"as in least(greatest({clamp}, 0), " in note
    assert ("note", note) in block.explanation


@pytest.mark.parametrize(
    "aggregate",
    [
        "avg(least(greatest(extract(epoch FROM o.ordered_at - c.joined), 0), 7200))",
        "avg(least(greatest(o.ordered_at - c.joined, interval '0'), interval '2 hours'))",
        "count(*) FILTER (WHERE o.ordered_at - c.joined < interval '2 hours')",
        "avg(timestamptz '2025-01-01' - c.joined)",
        "count(DISTINCT o.ordered_at::date - c.joined::date)",
        "avg(o.amount)",
    ],
)
def test_what_is_clamped_or_only_compared_has_none(dated: Planner, aggregate: str) -> None:
    assert not [note for note in dated.block(f"SELECT {aggregate} {ROWS}").notices if "clamp it" in note]


def test_the_clamp_that_is_proposed_makes_the_noise_small(dated: Planner) -> None:
    seconds = "extract(epoch FROM o.ordered_at - c.joined)"

    wide, narrow = (
        moved(dated, sql)
        for sql in (f"SELECT sum({seconds}) {ROWS}", f"SELECT sum(least(greatest({seconds}, 0), 7200)) {ROWS}")
    )

    assert wide > 10_000 * narrow


def moved(planner: Planner, sql: str) -> float:
    """The seconds by which one customer moves a sum."""
    block = planner.block(sql)
    (measure,), (output,) = block.measures, block.outputs
    assert isinstance(measure, Measure) and isinstance(output, Sum)
    return float(measure.sensitivity * output.step / measure.factor)
