"""The only place where an exception becomes what a client reads.

What we raise on purpose has its words. Everything else gets one constant text, and the log gets the kind of the
exception and the line of code: never its message, which may quote data.
"""

import traceback
from typing import Final, Literal

from proxy.log import event
from proxy.wire.backend import ErrorResponse
from proxy.wire.codec import ProtocolViolation
from proxy.wire.startup import LoginRefused
from rules.refusal import Refusal

Severity = Literal["ERROR", "FATAL"]


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


SHUTDOWN: Final = ("57P01", "terminating connection due to administrator command")
LOGIN_TIMEOUT: Final = ("57014", "canceling authentication due to timeout")


def _response(
    severity: Severity, sqlstate: str, message: str, *, detail: str = "", hint: str = "", position: str = ""
) -> ErrorResponse:
    fields = {"S": severity, "V": severity, "C": sqlstate, "M": message, "D": detail, "H": hint, "P": position}
    return ErrorResponse({code: _on_the_wire(value) for code, value in fields.items() if value})


def _on_the_wire(value: str) -> str:
    """A NUL would end the field; it can only come from a client's own text."""
    return value.replace("\0", "")


def _place(error: BaseException) -> str:
    """The line of code that raised: no value of any variable."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    last = frames[-1]
    return f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
