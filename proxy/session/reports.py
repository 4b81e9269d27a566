"""Errors and notices on their way to a client: whose words they are, where they point, in which encoding."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from proxy.session.errors import error_response
from proxy.session.replies import Edit
from proxy.wire.backend import ErrorResponse, NoticeResponse
from proxy.wire.buffer import Frame
from rules.refusal import NotAllowed, Refusal

REFUSED_SQL: Final = 'SELECT "_ng_refused"'
"""Sent to the twin in place of what is refused. It fails when it is analysed, not before: in a failed transaction
PostgreSQL says 25P02, as it would have; elsewhere 42703, and the client reads our refusal instead. The state of the
transaction and the skipping up to the next Sync are the twin's own."""

_SPELLED: Final = {"ε": "epsilon", "δ": "delta", "±": "+/-", "…": "..."}  # for encodings that do not have them
_REFUSED: Final = b"\0C42703\0"
_CRASHED: Final = (b"\0C57P02\0", b"\0Mterminating connection due to unexpected postmaster exit\0")
_NO_PRIVILEGE: Final = b"\0C42501\0"
_PROTECTED: Final = re.compile(
    r'permission denied for (?:table|view|materialized view|foreign table|relation) "?(.+?)"?'
)


def is_fatal(raw: bytes) -> bool:
    """Return whether the twin ends the connection with this ErrorResponse."""
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


def find_denial(raw: bytes, closed: Mapping[str, str]) -> Refusal | None:
    """Our words for an error of the twin that says that a role may not read a protected table there.

    Such a statement slipped past the planner, by a route that PostgreSQL itself has closed; or the table is public, and
    the twin has no rows of it, for the reason that stands beside its name in `closed`.
    """
    if _NO_PRIVILEGE not in raw:
        return None
    match = _PROTECTED.fullmatch(ErrorResponse.decode(raw).fields.get("M", ""))
    if match is None or match[1].startswith("pg_"):
        return None
    if match[1] in closed:
        return NotAllowed(
            f'public table "{match[1]}" cannot be queried: {closed[match[1]]}',
            hint="Joins of protected tables with it are answered. Your DBA can raise --max-public-rows; with "
            "public_reader in the rules, subqueries over it that stand in a query of protected tables are answered.",
        )
    return NotAllowed(
        f'this kind of statement cannot read table "{match[1]}"',
        hint="Select without FOR UPDATE or FOR SHARE; of a protected table aggregates, in a statement of their own.",
    )


def in_place_of_refusal(report: bytes) -> Edit:
    """Return what the client gets of the replies to REFUSED_SQL."""

    def edit(frame: Frame) -> bytes:
        return report if frame.kind == ErrorResponse.kind and _REFUSED in frame.raw else frame.raw

    return edit


def _in_codec(value: str, codec: str) -> str:
    """Text of ours so that, encoded as UTF-8 with surrogates, it becomes bytes of the client's encoding."""
    if codec == "utf-8" or value.isascii():
        return value
    spelled = "".join(
        character if _has(codec, character) else _SPELLED.get(character, character) for character in value
    )
    return spelled.encode(codec, "replace").decode("utf-8", "surrogateescape")


def _has(codec: str, character: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def tells_of_crash(raw: bytes) -> bool:
    """Return whether the server ends, and not this session alone; the twin speaks English."""
    return any(words in raw for words in _CRASHED)
