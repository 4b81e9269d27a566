"""A server's messages: each as a value, from and to a whole frame.

Names of columns and tags stay bytes, as the client's encoding has them. Settings and the fields of errors are
strings in which bytes that are no UTF-8 survive as surrogates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from proxy.wire import codec
from proxy.wire.codec import (
    BYTE,
    INT16,
    INT32,
    REST,
    TEXT,
    UINT32,
    VALUE,
    Message,
    Part,
    ProtocolViolation,
    Reader,
    counted,
)

IDLE, IN_TRANSACTION, FAILED = b"I", b"T", b"E"


def _string(body: Reader) -> str:
    return body.text().decode("utf-8", "surrogateescape")


def _bytes(value: str) -> bytes:
    return codec.text(value.encode("utf-8", "surrogateescape"))


def _fields_of_report(body: Reader) -> Mapping[str, str]:
    fields: dict[str, str] = {}
    while (code := body.byte()) != b"\0":
        if not code.isascii() or (name := code.decode()) in fields:
            raise ProtocolViolation("invalid or duplicate field in error message")
        fields[name] = _string(body)
    return fields


def _bytes_of_report(fields: Mapping[str, str]) -> bytes:
    return b"".join(code.encode("ascii") + _bytes(value) for code, value in fields.items()) + b"\0"


_STRING: Final = Part(_string, _bytes, 1)
_FIELDS: Final = Part(_fields_of_report, _bytes_of_report, 1)
_OCTET: Final[Part[int]] = Part(lambda body: body.byte()[0], lambda number: bytes([number]), 1)


@dataclass(frozen=True, slots=True)
class ParseComplete(Message):
    kind = b"1"


@dataclass(frozen=True, slots=True)
class BindComplete(Message):
    kind = b"2"


@dataclass(frozen=True, slots=True)
class CloseComplete(Message):
    kind = b"3"


@dataclass(frozen=True, slots=True)
class NoData(Message):
    kind = b"n"


@dataclass(frozen=True, slots=True)
class EmptyQueryResponse(Message):
    kind = b"I"


@dataclass(frozen=True, slots=True)
class PortalSuspended(Message):
    kind = b"s"


@dataclass(frozen=True, slots=True)
class ParameterStatus(Message):
    kind, layout = b"S", (_STRING, _STRING)
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class BackendKeyData(Message):
    """The key that a client must show to cancel: 4 bytes in protocol 3.0, up to 256 since 3.2."""

    kind, layout = b"K", (INT32, REST)
    process_id: int
    secret: bytes

    def check(self) -> None:
        if not 4 <= len(self.secret) <= 256:
            raise ProtocolViolation("invalid length of cancel key")


@dataclass(frozen=True, slots=True)
class ReadyForQuery(Message):
    kind, layout = b"Z", (BYTE,)
    status: bytes = IDLE

    def check(self) -> None:
        if self.status not in (IDLE, IN_TRANSACTION, FAILED):
            raise ProtocolViolation("unknown transaction status")


class _Report(Message):
    """Fields by their code: S and V severity, C SQLSTATE, M message, D detail, H hint, P position, …"""

    __slots__ = ()
    fields: Mapping[str, str]

    @property
    def sqlstate(self) -> str:
        return self.fields.get("C", "")


@dataclass(frozen=True, slots=True)
class ErrorResponse(_Report):
    kind, layout = b"E", (_FIELDS,)
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NoticeResponse(_Report):
    kind, layout = b"N", (_FIELDS,)
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of an answer."""

    name: bytes
    table: int  # OID of the table that the column comes from, else 0
    column: int  # its number there, else 0
    type: int  # OID
    size: int  # pg_type.typlen
    modifier: int
    format: int = 0  # 0 text, 1 binary

    def encode(self) -> bytes:
        origin = codec.uint32(self.table) + codec.int16(self.column)
        shape = codec.uint32(self.type) + codec.int16(self.size) + codec.int32(self.modifier)
        return codec.text(self.name) + origin + shape + codec.int16(self.format)

    @classmethod
    def read(cls, body: Reader) -> Self:
        origin = (body.text(), body.uint32(), body.int16())
        return cls(*origin, body.uint32(), body.int16(), body.int32(), body.int16())


_COLUMNS: Final = counted(Part(Field.read, Field.encode, 19))


@dataclass(frozen=True, slots=True)
class RowDescription(Message):
    kind, layout = b"T", (_COLUMNS,)
    fields: tuple[Field, ...]

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        return cls(_known_fields(raw) if len(raw) <= _SHORT else _fields(raw))


def _fields(raw: bytes) -> tuple[Field, ...]:
    body = Reader(raw)
    fields = _COLUMNS.read(body)
    body.end()
    return fields


_known_fields: Final = lru_cache(maxsize=256)(_fields)  # a session describes the same statements again and again
_SHORT: Final = 4096  # bytes of what is kept


@dataclass(frozen=True, slots=True)
class ParameterDescription(Message):
    kind, layout = b"t", (counted(UINT32),)
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DataRow(Message):
    kind, layout = b"D", (counted(VALUE),)
    values: tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class CommandComplete(Message):
    kind, layout = b"C", (TEXT,)
    tag: bytes


@dataclass(frozen=True, slots=True)
class CopyInResponse(Message):
    """The start of COPY, with the format of all and of each column."""

    kind, layout = b"G", (_OCTET, counted(INT16))
    format: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyOutResponse(Message):
    kind, layout = b"H", (_OCTET, counted(INT16))
    format: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyBothResponse(Message):
    kind, layout = b"W", (_OCTET, counted(INT16))
    format: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotificationResponse(Message):
    kind, layout = b"A", (INT32, TEXT, TEXT)
    process_id: int
    channel: bytes
    payload: bytes
