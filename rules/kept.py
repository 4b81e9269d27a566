"""Results that are kept by the identity of what they were made of: to compare large trees takes as long as to make one.

Nobody changes what the rules pass around, so the same objects give the same result.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class KeptByIdentity(Generic[Made]):
    """Makes each value once; when there are too many it forgets all of them.

    Of what is made of a longer list than `longest` nothing is kept: it would take the room of many others.
    """

    def __init__(self, most: int, longest: int | None = None) -> None:
        self._most, self._longest = most, longest
        self._kept: dict[Hashable, tuple[tuple[object, ...], Made]] = {}

    def get(self, of: tuple[object, ...], also: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives for these objects, and for a value that is compared. It keeps the objects, and with them
        their identities."""
        key = (*map(id, of), also)
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) >= self._most:
                self.clear()
            known = self._kept[key] = of, make()
        return known[1]

    def of_list(self, of: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """What `make` gives for this list."""
        if self._longest is not None and len(of) > self._longest:
            return make()
        return self.get((of,), None, make)

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()
