"""What the twin still owes: for each message that was sent, the replies that end it and what the client gets of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from proxy.server.errors import error_response
from proxy.wire.backend import (
    FAILED,
    BindComplete,
    CloseComplete,
    CommandComplete,
    CopyOutResponse,
    DataRow,
    EmptyQueryResponse,
    ErrorResponse,
    NoData,
    NoticeResponse,
    ParseComplete,
    PortalSuspended,
    ReadyForQuery,
    RowDescription,
)
from proxy.wire.buffer import Frame
from proxy.wire.frontend import Bind, Close, CopyData, CopyDone, Describe, Execute, Parse, Query, Sync
from rules.refusal import Refusal

Edit = Callable[[Frame], bytes]

REFUSED_SQL: Final = 'SELECT "_ng_refused"'
"""Sent in place of what is refused. It fails when it is analysed, not before: in a failed transaction PostgreSQL says
25P02 as it would have, elsewhere 42703, in whose place the client reads our refusal. Nothing of the state is simulated."""

_UNDEFINED_COLUMN: Final = "42703"

ENDS: Final[Mapping[bytes, frozenset[bytes]]] = {
    Parse.kind: frozenset({ParseComplete.kind}),
    Bind.kind: frozenset({BindComplete.kind}),
    Close.kind: frozenset({CloseComplete.kind}),
    Describe.kind: frozenset({RowDescription.kind, NoData.kind}),
    Execute.kind: frozenset({CommandComplete.kind, PortalSuspended.kind, EmptyQueryResponse.kind}),
    Sync.kind: frozenset({ReadyForQuery.kind}),
    Query.kind: frozenset({ReadyForQuery.kind}),
}

_ROWS: Final = frozenset({DataRow.kind, CopyOutResponse.kind, CopyData.kind, CopyDone.kind, NoticeResponse.kind})
PASSED: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys(ENDS, frozenset({NoticeResponse.kind})),
    Execute.kind: _ROWS,
    Query.kind: _ROWS | {RowDescription.kind, CommandComplete.kind, EmptyQueryResponse.kind},
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
    then: Callable[[Fate], None] | None = None  # told once


def swallow(_: Frame) -> bytes:
    """For messages of our own, of which the client knows nothing."""
    return b""


def only_errors(frame: Frame) -> bytes:
    """For messages of our own whose failure is the client's."""
    return without_position(frame.raw) if frame.kind == ErrorResponse.kind else b""


def is_fatal(raw: bytes) -> bool:
    """Whether the twin ends the connection with this ErrorResponse."""
    return b"\0VFATAL\0" in raw or b"\0VPANIC\0" in raw


def moved(raw: bytes, place: Callable[[int], int | None]) -> bytes:
    """An ErrorResponse whose position is that of the text that the client sent."""
    fields = dict(ErrorResponse.decode(raw).fields)
    position = place(int(fields.pop("P", "0")))
    if position:
        fields["P"] = str(position)
    return ErrorResponse(fields).encode()


def without_position(raw: bytes) -> bytes:
    """For errors in texts that the client has never seen."""
    return moved(raw, lambda _: None)


def report(refusal: Refusal, codec: str) -> bytes:
    """A refusal as the client reads it, in its own encoding."""
    return in_encoding(error_response(refusal), codec).encode()


def in_encoding[Report: (ErrorResponse, NoticeResponse)](report: Report, codec: str) -> Report: ...
