"""A client before it has a session: TLS, password, limits, deadline. What goes wrong is said once and is the end."""

import asyncio
import ssl
from collections.abc import Coroutine
from typing import Protocol

from proxy.log import event
from proxy.server.errors import LOGIN_TIMEOUT, error_response, fatal
from proxy.server.house import House
from proxy.server.ports import ClientPort, Login, Session
from proxy.server.tls import Tls
from proxy.wire.backend import BackendKeyData
from proxy.wire.buffer import FrameBuffer
from proxy.wire.codec import ProtocolViolation
from proxy.wire.conversation import Cancel, Left, LoggedIn, Send, StartTls
from proxy.wire.startup import LoginRefused, StartupMessage


class Guest(ClientPort, Protocol):
    """What a login needs of the client's socket, besides what a session may do."""

    def hold(self) -> None:
        """Read no more from the socket for now."""

    async def start_tls(self, context: ssl.SSLContext, beginning: bytes) -> str | None:
        """`beginning` is what has arrived of the handshake. Returns the protocol that both sides named (ALPN)."""

    def begin(self, session: Session) -> None:
        """From now on all frames are the session's, and reading goes on."""

    def cancel(self) -> None:
        """Another connection showed this one's key."""

    def abort(self) -> None: ...


class Reception:
    """Takes one client from its first byte to its session."""

    def __init__(self, house: House, guest: Guest, peer: str) -> None:
        self._house = house
        self._guest = guest
        self._peer = peer
        self._conversation = house.conversation(peer)
        self._under_tls: list[bytes] | None = None  # what came while the handshake was being finished
        self._task: asyncio.Task[None] | None = None  # the handshake, or the opening of the session
        self._startup: StartupMessage | None = None
        self._seat: str | None = None
        self._key: BackendKeyData | None = None
        self._deadline = asyncio.get_running_loop().call_later(house.settings.login_timeout_seconds, self._is_late)
        house.doorway.enter(guest.abort)

    @property
    def buffer(self) -> FrameBuffer:
        """What has arrived, for whoever goes on reading after the login."""
        return self._conversation.buffer

    def receive(self, data: bytes) -> None:
        if self._under_tls is not None:
            self._under_tls.append(data)
        elif self._startup is not None:
            self.buffer.feed(data)  # the session is being opened, and will read it
        else:
            self._converse(data)

    def leave(self) -> None:
        """The connection is gone, in whatever state: give back what was taken. May be said twice."""
        self._deadline.cancel()
        self._house.doorway.leave(self._guest.abort)
        if self._task is not None:
            self._task.cancel()
        if self._seat is not None:
            self._house.seats.leave(self._seat)
            event("client_gone", analyst=self._seat)
        if self._key is not None:
            self._house.keys.forget(self._key)
        self._seat = self._key = None

    def _converse(self, data: bytes) -> None:
        """Everything until the password is right."""
        try:
            for happening in self._conversation.receive(data):
                match happening:
                    case Send(reply):
                        self._guest.write(reply)
                    case StartTls(beginning):
                        self._secure(beginning)
                    case Cancel(request):
                        self._house.keys.cancel(request)
                        self._guest.close()
                    case LoggedIn(startup):
                        self._admit(startup)
                    case Left():
                        self._guest.close()
        except Exception as error:  # noqa: BLE001 - refusals, violations, and as a last resort whatever else comes
            self._refuse(error)

    def _secure(self, beginning: bytes) -> None:
        """The socket is held first: a byte read before the handshake begins would be taken in clear."""
        if self._house.tls is None:
            raise ProtocolViolation("TLS was taken away during the conversation")
        self._guest.hold()
        if not beginning:
            self._guest.write(b"S")
        self._begin(self._shake_hands(self._house.tls, beginning))

    async def _shake_hands(self, tls: Tls, beginning: bytes) -> None:
        self._under_tls = []
        try:
            protocol = await self._guest.start_tls(tls.context, beginning)
        except OSError:  # ssl.SSLError is one too; the connection is lost, and the client knows why
            event("tls_failed", peer=self._peer)
            return
        self._conversation.secured(tls.end_point, protocol)
        arrived, self._under_tls = b"".join(self._under_tls), None
        self._converse(arrived)

    def _admit(self, startup: StartupMessage) -> None:
        """The password was right: is there a seat, and such a database?"""
        self._startup = startup
        self._house.doorway.leave(self._guest.abort)
        if startup.database != self._house.database:
            raise LoginRefused("3D000", f'database "{startup.database}" does not exist')
        self._house.seats.take(startup.user)
        self._seat = startup.user
        self._begin(self._open(startup))

    async def _open(self, startup: StartupMessage) -> None:
        login = Login(startup.user, startup.database, startup.settings, self._peer, self._backend_key)
        session = await self._house.open_session(login, self._guest)
        self._deadline.cancel()
        self.buffer.max_bytes = self._house.settings.max_message_bytes
        event("client_logged_in", analyst=startup.user, peer=self._peer)
        self._guest.begin(session)

    def _backend_key(self, process_id: int) -> bytes:
        minor = 0 if self._startup is None else self._startup.agreed_minor
        self._key = self._house.keys.issue(process_id, minor, self._guest.cancel)
        return self._key.encode()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._guarded(work))

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - as in _converse
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        """Whatever it is, `error_response` knows what may be said of it."""
        response = error_response(error, "FATAL")
        event("login_refused", peer=self._peer, sqlstate=response.sqlstate)
        self._guest.close(response.encode())

    def _is_late(self) -> None:
        """As PostgreSQL: who has not even said who he is gets no answer."""
        event("login_timeout", peer=self._peer)
        if self._task is not None:
            self._task.cancel()
        if self._conversation.has_begun:
            self._guest.close(fatal(*LOGIN_TIMEOUT))
        else:
            self._guest.abort()
