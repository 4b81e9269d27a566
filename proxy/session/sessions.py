"""All sessions: how one is opened on the twin, how they are found by their backend, and who watches their time.

A startup may bring settings of a session, and nothing of a backend's own switches: `options` is the command line of a
backend, `PGOPTIONS` to libpq, where -W lets it sleep before it hears anybody. Settings that are read at its start alone
can do so too.
"""

import asyncio
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final

from proxy.execute.service import Service
from proxy.log import warn
from proxy.session.classify import ODD_ENCODING, odd_encoding
from proxy.session.errors import TwinChanges
from proxy.session.interfaces import ClientPort, Login
from proxy.session.prepared_statements import PreparedStatements
from proxy.session.private_session import PrivateSession
from proxy.session.relay import Relay
from proxy.session.replies import TwinLost
from proxy.session.session import Incoming, Session
from proxy.session.session_context import SessionContext, StatementCache
from proxy.session.usage_limits import ByteQuota, ByteQuotaLimits, Used, memory_bytes, temporary_bytes, too_much
from proxy.settings import SessionSettings
from proxy.twin.link import Greeting, Link, StartupRefused, connect
from rules.refusal import BadSetting, Unavailable
from rules.sql.session_settings import PREFIX, check_setting_name, is_ours

_WATCH_SECONDS: Final = 1.0
_MOST_BEGINNINGS: Final = 3  # of one session, while somebody changes the settings of its role
_MOVE_SECONDS: Final = 60.0  # for a fresh twin to be there
_RETRY_SECONDS: Final = 0.2
_GRACE_SECONDS: Final = 10.0  # for a cancelled statement of the twin to stop
_NOT_READY: Final = ("28000", "3D000", "57P03")  # a twin that is just being made has no such role or database yet


