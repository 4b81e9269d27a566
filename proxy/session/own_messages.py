"""Messages of our own to the twin: how they are made, and what comes back."""

import asyncio
from collections.abc import Callable

from proxy.session.replies import Fate
from proxy.wire.backend import ErrorResponse, Field, NoticeResponse, ParameterDescription, RowDescription
from proxy.wire.buffer import Frame
from proxy.wire.frontend import STATEMENT, Bind, Close, Describe, Encoded, Execute, Parse
from rules.refusal import Untranslatable

Message = Parse | Bind | Describe | Execute | Close | Encoded


class TwinRefusal(Exception):
    """The twin refused a message of our own; `raw` is its ErrorResponse, and the client's if it is the cause."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(ErrorResponse.decode(raw).sqlstate)
        self.raw = raw


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
        return text.encode(codec)
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
    """What a client sees of columns: names and types."""
    return [(column.name, column.type, column.modifier) for column in columns]
