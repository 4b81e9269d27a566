"""A client before it has a session: TLS, password, limits, deadline. What goes wrong is said once and is the end."""

import asyncio
import ssl
from collections.abc import Coroutine, Iterator
from typing import Final, Protocol

from proxy.log import event, warn
from proxy.metrics import LOGINS, LOGINS_REFUSED
from proxy.server.accounts import Attempt
from proxy.server.server_context import CONSOLE, ServerContext
from proxy.server.tls import Tls, names_of
from proxy.session.errors import LOGIN_TIMEOUT, error_response, fatal
from proxy.session.interfaces import ClientPort, Login, Session
from proxy.wire.backend import BackendKeyData
from proxy.wire.buffer import FrameBuffer
from proxy.wire.codec import NoPacket, ProtocolViolation
from proxy.wire.conversation import Cancel, Event, Identified, Left, LoggedIn, Send, StartTls
from proxy.wire.proxy_protocol import ProxyHeader
from proxy.wire.scram import BadPassword
from proxy.wire.startup import LoginRefused, StartupMessage

MOST_MESSAGE_BYTES: Final = 1 << 30  # PostgreSQL's own limit; the session has one of its own


class LoginClient(ClientPort, Protocol):
    """The client's socket as a login needs it, besides what a session may do."""

    def has_sent(self) -> bool:
        """Return whether bytes have come that are not read yet."""

    def hold(self) -> None:
        """Read no more from the socket for now."""

    async def start_tls(self, context: ssl.SSLContext, beginning: bytes) -> tuple[str | None, bytes | None]:
        """`beginning` is what has arrived of the handshake.

        Returns the protocol that both sides named (ALPN), and the client's certificate, if it has shown a valid one.
        """

    def begin(self, session: Session) -> None:
        """From now on all frames are the session's, and reading goes on."""

    def cancel(self) -> None:
        """Another connection showed this one's key."""

    def abort(self) -> None: ...


