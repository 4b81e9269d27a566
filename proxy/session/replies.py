"""What the twin still owes: for each message sent, the replies that end it, and what the client gets of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from proxy.wire.backend import (
    BindComplete,
    CloseComplete,
    CommandComplete,
    CopyOutResponse,
    DataRow,
    EmptyQueryResponse,
    NoData,
    NoticeResponse,
    ParseComplete,
    PortalSuspended,
    ReadyForQuery,
    RowDescription,
)
from proxy.wire.buffer import Frame
from proxy.wire.frontend import Bind, Close, CopyData, CopyDone, Describe, Execute, Parse, Query, Sync

Edit = Callable[[Frame], bytes]

ENDS: Final[Mapping[bytes, frozenset[bytes]]] = {
    Parse.kind: frozenset({ParseComplete.kind}),
    Bind.kind: frozenset({BindComplete.kind}),
    Close.kind: frozenset({CloseComplete.kind}),
    Describe.kind: frozenset({RowDescription.kind, NoData.kind}),
    Execute.kind: frozenset({CommandComplete.kind, PortalSuspended.kind, EmptyQueryResponse.kind}),
    Sync.kind: frozenset({ReadyForQuery.kind}),
    Query.kind: frozenset({ReadyForQuery.kind}),
}

ROWS: Final = frozenset({DataRow.kind, CopyOutResponse.kind, CopyData.kind, CopyDone.kind, NoticeResponse.kind})
PASSED: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys(ENDS, frozenset({NoticeResponse.kind})),
    Execute.kind: ROWS,
    Query.kind: ROWS | {RowDescription.kind, CommandComplete.kind, EmptyQueryResponse.kind},
}
"""Replies that neither end a message nor need a look: they are passed on by the chunk."""


class Fate(Enum):
    """What became of a message."""

    DONE = auto()
    FAILED = auto()
    SKIPPED = auto()  # after an error of an earlier message, up to the next Sync


@dataclass(slots=True, eq=False)
class Expected:
    """The replies to one message."""

    kind: bytes  # of the message
    edit: Edit | None = None  # what the client gets of a reply; None: the reply
    passes: frozenset[bytes] = frozenset()  # kinds that go past `edit`
    then: Callable[[Fate], None] | None = None  # told once


def swallow(_: Frame) -> bytes:
    """For messages of our own, of which the client knows nothing."""
    return b""
