"""What the replay keeps of statements, and for how long; and what a planner is told of them."""

import pytest

from rules.kernel.statement import Numbers
from rules.refusal import Refusal
from rules.replay import DraftingKernel, Kept, Kernel
from tests.kernel.shapes import SHAPES
from tests.kernel.world import Table, World

VISITS = Table("visits", 10)


class Maker:
    """Writes in capitals, and notes what it was asked for. Each letter takes one of ten places."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.kept = Kept[str, str](self._make, len, room=10)

    def _make(self, key: str) -> str:
        self.asked.append(key)
        return key.upper()


def test_what_was_made_is_made_once() -> None:
    maker = Maker()

    assert [maker.kept(key) for key in ("abc", "defg", "abc")] == ["ABC", "DEFG", "ABC"]
    assert maker.asked == ["abc", "defg"]


def test_what_is_too_large_together_is_forgotten_and_made_again() -> None:
    maker = Maker()
    keys = ("abcdef", "ghijkl", "ghijkl", "abcdef", "m" * 20, "m" * 20, "n")

    assert [maker.kept(key) for key in keys] == [key.upper() for key in keys]
    assert maker.asked == ["abcdef", "ghijkl", "abcdef", "m" * 20, "n"]


@pytest.mark.parametrize("name", SHAPES)
def test_a_planner_is_told_what_the_statement_enforces(name: str, world: World) -> None:
    statement = SHAPES[name].statement
    try:
        made = Kernel(world.ground).bounded(statement)
    except Refusal:
        assert SHAPES[name].is_refused  # by its text, which the process that holds the budget writes
        return

    assert DraftingKernel(world.ground).numbers(statement) == Numbers(made.keys, made.measures, made.threshold)
