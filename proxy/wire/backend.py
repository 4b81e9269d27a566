"""What a server says: each message as a value, from and to a whole frame.

Names of columns and tags stay bytes, as the client's encoding has them. Settings and the fields of errors are
strings in which bytes that are no UTF-8 survive as surrogates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from proxy.wire import codec
from proxy.wire.codec import Bodiless, ProtocolViolation, Reader, frame

IDLE, IN_TRANSACTION, FAILED = b"I", b"T", b"E"


@dataclass(frozen=True, slots=True)
class ParseComplete(Bodiless):
    kind = b"1"


@dataclass(frozen=True, slots=True)
class BindComplete(Bodiless):
    kind = b"2"


@dataclass(frozen=True, slots=True)
class CloseComplete(Bodiless):
    kind = b"3"


@dataclass(frozen=True, slots=True)
class NoData(Bodiless):
    kind = b"n"


@dataclass(frozen=True, slots=True)
class EmptyQueryResponse(Bodiless):
    kind = b"I"


@dataclass(frozen=True, slots=True)
class PortalSuspended(Bodiless):
    kind = b"s"


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    name: str
    value: str
    kind: ClassVar[bytes] = b"S"

    def encode(self) -> bytes:
        return frame(self.kind, codec.text(_bytes(self.name)), codec.text(_bytes(self.value)))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(_string(body.text()), _string(body.text()))
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    """What a client must show to cancel: 4 bytes in protocol 3.0, up to 256 since 3.2."""

    process_id: int
    secret: bytes
    kind: ClassVar[bytes] = b"K"

    def encode(self) -> bytes:
        return frame(self.kind, codec.int32(self.process_id), self.secret)

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.int32(), body.rest())
        if not 4 <= len(message.secret) <= 256:
            raise ProtocolViolation("invalid length of cancel key")
        return message


@dataclass(frozen=True, slots=True)
class ReadyForQuery:
    status: bytes = IDLE
    kind: ClassVar[bytes] = b"Z"

    def encode(self) -> bytes:
        return frame(self.kind, self.status)

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.byte())
        body.end()
        if message.status not in (IDLE, IN_TRANSACTION, FAILED):
            raise ProtocolViolation("unknown transaction status")
        return message


@dataclass(frozen=True, slots=True)
class _Report:
    """Fields by their code: S and V severity, C SQLSTATE, M message, D detail, H hint, P position, …"""

    kind: ClassVar[bytes]
    fields: Mapping[str, str]

    def encode(self) -> bytes:
        fields = [code.encode("ascii") + codec.text(_bytes(value)) for code, value in self.fields.items()]
        return frame(self.kind, *fields, b"\0")

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        fields: dict[str, str] = {}
        while (code := body.byte()) != b"\0":
            if not code.isascii() or (name := code.decode()) in fields:
                raise ProtocolViolation("a field of an error is no field, or stands twice")
            fields[name] = _string(body.text())
        body.end()
        return cls(fields)

    @property
    def sqlstate(self) -> str:
        return self.fields.get("C", "")


@dataclass(frozen=True, slots=True)
class ErrorResponse(_Report):
    kind = b"E"


@dataclass(frozen=True, slots=True)
class NoticeResponse(_Report):
    kind = b"N"


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


@dataclass(frozen=True, slots=True)
class RowDescription:
    fields: tuple[Field, ...]
    kind: ClassVar[bytes] = b"T"

    def encode(self) -> bytes:
        return frame(self.kind, codec.many(field.encode() for field in self.fields))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.many(lambda: Field.read(body), least_bytes=19))
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    types: tuple[int, ...]
    kind: ClassVar[bytes] = b"t"

    def encode(self) -> bytes:
        return frame(self.kind, codec.many(map(codec.uint32, self.types)))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.many(body.uint32, least_bytes=4))
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class DataRow:
    values: tuple[bytes | None, ...]
    kind: ClassVar[bytes] = b"D"

    def encode(self) -> bytes:
        return frame(self.kind, codec.many(map(codec.value, self.values)))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.many(body.value, least_bytes=4))
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class CommandComplete:
    tag: bytes
    kind: ClassVar[bytes] = b"C"

    def encode(self) -> bytes:
        return frame(self.kind, codec.text(self.tag))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.text())
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class _CopyResponse:
    """The start of COPY, with the format of all and of each column."""

    kind: ClassVar[bytes]
    format: int
    columns: tuple[int, ...]

    def encode(self) -> bytes:
        return frame(self.kind, bytes([self.format]), codec.many(map(codec.int16, self.columns)))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.byte()[0], body.many(body.int16, least_bytes=2))
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class CopyInResponse(_CopyResponse):
    kind = b"G"


@dataclass(frozen=True, slots=True)
class CopyOutResponse(_CopyResponse):
    kind = b"H"


@dataclass(frozen=True, slots=True)
class CopyBothResponse(_CopyResponse):
    kind = b"W"


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    process_id: int
    channel: bytes
    payload: bytes
    kind: ClassVar[bytes] = b"A"

    def encode(self) -> bytes:
        return frame(self.kind, codec.int32(self.process_id), codec.text(self.channel), codec.text(self.payload))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.int32(), body.text(), body.text())
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class FunctionCallResponse:
    result: bytes | None
    kind: ClassVar[bytes] = b"V"

    def encode(self) -> bytes:
        return frame(self.kind, codec.value(self.result))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.value())
        body.end()
        return message


def _string(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")
