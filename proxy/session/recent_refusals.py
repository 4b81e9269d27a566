"""The refusals of the last while, for operators: kinds, fingerprints, shapes and hints, and never a constant."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rules.refusal import Refusal

_MOST: Final = 500
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBER: Final = re.compile(r"(?<![\w$])[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_UNSAFE: Final = re.compile(r"['\"\\$]")  # a quote without its other half, or a way to write text without quotes


@dataclass(frozen=True, slots=True)
class Refused:
    """One refusal; what it said of constants is gone."""

    time: datetime
    analyst: str
    kind: str
    sqlstate: str
    statement: str  # its fingerprint
    shape: str
    hint: str


class RecentRefusals:
    """The newest refusals of all sessions."""

    def __init__(self) -> None:
        self._found: deque[Refused] = deque(maxlen=_MOST)

    def note(self, analyst: str, refusal: Refusal, statement: str, shape: str) -> None:
        kind, hint = type(refusal).__name__, without_constants(refusal.hint)
        self._found.append(Refused(datetime.now(UTC), analyst, kind, refusal.sqlstate, statement, shape, hint))

    def newest(self) -> Iterator[Refused]:
        """Those that are remembered, the newest first."""
        return reversed(tuple(self._found))


RECENT: Final = RecentRefusals()
"""Of this process, as the metrics are."""


def without_constants(hint: str) -> str:
    """A hint with a ? for whatever might be a constant of the statement; "" where that cannot be told.

    Example:
        >>> without_constants("Write city = 'Berlin', or SET noisegate.epsilon = 0.25.")
        'Write city = ?, or SET noisegate.epsilon = ?.'
        >>> without_constants(r"Write E'it\\'s'")
        ''
    """
    masked = _NUMBER.sub("?", _QUOTED.sub("?", hint))
    return "" if _UNSAFE.search(masked) or "\\" in hint else masked
