"""What backends take of the machine, as its kernel tells: memory of their own, and temporary files."""

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PREFIX: Final = "pgsql_tmp"


def memory_bytes(process_id: int) -> int:
    """What one backend holds and shares with nobody; 0 where that cannot be told."""
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
