"""A proxy whose mechanisms are held: one world writes down what they release, the other releases the same.

    python -m tests.privacy.replay.mechanisms FOLDER WORLD COMMAND ...

This is `noisegate COMMAND ...` with some functions replaced from outside; the product has no switch for it. Held are
the noised numbers of known groups, the noised units of groups that the data have, chosen candidates, largest groups and
bounds, reports of cut rows, and the counts of synopses. A group of the data that the leader has not is held below every
threshold. Each mechanism still reads its own rows and draws before it is overruled, so whatever fails on a row fails
here too. Clock and names of sessions are the same in both worlds.
"""

import itertools
import os
import pickle
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from threading import Lock, local
from types import SimpleNamespace
from typing import TypeVar
from unittest.mock import patch

from proxy.engines.postgres.snapshots import PostgresSnapshot
from proxy.execute import chosen_bounds, clock, execute_private
from proxy.session import sessions
from proxy.twin import hardening
from proxy.twin.own_objects import create_moment
from proxy.twin.steps import Step
from rules.kernel.statement import Bounded, Marginals, Tally
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import LARGEST_RESULT, Noise, OpenDPNoise
from rules.mechanisms.release_plan import Block, Ladder, PrivateGroups, Top
from rules.release import bound_ladder, release
from rules.release.keys import Key
from rules.release.release import Draws, Noised, Row
from rules.synopses import release as synopsis_release
from rules.synopses.release import Measured

LEADER, FOLLOWER = "leader", "follower"
TAPE, CLOCK = "tape", "clock"

Outcome = TypeVar("Outcome")
Patch = tuple[object, str, object]  # whose attribute, its name, what stands there instead


def steps_of(folder: Path, world: str) -> Path:
    """Name the file of what a world asked its mechanisms and its database, in order."""
    return folder / f"{world}.steps"


@dataclass
class Tape:
    """What mechanisms released, by what was asked of them and how often that had been asked before."""

    folder: Path
    world: str
    _outcomes: dict[tuple[str, int], object] = field(default_factory=dict)
    _asked: Counter[str] = field(default_factory=Counter)
    _read: int = 0
    _turn: Lock = field(default_factory=Lock)

    def note(self, *step: object) -> None:
        """Write down a step, which must be the same in both worlds."""
        with steps_of(self.folder, self.world).open("a", encoding="utf-8") as file:
            file.write(f"{step!r}\n")

    def now(self) -> datetime:
        return datetime.fromisoformat((self.folder / CLOCK).read_text())

    def held(self, asked: tuple[object, ...], mechanism: Callable[[], Outcome]) -> Outcome:
        """Run a mechanism, and return what the leader released."""
        own = mechanism()
        with self._turn:
            words = repr(asked)
            key = words, self._asked[words]
            self._asked[words] += 1
            self.note("mechanism", *asked)
            if self.world == LEADER:
                with (self.folder / TAPE).open("ab") as file:
                    pickle.dump((key, own), file)
                return own
            self._follow()
            outcome = self._outcomes.get(key, own)
            if key not in self._outcomes:
                self.note("the leader was not asked this before", *asked)
        assert isinstance(outcome, type(own))
        return outcome

    def _follow(self) -> None:
        with (self.folder / TAPE).open("rb") as file:
            end = os.fstat(file.fileno()).st_size
            file.seek(self._read)
            while file.tell() < end:
                key, outcome = pickle.load(file)
                self._outcomes[key] = outcome
            self._read = file.tell()


@contextmanager
def held(tape: Tape) -> Iterator[None]:
    """Hold all mechanisms of this process, its clock and the names of its sessions."""
    names = itertools.count(1)

    def moment(prefix: str) -> Iterator[Step]:
        """What now() is in a statement over protected rows."""
        for step in create_moment(prefix):
            yield Step(step.sql.replace("pg_catalog.now()", f"timestamptz '{tape.now().isoformat()}'"))

    with ExitStack() as stack:
        for place, name, function in (
            *held_groups(tape),
            *held_choices(tape),
            (synopsis_release, "_noised", held_marginal(tape)),
            (PostgresSnapshot, "run", noted_run(tape)),
            (clock, "system_clock", tape.now),
            (hardening, "create_moment", moment),
            (sessions, "secrets", SimpleNamespace(token_hex=lambda size: f"{next(names):0{2 * size}x}")),
        ):
            stack.enter_context(patch.object(place, name, function))
        yield


