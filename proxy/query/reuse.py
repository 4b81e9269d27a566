"""What need not be asked again: measures over equal blocks that were released with enough ε and are still fresh."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from proxy.query.asker import Asker
from proxy.query.rulebook import Rulebook
from rules.ledger.store import KeptRelease, LedgerStore, Release, Wanted
from rules.noise.cost import Mechanism, mechanism_of, mechanism_of_ladder
from rules.noise.ladder import settled
from rules.noise.measures import Block, Choice, Ladder, Measure, PrivateGroups
from rules.noise.mechanism import laplace_scale
from rules.noise.release import Group, Noised, known_groups

_NO_GROUPS = ((),)  # a bound is one for all groups


@dataclass(frozen=True, slots=True)
class Question:
    """One block, what is known of its answer already, and what must be drawn anew."""

    block: Block  # with ladders as long as its bounds are to be chosen
    key: str
    groups: tuple[Group, ...] | None  # None: they are to be found in the data
    known: Mapping[int, KeptRelease] = field(default_factory=dict)
    known_bounds: Mapping[int, KeptRelease] = field(default_factory=dict)  # by ladder
    bounds: tuple[tuple[Ladder, int], ...] = ()  # of the block as it is answered
    chosen: tuple[Release, ...] = ()  # the bounds that were drawn for this question

    @property
    def fresh(self) -> tuple[int, ...]:
        """The measures to draw."""
        return tuple(index for index in range(len(self.block.measures)) if index not in self.known)

    @property
    def fresh_ladders(self) -> tuple[int, ...]:
        """The ladders to choose on."""
        return tuple(index for index in range(len(self.block.ladders)) if index not in self.known_bounds)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What is drawn anew. A measure costs the same whatever bound is chosen for it."""
        ladders = tuple(mechanism_of_ladder(self.block.ladders[index]) for index in self.fresh_ladders)
        return ladders + tuple(mechanism_of(self.block, index) for index in self.block.paying(self.fresh))

    @property
    def kept(self) -> tuple[KeptRelease, ...]:
        """What is shown again."""
        return (*self.known_bounds.values(), *self.known.values())

    def settled(self, chosen: Mapping[int, int], asker: Asker) -> "Question":
        """The question with bounds on all its ladders: those that are known, and those that were chosen now."""
        before = {index: kept.release.values[0] for index, kept in self.known_bounds.items()}
        bounds = tuple({**before, **chosen}[index] for index in range(len(self.block.ladders)))
        block = settled(self.block, bounds)
        return replace(
            self,
            block=block,
            key=block_key(block, asker.rulebook),
            bounds=tuple(zip(self.block.ladders, bounds, strict=True)),
            chosen=tuple(self._choice(self.block.ladders[index], bound) for index, bound in chosen.items()),
        )

    def _choice(self, ladder: Ladder, bound: int) -> Release:
        return Release(self.key, _ladder_key(ladder), mechanism_of_ladder(ladder), _NO_GROUPS, (bound,))

    def complete(self, drawn: Noised, *, group_size: int) -> Noised:
        """What was drawn, and what was known: each with the noise that it has."""
        known = {index: kept.release.values for index, kept in self.known.items()}
        epsilons = {index: kept.release.mechanism.epsilon for index, kept in self.known.items()}
        scales = {
            index: laplace_scale(measure.sensitivity * group_size, epsilons.get(index) or measure.epsilon)
            for index, measure in enumerate(self.block.measures)
            if self.block.bars and isinstance(measure, Measure)
        }
        return Noised(drawn.groups, {**known, **drawn.values}, scales)

    def releases(self, drawn: Noised) -> list[Release]:
        """What was drawn, as the ledger keeps it: released cells only."""
        return [*self.chosen, *(self._release(index, drawn) for index in self.fresh)]

    def _release(self, index: int, drawn: Noised) -> Release:
        name, cost = _measure_key(self.block.measures[index]), mechanism_of(self.block, index)
        return Release(self.key, name, cost, drawn.groups, drawn.values[index])


def block_key(block: Block, rulebook: Rulebook) -> str:
    """Equal keys mean equal numbers: the same tree under the same rules and schema."""
    return hashlib.sha256(f"{rulebook.fingerprint}\n{block.canonical}".encode()).hexdigest()


def nothing_known(block: Block, key: str) -> Question:
    """A block to ask anew."""
    return Question(block, key, known_groups(block))


async def find_known(block: Block, key: str, ledger: LedgerStore, asker: Asker, now: datetime) -> Question:
    """A block with every release that may serve it: paid for already, or else the cheapest with the ε asked for.

    Groups found in the data are known only with the measure that found them; other measures must be over that list.
    """
    question = nothing_known(block, key)
    if block.ladders:
        wanted = [Wanted(key, _ladder_key(ladder), ladder.epsilon, _NO_GROUPS) for ladder in block.ladders]
        question = replace(question, known_bounds=await _find(range(len(wanted)), wanted, ledger, asker, now))
        if question.fresh_ladders:
            return question
        question = question.settled({}, asker)
    return await _find_measures(question, ledger, asker, now)


async def _find_measures(question: Question, ledger: LedgerStore, asker: Asker, now: datetime) -> Question:
    block, groups = question.block, question.groups
    known = dict[int, KeptRelease]()

    async def find(indexes: Sequence[int]) -> dict[int, KeptRelease]:
        wanted = [_wanted(block.measures[index], question.key, groups) for index in indexes]
        return await _find(indexes, wanted, ledger, asker, now)

    if isinstance(block.groups, PrivateGroups):
        known = await find([block.groups.measure])
        if not known:
            return question
        groups = known[block.groups.measure].release.groups
    others = [index for index in range(len(block.measures)) if index not in known]
    return replace(question, groups=groups, known={**known, **await find(others)})


async def _find(
    indexes: Sequence[int], wanted: Sequence[Wanted], ledger: LedgerStore, asker: Asker, now: datetime
) -> dict[int, KeptRelease]:
    found = await ledger.find_releases(
        wanted,
        analyst=asker.analyst,
        budgets=asker.rulebook.budgets,
        now=now,
        since=now - asker.rulebook.policy.fresh_for,
    )
    return {index: kept for index, kept in zip(indexes, found, strict=True) if kept is not None}


def _wanted(measure: Measure | Choice, key: str, groups: tuple[Group, ...] | None) -> Wanted:
    return Wanted(key, _measure_key(measure), measure.epsilon, groups)


def _measure_key(measure: Measure | Choice) -> str:
    """The sensitivity belongs to it: a measure bounded otherwise is another one."""
    return f"{measure.name} within {measure.sensitivity}"


def _ladder_key(ladder: Ladder) -> str:
    return f"bound of {ladder.name} up to {ladder.rungs[-1]}"
