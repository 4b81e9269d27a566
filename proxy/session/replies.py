"""Replies of the twin: those that it still owes for each message sent, and those to messages of our own."""

import asyncio
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
    ErrorResponse,
    Field,
    NoData,
    NoticeResponse,
    ParameterDescription,
    ParseComplete,
    PortalSuspended,
    ReadyForQuery,
    RowDescription,
)
from proxy.wire.buffer import Frame
from proxy.wire.frontend import (
    STATEMENT,
    Bind,
    Close,
    CopyData,
    CopyDone,
    Describe,
    Encoded,
    Execute,
    Flush,
    Parse,
    Query,
    Sync,
)
from rules.catalog import written
from rules.refusal import Untranslatable

Edit = Callable[[Frame], bytes]

ENDS: Final[Mapping[bytes, frozenset[bytes]]] = {
    Parse.kind: frozenset({ParseComplete.kind}),
    Bind.kind: frozenset({BindComplete.kind}),
    Close.kind: frozenset({CloseComplete.kind}),
    Describe.kind: frozenset({RowDescription.kind, NoData.kind}),
    Execute.kind: frozenset({CommandComplete.kind, PortalSuspended.kind, EmptyQueryResponse.kind}),
    Sync.kind: frozenset({ReadyForQuery.kind}),
    Query.kind: frozenset({ReadyForQuery.kind}),
    Flush.kind: frozenset(),  # a malformed one, which fails
}

ROWS: Final = frozenset({DataRow.kind, CopyOutResponse.kind, CopyData.kind, CopyDone.kind, NoticeResponse.kind})
PASSED: Final[Mapping[bytes, frozenset[bytes]]] = {
    **dict.fromkeys(ENDS, frozenset({NoticeResponse.kind})),
    Execute.kind: ROWS,
    Query.kind: ROWS | {RowDescription.kind, CommandComplete.kind, EmptyQueryResponse.kind},
}
"""Replies that neither end a message nor need a look: they are passed on by the chunk."""


class Fate(Enum):
    """The end of a message."""

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


Message = Parse | Bind | Describe | Execute | Close | Encoded

_OF_THE_MOMENT: Final = (
    "40",  # a deadlock
    "53",  # no memory, no disk
    "55P03",  # a lock that the session would not wait for any longer
    "57",  # out of time, cancelled, or the server stops
    "58",  # a failure of the machine
)


class TwinRefusal(Exception):
    """The twin refused a message of our own; `raw` is its ErrorResponse, and the client's if it is the cause."""

    def __init__(self, raw: bytes) -> None:
        self.sqlstate = ErrorResponse.decode(raw).sqlstate
        super().__init__(self.sqlstate)
        self.raw = raw

    @property
    def is_of_the_moment(self) -> bool:
        """Whether it says nothing of the message: the same one may pass when it is sent again."""
        return self.sqlstate.startswith(_OF_THE_MOMENT)


class TwinLost(Exception):
    """The connection to the twin is gone."""


class Replies:
    """Collects the replies to messages of our own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.replies: list[list[Frame]] = []
        self.error: bytes | None = None
        self.ended: asyncio.Future[None] = loop.create_future()

    def listen(self) -> Callable[[Frame], bytes]:
        replies: list[Frame] = []
        self.replies.append(replies)

        def edit(frame: Frame) -> bytes:
            if frame.kind == ErrorResponse.kind:
                self.error = frame.raw
            elif frame.kind != NoticeResponse.kind:
                replies.append(frame)
            return b""

        return edit

    def end(self, _: Fate) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def encoded(text: str, codec: str) -> bytes:
    """Text of ours for the twin, which reads it in the client's encoding."""
    try:
        return written(text, codec)
    except UnicodeEncodeError:
        raise Untranslatable(
            "the result has characters with no equivalent in your client_encoding", hint="SET client_encoding = 'UTF8';"
        ) from None


def parse_under(name: bytes, text: bytes, types: tuple[int, ...] = ()) -> list[Message]:
    """Parse under a name of ours, which an exchange that failed may have left behind."""
    return [Close(STATEMENT, name), Parse(name, text, types)]


def described(replies: list[Frame]) -> tuple[tuple[int, ...], tuple[Field, ...]]:
    """Types of parameters and columns; a statement without result has no columns."""
    types = ParameterDescription.decode(replies[0].raw).types
    columns = RowDescription.decode(replies[1].raw).fields if replies[1].kind == RowDescription.kind else ()
    return types, columns


def shape(columns: tuple[Field, ...]) -> list[tuple[bytes, int, int]]:
    """Return what a client sees of columns: names and types."""
    return [(column.name, column.type, column.modifier) for column in columns]
