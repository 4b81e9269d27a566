"""Our processes as other processes and the operating system see them: what they show, and which of them go first."""

import ctypes
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

_SET_DUMPABLE: Final = 4  # prctl(2), PR_SET_DUMPABLE
_KEPT: Final = frozenset({"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZDIR"})


def bare_environment(*prefixes: str) -> Mapping[str, str]:
    """The environment for a process that clients talk to, or whose work is their texts: without secrets of the proxy's.

    Besides, variables with these prefixes are kept.
    """
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(prefixes or "\0")}
    return kept | {"LC_ALL": "C"}


def seal() -> None:
    """Close our environment, memory and open files to other processes of the same user. Linux alone knows of it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def expendable(process_id: int) -> None:
    """Let this process, and those that it starts, go before the proxy with its ledger. Linux alone knows of it."""
    with suppress(OSError):
        Path(f"/proc/{process_id}/oom_score_adj").write_text("1000", encoding="ascii")
