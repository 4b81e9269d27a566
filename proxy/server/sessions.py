"""All sessions: how one is opened on the twin, how they are found by their backend, and who watches their time."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.server.names import Names
from proxy.server.parts import Parts
from proxy.server.ports import ClientPort, Login
from proxy.server.private import Private
from proxy.server.readings import Readings
from proxy.server.relay import Relay
from proxy.server.service_port import StatementService
from proxy.server.session import Session
from proxy.twin.link import Greeting, StartupRefused, connect
from rules.refusal import Unavailable
from rules.sql.commands import PREFIX

_WATCH_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 10.0  # for a cancelled statement of the twin to stop


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Deadlines of sessions."""

    connect_timeout_seconds: float = 10  # to the twin
    statement_timeout_seconds: float = 60  # of anything on the twin, whatever the client's own time-out
    inner_timeout_seconds: float = 300  # of the inner statements of one answer


class Sessions:
    """Opens sessions, and keeps them until they are closed."""

    def __init__(
        self,
        service: StatementService,
        *,
        socket: Callable[[], Path],
        end_backends: Callable[[Collection[int]], Awaitable[None]],
        database: str,
        settings: SessionSettings,
    ) -> None:
        self._service, self._socket, self._end_backends = service, socket, end_backends
        self._database, self.settings = database, settings
        self._readings = Readings()
        self._by_backend: dict[int, Session] = {}
        self._left_behind: set[int] = set()  # backends that ran something when their session was closed

    async def open(self, login: Login, client: ClientPort) -> Session:
        """Connect the twin as the analyst and say its greeting: an OpenSession."""
        try:
            link, greeting = await connect(
                self._socket(),
                user=login.user,
                database=self._database,
                parameters=login.parameters,
                timeout_seconds=self.settings.connect_timeout_seconds,
            )
        except StartupRefused as refused:
            client.close(refused.raw)
            raise Unavailable("the session was refused") from None
        except (OSError, TimeoutError):
            raise Unavailable("the twin is away", hint="Try again in a moment.") from None
        session = self._session(login, client, Relay(link, client, greeting), greeting)
        try:
            if _has_settings_of_ours(login.parameters):
                await session.check_settings()
        except BaseException:
            link.close()
            raise
        process_id = greeting.key.process_id
        client.write(b"".join((*greeting.reports, login.backend_key(process_id), greeting.ready)))
        self._by_backend[process_id] = session
        return session

    def all(self) -> list[Session]:
        """Those that are open now."""
        return list(self._by_backend.values())

    def cancel_backend(self, process_id: int) -> None:
        """Somebody who may do so has called pg_cancel_backend on the twin: what runs inside stops too."""
        if session := self._by_backend.get(process_id):
            session.cancel_inside()

    def terminate_backend(self, process_id: int) -> None:
        """The same for pg_terminate_backend."""
        if session := self._by_backend.get(process_id):
            session.terminate()

    async def watch(self) -> None:
        """Keep the wall-clock limit of statements on the twin, for a client may SET statement_timeout = 0."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            for session in self.all():
                session.check_time(self.settings.statement_timeout_seconds, _GRACE_SECONDS)
            await self._end_left_behind()

    async def _end_left_behind(self) -> None:
        """A backend sees that its client is gone when it is done with what it runs, which may be never."""
        left, self._left_behind = self._left_behind - self._by_backend.keys(), set()
        if left:
            await self._end_backends(left)

    def _session(self, login: Login, client: ClientPort, relay: Relay, greeting: Greeting) -> Session:
        private = Private(
            relay,
            self._service,
            analyst=login.user,
            session=secrets.token_hex(8),
            timeout_seconds=self.settings.inner_timeout_seconds,
        )
        parts = Parts(login.user, relay, Names(), private, self._service, self._readings)
        session = Session(client, parts, lambda: self._forget(greeting.key.process_id, session))
        relay.owner = session
        relay.link.receiver = relay
        return session

    def _forget(self, process_id: int, session: Session) -> None:
        """The number of an ended backend may belong to another already."""
        if self._by_backend.get(process_id) is session:
            del self._by_backend[process_id]
            if session.is_busy:
                self._left_behind.add(process_id)


def _has_settings_of_ours(parameters: Mapping[str, str]) -> bool:
    """Whether a startup may set one, by its own name or in `options`: PGOPTIONS="-c noisegate.epsilon=0.5"."""
    return any(PREFIX in f"{name} {value}".lower() for name, value in parameters.items())
