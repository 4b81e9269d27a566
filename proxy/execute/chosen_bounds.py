"""Bounds of a block that are chosen before it is answered, and, where groups are found, their list before these.

The list is released first, so that bounds are chosen for the noise of so many groups. Both are charged before, and the
choice is private whatever was released: its thresholds follow from that alone.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from proxy.engines.engine import Row, Snapshot
from proxy.execute.audit import failures_of
from proxy.execute.question import Question
from proxy.execute.released_cells import block_key, measure_key
from proxy.execute.rulebook import StatementContext
from rules.accounting.store import Release
from rules.mechanisms.additive import mechanism_of
from rules.mechanisms.draw import Noise
from rules.mechanisms.release_plan import Block, PrivateGroups
from rules.refusal import TooComplex
from rules.release.bound_ladder import choose_bound, tallies
from rules.release.keys import Group
from rules.release.release import Noised, plain_measure, release_list


async def list_groups(
    question: Question,
    snapshot: Snapshot,
    context: StatementContext,
    noise: Noise,
    run: Callable[[int, Callable[[], Noised]], Awaitable[Noised]],
) -> Noised | None:
    """Find the groups before bounds are chosen; `run` takes what computes for long to a thread.

    None where the groups are known, or where how they are found depends on a bound: as long as a unit counts in one of
    them, it does not.
    """
    block, key = question.block, question.block.groups
    if question.groups is not None or not isinstance(key, PrivateGroups):
        return None
    units = plain_measure(block, key.measure)
    if units.sensitivity != units.factor:
        return None
    statement, group_size = context.rulebook.kernel.bounded(block.statement), context.rulebook.policy.group_size
    with failures_of(statement.sql):
        rows: Sequence[Row] = await snapshot.run(statement)
        return await run(
            len(rows),
            partial(release_list, block, key, rows, noise, group_size=group_size, codec=snapshot.codec),
        )


async def choose_bounds(
    question: Question,
    climbs: Mapping[int, Sequence[int]],
    listed: Noised | None,
    snapshot: Snapshot,
    context: StatementContext,
) -> Question:
    """Choose the bounds that are not known; with them the block is one as any other."""
    block, groups = question.block, question.groups if listed is None else listed.groups
    ladders = block.ladders if groups is None else tuple(ladder.over(len(groups)) for ladder in block.ladders)
    assert block.tally is not None, "bounds are chosen from a tally"
    tally = context.rulebook.kernel.tally(block.tally)
    with failures_of(tally.sql):
        counted = tallies(block, await snapshot.run(tally))
        chosen = {index: choose_bound(ladders[index], counted[index], drawn) for index, drawn in climbs.items()}
    return replace(question.settled(chosen, context), groups=groups)


async def find_groups(
    question: Question,
    finder: Block,
    snapshot: Snapshot,
    context: StatementContext,
    noise: Noise,
    run: Callable[[int, Callable[[], Noised]], Awaitable[Noised]],
) -> Question:
    """Find the groups by units that count in one of them each; then the question is one over their list."""
    assert isinstance(finder.groups, PrivateGroups), "groups are found by a threshold"
    rulebook = context.rulebook
    statement, group_size = rulebook.kernel.bounded(finder.statement), rulebook.policy.group_size
    with failures_of(statement.sql):
        rows: Sequence[Row] = await snapshot.run(statement)
        found = partial(release_list, finder, finder.groups, rows, noise, group_size=group_size, codec=snapshot.codec)
        listed = await run(len(rows), found)
    check_groups(listed.groups, rulebook.policy.groups_limit)
    cost = mechanism_of(finder, finder.groups.measure)
    name = measure_key(finder.measures[finder.groups.measure])
    release = Release(block_key(finder, rulebook), name, cost, listed.groups, listed.values[finder.groups.measure])
    return replace(question, chosen=(release,)).over(listed.groups, context)


def check_groups(groups: Sequence[Group], limit: int) -> None:
    """Lists known beforehand were checked by the planner. That too many groups were released is told by noise alone."""
    if len(groups) > limit:
        raise TooComplex(
            f"more than {limit} groups were found, and groups_limit in the rules file allows no more",
            hint="Group by fewer or coarser values. The charge is not refunded.",
        )
