"""What a client gets of the twin's replies about a portal that the proxy has bound, or that there is not."""

from dataclasses import replace
from typing import Final

from proxy.session.own_messages import shape
from proxy.session.prepared_statements import Portal
from proxy.session.replies import Edit
from proxy.session.reports import moved, nowhere
from proxy.wire.backend import CommandComplete, ErrorResponse, Field, RowDescription
from proxy.wire.buffer import Frame

NO_PORTAL: Final = b"_ng_none"
"""The name of a portal that never is: the twin says so, in whatever state it is."""


def only_errors(frame: Frame) -> bytes:
    """For messages of our own whose failure ends the client's pipeline; it has never seen the text."""
    return moved(frame.raw, nowhere) if frame.kind == ErrorResponse.kind else b""


def no_portal(frame: Frame) -> bytes:
    """The twin's words for a portal that is not there, with the name that the client gave: none."""
    if frame.kind != ErrorResponse.kind:
        return frame.raw
    fields = dict(ErrorResponse.decode(frame.raw).fields)
    fields["M"] = fields["M"].replace(NO_PORTAL.decode(), "")
    return ErrorResponse(fields).encode()


def described_as(columns: tuple[Field, ...]) -> Edit:
    """The original's description in place of the outer statement's, which has lost the tables of the columns."""

    def edit(frame: Frame) -> bytes:
        if frame.kind != RowDescription.kind or shape(RowDescription.decode(frame.raw).fields) != shape(columns):
            return frame.raw
        return RowDescription(columns).encode()

    return edit


def executed(portal: Portal) -> Edit:
    """NOTICEs stand just before the CommandComplete of their statement, once."""

    def edit(frame: Frame) -> bytes:
        if frame.kind != CommandComplete.kind:
            return frame.raw
        notices, portal.notices = portal.notices, b""
        return notices + frame.raw

    return edit


def in_formats(columns: tuple[Field, ...], formats: tuple[int, ...]) -> tuple[Field, ...]:
    """The columns in the formats of a Bind: none is text, one holds for all."""
    each = formats if len(formats) == len(columns) else (formats or (0,)) * len(columns)
    return tuple(replace(column, format=code) for column, code in zip(columns, each, strict=True))
