"""A held proxy with a fault in it, which a replay has to find: `… faults FOLDER WORLD FAULT COMMAND …`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Final
from unittest.mock import patch

from proxy.engines.postgres.snapshots import PostgresSnapshot
from proxy.execute import audit, notices, service
from proxy.execute.question import Question
from proxy.execute.rulebook import Rulebook, StatementContext
from rules.accounting.store import Receipt
from rules.kernel.statement import Bounded, Marginals, Tally
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.release_plan import Block
from rules.release import release
from rules.release.keys import Group, Key
from tests.privacy.replay import mechanisms
from tests.privacy.replay.mechanisms import Patch, Tape, held

_true_rows: list[Sequence[bytes | None]] = []  # of the newest inner statement


def _sum() -> int:
    return sum(int(row[-1] or 0) for row in _true_rows)


def counts_true_rows_in_a_notice() -> Patch:
    told = notices.cost_notice

    def notice(receipt: Receipt, margins: str, rulebook: Rulebook) -> str:
        return f"{told(receipt, margins, rulebook)}; {_sum()} were read"

    return service, "cost_notice", notice


def orders_found_groups_by_true_numbers() -> Patch:
    def in_order(block: Block, key: Key, group: Group) -> int:
        return next(-int(row[len(key)] or 0) for row in _true_rows if tuple(row[: len(key)]) == key)

    return release, "in_order", in_order


def prices_by_the_last_true_size() -> Patch:
    price = vars(Question)["mechanisms"].fget

    def dearer(self: Question) -> Sequence[Mechanism]:
        return tuple(
            Mechanism.pure((each.epsilon or 0) + Decimal(_sum() % 1000) / 1_000_000, each.delta) for each in price(self)
        )

    return Question, "mechanisms", property(dearer)


def logs_the_true_size() -> Patch:
    told = audit.answered

    def answered(context: StatementContext, receipt: Receipt, *, fresh: int, reused: int) -> None:
        told(context, receipt, fresh=fresh + _sum(), reused=reused)

    return audit, "answered", answered


def fails_on_a_value() -> Patch:
    read = release._read

    def failing(row: Sequence[bytes | None], width: int, expected: int) -> tuple[Key, tuple[int, ...] | None]:
        if row[0] == b"platinum":
            raise ValueError("a label that is not known")
        return read(row, width, expected)

    return release, "_read", failing


FAULTS: Final[Mapping[str, Callable[[], Patch]]] = {
    fault.__name__: fault
    for fault in (
        counts_true_rows_in_a_notice,
        orders_found_groups_by_true_numbers,
        prices_by_the_last_true_size,
        logs_the_true_size,
        fails_on_a_value,
    )
}


def plant(fault: str, stack: ExitStack) -> None:
    """Let the proxy remember the true rows, and use them."""
    own_run = PostgresSnapshot.run

    async def watched(
        self: PostgresSnapshot, statement: Bounded | Marginals | Tally
    ) -> Sequence[Sequence[bytes | None]]:
        _true_rows[:] = rows = await own_run(self, statement)
        return rows

    stack.enter_context(patch.object(PostgresSnapshot, "run", watched))
    stack.enter_context(patch.object(*FAULTS[fault]()))


if __name__ == "__main__":
    folder, world, fault, *command = sys.argv[1:]
    with ExitStack() as planted:
        plant(fault, planted)
        planted.enter_context(held(Tape(Path(folder), world)))
        sys.exit(mechanisms.run(command))
