"""How far one unit moves all that is asked of the real database for a statement, against what is claimed of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rules.kernel.bounded import PARTS
from rules.mechanisms.release_plan import Block, Choice, Measure, PrivateGroups
from tests.properties.planning import Exact, Lab, overmoved
from tests.properties.test_pivots import joint_distance, vectors_in

Histogram = Counter[tuple[object, ...]]


def broken_claims(lab: Lab, block: Block, leave: str) -> list[str]:
    """What a block claims of one unit and its rows deny, when the script takes this unit away."""
    whole, listed = all_numbers(lab, block), _over_list(lab, block)
    with left_out(lab, leave):
        without, listed_without = all_numbers(lab, block), _over_list(lab, block)
    over_list = (f"over a list that is known: {found}" for found in overmoved(block, listed, listed_without))
    return [*_broken(block, whole, without), *over_list]


def broken_choices(lab: Lab, block: Block, leave: str) -> list[str]:
    """Ladders of which a step becomes higher when a unit leaves, or is lower by more than the choice is private for."""
    whole = lab.tallies(block)
    with left_out(lab, leave):
        without = lab.tallies(block)
    broken = []
    for ladder, before, after in zip(block.ladders, whole, without, strict=True):
        moved = [one - other for one, other in zip(before, after, strict=True)]
        if not all(0 <= number <= PARTS for number in moved):
            broken.append(f"{ladder.name}: {moved}")
    return broken


@contextmanager
def left_out(lab: Lab, leave: str) -> Iterator[None]:
    with lab.connection.transaction(force_rollback=True):
        lab.script(leave)
        yield


def told_by_place(lab: Lab, block: Block, tables: Iterable[str]) -> bool:
    """Whether a block says something else of the same rows once they lie in the other direction."""
    there = all_numbers(lab, block)
    with left_out(lab, "; ".join(map(_REVERSED.format, tables))):
        return there != all_numbers(lab, block)


_REVERSED = """CREATE TABLE kept AS SELECT * FROM ONLY {0} ORDER BY ctid DESC; DELETE FROM ONLY {0};
    INSERT INTO {0} SELECT * FROM kept; DROP TABLE kept"""


def all_numbers(lab: Lab, block: Block) -> tuple[Exact, list[Histogram]]:
    """All numbers of a block, and the histograms that its choices look at."""
    choices = [measure for measure in block.measures if isinstance(measure, Choice)]
    return lab.exact(block), [_histogram(lab, choice) for choice in choices]


def _over_list(lab: Lab, block: Block) -> Exact:
    """All groups that there are, as a list of them that was released before would have them; of listed ones nothing."""
    if not isinstance(block.groups, PrivateGroups):
        return {}
    return lab.exact(replace(block, statement=replace(block.statement, is_list_known=True)))


def _histogram(lab: Lab, choice: Choice) -> Histogram:
    return Counter({row[:-1]: row[-1] for row in lab.connection.execute(lab.sql(choice.statement)).fetchall()})


def _broken(
    block: Block, whole: tuple[Exact, list[Histogram]], without: tuple[Exact, list[Histogram]]
) -> Iterator[str]:
    """Of measures the distance over all groups, alone and as a vector; of choices that of their histograms."""
    sums = [measure for measure in block.measures if isinstance(measure, Measure)]
    exact = whole[0], without[0]
    if isinstance(block.groups, PrivateGroups):
        yield from _candidates(block, sums, block.groups, *exact)
        exact = {group: numbers for group, numbers in whole[0].items() if group in without[0]}, without[0]
    yield from overmoved(block, *exact)
    if len(sums) == len(block.measures):
        for vector in vectors_in(block):
            if (share := joint_distance(block, vector, *exact)) > 1:
                yield f"measures {vector} together: {share} > 1"
    choices = (measure for measure in block.measures if isinstance(measure, Choice))
    for choice, before, after in zip(choices, whole[1], without[1], strict=True):
        if (moved := sum(abs(before[key] - after[key]) for key in before | after)) > choice.sensitivity:
            yield f"{choice.name}: {moved} > {choice.sensitivity}"


def _candidates(
    block: Block, sums: list[Measure], groups: PrivateGroups, whole: Exact, without: Exact
) -> Iterator[str]:
    """A threshold is made for groups in each of which the unit counts once.

    Those that are found because of it alone have the rows of others too, who count elsewhere: that these come and go
    is what the threshold hides. The other measures are bounded over the groups that are found either way.
    """
    units = block.measures[groups.measure]
    assert isinstance(units, Measure)
    place = sums.index(units)
    if not without.keys() <= whole.keys():
        yield f"groups that are found without a unit only: {without.keys() - whole.keys()}"
    moved = []
    for group in whole:
        before, after = (exact[group][place] if group in exact else 0 for exact in (whole, without))
        moved.append(abs(before - after))
        if moved[-1] > 1:
            yield f"the group {group} has {before} units, and {after} without one"
    if sum(moved) > units.sensitivity or sum(moved) > units.squared:  # 0 or 1 in each group
        yield f"{units.name}: {sum(moved)} > {units.sensitivity}"
