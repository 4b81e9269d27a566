"""A string of several statements runs statement by statement: what the client gets of the replies to each.

Outside a transaction the statements of one string are an implicit one. On the twin it is begun and ended by us, so that
a private statement is charged when all before it have run; the client sees neither. What PostgreSQL does with
transaction control in there is kept: BEGIN takes in what ran before it, and everything else stands outside a block.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.session.errors import in_place_of_refusal, moved, nowhere
from proxy.session.relay import Relay
from proxy.session.replies import Expected
from proxy.wire.backend import IDLE, CommandComplete, ErrorResponse, NoticeResponse, ReadyForQuery, RowDescription
from proxy.wire.buffer import Frame
from proxy.wire.frontend import Query
from rules.sql.statement import Statement

_CHAIN: Final = re.compile(r"\band\s+chain\b", re.IGNORECASE)
_ABOUT_BLOCKS: Final = (b"\0C25001\0", b"\0C25P01\0")  # there is a transaction in progress already, or there is none


class ImplicitTransaction:
    """The transaction of one string, begun on the twin when a statement needs one."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self.is_open = False  # and the client does not know of it
        self.held = b""  # the tag of the last statement: COMMIT may fail yet

    async def enter(self, statement: Statement) -> bool:
        """Begin or end it before a statement; False: that failed, and the string ends."""
        match statement.transaction:
            case "" if self._relay.state == IDLE:
                self.is_open = await self._run(b"BEGIN")
                return self.is_open
            case "commit" if self.is_open and not _CHAIN.search(statement.text):
                self.is_open = False
                return await self._run(b"COMMIT")
            case "commit" | "rollback" | "savepoint" if self.is_open:  # AND CHAIN and savepoints fail outside a block
                self.is_open = False
                return await self._run(b"ROLLBACK")
        return True

    def hand_over(self) -> None:
        """BEGIN has made it the client's."""
        self.is_open = False

    async def leave(self, *, has_failed: bool) -> None:
        """End it with its string, and let the client know that it may go on."""
        if self.is_open:
            self.is_open = False
            await self._run(b"ROLLBACK" if has_failed else b"COMMIT", ends_string=True)

    async def _run(self, text: bytes, *, ends_string: bool = False) -> bool:
        held, self.held = self.held, b""
        has_failed = False

        def edit(frame: Frame) -> bytes:
            nonlocal has_failed
            match frame.kind:
                case CommandComplete.kind:
                    return held
                case ErrorResponse.kind:
                    has_failed = True
                    return moved(self._relay.guarded(frame.raw), nowhere)
                case ReadyForQuery.kind:
                    return frame.raw if ends_string or has_failed else b""
            return without_warning(frame)

        self._relay.send(Query(text).encode(), Expected(Query.kind, edit))
        await self._relay.quiet()
        return not has_failed


def without_warning(frame: Frame) -> bytes:
    """A reply, unless it warns of a block where the client sees none."""
    is_warning = frame.kind == NoticeResponse.kind and any(code in frame.raw for code in _ABOUT_BLOCKS)
    return b"" if is_warning else frame.raw


@dataclass(slots=True, eq=False)
class StatementReplies:
    """Edits for the replies to one statement, and whether it has failed."""

    transaction: ImplicitTransaction
    guarded: Callable[[bytes], bytes]  # an error of the twin, in words of ours where it is about what is protected
    place: Callable[[int], int | None]  # from a position in what the twin was sent to one in what the client sent
    ends_string: bool = True  # False: the client must not see this ReadyForQuery, unless the string has failed
    columns: RowDescription | None = None
    notices: bytes = b""
    refusal: bytes | None = None
    effect: Callable[[], None] | None = None
    has_failed: bool = False

    def __call__(self, frame: Frame) -> bytes:
        match frame.kind:
            case RowDescription.kind if self.columns is not None:
                return self.columns.encode()
            case CommandComplete.kind:
                return self._completed(frame)
            case ErrorResponse.kind:
                return self._failed(frame)
            case ReadyForQuery.kind if self.transaction.is_open or not (self.ends_string or self.has_failed):
                return b""
        return without_warning(frame) if self.transaction.is_open else frame.raw

    def _completed(self, frame: Frame) -> bytes:
        """The statement is done; its notices stand before its CommandComplete."""
        if self.effect is not None:
            self.effect()
        said = self.notices + frame.raw
        if self.ends_string and self.transaction.is_open:
            self.transaction.held, said = said, b""
        return said

    def _failed(self, frame: Frame) -> bytes:
        self.has_failed = True
        if self.refusal is not None:
            return in_place_of_refusal(self.refusal)(frame)
        return moved(self.guarded(frame.raw), self.place)
