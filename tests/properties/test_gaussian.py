"""Gaussian noise is made for the L2 distance: one person moves a count of people by at most the root of the groups."""

from hypothesis import event, given
from hypothesis import strategies as st

from rules.mechanisms.additive import GaussianNoise, noise_of
from rules.mechanisms.release_plan import Measure
from rules.refusal import Refusal
from tests.properties.moved import broken_claims
from tests.properties.planning import Lab, squared_distance, thorough
from tests.support import lab as tables
from tests.support.lab import Data

KEYS = (
    "v.day", "v.kind", "v.count", "date_trunc('month', v.at)", "v.day, v.kind", "i.flag", "p.mood", "v.count, i.flag",
    "i.label",
)  # fmt: skip
UNITS = "count(DISTINCT p.id)"
ITEMS = ("", f", {UNITS} FILTER (WHERE v.count > 0)", ", count(*)", ", avg(v.count)", ", count(DISTINCT v.kind)")
SOURCE = "people AS p JOIN visits AS v ON v.person_id = p.id LEFT JOIN items AS i ON i.visit_id = v.id"


@thorough
@given(
    schema=st.integers(0, len(tables.VARIANTS) - 1),
    rows=tables.data(),
    visits=st.integers(1, 8),
    groups=st.none() | st.integers(1, 6),
    is_auto=st.booleans(),
    key=st.sampled_from(KEYS),
    item=st.sampled_from(ITEMS),
    leaver=st.sampled_from("1234"),
)
def test_one_person_moves_counts_of_people_by_at_most_the_root_of_their_groups(
    labs: tuple[Lab, ...],
    schema: int,
    rows: Data,
    visits: int,
    groups: int | None,
    is_auto: bool,
    key: str,
    item: str,
    leaver: str,
) -> None:
    lab, policy = labs[schema], tables.rules(visits, visits).model_copy(update={"noise": "gaussian"})
    with lab.connection.transaction(force_rollback=True):
        lab.script(tables.insert(rows, tables.VARIANTS[schema]))
        try:
            sql = f"SELECT {key}, {UNITS}{item} FROM {SOURCE} GROUP BY {key}"
            (block,) = lab.plan(sql, policy, groups_per_unit=groups, is_auto=is_auto).blocks
        except Refusal as refusal:
            event(f"refused: {refusal.message[:50]}")
            return
        block = lab.settled(block, [ladder.rungs[len(ladder.rungs) // 2] for ladder in block.ladders])
        whole = lab.exact(block)
        with lab.connection.transaction(force_rollback=True):
            lab.script(tables.delete(leaver))
            without = lab.exact(block)
        assert not broken_claims(lab, block, tables.delete(leaver)), lab.sql(block.statement)

    units = block.measures[0]
    assert isinstance(units, Measure) and units.squared == units.sensitivity * units.factor
    moved = squared_distance(whole, without, 0)
    event(f"{moved} of {units.squared} groups by {type(noise_of(units, group_size=1)).__name__}")
    if isinstance(noise := noise_of(units, group_size=2), GaussianNoise):
        assert 4 * moved <= noise.squared  # two people alike move it twice as far
