"""A house whose sessions relay every frame to a real PostgreSQL: all of the login, and nothing of privacy."""

import asyncio
import datetime
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from proxy.server.accounts import Account, Accounts, DatedVerifier
from proxy.server.listener import Listener
from proxy.server.server_context import ServerContext
from proxy.server.tls import Tls
from proxy.session.errors import SHUTDOWN, fatal
from proxy.session.interfaces import ClientPort, Login, OpenSession, Session
from proxy.settings import ServerSettings
from proxy.twin.embedded import PORT, Cluster
from proxy.wire.backend import BackendKeyData, ReadyForQuery
from proxy.wire.buffer import FrameBuffer
from proxy.wire.scram import Verifier
from proxy.wire.startup import CancelRequest, StartupMessage

Result = TypeVar("Result")

USER, PASSWORD = "ada", "the enchantress of numbers"


@dataclass
class RelaySession(asyncio.Protocol):
    """One client's own connection to PostgreSQL; it is also that connection's protocol."""

    cluster: Cluster
    login: Login
    client: ClientPort
    ready: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    buffer: FrameBuffer = field(default_factory=lambda: FrameBuffer(2**30))
    seen: list[bytes] = field(default_factory=list)  # the kinds of the frames that the client sent
    is_closed: bool = False
    _key: BackendKeyData | None = None
    _transport: asyncio.Transport | None = None
    _is_idle: bool = True
    _is_draining: bool = False

    # what the client's socket says

    def admits(self, kind: bytes, size: int) -> bool:
        return True

    def frame(self, kind: bytes, raw: bytes) -> None:
        self.seen.append(kind)
        self._is_idle = False
        assert self._transport is not None
        self._transport.write(raw)

    def pause_writing(self) -> None:
        assert self._transport is not None
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        assert self._transport is not None
        self._transport.resume_reading()

    def cancel(self) -> None:
        self._cancelling = asyncio.create_task(self._cancel())

    def drain(self) -> None:
        self._is_draining = True
        if self._is_idle:
            self.client.close(fatal(*SHUTDOWN))

    def closed(self) -> None:
        self.is_closed = True
        if self._transport is not None:
            self._transport.close()

    @property
    def is_inside_message(self) -> bool:
        return False

    # what PostgreSQL says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        names = {"user": self.login.user, "database": "postgres"}
        self._transport.write(StartupMessage(names | dict(self.login.parameters)).encode())

    def data_received(self, data: bytes) -> None:
        self.buffer.feed(data)
        while run := self.buffer.next_run(frozenset({b"D", b"d"})) or self._next():
            self.client.write(run)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(ConnectionResetError())
        self.client.close()

    def _next(self) -> bytes:
        frame = self.buffer.next_frame()
        match frame:
            case None:
                return b""
            case (b"R", _):
                return self._next()
            case (b"K", raw):
                self._key = BackendKeyData.decode(raw)
                return self.login.backend_key(self._key.process_id)
            case (b"Z", raw):
                self._is_idle = raw == ReadyForQuery().encode()
                if not self.ready.done():
                    self.ready.set_result(None)
                if self._is_draining and self._is_idle:
                    self.client.write(raw)
                    self.client.close(fatal(*SHUTDOWN))
                return raw
            case (_, raw):
                return raw

    async def _cancel(self) -> None:
        assert self._key is not None
        _, writer = await asyncio.open_unix_connection(socket_path(self.cluster))
        writer.write(CancelRequest(self._key.process_id, self._key.secret).encode())
        await writer.drain()
        writer.close()


def socket_path(cluster: Cluster) -> str:
    return str(cluster.directory / f".s.PGSQL.{cluster.tcp_port or PORT}")


def relay_to(cluster: Cluster, sessions: list[RelaySession]) -> OpenSession:
    """Opens sessions at PostgreSQL, and notes them."""

    async def open_session(login: Login, client: ClientPort) -> Session:
        session = RelaySession(cluster, login, client)
        await asyncio.get_running_loop().create_unix_connection(lambda: session, socket_path(cluster))
        await session.ready
        sessions.append(session)
        return session

    return open_session


@dataclass
class Relay:
    """A proxy that listens, on an event loop in a thread of its own."""

    listener: Listener
    sessions: list[RelaySession]
    loop: asyncio.AbstractEventLoop
    password: str = PASSWORD

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def context(self) -> ServerContext:
        return self.listener.context

    def dsn(self, **more: str | int) -> str:
        """For libpq; what is given wins."""
        usual: dict[str, str | int] = {"host": "127.0.0.1", "port": self.port, "user": USER, "dbname": "shop"}
        given = {**usual, "password": f"'{PASSWORD}'", **more}
        return " ".join(f"{name}={value}" for name, value in given.items())

    def call(self, work: Coroutine[None, None, Result]) -> Result:
        """Run something where the proxy runs."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def socket(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)


def accounts(*users: str) -> Accounts:
    verifiers = {user: Verifier.of_password(PASSWORD, secrets.token_bytes(16)) for user in (USER, *users)}
    return Accounts(
        {user: Account((DatedVerifier(verifier),)) for user, verifier in verifiers.items()}, secrets.token_bytes(32)
    )


@contextmanager
def running_relay(
    cluster: Cluster,
    settings: ServerSettings | None = None,
    *,
    tls: Tls | None = None,
    open_session: OpenSession | None = None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> Iterator[Relay]:
    """A proxy on a free port, stopped at the end; whatever its event loop had to complain of fails the test."""
    sessions: list[RelaySession] = []
    house = ServerContext.build(
        settings or ServerSettings(port=0, drain_timeout_seconds=0),
        database="shop",
        accounts=accounts("grace"),
        tls=tls,
        open_session=open_session or relay_to(cluster, sessions),
    )
    loop = new_loop()
    complaints: list[object] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    relay = Relay(Listener(house), sessions, loop)
    try:
        relay.call(relay.listener.start())
        yield relay
    finally:
        relay.call(relay.listener.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    assert complaints == []


def eventually(condition: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether it holds before the time is over."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def self_signed(directory: Path, *, signature: str = "ecdsa") -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    key = ed25519.Ed25519PrivateKey.generate() if signature == "ed25519" else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "noisegate test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None if signature == "ed25519" else hashes.SHA384())
    )
    paths = directory / "server.crt", directory / "server.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    encoding, shape = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(encoding, shape, serialization.NoEncryption()))
    return paths
