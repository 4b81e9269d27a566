"""One client's session: its messages in their order, to the twin or to the path of private statements."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from proxy.log import event
from proxy.session.classify import FUNCTION_CALL
from proxy.session.errors import SHUTDOWN, error_response, fatal
from proxy.session.extended import Extended
from proxy.session.interfaces import ClientPort
from proxy.session.recent_refusals import log_refusal
from proxy.session.replies import TwinLost, TwinRefusal
from proxy.session.session_context import SessionContext, SessionImage, replay, take_image
from proxy.session.simple import Simple
from proxy.session.usage_limits import QuotaShare
from proxy.settings import MEGABYTE
from proxy.wire.backend import IDLE
from proxy.wire.codec import ProtocolViolation
from proxy.wire.frontend import (
    Bind,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    Parse,
    Query,
    Sync,
    Terminate,
)
from rules.refusal import Interrupted, Refusal, TooMany

_COPY: Final = frozenset({CopyData.kind, CopyDone.kind, CopyFail.kind})
_TWIN_LOST: Final = ("57P02", "terminating connection because of crash of another server process")
_CONNECT_AGAIN: Final = "In a moment you should be able to reconnect to the database and repeat your command."
_STILL_SECONDS: Final = 1.0  # that a session has to be idle before it is looked at
_MOST_UNNAMED_BYTES: Final = 64 * 1024  # of an unnamed statement that is parsed again
_OUT_OF_TIME: Final = ("57014", "terminating connection: a statement exceeded its timeout and did not stop")
_IDLE_TRANSACTION: Final = ("25P03", "terminating connection due to idle-in-transaction timeout")
_IDLE_SESSION: Final = ("57P05", "terminating connection due to idle-session timeout")
_PERIOD_ENDED: Final = ("25P03", "terminating connection: the period that has paid for its answers has ended")
_UNREAD: Final = ("57P05", "terminating connection: the client did not read the result in time")

Work = Coroutine[Any, Any, None]
Reconnect = Callable[["Session"], Coroutine[Any, Any, None]]
"""Gives the session's relay a connection to a fresh twin, or raises TwinLost."""


class Incoming:
    """The large message that a session takes in: it counts from its first byte until the twin has read it."""

    def __init__(self, share: QuotaShare, most_bytes: int) -> None:
        self._share, self._most_bytes, self._taken = share, most_bytes, 0
        self.is_whole = True  # all of it is here

    def admit(self, size: int) -> Refusal | None:
        """Count a message of so many bytes, or say why it cannot be taken in."""
        if size > self._most_bytes:
            megabytes = self._most_bytes // MEGABYTE
            hint = "Send less at once. Your DBA can raise --max-message of noisegate serve."
            return TooMany(f"a message is larger than {megabytes} MB", hint=hint)
        if not self._share.has_room(size):
            hint = "Try again when others are done, send less at once, or DEALLOCATE statements."
            return TooMany("too many large messages and prepared statements at the same time", hint=hint)
        self._taken += size
        self._share.take(size)
        return None

    def let_go(self) -> None:
        """The twin has it."""
        if self._taken and self.is_whole:
            self._share.take(-self._taken)
            self._taken = 0

    def close(self) -> None:
        self._share.close()


