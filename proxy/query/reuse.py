"""What need not be asked again: measures over equal blocks that were released with enough ε and are still fresh."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proxy.query.asker import Asker
from proxy.query.rulebook import Rulebook
from rules.ledger.store import KeptRelease, LedgerStore, Release
from rules.noise.cost import mechanism_of
from rules.noise.measures import Block, Choice, Measure, PrivateGroups
from rules.noise.release import Group, Noised, known_groups


@dataclass(frozen=True, slots=True)
class Question:
    """One block, what is known of its answer already, and what must be drawn anew."""

    block: Block
    key: str
    groups: tuple[Group, ...] | None  # None: they are to be found in the data
    known: Mapping[int, KeptRelease] = field(default_factory=dict)

    @property
    def fresh(self) -> tuple[int, ...]:
        """The measures to draw."""
        return tuple(index for index in range(len(self.block.measures)) if index not in self.known)

    @property
    def sights(self) -> tuple[int, ...]:
        return tuple(kept.id for kept in self.known.values())

    def complete(self, drawn: Noised) -> Noised:
        """What was drawn, and what was known."""
        known = {index: kept.release.values for index, kept in self.known.items()}
        return Noised(drawn.groups, {**known, **drawn.values})

    def releases(self, drawn: Noised) -> list[Release]:
        """What was drawn, as the ledger keeps it: released cells only."""
        return [self._release(index, drawn) for index in self.fresh]

    def _release(self, index: int, drawn: Noised) -> Release:
        name, cost = _measure_key(self.block.measures[index]), mechanism_of(self.block, index)
        return Release(self.key, name, cost, drawn.groups, drawn.values[index])


def block_key(block: Block, rulebook: Rulebook, time_zone: str) -> str:
    """Equal keys mean equal numbers: the same tree under the same rules, schema and time zone."""
    return hashlib.sha256(f"{rulebook.fingerprint}\n{time_zone}\n{block.canonical}".encode()).hexdigest()


def nothing_known(block: Block, key: str) -> Question:
    """A block to ask anew."""
    return Question(block, key, known_groups(block))


async def find_known(block: Block, key: str, ledger: LedgerStore, asker: Asker, now: datetime) -> Question:
    """A block with every release that may serve it."""
    rulebook = asker.rulebook
    since = now - rulebook.policy.fresh_for
    kept = await ledger.find_releases(key, analyst=asker.analyst, budgets=rulebook.budgets, now=now, since=since)
    return choose(block, key, kept)


def choose(block: Block, key: str, kept: Sequence[KeptRelease]) -> Question:
    """For each measure the release that is paid already, or else the cheapest that has the ε that was asked for.

    Groups found in the data are known only with the measure that found them; other measures must be over that list.
    """
    groups, known = known_groups(block), {}
    if isinstance(block.groups, PrivateGroups):
        units = _best(block.measures[block.groups.measure], kept, None)
        if units is None:
            return Question(block, key, None)
        groups, known = units.release.groups, {block.groups.measure: units}
    for index, measure in enumerate(block.measures):
        found = known.get(index) or _best(measure, kept, groups)
        if found is not None:
            known[index] = found
    return Question(block, key, groups, known)


def _best(
    measure: Measure | Choice, kept: Sequence[KeptRelease], groups: tuple[Group, ...] | None
) -> KeptRelease | None:
    wanted = _measure_key(measure)
    fitting = [
        each
        for each in kept
        if each.release.measure == wanted
        and (each.release.mechanism.epsilon or 0) >= measure.epsilon
        and (groups is None or each.release.groups == groups)
    ]
    return min(fitting, key=lambda each: (not each.paid, each.release.mechanism.epsilon, -each.id), default=None)


def _measure_key(measure: Measure | Choice) -> str:
    """The sensitivity belongs to it: a measure bounded otherwise is another one."""
    return f"{measure.name} within {measure.sensitivity}"
