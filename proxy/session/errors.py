"""The only place where an exception becomes what a client reads, and where errors of the twin are put into our words.

What we raise on purpose has its words. Everything else gets one constant text, and the log gets the kind of the
exception and the line of code: never its message, which may quote data.
"""

import re
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Literal

from proxy.log import event
from proxy.session.replies import Edit, TwinRefusal
from proxy.wire.backend import ErrorResponse, NoticeResponse
from proxy.wire.buffer import Frame
from proxy.wire.codec import ProtocolViolation
from proxy.wire.startup import LoginRefused
from rules.catalog import written
from rules.refusal import NotAllowed, Refusal, RulesChanged

Severity = Literal["ERROR", "FATAL"]

REFUSED_SQL: Final = 'SELECT "_ng_refused"'
"""Sent to the twin in place of what is refused. It fails when it is analysed, not before: in a failed transaction
PostgreSQL says 25P02, as it would have; elsewhere 42703, and the client reads our refusal instead. The state of the
transaction and the skipping up to the next Sync are the twin's own."""

_SPELLED: Final = {"ε": "epsilon", "δ": "delta", "±": "+/-", "…": "..."}  # for encodings that do not have them
_REFUSED: Final = b"\0C42703\0"
_CRASHED: Final = (b"\0C57P02\0", b"\0Mterminating connection due to unexpected postmaster exit\0")
_NO_PRIVILEGE: Final = b"\0C42501\0"
_TORN: Final = (b"\0CXX000\0", b"\0C40P01\0")
_PROTECTED: Final = re.compile(
    r'permission denied for (?:table|view|materialized view|foreign table|relation) "?(.+?)"?'
)
_CLOSED_BY_POSTGRESQL: Final = re.compile(
    "permission denied for (?:table sql_parts|view (?:transforms|_pg_(?:foreign_[a-z_]+|user_mappings)))"
)  # those of information_schema that nobody but a superuser may read
_TOO_LARGE: Final = (
    "Joins of protected tables with it are answered. Your DBA can raise --max-public-rows; with public_reader in the "
    "rules, subqueries over it that stand in a query of protected tables are answered."
)
SCHEMA_CHANGED: Final = RulesChanged("the schema changed while the statement ran", hint="Run it again.")
SHUTDOWN: Final = ("57P01", "terminating connection due to administrator command")
LOGIN_TIMEOUT: Final = ("57014", "canceling authentication due to timeout")


def error_response(error: BaseException, severity: Severity = "ERROR") -> ErrorResponse:
    """Return what the client gets to read. FATAL ends the session; the caller closes it."""
    match error:
        case Refusal():
            return _response(
                severity,
                error.sqlstate,
                error.message,
                detail=error.detail,
                hint=error.hint,
                position="" if error.position is None else str(error.position),
            )
        case LoginRefused():
            return _response(severity, error.sqlstate, error.message, hint=error.hint)
        case ProtocolViolation():
            return _response(severity, "08P01", str(error))
        case _:
            event("internal_error", kind=type(error).__name__, place=_place(error))
            return _response(severity, "XX000", "internal error of the proxy")


def fatal(sqlstate: str, message: str, *, hint: str = "") -> bytes:
    """A last message that stands for no exception."""
    return _response("FATAL", sqlstate, message, hint=hint).encode()


def _response(
    severity: Severity, sqlstate: str, message: str, *, detail: str = "", hint: str = "", position: str = ""
) -> ErrorResponse:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": message, "D": detail, "H": hint, "P": position}
    # A NUL would end the field; it can only come from a client's own text.
    return ErrorResponse({code: value.replace("\0", "") for code, value in fields.items() if value})


def _place(error: BaseException) -> str:
    """The line of code that raised: no value of any variable."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    last = frames[-1]
    return f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"


def is_fatal(raw: bytes) -> bool:
    """Return whether the twin ends the connection with this ErrorResponse."""
    return b"\0VFATAL\0" in raw or b"\0VPANIC\0" in raw


def is_cancelled(raw: bytes) -> bool:
    """Return whether the twin says that it was asked to cancel; it speaks English."""
    return b"\0C57014\0Mcanceling statement due to user request\0" in raw


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


def placed(refusal: Refusal, place: int | None) -> Refusal:
    """A refusal that points into what the client sent, or nowhere."""
    if place is not None:
        return refusal.moved(place)
    return type(refusal)(refusal.message, detail=refusal.detail, hint=refusal.hint)


def check_of_text(error: TwinRefusal) -> None:
    """Raise an error of the twin again that says nothing of a text of ours: that it ran out of time, say."""
    if error.is_of_the_moment:
        raise TwinRefusal(moved(error.raw, nowhere)) from None


def refusal_report(refusal: Refusal, codec: str) -> bytes:
    """A refusal as the client reads it."""
    fields = error_response(refusal).fields
    return ErrorResponse({code: _in_codec(value, codec) for code, value in fields.items()}).encode()


@lru_cache(maxsize=256)  # who asks again is told the same
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
    said = ErrorResponse.decode(raw).fields.get("M", "")
    match = _PROTECTED.fullmatch(said)
    if match is None or match[1].startswith("pg_") or _CLOSED_BY_POSTGRESQL.fullmatch(said):
        return None
    if match[1] in closed:
        reason = closed[match[1]]
        hint = _TOO_LARGE if "--max-public-rows" in reason else "Ask your DBA to run noisegate check, and to mend that."
        return NotAllowed(f'public table "{match[1]}" cannot be queried: {reason}', hint=hint)
    return NotAllowed(
        f'this kind of statement cannot read table "{match[1]}"',
        hint="Take out FOR UPDATE or FOR SHARE. Aggregates of protected tables are answered in a SELECT of their own.",
    )


class TwinChanges:
    """Tells whether a session's twin has changed meanwhile.

    What PostgreSQL says of its catalogs while another session changes them is no fault of the statement: a cache lookup
    that failed, an OID without relation, a deadlock.
    """

    def __init__(self, number: Callable[[], int] = lambda: 0) -> None:
        self.number = number  # of changes: odd while one is made
        self._before = number()

    def begin(self) -> None:
        """A transaction begins now."""
        self._before = self.number()

    def since(self, number: int) -> bool:
        """Return whether there was a change since there were so many, or is one now."""
        return number % 2 == 1 or number != self.number()

    def reworded(self, frame: Frame) -> Frame:
        """An error of the twin in words by which the client tries again, where a change may have caused it."""
        if not any(code in frame.raw for code in _TORN) or not self.since(self._before):
            return frame
        return Frame(frame.kind, error_response(SCHEMA_CHANGED).encode())


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
        written(character, codec)
    except UnicodeEncodeError:
        return False
    return True


def tells_of_crash(raw: bytes) -> bool:
    """Return whether the server ends, and not this session alone; the twin speaks English."""
    return any(words in raw for words in _CRASHED)
