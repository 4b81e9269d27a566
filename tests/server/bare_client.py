"""A client of bare frames: it logs in as it should, and then sends what the test says."""

import socket
from types import TracebackType
from typing import Protocol, Self

from scramp import ScramClient

from proxy.wire.buffer import Frame, FrameBuffer
from proxy.wire.frontend import SASLInitialResponse, SASLResponse
from proxy.wire.scram import PLAIN
from proxy.wire.startup import StartupMessage
from tests.server.relay import USER
from tests.wire.messages import BackendMessage, decode_backend


class Listening(Protocol):
    """A proxy, and the password of the user that logs in."""

    password: str

    def socket(self) -> socket.socket:
        """A bare connection."""


class BareClient:
    """Log in with `with`."""

    def __init__(self, proxy: Listening, behind_the_proof: bytes = b"", **parameters: str) -> None:
        self.socket: socket.socket = proxy.socket()
        self._buffer, self._password = FrameBuffer(2**30), proxy.password
        self._log_in({"user": USER, "database": "shop", **parameters}, behind_the_proof)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def frame(self) -> Frame | None:
        """The next frame, or None when the other side has closed."""
        while (frame := self._buffer.next_frame()) is None:
            data = self.socket.recv(100_000)
            if not data:
                return None
            self._buffer.feed(data)
        return frame

    def message(self) -> BackendMessage:
        frame = self.frame()
        assert frame is not None
        return decode_backend(frame.raw)

    def messages_until(self, kind: type[BackendMessage]) -> list[BackendMessage]:
        messages = [self.message()]
        while not isinstance(messages[-1], kind):
            messages.append(self.message())
        return messages

    def rest(self) -> list[BackendMessage]:
        """All messages up to the close."""
        return [decode_backend(frame.raw) for frame in iter(self.frame, None)]

    def _log_in(self, parameters: dict[str, str], behind_the_proof: bytes) -> None:
        scram = ScramClient([PLAIN.decode()], "*", self._password)
        self.send(StartupMessage(parameters).encode())
        self.message()
        self.send(SASLInitialResponse(PLAIN, scram.get_client_first().encode()).encode())
        scram.set_server_first(self._words())
        self.send(SASLResponse(scram.get_client_final().encode()).encode() + behind_the_proof)
        scram.set_server_final(self._words())

    def _words(self) -> str:
        frame = self.frame()
        assert frame is not None
        return frame.raw[9:].decode()
