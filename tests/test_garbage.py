"""What a process has when it begins to serve is not looked through again."""

import subprocess
import sys

LOOKED_THROUGH = """
import gc
from proxy.garbage import NEW_OBJECTS, look_seldom

kept = [[number] for number in range(1_000)]
look_seldom()
assert not any(one is kept for one in gc.get_objects()) and gc.get_freeze_count() > 1_000
assert gc.get_threshold()[0] == NEW_OBJECTS

made = []
made.append(made)  # refers to itself alone, once this name is gone
del made
assert gc.collect() == 1

look_seldom()  # again: of what was there, nothing is lost
assert len(kept) == 1_000
"""


def test_only_what_is_new_is_looked_through() -> None:
    """In a process of its own, whose collector is nobody else's."""
    done = subprocess.run([sys.executable, "-c", LOOKED_THROUGH], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
