"""Values that were used last, as far as they have room."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentValues(Generic[Key, Value]):
    """Remembers values by their keys; several threads may ask."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def find(self, key: Key) -> Value | None:
        with self._lock:
            known = self._values.get(key)
            if known is None:
                return None
            self._values.move_to_end(key)
            return known[0]

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep a value, and forget those that were not used for longest where there is no room for all."""
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self._values[key] = value, size
            self._room += before - size
            while self._room < 0:
                _, (_, freed) = self._values.popitem(last=False)
                self._room += freed
