"""What need not be asked again: measures over equal blocks that were released with enough ε and are still fresh."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proxy.query.asker import Asker
from proxy.query.rulebook import Rulebook
from rules.ledger.store import KeptRelease, LedgerStore, Release, Wanted
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
    """A block with every release that may serve it: paid for already, or else the cheapest with the ε asked for.

    Groups found in the data are known only with the measure that found them; other measures must be over that list.
    """
    rulebook = asker.rulebook
    since = now - rulebook.policy.fresh_for

    async def find(indexes: Sequence[int], groups: tuple[Group, ...] | None) -> dict[int, KeptRelease]:
        wanted = [_wanted(block.measures[index], key, groups) for index in indexes]
        found = await ledger.find_releases(
            wanted, analyst=asker.analyst, budgets=rulebook.budgets, now=now, since=since
        )
        return {index: kept for index, kept in zip(indexes, found, strict=True) if kept is not None}

    groups, known = known_groups(block), dict[int, KeptRelease]()
    if isinstance(block.groups, PrivateGroups):
        known = await find([block.groups.measure], None)
        if not known:
            return Question(block, key, None)
        groups = known[block.groups.measure].release.groups
    others = [index for index in range(len(block.measures)) if index not in known]
    return Question(block, key, groups, {**known, **await find(others, groups)})


def _wanted(measure: Measure | Choice, key: str, groups: tuple[Group, ...] | None) -> Wanted:
    return Wanted(key, _measure_key(measure), measure.epsilon, groups)


def _measure_key(measure: Measure | Choice) -> str:
    """The sensitivity belongs to it: a measure bounded otherwise is another one."""
    return f"{measure.name} within {measure.sensitivity}"
