"""Refusals that clients were told: the log's word on each, and the newest for operators, without text or constants."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from proxy.log import event, warn
from proxy.metrics import FORBIDDEN, REFUSALS
from rules.refusal import Refusal
from rules.sql.statement import Kind, Statement

_MOST: Final = 500
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBER: Final = re.compile(r"(?<![\w$])[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_UNSAFE: Final = re.compile(r"['\"\\$]")  # a quote without its other half, or a way to write text without quotes


@dataclass(frozen=True, slots=True)
class RecentRefusal:
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
        self._found: deque[RecentRefusal] = deque(maxlen=_MOST)

    def note(self, analyst: str, refusal: Refusal, statement: str, shape: str) -> None:
        kind, hint = type(refusal).__name__, without_constants(refusal.hint)
        self._found.append(RecentRefusal(datetime.now(UTC), analyst, kind, refusal.sqlstate, statement, shape, hint))

    def newest(self) -> Iterator[RecentRefusal]:
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


def log_refusal(analyst: str, refusal: Refusal, statement: Statement | None = None, *, fingerprint: str = "") -> None:
    """Note a refusal; a command or a function that is forbidden whatever it reads is named."""
    REFUSALS.labels(type(refusal).__name__, refusal.sqlstate).inc()
    name = fingerprint or ("" if statement is None else statement.fingerprint)
    RECENT.note(analyst, refusal, name, "" if statement is None else statement.shape)
    about = {"analyst": analyst, "kind": type(refusal).__name__, "sqlstate": refusal.sqlstate}
    if name:
        about["statement"] = name
    if statement is not None and statement.kind is Kind.FORBIDDEN:
        FORBIDDEN.inc()
        warn("forbidden", **about, command=statement.command)
    else:
        event("refused", **about)
