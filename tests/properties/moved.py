"""How far one unit moves all that is asked of the real database for a statement, against what is claimed of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rules.noise.ladder import score_rungs
from rules.noise.measures import Block, Choice, Measure, PrivateGroups
from tests.properties.planning import Exact, Lab, overmoved
from tests.properties.test_pivots import joint_distance, vectors_in

Histogram = Counter[tuple[object, ...]]


def broken_claims(lab: Lab, block: Block, leave: str) -> list[str]:
    """What a block claims of one unit and its rows deny, when the script takes this unit away."""
    whole = _asked(lab, block)
    with left_out(lab, leave):
        without = _asked(lab, block)
    return list(_broken(block, whole, without))


def broken_choices(lab: Lab, block: Block, leave: str) -> list[str]:
    """Ladders whose scores move both ways when a unit leaves, or one by more than the choice is private for."""
    whole = lab.tallies(block)
    with left_out(lab, leave):
        without = lab.tallies(block)
    broken = []
    for ladder, before, after in zip(block.ladders, whole, without, strict=True):
        scores = zip(score_rungs(ladder, before), score_rungs(ladder, after), strict=True)
        moved = {other - one for one, other in scores}
        if not (moved <= {0, 2} or moved <= {0, -2}):
            broken.append(f"{ladder.name}: {moved}")
    return broken


@contextmanager
def left_out(lab: Lab, leave: str) -> Iterator[None]:
    with lab.connection.transaction(force_rollback=True):
        lab.script(leave)
        yield


def told_by_place(lab: Lab, block: Block, tables: Iterable[str]) -> bool:
    """Whether a block says something else of the same rows once they lie in the other direction."""
    there = _asked(lab, block)
    with left_out(lab, "; ".join(map(_REVERSED.format, tables))):
        return there != _asked(lab, block)


_REVERSED = """CREATE TABLE kept AS SELECT * FROM ONLY {0} ORDER BY ctid DESC; DELETE FROM ONLY {0};
    INSERT INTO {0} SELECT * FROM kept; DROP TABLE kept"""


def _asked(lab: Lab, block: Block) -> tuple[Exact, list[Histogram]]:
    """All numbers of a block, and the histograms that its choices look at."""
    choices = [measure for measure in block.measures if isinstance(measure, Choice)]
    return lab.exact(block), [_histogram(lab, choice) for choice in choices]


def _histogram(lab: Lab, choice: Choice) -> Histogram:
    return Counter({row[:-1]: row[-1] for row in lab.connection.execute(choice.sql).fetchall()})


def _broken(
    block: Block, whole: tuple[Exact, list[Histogram]], without: tuple[Exact, list[Histogram]]
) -> Iterator[str]:
    """Of measures the distance over all groups, alone and as a vector; of choices that of their histograms."""
    sums = [measure for measure in block.measures if isinstance(measure, Measure)]
    yield from overmoved(block, whole[0], without[0])
    if len(sums) == len(block.measures):
        for vector in vectors_in(block):
            if (share := joint_distance(block, vector, whole[0], without[0])) > 1:
                yield f"measures {vector} together: {share} > 1"
    choices = (measure for measure in block.measures if isinstance(measure, Choice))
    for choice, before, after in zip(choices, whole[1], without[1], strict=True):
        if (moved := sum(abs(before[key] - after[key]) for key in before | after)) > choice.sensitivity:
            yield f"{choice.name}: {moved} > {choice.sensitivity}"
    if isinstance(block.groups, PrivateGroups):
        yield from _twice(block, sums, block.groups, whole[0], without[0])


def _twice(block: Block, sums: list[Measure], groups: PrivateGroups, whole: Exact, without: Exact) -> Iterator[str]:
    """A threshold is made for groups in each of which the unit counts once."""
    units = block.measures[groups.measure]
    assert isinstance(units, Measure)
    place = sums.index(units)
    for group in whole.keys() | without.keys():
        before, after = (exact[group][place] if group in exact else 0 for exact in (whole, without))
        if abs(before - after) > 1:
            yield f"the group {group} has {before} units, and {after} without one"
