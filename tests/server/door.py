"""A door without a lock: raw clients come in by a unix socket and get a session as after a login, with no password."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from proxy.server.accounts import Accounts
from proxy.server.listener import Client
from proxy.server.server_context import ServerContext
from proxy.session.interfaces import OpenSession
from proxy.settings import ServerSettings
from proxy.wire.authentication import AuthenticationOk
from proxy.wire.conversation import Conversation, Event, LoggedIn, Send
from proxy.wire.startup import MAX_STARTUP_BYTES, StartupMessage, decode_startup

_SETTINGS = ServerSettings(plaintext_from="anywhere")


class _Unlocked(Conversation):
    """The startup message is the login."""

    def receive(self, data: bytes) -> Iterator[Event]:
        self.buffer.feed(data)
        packet = self.buffer.next_startup(MAX_STARTUP_BYTES)
        if packet is not None:
            startup = decode_startup(packet)
            assert isinstance(startup, StartupMessage)
            self._startup = startup
            yield Send(AuthenticationOk().encode())
            yield LoggedIn(startup)


class _OpenHouse(ServerContext):
    def conversation(self, host: str) -> Conversation:
        return _Unlocked(has_tls=False, needs_tls=False)


async def serve(open_session: OpenSession, path: Path, *, database: str) -> asyncio.AbstractServer:
    """Let raw clients in at this path."""
    house = _OpenHouse.build(
        _SETTINGS,
        database=database,
        accounts=Accounts({}, b"nobody is asked for a password"),
        tls=None,
        open_session=open_session,
    )
    return await asyncio.get_running_loop().create_unix_server(lambda: Client(house, lambda _: None), str(path))