class Sessions:
    """Opens sessions, and keeps them until they are closed."""

    def __init__(
        self,
        service: Service,
        *,
        socket: Callable[[str], Path],
        end_backends: Callable[[Collection[int]], Awaitable[None]],
        reset_roles: Callable[[str], Awaitable[bool]],
        database: str,
        settings: SessionSettings,
    ) -> None:
        self._service, self._socket = service, socket
        self._end_backends, self._reset_roles = end_backends, reset_roles
        self._database, self.settings = database, settings
        self._readings = StatementCache()
        self._room = ByteQuota(ByteQuotaLimits().beside(settings.max_message_bytes))
        self._by_backend: dict[int, Session] = {}
        self.closed_tables: Callable[[], Mapping[str, str]] = dict  # public ones that the twin has no rows of, and why
        self.twin_changes: Callable[[str], int] = lambda _: 0  # of an analyst's twin: odd while one is made
        self._left_behind: set[int] = set()  # backends that ran something when their session was closed

    async def open(self, login: Login, client: ClientPort) -> Session:
        """Connect the twin as the analyst and say its greeting: an OpenSession."""
        check_startup(login.parameters)
        relay, greeting = await self._begin(login, client)
        session = self._session(login, client, relay)
        try:
            if not relay.lexis.is_admitted:
                name = login.parameters.get("client_encoding")  # which may have come in `options`, or of the role
                raise ODD_ENCODING if name is None else odd_encoding(name)
            if _has_settings_of_ours(login.parameters):
                await session.check_settings()
        except BaseException:
            relay.link.close()
            raise
        process_id = greeting.key.process_id
        client.write(b"".join((*greeting.reports, login.backend_key(process_id), greeting.ready)))
        self._by_backend[process_id] = session
        return session

    async def _begin(self, login: Login, client: ClientPort) -> tuple[Relay, Greeting]:
        """A session on the twin that begins as every other one.

        Whatever a role sets for its own sessions to come is taken back, for the account may be a team's.
        """
        for _ in range(_MOST_BEGINNINGS):
            try:
                link, greeting = await self._connect(login)
            except StartupRefused as refused:
                if await self._reset_roles(login.user):
                    continue
                if refused.sqlstate in _NOT_READY:
                    break
                client.close(refused.raw)
                raise Unavailable("the session was refused") from None
            except (OSError, TimeoutError):
                await self._reset_roles(login.user)
                break
            changes = TwinChanges(partial(self.twin_changes, login.user))
            relay = link.receiver = Relay(link, client, greeting, changes, closed_tables=self.closed_tables)
            try:
                if not await relay.has_own_settings():
                    return relay, greeting
            except TwinLost:
                break
            except BaseException:
                link.close()
                raise
            link.close()
            await self._reset_roles(login.user)
        raise Unavailable("the twin is unavailable", hint="Try again in a moment.")

    async def _connect(self, login: Login) -> tuple[Link, Greeting]:
        return await connect(
            self._socket(login.user),
            user=login.user,
            database=self._database,
            parameters=login.parameters,
            timeout_seconds=self.settings.connect_timeout_seconds,
            most_frame_bytes=self.settings.most_frame_bytes,
        )

    def all(self) -> list[Session]:
        """Those that are open now."""
        return list(self._by_backend.values())

    def numbered(self) -> list[tuple[int, Session]]:
        """Those that are open now, by the number of their backend."""
        return sorted(self._by_backend.items(), key=itemgetter(0))

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
                limits = self.settings
                session.check_time(limits.statement_timeout_seconds, _GRACE_SECONDS, limits.reading_timeout_seconds)
                session.look()
                session.check_idle(limits.idle_transaction_seconds, limits.idle_session_seconds)
            self._check_usage()
            await self._end_left_behind()

    def _check_usage(self) -> None:
        """Memory and temporary files of the twin have a limit for each analyst and in all: the largest have to go."""
        limits = self.settings.usage
        memory = [
            Used(process, session.analyst, memory_bytes(process)) for process, session in self._by_backend.items()
        ]
        files: Counter[int] = Counter()
        for analyst in {session.analyst for session in self.all()}:
            with suppress(OSError):  # its twin is just being made anew, or is gone with the analyst
                files |= temporary_bytes(self._socket(analyst))
        temporary = [Used(process, session.analyst, files[process]) for process, session in self._by_backend.items()]
        for what, reason, going in (
            ("memory", "memory", too_much(memory, limits.memory_per_analyst, limits.memory)),
            (
                *("room for temporary files", "temporary_files"),
                too_much(temporary, limits.temporary_per_analyst, limits.temporary),
            ),
        ):
            for process in going:
                session = self._by_backend[process]
                warn("session_ended", reason=reason, analyst=session.analyst)
                self._left_behind.add(process)
                session.end_greedy(what)

    async def _end_left_behind(self) -> None:
        """A backend sees that its client is gone when it is done with what it runs, which may be never."""
        left, self._left_behind = self._left_behind - self._by_backend.keys(), set()
        if left:
            await self._end_backends(left)

    def _session(self, login: Login, client: ClientPort, relay: Relay) -> Session:
        private = PrivateSession(
            relay,
            self._service,
            analyst=login.user,
            session=secrets.token_hex(8),
            timeout_seconds=self.settings.inner_timeout_seconds,
        )
        names = PreparedStatements(self._room.share(login.user), self.settings.most_views)
        parts = SessionContext(login.user, relay, names, private, self._service, self._readings)

        def closed() -> None:
            names.close()
            self._forget(relay, session)

        async def reconnect(session: Session) -> None:
            self._forget(relay, session)
            await self._move(login, relay)
            self._by_backend[relay.link.key.process_id] = session

        incoming = Incoming(self._room.share(login.user), self.settings.max_message_bytes)
        session = Session(client, parts, closed, incoming, login.peer, reconnect)
        relay.owner = session
        return session

    async def _move(self, login: Login, relay: Relay) -> None:
        """Connect to the twin that takes the place of a lost one, as soon as it lets the analyst in; or TwinLost."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOVE_SECONDS):
                while True:
                    try:
                        relay.adopt(*await self._connect(login))
                    except (OSError, StartupRefused):
                        await asyncio.sleep(_RETRY_SECONDS)
                        continue
                    if not await relay.has_own_settings():
                        return
                    relay.link.receiver = None
                    relay.link.close()
                    await self._reset_roles(login.user)
        raise TwinLost

    def _forget(self, relay: Relay, session: Session) -> None:
        """The number of an ended backend may belong to another already."""
        process_id = relay.link.key.process_id
        if self._by_backend.get(process_id) is session:
            del self._by_backend[process_id]
            if session.is_busy:
                self._left_behind.add(process_id)


def _has_settings_of_ours(parameters: Mapping[str, str]) -> bool:
    """Return whether a startup may set one, by its own name or in `options`: PGOPTIONS="-c noisegate.epsilon=0.5"."""
    return any(PREFIX in f"{name} {value}".lower() for name, value in parameters.items())


AT_START: Final = frozenset({"post_auth_delay", "ignore_system_indexes", "local_preload_libraries"})
"""Settings that any role may bring, and that do something only when a backend starts."""

_WORD: Final = re.compile(r"(?:[^\s\\]|\\.)+", re.DOTALL)  # a backslash keeps what follows in the word
_SETTING: Final = re.compile(r"([A-Za-z_][\w.-]*)=.*", re.DOTALL)
_HINT: Final = "Write options as -c name=value, as in PGOPTIONS='-c statement_timeout=5s'."


def check_startup(parameters: Mapping[str, str]) -> None:
    """Refuse a startup that asks for more than settings of the session, or for a setting of ours that there is not.

    Values of ours are checked when the session has them, with everything else that it has.
    """
    for parameter in dict.fromkeys((*parameters, *_named(parameters.get("options", "")))):
        name = parameter.replace("-", "_")
        if name.lower() in AT_START:
            raise BadSetting(
                f'parameter "{parameter}" cannot be set at connection start',
                hint="Remove it from the connection string.",
            )
        if is_ours(name):
            check_setting_name(name)


def _named(options: str) -> Iterator[str]:
    """The settings that the command line names; anything else in it is refused."""
    words = iter(re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL) for word in _WORD.findall(options))
    for word in words:
        option = next(words, "") if word == "-c" else word.removeprefix("-c" if word.startswith("-c") else "--")
        match = _SETTING.fullmatch(option)
        if match is None or option == word:
            raise BadSetting(f'option "{word}" is not allowed', hint=_HINT)
        yield match[1]
