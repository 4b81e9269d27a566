"""The replies to one Query, statement by statement: what the client gets of them.

A string may have been changed on its way to the twin: private statements are outer statements there, refused ones
fail on purpose. Descriptions, notices, errors and positions are put back here.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.session.errors import in_place_of_refusal, moved
from proxy.wire.backend import CommandComplete, ErrorResponse, ReadyForQuery, RowDescription
from proxy.wire.buffer import Frame


@dataclass(slots=True, eq=False)
class Statementwise:
    """Replies and edits for single statements of a string, by their number, and how far the twin has come."""

    guarded: Callable[[bytes], bytes]  # an error of the twin, in words of ours where it is about what is protected
    place: Callable[[int], int | None]  # from a position in what the twin was sent to one in what the client sent
    ends_string: bool = True  # False: the client must not see this ReadyForQuery, unless the string has failed
    columns: dict[int, RowDescription] = field(default_factory=dict)
    notices: dict[int, bytes] = field(default_factory=dict)
    refusals: dict[int, bytes] = field(default_factory=dict)
    effects: dict[int, Callable[[], None]] = field(default_factory=dict)
    has_failed: bool = False
    _number: int = 0

    def __call__(self, frame: Frame) -> bytes:
        match frame.kind:
            case RowDescription.kind if self._number in self.columns:
                return self.columns[self._number].encode()
            case CommandComplete.kind:
                return self._completed() + frame.raw
            case ErrorResponse.kind:
                return self._failed(frame)
            case ReadyForQuery.kind if not (self.ends_string or self.has_failed):
                return b""
        return frame.raw

    def _completed(self) -> bytes:
        """One statement is done; returns what stands before its CommandComplete."""
        number, self._number = self._number, self._number + 1
        if effect := self.effects.get(number):
            effect()
        return self.notices.get(number, b"")

    def _failed(self, frame: Frame) -> bytes:
        self.has_failed = True
        if report := self.refusals.get(self._number):
            return in_place_of_refusal(report)(frame)
        return moved(self.guarded(frame.raw), self.place)


class RewrittenString:
    """A string that is put together from pieces of the client's text and texts of ours."""

    def __init__(self) -> None:
        self.text = ""
        self._starts: list[int] = []
        self._shifts: list[int | None] = []

    def keep(self, piece: str, start: int) -> None:
        """A piece of the client's text, which stood after `start` characters there."""
        self._add(piece, start - len(self.text))

    def put(self, text: str) -> None:
        """A text that the client has never seen."""
        self._add(text, None)

    def place(self, position: int) -> int | None:
        """Return where a position, counted from 1, is in the client's text."""
        at = bisect_right(self._starts, position - 1) - 1
        shift = self._shifts[at] if at >= 0 else None
        return None if shift is None else position + shift

    def _add(self, text: str, shift: int | None) -> None:
        self._starts.append(len(self.text))
        self._shifts.append(shift)
        self.text += text
