"""How often a process looks for values that only refer to each other; all others go with the last that has them."""

import gc
from typing import Final

NEW_OBJECTS: Final = 5_000  # between two looks, instead of 700: each takes a tenth of a millisecond


def look_seldom(new_objects: int = NEW_OBJECTS) -> None:
    """Let what is there now stay, and be looked through no more: of a process that begins to serve, that is nearly all.

    What is new is looked through after so many objects.
    """
    gc.set_threshold(new_objects)
    gc.unfreeze()
    gc.collect()
    gc.freeze()
