"""Takes connections in, and lets them end when the proxy is told to stop."""

import asyncio
import socket
from contextlib import suppress
from typing import Final

from proxy.log import event
from proxy.server.client import Client
from proxy.server.server_context import ServerContext
from proxy.session.errors import SHUTDOWN, fatal

_BACKLOG: Final = 512
_GOODBYE_SECONDS: Final = 1  # for the last messages to leave


class Listener:
    """One listening socket and its clients."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self._server: asyncio.Server | None = None
        self._clients: set[Client] = set()
        self._is_stopping = False
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.port = context.settings.port  # or, once it listens, the free one that it was given

    def __len__(self) -> int:
        """Connections, logged in or not."""
        return len(self._clients)

    @property
    def is_stopping(self) -> bool:
        """Return whether nobody is taken in any more."""
        return self._is_stopping

    async def start(self) -> None:
        settings = self.context.settings
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._welcome, settings.host, settings.port, backlog=_BACKLOG)
        for listening in self._server.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # whom we accept inherits it
        self.port = int(self._server.sockets[0].getsockname()[1])
        event("listening", port=self.port)

    async def stop(self) -> None:
        """Take nobody in any more, let sessions finish what they run, then end those that are left."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        for client in tuple(self._clients):
            client.drain()
        await self._until_empty(self.context.settings.drain_timeout_seconds)
        for client in tuple(self._clients):
            client.close(fatal(*SHUTDOWN))
        await self._until_empty(_GOODBYE_SECONDS)
        for client in tuple(self._clients):
            client.abort()
        event("stopped", aborted=len(self._clients))

    def _welcome(self) -> Client:
        client = Client(self.context, self._farewell)
        self._clients.add(client)
        self._is_empty.clear()
        if self._is_stopping:  # it was in the loop's hands already
            client.drain()
        return client

    def _farewell(self, client: Client) -> None:
        self._clients.discard(client)
        if not self._clients:
            self._is_empty.set()

    async def _until_empty(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_empty.wait(), seconds)