class LoginHandler:
    """Takes one client from its first byte to its session."""

    def __init__(self, context: ServerContext, guest: LoginClient, peer: str) -> None:
        self._context = context
        self._guest = guest
        self._peer = peer
        self._gateway = ProxyHeader() if context.is_gateway(peer) else None  # until it has said whose connection it is
        self._conversation = context.conversation(peer)
        self._certificate_names: frozenset[str] = frozenset()
        self._under_tls: list[bytes] | None = None  # what came while the handshake was being finished
        self._task: asyncio.Task[None] | None = None  # the handshake, or the opening of the session
        self._startup: StartupMessage | None = None
        self._seat: str | None = None
        self._key: BackendKeyData | None = None
        self._deadline = asyncio.get_running_loop().call_later(context.settings.login_timeout_seconds, self._is_late)
        self._has_waited = False  # for what wrong passwords before it cost
        context.doorway.enter(guest.abort, peer, guest.has_sent)

    @property
    def buffer(self) -> FrameBuffer:
        """Return what has arrived, for whoever goes on reading after the login."""
        return self._conversation.buffer

    def receive(self, data: bytes) -> None:
        if self._gateway is not None:
            self._hear_gateway(self._gateway, data)
        elif self._under_tls is not None:
            self._under_tls.append(data)
        elif self._startup is not None:
            self.buffer.feed(data)  # the session is being opened, and will read it
        else:
            self._context.doorway.spoke(self._guest.abort)
            self._converse(self._conversation.receive(data))
            self._wait_for_others()

    def _hear_gateway(self, header: ProxyHeader, data: bytes) -> None:
        """From here on the connection is that of the client behind it, in limits, logs and rules."""
        try:
            heard = header.feed(data)
        except ProtocolViolation as error:
            self._refuse(error)
            return
        if heard is None:
            return
        client, rest = heard
        self._gateway = None
        if client is not None:
            self._context.doorway.leave(self._guest.abort)
            self._peer = client
            self._conversation = self._context.conversation(client)
            self._context.doorway.enter(self._guest.abort, client, self._guest.has_sent)
        if rest:
            self.receive(rest)

    def leave(self) -> None:
        """The connection is gone, in whatever state: give back what was taken. May be said twice."""
        self.buffer.clear()
        self._deadline.cancel()
        self._context.doorway.leave(self._guest.abort)
        if self._task is not None:
            self._task.cancel()
        if self._seat is not None:
            self._context.seats.leave(self._seat)
            event("client_gone", analyst=self._seat, peer=self._peer)
        if self._key is not None:
            self._context.keys.forget(self._key)
        self._seat = self._key = None

    def _converse(self, events: Iterator[Event]) -> None:
        """Everything until the password is right."""
        try:
            for happening in events:
                match happening:
                    case Send(reply):
                        self._guest.write(reply)
                    case StartTls(beginning):
                        # The socket is held first: a byte read before the handshake begins would be taken in clear
                        if self._context.tls is None:
                            raise ProtocolViolation("TLS was taken away during the conversation")
                        self._guest.hold()
                        if not beginning:
                            self._guest.write(b"S")
                        self._begin(self._shake_hands(self._context.tls, beginning))
                    case Identified(startup):
                        self._begin(self._ask(startup))
                    case Cancel(request):
                        self._context.keys.cancel(request)
                        self._guest.close()
                    case LoggedIn(startup):
                        self._admit(startup)
                    case Left():
                        self._guest.close()
        except Exception as error:  # noqa: BLE001 - refusals, violations, and as a last resort whatever else comes
            self._refuse(error)

    def _wait_for_others(self) -> None:
        """Once it is known who wants to log in: not before some time has passed, after wrong passwords from there."""
        user, loop = self._conversation.user, asyncio.get_running_loop()
        if user is None or self._has_waited:
            return
        self._has_waited = True
        if seconds := self._context.failures.seconds(self._peer, user, loop.time()):
            self._guest.hold()
            loop.call_later(seconds, self._guest.resume_reading)

    async def _shake_hands(self, tls: Tls, beginning: bytes) -> None:
        self._under_tls = []
        try:
            protocol, certificate = await self._guest.start_tls(tls.context, beginning)
        except OSError:  # ssl.SSLError is one too; the connection is lost, and the client knows why
            warn("tls_failed", peer=self._peer)
            return
        self._conversation.secured(tls.end_point, protocol)
        self._certificate_names = names_of(certificate)
        arrived, self._under_tls = b"".join(self._under_tls), None
        self._converse(self._conversation.receive(arrived))

    async def _ask(self, startup: StartupMessage) -> None:
        """Find how this name is proved, and ask for it. What the client sends meanwhile waits in the conversation."""
        attempt = Attempt(startup.user, self._peer, self._conversation.end_point, self._certificate_names)
        exchange = await self._context.accounts.exchange(attempt)
        self._converse(self._conversation.begin(exchange))

    def _admit(self, startup: StartupMessage) -> None:
        """The password was right: is there a seat, and such a database?"""
        self._startup = startup
        self._context.doorway.leave(self._guest.abort)
        if startup.user in self._context.operators and startup.database != CONSOLE:
            raise LoginRefused("28000", f'operators connect to the database "{CONSOLE}" only', reason="operator")
        if not self._context.has(startup.database, startup.user):
            raise LoginRefused("3D000", f'database "{startup.database}" does not exist', reason="database")
        if startup.user not in self._context.operators:  # they have to come in when it is full, too
            self._context.seats.take(startup.user)
            self._seat = startup.user
        self._begin(self._open(startup))

    async def _open(self, startup: StartupMessage) -> None:
        login = Login(startup.user, startup.database, startup.settings, self._peer, self._backend_key)
        session = await self._context.open_session(login, self._guest)
        self._deadline.cancel()
        self.buffer.max_bytes = MOST_MESSAGE_BYTES
        LOGINS.inc()
        event("client_logged_in", analyst=startup.user, peer=self._peer)
        self._guest.begin(session)

    def _backend_key(self, process_id: int) -> bytes:
        minor = 0 if self._startup is None else self._startup.agreed_minor
        self._key = self._context.keys.issue(process_id, minor, self._guest.cancel)
        return self._key.encode()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._task.add_done_callback(lambda _: work.close())  # it has not begun where its client left before

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - as in _converse
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        """Whatever it is, `error_response` knows what may be said of it, to the log or to the client too."""
        response = error_response(error, "FATAL")
        if isinstance(error, BadPassword) and self._conversation.user is not None:
            self._context.failures.note(self._peer, self._conversation.user, asyncio.get_running_loop().time())
        failed = {"kind": type(error).__name__, "sqlstate": response.sqlstate}
        failed |= {"reason": error.reason} if isinstance(error, LoginRefused) and error.reason else {}
        LOGINS_REFUSED.labels(response.sqlstate).inc()
        warn("login_refused", user=self._conversation.user, peer=self._peer, **failed)
        self._guest.close(b"" if isinstance(error, NoPacket) else response.encode())

    def _is_late(self) -> None:
        """As PostgreSQL: who has not even said who he is gets no answer."""
        warn("login_timeout", user=self._conversation.user, peer=self._peer)
        if self._task is not None:
            self._task.cancel()
        if self._conversation.has_begun:
            self._guest.close(fatal(*LOGIN_TIMEOUT))
        else:
            self._guest.abort()