class Session:
    """Relays, and answers. Messages are handled at once; behind one that has to be awaited the client is held."""

    def __init__(
        self,
        client: ClientPort,
        parts: SessionContext,
        on_closed: Callable[[], None],
        incoming: "Incoming",
        peer: str = "",
        reconnect: Reconnect | None = None,
    ) -> None:
        self.peer, self.since = peer, asyncio.get_running_loop().time()
        self._on_closed, self._reconnect, self._incoming = on_closed, reconnect, incoming
        self._client, self._parts, self._relay = client, parts, parts.relay
        self._extended, self._simple = Extended(parts), Simple(parts)
        self._task: asyncio.Task[None] | None = None
        self._holds = 0  # reasons for which the client must send nothing more
        self._is_draining = self._is_leaving = False
        self._heard = 0  # messages of the client
        self._image: SessionImage | None = SessionImage({})  # of the session as it was after so many of them
        self._image_of = 0
        self._handlers: dict[bytes, Callable[[bytes], Work | None]] = {
            Query.kind: self._simple.query,
            Parse.kind: self._extended.parse,
            Bind.kind: self._extended.bind,
            Describe.kind: self._extended.describe,
            Execute.kind: self._extended.execute,
            Close.kind: self._extended.close,
            Flush.kind: self._flush,
            FunctionCall.kind: self._function_call,
        }

    # What the client's socket says.

    def frame(self, kind: bytes, raw: bytes) -> None:
        self._heard += 1
        self._parts.private.hear()
        self._incoming.is_whole = True
        if (work := self._handle(kind, raw)) is not None:
            self._begin(work, kind, raw)
        elif not self._holds:
            self._incoming.let_go()

    def admits(self, kind: bytes, size: int) -> bool:
        self._incoming.is_whole = False
        refusal = self._incoming.admit(size)
        if refusal is None:
            return True
        self._heard += 1
        if kind in (Query.kind, FunctionCall.kind):
            self._begin(self._refuse(refusal))
        elif kind not in _COPY and not self._relay.skipping:
            self._extended.refuse(refusal)
        return False

    def pause_writing(self) -> None:
        self._relay.pause_reading()

    def resume_writing(self) -> None:
        self._relay.resume_reading()

    @property
    def is_inside_message(self) -> bool:
        return self._relay.is_inside_message

    async def check_settings(self) -> None:
        """Before anything else: refuse what the client has set at its startup, if it cannot be."""
        await self._parts.private.check_settings()

    def cancel(self) -> None:
        """Stop what runs now, inside or on the twin, or will in one of the next steps of the client's last message.

        A late cancel must not hit the next message.
        """
        if not self.cancel_inside() and self._relay.busy_since is not None:
            self._relay.link.cancel()

    def cancel_inside(self) -> bool:
        """Stop what runs outside the twin; False: nothing does."""
        return self._parts.private.cancel()

    @property
    def is_busy(self) -> bool:
        """Return whether the twin owes anything."""
        return not self._relay.is_quiet

    def drain(self) -> None:
        self._is_draining = True
        self._end_if_idle()

    def closed(self) -> None:
        self._is_leaving = True  # nobody is there to go on with a fresh twin
        if self._task is not None:
            self._task.cancel()
        self._relay.link.close()
        self._incoming.close()
        self._on_closed()  # while it is still known whether the twin is busy
        self._relay.unnamed_parse = b""  # what is large goes now: the rest refers to itself, and may stay for long

    # What the relay says.

    def hold(self) -> None:
        """The client must wait."""
        self._holds += 1
        if self._holds == 1:
            self._client.pause_reading()

    def go_on(self) -> None:
        self._holds -= 1
        if not self._holds:
            self._incoming.let_go()
            self._client.resume_reading()

    def ready(self) -> None:
        """A ReadyForQuery has come."""
        if self._is_draining:
            asyncio.get_running_loop().call_soon(self._end_if_idle)  # the client gets it first

    def twin_lost(self) -> None:
        if self._is_idle and self._image is not None and self._image_of == self._heard and not self._is_draining:
            self._begin(self._begin_again(self._image))
        else:
            self._say_lost()

    def _say_lost(self) -> None:
        said = self._is_leaving or self._relay.has_farewell
        self._client.close(b"" if said else self._relay.last_words + fatal(*_TWIN_LOST, hint=_CONNECT_AGAIN))

    async def _begin_again(self, image: SessionImage) -> None:
        """Go on with a fresh twin: the client notices nothing. What it sends meanwhile waits."""
        try:
            if self._reconnect is None:
                raise TwinLost
            await self._reconnect(self)
            await replay(image, self._relay.unnamed_parse, self._relay)
        except (TwinLost, TwinRefusal, UnicodeEncodeError):
            self._say_lost()
            raise TwinLost from None
        event("session_moved", analyst=self.analyst)

    @property
    def _is_idle(self) -> bool:
        """Return whether nothing is going on, and nothing was when the connection was lost."""
        relay = self._relay
        return not (self._task or self._is_leaving or relay.has_farewell or relay.was_busy) and relay.state == IDLE

    def denied(self, refusal: Refusal) -> None:
        log_refusal(self.analyst, refusal)

    # What the watchdog says.

    def check_time(self, limit_seconds: float, grace_seconds: float, reading_seconds: float | None = None) -> None:
        """Cancel what has run on the twin for too long; end the session if it does not stop.

        While the client reads nothing, nothing runs: that may take `reading_seconds`, or for ever.
        """
        now = asyncio.get_running_loop().time()
        if self._relay.paused_since is not None:
            if reading_seconds is not None and now - self._relay.paused_since > reading_seconds:
                self._client.close(fatal(*_UNREAD))
            return
        if self._relay.busy_since is None:
            return
        seconds = now - self._relay.busy_since
        if seconds > limit_seconds + grace_seconds:
            self._client.close(fatal(*_OUT_OF_TIME))
        elif seconds > limit_seconds:
            self._relay.end_overdue(_overdue(limit_seconds))

    def check_idle(self, transaction_seconds: float | None, session_seconds: float | None) -> None:
        """End a session whose client leaves it alone for too long: PostgreSQL's own limits a client may SET away."""
        if self._task is not None or not self._relay.is_quiet:
            return
        seconds = asyncio.get_running_loop().time() - self._relay.quiet_since
        is_open = self._relay.state != IDLE
        limit = transaction_seconds if is_open else session_seconds
        if limit is not None and seconds > limit:
            self._client.close(fatal(*(_IDLE_TRANSACTION if is_open else _IDLE_SESSION)))

    def look(self) -> None:
        """Learn what would have to be set again, once an idle session has been still for a moment."""
        relay = self._relay
        if self._image_of == self._heard or self._task is not None or not relay.is_quiet or relay.state != IDLE:
            return
        if asyncio.get_running_loop().time() - relay.quiet_since >= _STILL_SECONDS:
            self._begin(self._take_image())

    async def _take_image(self) -> None:
        relay, heard, quiet_since = self._relay, self._heard, self._relay.quiet_since
        is_lost = relay.has_hidden_state or len(relay.unnamed_parse) > _MOST_UNNAMED_BYTES
        try:
            self._image = None if is_lost else await take_image(relay)
        except TwinRefusal:  # by a time-out of the session's own, say
            self._image = None
        self._image_of, relay.quiet_since = heard, quiet_since  # the client has done nothing

    def end_greedy(self, what: str) -> None:
        """End a session that takes too much of the twin's machine."""
        hint = "Select less at once, or close sessions that are not needed."
        self._client.close(fatal("53200", f"terminating connection: no {what} is left on the twin", hint=hint))

    @property
    def analyst(self) -> str:
        return self._parts.analyst

    @property
    def activity(self) -> str:
        """As pg_stat_activity names it."""
        if self.is_busy or self._task is not None:
            return "active"
        return "idle" if self._relay.state == IDLE else "idle in transaction"

    @property
    def running(self) -> tuple[float, str] | None:
        """Since when something runs, and the text without constants of what reads protected rows."""
        if (work := self._parts.private.at_work) is not None:
            return work.since, work.shape
        return None if self._relay.busy_since is None else (self._relay.busy_since, "")

    def terminate(self) -> None:
        """End the session from outside, as pg_terminate_backend does."""
        self._client.close(fatal(*SHUTDOWN))

    def _end_if_idle(self) -> None:
        if self._task is None and self._relay.is_quiet and self._relay.state == IDLE:
            self._client.close(fatal(*SHUTDOWN))

    # Messages

    def _handle(self, kind: bytes, raw: bytes) -> Work | None:
        """Deal with one message, or return what is still to be awaited."""
        if kind == Sync.kind:
            self._extended.sync(raw)
        elif kind == Terminate.kind:
            self._is_leaving = True
            self._relay.link.write(raw)  # the twin ends the connection when all before it is answered
        elif kind in _COPY or self._relay.skipping:
            pass  # PostgreSQL ignores them too: there is never a COPY FROM, and after an error nothing counts but Sync
        elif (handler := self._handlers.get(kind)) is None:
            self._relay.link.write(raw)  # no message of the protocol: the twin says so, and ends the session
        elif self._parts.private.holds_unpaid:
            return self._close_unpaid(kind, raw)
        else:
            return self._tried(handler, kind, raw)
        return None

    async def _close_unpaid(self, kind: bytes, raw: bytes) -> None:
        """Close what another period has paid for, then deal with the message."""
        await self._relay.quiet()
        try:
            if not self._relay.skipping:
                await self._parts.private.close_unpaid(sync=kind == Query.kind)
        except TwinRefusal:  # in a failed transaction, which closes nothing and can go back to before it failed
            self._client.close(fatal(*_PERIOD_ENDED))
            return
        if (work := self._handle(kind, raw)) is not None:
            await work

    def _tried(self, handler: Callable[[bytes], Work | None], kind: bytes, raw: bytes) -> Work | None:
        try:
            return handler(raw)
        except ProtocolViolation:
            self._relay.forward(kind, raw)  # malformed: the twin says what is wrong
            return None

    def _flush(self, raw: bytes) -> None:
        Flush.decode(raw)  # one that is malformed has a reply, which is an error
        self._relay.link.write(raw)

    def _function_call(self, _: bytes) -> Work:
        return self._refuse(FUNCTION_CALL)

    async def _refuse(self, refusal: Refusal) -> None:
        """Refuse a message that ReadyForQuery follows."""
        await self._relay.quiet()
        if not self._relay.skipping:
            await self._simple.refuse(refusal)

    def _begin(self, work: Work, kind: bytes = b"", raw: bytes = b"") -> None:
        self.hold()
        self._task = asyncio.create_task(self._work(work, kind, raw))

    async def _work(self, work: Work, kind: bytes, raw: bytes) -> None:
        """Await what one message needs, then let the client go on."""
        try:
            await work
        except ProtocolViolation:
            self._relay.forward(kind, raw)
        except TwinLost:
            event("twin_lost")  # the client has been told
        except Exception as error:  # noqa: BLE001 - the last resort: logged without its text, and the client is told
            self._client.close(error_response(error, "FATAL").encode())
        finally:
            self._task = None
            self.go_on()
        if self._is_draining:
            self._end_if_idle()


def _overdue(seconds: float) -> Interrupted:
    return Interrupted(
        f"canceling statement due to the proxy's limit of {seconds:g} s for a statement that reads no protected table",
        hint="Your DBA can raise it with --statement-timeout of noisegate serve.",
    )
