"""Limit what sessions keep: bytes of texts in the proxy, memory and files of their backends of the twin."""

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

_SESSION_BYTES: Final = 8 * 1024 * 1024  # of the texts of one session's prepared statements

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PREFIX: Final = "pgsql_tmp"


@dataclass(frozen=True, slots=True)
class ByteQuotaLimits:
    """The most bytes that there are, of prepared statements and of large messages on their way."""

    session: int = _SESSION_BYTES
    analyst: int = 64 * 1024 * 1024
    in_all: int = 256 * 1024 * 1024

    def beside(self, message: int) -> "ByteQuotaLimits":
        """The same with room for one message of so many bytes besides."""
        return replace(self, analyst=self.analyst + message, in_all=self.in_all + message)


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

    def has_room(self, size: int) -> bool:
        """Return whether the analyst and all together can take so many bytes more."""
        room = self._room
        return room.taken[self._analyst] + size <= room.limits.analyst and room.in_all + size <= room.limits.in_all

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


def memory_bytes(process_id: int) -> int:
    """Return what one backend holds and shares with nobody; 0 where that cannot be told."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{process_id}/statm").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE_BYTES


def temporary_bytes(socket: Path) -> Counter[int]:
    """The temporary files of a server that listens here, by the process that wrote them: sorts, hashes and cursors."""
    sizes: Counter[int] = Counter()
    with suppress(OSError), os.scandir(socket.parent / "data" / "base" / _PREFIX) as files:
        for file in files:
            process = file.name.removeprefix(_PREFIX).partition(".")[0]
            with suppress(OSError):
                if process.isdigit():
                    sizes[int(process)] += file.stat().st_size
    return sizes


@dataclass(frozen=True, slots=True)
class Used:
    """The memory and files of the backend of one session."""

    process_id: int
    analyst: str
    bytes: int


def too_much(used: Iterable[Used], per_analyst: int, in_all: int) -> list[int]:
    """The backends that have to go, the largest first, until every analyst and all together keep their limit.

    Example:
        >>> too_much([Used(1, "ada", 5), Used(2, "ada", 9), Used(3, "bob", 6)], per_analyst=10, in_all=100)
        [2]
    """
    largest = sorted(used, key=lambda used: -used.bytes)
    by_analyst: Counter[str] = Counter()
    for relation in largest:
        by_analyst[relation.analyst] += relation.bytes
    going = []
    for relation in largest:
        if by_analyst[relation.analyst] > per_analyst or by_analyst.total() > in_all:
            by_analyst[relation.analyst] -= relation.bytes
            going.append(relation.process_id)
    return going