def held_groups(tape: Tape) -> Sequence[Patch]:
    """Noised numbers of known groups, and noised units of groups that are found."""
    searching, numbers, find = local(), release._noise, release._find

    def held_numbers(
        block: Block, exact: Mapping[Key, Sequence[int]], keys: Sequence[Key | None], draws: Draws
    ) -> dict[int, tuple[int, ...]]:
        measures = [block.measures[index] for index in sorted(draws)]

        def noised() -> dict[int, tuple[int, ...]]:
            return numbers(block, exact, keys, draws)

        if not getattr(searching, "groups", False):
            return tape.held(("numbers", block.canonical, measures, keys), noised)
        ((index, own),) = noised().items()
        units = tape.held(("units", block.canonical, measures), lambda: dict(zip(keys, own, strict=True)))
        return {index: tuple(units.get(key, -LARGEST_RESULT) for key in keys)}

    def held_find(
        block: Block, groups: PrivateGroups, rows: Iterable[Row], noise: Noise, group_size: int, codec: str
    ) -> tuple[Mapping[Key, Sequence[int]], list[Key], Noised]:
        searching.groups = True
        try:
            return find(block, groups, rows, noise, group_size, codec)
        finally:
            searching.groups = False

    return (release, "_noise", held_numbers), (release, "_find", held_find)


def held_choices(tape: Tape) -> Sequence[Patch]:
    """Candidates, largest groups, bounds, and reports of what a bound has cut."""
    choose, choose_top = OpenDPNoise.choose, OpenDPNoise.choose_top

    def held_choose(self: OpenDPNoise, scores: Sequence[int], *, sensitivity: int, epsilon: Decimal) -> int:
        asked = "choice", len(scores), sensitivity, epsilon
        return tape.held(asked, lambda: choose(self, scores, sensitivity=sensitivity, epsilon=epsilon))

    def held_top(self: OpenDPNoise, scores: Sequence[int], top: Top, *, group_size: int) -> tuple[int, ...]:
        asked = "largest", len(scores), top, group_size
        return tape.held(asked, lambda: choose_top(self, scores, top, group_size=group_size))

    def held_bound(ladder: Ladder, heights: Sequence[int], drawn: Sequence[int]) -> int:
        return tape.held(("bound", ladder), lambda: bound_ladder.choose_bound(ladder, heights, drawn))

    def held_report(block: Block, rows: Iterable[Row], drawn: int) -> int:
        asked = "report", block.canonical, block.statement.rows_per_unit
        return tape.held(asked, lambda: bound_ladder.release_report(block, rows, drawn))

    return (
        (OpenDPNoise, "choose", held_choose),
        (OpenDPNoise, "choose_top", held_top),
        (chosen_bounds, "choose_bound", held_bound),
        (execute_private, "release_report", held_report),
    )


def held_marginal(tape: Tape) -> Callable[..., tuple[int, ...]]:
    """The counts of a synopsis."""
    noised = synopsis_release._noised

    def held(
        table: Measured, number: int, epsilon: Decimal, price: Mechanism, noise: Noise, group_size: int
    ) -> tuple[int, ...]:
        asked = "marginal", table.statement.sql, number, epsilon, price, group_size
        return tape.held(asked, lambda: noised(table, number, epsilon, price, noise, group_size))

    return held


def noted_run(tape: Tape) -> Callable[..., Awaitable[Sequence[Row]]]:
    """What is read in the real database."""
    run = PostgresSnapshot.run

    async def noted(self: PostgresSnapshot, statement: Bounded | Marginals | Tally) -> Sequence[Row]:
        tape.note("inner", statement.sql)
        return await run(self, statement)

    return noted


def run(command: Sequence[str]) -> int:
    """Run a command of ours under what is held; its modules take the clock by name."""
    from proxy.cli import main

    return main(command)


if __name__ == "__main__":
    folder, world, *command = sys.argv[1:]
    with held(Tape(Path(folder), world)):
        sys.exit(run(command))
