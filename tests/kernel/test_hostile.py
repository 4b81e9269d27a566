"""Whatever words a script has, no unit moves its numbers further than the kernel says."""

import pytest

from tests.kernel.hostile import STATEMENTS, check_hostile
from tests.kernel.world import World


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_hostile_statement_keeps_what_is_claimed(world: World, name: str) -> None:
    check_hostile(world, STATEMENTS[name])
