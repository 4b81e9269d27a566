"""A session of an analyst inside the proxy, in which statements are explained and nothing else.

It is the session that a client of that name would have: the same parser, planner, twin and refusals. Statements go by
the extended protocol, whose Parse takes one statement, and each begins with our EXPLAIN: so nothing is run.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from proxy.session.interfaces import Login
from proxy.session.interfaces import Session as AnySession
from proxy.session.sessions import Sessions
from proxy.wire.backend import DataRow, ErrorResponse, NoticeResponse, ReadyForQuery
from proxy.wire.buffer import FrameBuffer
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync, Terminate
from rules.refusal import Interrupted, NotSupported, Unavailable

PREFIX: Final = "EXPLAIN (FORMAT JSON) "
_SYNTAX_ERROR: Final = "42601"
_ONLY_QUERIES: Final = {
    "C": NotSupported.sqlstate,
    "M": "only queries can be tried here",
    "H": "Type a SELECT, VALUES, TABLE or WITH, without EXPLAIN. Other statements are for psql or another client.",
}
_SECONDS: Final = 20
_MOST_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply: a plan as EXPLAIN's JSON, or an error in the fields of the protocol."""

    plan: dict[str, object] | None
    error: dict[str, str]
    notices: tuple[str, ...] = ()


class _Client:
    """The client's side, in memory."""

    def __init__(self) -> None:
        self._buffer = FrameBuffer(_MOST_BYTES)
        self.rows: list[bytes] = []
        self.error: dict[str, str] = {}
        self.notices: list[str] = []
        self._ready, self._is_read = asyncio.Event(), asyncio.Event()
        self._is_read.set()
        self._is_closed = False

    def write(self, data: bytes) -> None:
        self._buffer.feed(data)
        for frame in self._buffer.frames():
            match frame.kind:
                case DataRow.kind:
                    self.rows.append(DataRow.decode(frame.raw).values[0] or b"")
                case ErrorResponse.kind:
                    self.error = dict(ErrorResponse.decode(frame.raw).fields)
                case NoticeResponse.kind:
                    self.notices.append(NoticeResponse.decode(frame.raw).fields.get("M", ""))
                case ReadyForQuery.kind:
                    self._ready.set()

    def pause_reading(self) -> None:
        self._is_read.clear()

    def resume_reading(self) -> None:
        self._is_read.set()

    def close(self, farewell: bytes = b"") -> None:
        if farewell:
            self.write(farewell)
        self._is_closed = True
        self._ready.set()
        self._is_read.set()

    async def is_read(self) -> None:
        """Wait until the session takes the next message."""
        await self._is_read.wait()

    async def ready(self) -> None:
        """Wait for the end of an answer; raises a Refusal where none comes."""
        await self._ready.wait()
        if self._is_closed and not self.error:
            raise Unavailable("the session ended before it answered", hint="Try again in a moment.")

    def forget(self) -> None:
        self._ready.clear()
        self.rows.clear()
        self.notices.clear()
        self.error = {}


class Asking:
    """Explains statements as one analyst."""

    def __init__(self, session: AnySession, client: _Client) -> None:
        self._session, self._client = session, client

    async def explain(self, sql: str, epsilon: Decimal | None = None) -> Reply:
        """The plan of a statement, or why there is none. Positions count in the statement itself."""
        if epsilon is not None:
            setting = await self._send(Query(f"SET noisegate.epsilon = {epsilon:f}".encode()).encode())
            if setting.error:
                return setting
        written = sql.replace("\0", " ")
        running = (Bind(b"", b"", (), (), ()).encode(), Execute(b"").encode(), Sync().encode())
        reply = await self._send(_parse(PREFIX + written), *running)
        if reply.error.get("C") == _SYNTAX_ERROR:  # of the statement, or only of an EXPLAIN before it
            alone = await self._send(_parse(written), Sync().encode())
            return alone if alone.error else Reply(None, _ONLY_QUERIES)
        if reply.error.get("P"):
            moved = max(1, int(reply.error["P"]) - len(PREFIX))
            return Reply(None, {**reply.error, "P": str(moved)}, reply.notices)
        return reply

    async def _send(self, *messages: bytes) -> Reply:
        self._client.forget()
        try:
            async with asyncio.timeout(_SECONDS):
                for raw in messages:
                    await self._client.is_read()
                    self._session.frame(raw[:1], raw)
                await self._client.ready()
        except TimeoutError:
            raise Interrupted(f"no plan was found within {_SECONDS} seconds") from None
        client = self._client
        plan = json.loads(b"".join(client.rows)) if client.rows and not client.error else None
        return Reply(_plan_of(plan), client.error, tuple(client.notices))


def _parse(text: str) -> bytes:
    return Parse(b"", text.encode("utf-8", "replace"), ()).encode()


def _plan_of(plan_entry: object) -> dict[str, object] | None:
    """The tree of a document as EXPLAIN writes it."""
    match plan_entry:
        case [{"Plan": dict() as plan}, *_]:
            return plan
    return None


@asynccontextmanager
async def asking_as(analyst: str, sessions: Sessions, database: str) -> AsyncIterator[Asking]:
    """A session of this analyst, until the block is left; raises a Refusal."""
    client = _Client()
    parameters = {"client_encoding": "UTF8", "application_name": "noisegate console"}
    login = Login(analyst, database, parameters, "console", lambda _process_id: b"")
    session = await sessions.open(login, client)
    try:
        yield Asking(session, client)
    finally:
        raw = Terminate().encode()
        session.frame(raw[:1], raw)
        session.closed()


def facts_of(plan: dict[str, object]) -> Sequence[tuple[str, str]]:
    """The lines of one node of a plan, without the nodes below it."""
    shown = ((name, value) for name, value in plan.items() if name not in ("Node Type", "Plans"))
    return [(name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)) for name, value in shown]
