"""Errors and notices on their way to a client: whose words they are, where they point, in which encoding."""

import re
from collections.abc import Callable
from typing import Final

from proxy.server.errors import error_response
from proxy.server.replies import Edit
from proxy.wire.backend import ErrorResponse, NoticeResponse
from proxy.wire.buffer import Frame
from rules.refusal import NotAllowed, Refusal

REFUSED_SQL: Final = 'SELECT "_ng_refused"'
"""Sent to the twin in place of what is refused. It fails when it is analysed, not before: in a failed transaction
PostgreSQL says 25P02, as it would have; elsewhere 42703, and the client reads our refusal instead. The state of the
transaction and the skipping up to the next Sync are the twin's own."""

_SPELLED: Final = {"ε": "epsilon", "δ": "delta", "±": "+/-", "…": "..."}  # for encodings that do not have them
_REFUSED: Final = b"\0C42703\0"
_NO_PRIVILEGE: Final = b"\0C42501\0"
_PROTECTED: Final = re.compile(
    r'permission denied for (?:table|view|materialized view|foreign table|relation) "?(.+?)"?'
)


def is_fatal(raw: bytes) -> bool:
    """Whether the twin ends the connection with this ErrorResponse."""
    return b"\0VFATAL\0" in raw or b"\0VPANIC\0" in raw


def moved(raw: bytes, place: Callable[[int], int | None]) -> bytes:
    """An ErrorResponse with its position in the text that the client sent."""
    fields = dict(ErrorResponse.decode(raw).fields)
    if "P" not in fields:
        return raw
    position = place(int(fields["P"]))
    if position is None:
        del fields["P"]
    else:
        fields["P"] = str(position)
    return ErrorResponse(fields).encode()


def nowhere(_: int) -> None:
    """The place of an error in a text that the client has never seen."""


def refusal_report(refusal: Refusal, codec: str) -> bytes:
    """A refusal as the client reads it."""
    fields = error_response(refusal).fields
    return ErrorResponse({code: _in_codec(value, codec) for code, value in fields.items()}).encode()


def notice_report(message: str, codec: str) -> bytes:
    """A NOTICE of ours."""
    fields = {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": _in_codec(message, codec)}
    return NoticeResponse(fields).encode()


def guarded(raw: bytes, codec: str) -> bytes:
    """An error of the twin. That a role may not read a protected table there is said in our words.

    Such a statement slipped past the planner, by a route that PostgreSQL itself has closed.
    """
    if _NO_PRIVILEGE not in raw:
        return raw
    found = _PROTECTED.fullmatch(ErrorResponse.decode(raw).fields.get("M", ""))
    if found is None or found[1].startswith("pg_"):
        return raw
    refusal = NotAllowed(
        f'rows of "{found[1]}" are protected: a statement of this kind cannot read them',
        hint="Ask for aggregates in a statement of their own, such as SELECT count(*).",
    )
    return refusal_report(refusal, codec)


def in_place_of_refusal(report: bytes) -> Edit:
    """What the client gets of the replies to REFUSED_SQL."""

    def edit(frame: Frame) -> bytes:
        return report if frame.kind == ErrorResponse.kind and _REFUSED in frame.raw else frame.raw

    return edit


def _in_codec(value: str, codec: str) -> str:
    """Text of ours so that, encoded as UTF-8 with surrogates, it becomes bytes of the client's encoding."""
    if codec == "utf-8" or value.isascii():
        return value
    spelled = "".join(each if _has(codec, each) else _SPELLED.get(each, each) for each in value)
    return spelled.encode(codec, "replace").decode("utf-8", "surrogateescape")


def _has(codec: str, character: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True
