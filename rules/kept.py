"""Results that are kept by the identity of what they were made of: to compare large trees takes as long as to make one.

Nobody changes what the rules pass around, so the same objects give the same result.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Generic, TypeVar, cast

Made = TypeVar("Made")
Function = TypeVar("Function", bound=Callable[..., Any])


class KeptByIdentity(Generic[Made]):
    """Makes each value once; when there are too many it forgets all of them."""

    def __init__(self, most: int) -> None:
        self._most = most
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

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()


def kept_if_short(most: int, longest: int) -> Callable[[Function], Function]:
    """Keep what a function gives for equal arguments, so many times, where the labels of the first have no more
    characters than this: one list of thousands takes the room of all others."""

    def decorated(make: Function) -> Function:
        kept = lru_cache(most)(make)

        @wraps(make)
        def made(labels: tuple[tuple[str | None, ...], ...], *others: Any) -> Any:
            size = sum(1 + len(text or "") for label in labels for text in label)
            return (kept if size <= longest else make)(labels, *others)

        vars(made)["cache_clear"] = kept.cache_clear
        return cast("Function", made)

    return decorated
