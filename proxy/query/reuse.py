"""What need not be asked again: measures over equal blocks that were released with enough ε and are still fresh.

Several releases of a measure that are on the analyst's account serve together, as their mean by inverse variance, which
is computed from what he has. So do those that a statement adds to the account, unless it asks for a new one alone: what
is shown once is shown again until somebody buys more, or some of it is not fresh any more.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from proxy.query.asker import Asker
from proxy.query.rulebook import Rulebook
from rules.ledger.store import Found, KeptRelease, LedgerStore, Release, Wanted
from rules.noise.additive import Reading, combined, noise_of, noise_paid
from rules.noise.cost import Mechanism, mechanism_of, mechanism_of_ladder
from rules.noise.ladder import settled
from rules.noise.law import Law
from rules.noise.measures import Block, Choice, Ladder, Measure, PrivateGroups
from rules.noise.release import Group, Noised, known_groups

Kept = tuple[KeptRelease, ...]

_NO_GROUPS = ((),)  # a bound is one for all groups


@dataclass(frozen=True, slots=True)
class Question:
    """One block, what is known of its answer already, and what must be drawn anew."""

    block: Block  # with ladders as long as its bounds are to be chosen
    key: str
    groups: tuple[Group, ...] | None  # None: they are to be found in the data
    known: Mapping[int, Kept] = field(default_factory=dict)
    known_bounds: Mapping[int, KeptRelease] = field(default_factory=dict)  # by ladder
    bounds: tuple[tuple[Ladder, int], ...] = ()  # of the block as it is answered
    chosen: tuple[Release, ...] = ()  # the bounds that were drawn for this question
    beside: Mapping[int, Kept] = field(default_factory=dict)  # what fresh draws are combined with

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
    def kept(self) -> Kept:
        """What is shown again."""
        return (*self.known_bounds.values(), *(each for found in self.known.values() for each in found))

    @property
    def combined(self) -> int:
        """Of how many releases a measure is the mean, at most."""
        drawn = (len(found) + 1 for found in self.beside.values() if found)
        return max((*map(len, self.known.values()), *drawn), default=0)

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

    def with_others(self, found: Sequence[Kept]) -> "Question":
        """The question with what the analyst has besides each of its releases."""
        fresh = zip(self.fresh, found[len(self.chosen) :], strict=True)
        return replace(self, beside={index: kept for index, kept in fresh if self._is_summed(index)})

    def complete(self, drawn: Noised, *, group_size: int) -> Noised:
        """What was drawn and what was known, put together, with the law of the noise in it."""
        values, laws = dict[int, tuple[int, ...]](), dict[int, Law]()
        for index, measure in enumerate(self.block.measures):
            kept = self.known.get(index) or self.beside.get(index, ())
            if isinstance(measure, Choice):
                values[index] = kept[0].release.values if kept else drawn.values[index]
                continue
            readings = [_reading(each.release, measure, group_size) for each in kept]
            if index in drawn.values:
                readings.append(Reading(drawn.values[index], noise_of(measure, group_size=group_size)))
            values[index], laws[index] = combined(readings)
        return Noised(drawn.groups, values, laws)

    def _is_summed(self, index: int) -> bool:
        return isinstance(self.block.measures[index], Measure)

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
        found = await _find(wanted, ledger, asker, now)
        bounds = {index: _one_of(each, block.ladders[index].epsilon) for index, each in enumerate(found)}
        question = replace(question, known_bounds={index: kept[0] for index, kept in bounds.items() if kept})
        if question.fresh_ladders:
            return question
        question = question.settled({}, asker)
    return await _find_measures(question, ledger, asker, now)


async def _find_measures(question: Question, ledger: LedgerStore, asker: Asker, now: datetime) -> Question:
    block, groups = question.block, question.groups
    known = dict[int, Kept]()

    async def find(indexes: Sequence[int]) -> dict[int, Kept]:
        wanted = [_wanted(block.measures[index], question.key, groups) for index in indexes]
        found = await _find(wanted, ledger, asker, now)
        serving = {index: _serving(block.measures[index], each) for index, each in zip(indexes, found, strict=True)}
        return {index: kept for index, kept in serving.items() if kept}

    if isinstance(block.groups, PrivateGroups):
        known = await find([block.groups.measure])
        if not known:
            return question
        groups = known[block.groups.measure][0].release.groups
    others = [index for index in range(len(block.measures)) if index not in known]
    return replace(question, groups=groups, known={**known, **await find(others)})


async def _find(wanted: Sequence[Wanted], ledger: LedgerStore, asker: Asker, now: datetime) -> Sequence[Found]:
    return await ledger.find_releases(
        wanted,
        analyst=asker.analyst,
        budgets=asker.rulebook.budgets,
        now=now,
        since=since(asker, now),
    )


def since(asker: Asker, now: datetime) -> datetime:
    """From when on a release is fresh."""
    return now - asker.rulebook.policy.fresh_for


def _serving(measure: Measure | Choice, found: Found) -> Kept:
    """What serves a measure at no cost, or at that of one release of others'; nothing where it must be drawn.

    Whatever is on the analyst's account then is put together. What others paid for is not, before it is.
    """
    if isinstance(measure, Choice):
        return _one_of(found, measure.epsilon)
    asked, other = noise_of(measure, group_size=1).precision, _worth_its_price(found.other, measure.epsilon)
    own = max(_by_groups(found.own), key=lambda kept: _precision(measure, kept), default=())
    if _precision(measure, own) >= asked:
        return own
    if other is None or _precision(measure, (other,)) < asked:
        return ()
    return (other, *(each for each in found.own if each.release.groups == other.release.groups))


def _one_of(found: Found, epsilon: Decimal) -> Kept:
    """A choice cannot be averaged: of what the analyst has the least that is enough, or else what others have."""
    strengths = {each: each.release.mechanism.strength for each in found.own}
    enough = (each for each in found.own if strengths[each] >= epsilon)
    best = min(enough, key=lambda each: (strengths[each], -each.id), default=_worth_its_price(found.other, epsilon))
    return () if best is None else (best,)


def _worth_its_price(other: KeptRelease | None, epsilon: Decimal) -> KeptRelease | None:
    """One of an earlier period costs the dataset too, so it is not taken where it is dearer than what is asked."""
    if other is None or other.shared or other.release.mechanism.strength <= epsilon:
        return other
    return None


def _by_groups(kept: Kept) -> Iterable[Kept]:
    """Releases over different groups are not combined. Of equally good lists the newest comes first."""
    lists: dict[tuple[Group, ...], list[KeptRelease]] = {}
    for each in sorted(kept, key=lambda each: -each.id):
        lists.setdefault(each.release.groups, []).append(each)
    return map(tuple, lists.values())


def _reading(release: Release, measure: Measure, group_size: int) -> Reading:
    return Reading(release.values, noise_paid(measure, release.mechanism, group_size=group_size))


def _precision(measure: Measure, kept: Kept) -> Fraction:
    """Of the mean of these releases."""
    noises = (noise_paid(measure, each.release.mechanism, group_size=1) for each in kept)
    return sum((each.precision for each in noises), Fraction(0))


def _wanted(measure: Measure | Choice, key: str, groups: tuple[Group, ...] | None) -> Wanted:
    return Wanted(key, _measure_key(measure), measure.epsilon, groups)


def _measure_key(measure: Measure | Choice) -> str:
    """The sensitivity belongs to it: a measure bounded otherwise is another one."""
    return f"{measure.name} within {measure.sensitivity}"


def _ladder_key(ladder: Ladder) -> str:
    return f"bound of {ladder.name} up to {ladder.rungs[-1]}"
