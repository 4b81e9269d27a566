"""A door without a lock: raw clients come in by a unix socket and get a real session, as after a login."""

import asyncio
from pathlib import Path
from typing import cast

from proxy.server.ports import Login, OpenSession, Session
from proxy.wire.backend import BackendKeyData
from proxy.wire.buffer import FrameBuffer
from proxy.wire.codec import frame
from proxy.wire.startup import StartupMessage, decode_startup
from rules.refusal import Refusal


class Door(asyncio.Protocol):
    """One client of the proxy; a ClientPort."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._buffer = FrameBuffer(64 * 1024 * 1024)
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._is_paused = True
        self._opening: asyncio.Task[None] | None = None

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._hand_over()

    def close(self, farewell: bytes = b"") -> None:
        if self._transport is not None:
            self._transport.write(farewell)
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer.feed(data)
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        self._hand_over()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._session is not None:
            self._session.closed()

    def pause_writing(self) -> None:
        if self._session is not None:
            self._session.pause_writing()

    def resume_writing(self) -> None:
        if self._session is not None:
            self._session.resume_writing()

    async def _open(self) -> None:
        startup = decode_startup(self._buffer.next_startup(10_000) or b"")
        assert isinstance(startup, StartupMessage)
        self.write(frame(b"R", bytes(4)))
        login = Login(startup.user, startup.database, startup.settings, "", _key)
        try:
            self._session = await self._open_session(login, self)
        except Refusal:
            self.close()
        else:
            self.resume_reading()

    def _hand_over(self) -> None:
        while self._session is not None and not self._is_paused:
            found = self._buffer.next_frame()
            if found is None:
                return
            self._session.frame(found.kind, found.raw)


def _key(process_id: int) -> bytes:
    return BackendKeyData(process_id, b"none").encode()


async def serve(open_session: OpenSession, path: Path) -> asyncio.AbstractServer:
    """Let raw clients in at this path."""
    return await asyncio.get_running_loop().create_unix_server(lambda: Door(open_session), str(path))
