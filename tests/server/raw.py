"""A client that sends bytes and keeps all that comes back, frame by frame."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from proxy.wire.backend import ErrorResponse, ReadyForQuery
from proxy.wire.buffer import Frame, FrameBuffer
from proxy.wire.frontend import Bind, Close, Describe, Execute, Flush, Parse, Query, Sync, Terminate
from proxy.wire.startup import StartupMessage

Message = Bind | Close | Describe | Execute | Flush | Parse | Query | Sync | Terminate | bytes

SECONDS = 20.0  # nothing takes so long


@dataclass
class RawClient:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    buffer: FrameBuffer

    @classmethod
    async def connect(cls, path: Path, *, user: str, database: str, **settings: str) -> Self:
        reader, writer = await asyncio.open_unix_connection(str(path))
        client = cls(reader, writer, FrameBuffer(1 << 30))
        writer.write(StartupMessage({"user": user, "database": database, **settings}).encode())
        return client

    def send(self, *messages: Message) -> None:
        self.writer.write(b"".join(encode(message) for message in messages))

    async def until(self, kind: bytes = ReadyForQuery.kind) -> list[Frame]:
        """All frames up to the next one of a kind."""
        frames: list[Frame] = []
        async with asyncio.timeout(SECONDS):
            while not frames or frames[-1].kind != kind:
                frames.append(await self._next())
        return frames

    async def rest(self) -> list[Frame]:
        """All frames up to the end of the connection."""
        async with asyncio.timeout(SECONDS):
            while data := await self.reader.read(1 << 16):
                self.buffer.feed(data)
        return list(self.buffer.frames())

    async def ask(self, *messages: Message) -> list[Frame]:
        """Send, and wait for ReadyForQuery."""
        self.send(*messages)
        return await self.until()

    async def close(self) -> None:
        self.writer.close()
        await asyncio.sleep(0)

    async def _next(self) -> Frame:
        while (found := self.buffer.next_frame()) is None:
            data = await self.reader.read(1 << 16)
            if not data:
                raise EOFError("the connection has ended")
            self.buffer.feed(data)
        return found


def encode(message: Message) -> bytes:
    return message if isinstance(message, bytes) else message.encode()


def kinds(frames: Iterable[Frame]) -> str:
    """The kinds of frames as one word, without what may come at any time."""
    return b"".join(frame.kind for frame in frames if frame.kind not in (b"S", b"N")).decode()


def errors(frames: Iterable[Frame]) -> list[ErrorResponse]:
    return [ErrorResponse.decode(frame.raw) for frame in frames if frame.kind == ErrorResponse.kind]
