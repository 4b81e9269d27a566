"""Results that are kept by the identity of what they were made of: to compare large trees takes as long as to make one.

Nobody changes what the rules pass around, so the same objects give the same result.
"""

from collections.abc import Callable, Hashable, Iterable
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


def characters(labels: Iterable[Iterable[str | None]]) -> int:
    """How many a list of labels has."""
    return sum(1 + len(text or "") for label in labels for text in label)


def kept_if_short(most: int, size: Callable[[Any], int] = len, longest: int = 2_000) -> Callable[[Function], Function]:
    """Keep what a function gives for equal arguments, so many times, where the first has no more characters than this.

    A planner that was taken over may write texts of megabytes, of which few would fill the memory.
    """

    def decorated(make: Function) -> Function:
        kept = lru_cache(most)(make)

        @wraps(make)
        def made(of: Any, *others: Any, **named: Any) -> Any:
            return (kept if size(of) <= longest else make)(of, *others, **named)

        vars(made)["cache_clear"] = kept.cache_clear
        return cast("Function", made)

    return decorated
