"""Forget what the rules keep between statements, so that what a test changes in them is seen."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rules.bind import table
from rules.kept import KeptByIdentity
from rules.sql import lower

_OF_NUMBERS = ("rules.mechanisms.", "rules.release.", "rules.accounting.", "rules.local.")  # laws, which take long
_OF_TEXTS = "rules.sql."


def forget(*, texts: bool = True) -> None:
    """Forget all that modules of the rules keep: of texts too, unless what is changed has nothing to do with them."""
    table._KNOWN.clear()
    if texts:
        lower._KEPT.clear()
    for name, module in list(sys.modules.items()):
        if not name.startswith("rules.") or name.startswith(_OF_NUMBERS) or (name.startswith(_OF_TEXTS) and not texts):
            continue
        for value in vars(module).values():
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()
            elif isinstance(value, KeptByIdentity):
                value.clear()


@contextmanager
def forgotten(*, texts: bool = True) -> Iterator[None]:
    """Nothing that is kept comes in, and nothing goes out."""
    forget(texts=texts)
    try:
        yield
    finally:
        forget(texts=texts)
