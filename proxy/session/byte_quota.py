"""Limit the bytes that sessions keep in the proxy for as long as they live: by session, by analyst, and in all."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

_SESSION_BYTES: Final = 8 * 1024 * 1024  # of the texts of one session's prepared statements


@dataclass(frozen=True, slots=True)
class ByteQuotaLimits:
    """The most bytes that there are."""

    session: int = _SESSION_BYTES
    analyst: int = 64 * 1024 * 1024
    in_all: int = 256 * 1024 * 1024


class ByteQuota:
    """The bytes that all sessions have taken."""

    def __init__(self, limits: ByteQuotaLimits = ByteQuotaLimits()) -> None:
        self.limits = limits
        self.taken: Counter[str] = Counter()
        self.in_all = 0

    def share(self, analyst: str) -> "QuotaShare":
        """The part of one session."""
        return QuotaShare(self, analyst)


class QuotaShare:
    """The bytes that one session has taken. One statement may pass a limit; then nothing is added until it is less."""

    def __init__(self, room: ByteQuota, analyst: str) -> None:
        self._room, self._analyst = room, analyst
        self._taken = 0
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        limits = self._room.limits
        return (
            self._taken > limits.session
            or self._room.taken[self._analyst] > limits.analyst
            or self._room.in_all > limits.in_all
        )

    def take(self, size: int) -> None:
        """More, or with a negative size less."""
        if self._is_closed:
            return
        self._taken += size
        self._room.in_all += size
        self._room.taken[self._analyst] += size
        if not self._room.taken[self._analyst]:
            del self._room.taken[self._analyst]

    def close(self) -> None:
        """The session is gone, with all that it kept."""
        self.take(-self._taken)
        self._is_closed = True
