"""Measure what backends of the twin take of the machine, and choose those that take more than their analyst may."""

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PREFIX: Final = "pgsql_tmp"


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
