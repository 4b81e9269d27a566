"""What a client says: each message as a value, from and to a whole frame.

Texts that are in the client's encoding (SQL, names) stay bytes; only their reader knows the encoding.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

from proxy.wire import codec
from proxy.wire.codec import Bodiless, ProtocolViolation, Reader, frame

STATEMENT = b"S"
PORTAL = b"P"


@dataclass(frozen=True, slots=True)
class Sync(Bodiless):
    kind = b"S"


@dataclass(frozen=True, slots=True)
class Flush(Bodiless):
    kind = b"H"


@dataclass(frozen=True, slots=True)
class Terminate(Bodiless):
    kind = b"X"


@dataclass(frozen=True, slots=True)
class CopyDone(Bodiless):
    """The end of the data of COPY; both sides say it."""

    kind = b"c"


@dataclass(frozen=True, slots=True)
class CopyData:
    """A piece of the data of COPY; both sides say it."""

    data: bytes
    kind: ClassVar[bytes] = b"d"

    def encode(self) -> bytes:
        return frame(self.kind, self.data)

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        return cls(Reader(raw).rest())


@dataclass(frozen=True, slots=True)
class _OneText:
    """A message whose body is one string."""

    kind: ClassVar[bytes]
    text: bytes

    def encode(self) -> bytes:
        return frame(self.kind, codec.text(self.text))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.text())
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class Query(_OneText):
    """One string of SQL, of any number of statements."""

    kind = b"Q"

    @property
    def sql(self) -> bytes:
        return self.text


@dataclass(frozen=True, slots=True)
class CopyFail(_OneText):
    kind = b"f"


@dataclass(frozen=True, slots=True)
class Parse:
    statement: bytes
    sql: bytes
    types: tuple[int, ...] = ()  # OIDs of the first parameters; 0: infer
    kind: ClassVar[bytes] = b"P"

    def encode(self) -> bytes:
        types = codec.many(map(codec.uint32, self.types))
        return frame(self.kind, codec.text(self.statement), codec.text(self.sql), types)

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.text(), body.text(), body.many(body.uint32, least_bytes=4))
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class Bind:
    portal: bytes
    statement: bytes
    parameter_formats: tuple[int, ...] = ()  # none: all text; one: all so; else one a parameter
    parameters: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()
    kind: ClassVar[bytes] = b"B"

    def encode(self) -> bytes:
        return frame(
            self.kind,
            codec.text(self.portal),
            codec.text(self.statement),
            codec.many(map(codec.int16, self.parameter_formats)),
            codec.many(map(codec.value, self.parameters)),
            codec.many(map(codec.int16, self.result_formats)),
        )

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(
            body.text(),
            body.text(),
            body.many(body.int16, least_bytes=2),
            body.many(body.value, least_bytes=4),
            body.many(body.int16, least_bytes=2),
        )
        body.end()
        if len(message.parameter_formats) not in (0, 1, len(message.parameters)):
            raise ProtocolViolation("bind message has parameter formats that do not match its parameters")
        return message

    def format_of(self, parameter: int) -> int:
        """Of a parameter counted from 0: 0 is text, 1 binary."""
        match self.parameter_formats:
            case ():
                return 0
            case (single,):
                return single
            case formats:
                return formats[parameter]


@dataclass(frozen=True, slots=True)
class _Target:
    """A message about a statement or a portal."""

    kind: ClassVar[bytes]
    target: bytes  # STATEMENT or PORTAL
    name: bytes

    def encode(self) -> bytes:
        return frame(self.kind, self.target, codec.text(self.name))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.byte(), body.text())
        body.end()
        if message.target not in (STATEMENT, PORTAL):
            raise ProtocolViolation("a message names neither a statement nor a portal")
        return message


@dataclass(frozen=True, slots=True)
class Describe(_Target):
    kind = b"D"


@dataclass(frozen=True, slots=True)
class Close(_Target):
    kind = b"C"


@dataclass(frozen=True, slots=True)
class Execute:
    portal: bytes
    max_rows: int = 0  # 0: all
    kind: ClassVar[bytes] = b"E"

    def encode(self) -> bytes:
        return frame(self.kind, codec.text(self.portal), codec.int32(self.max_rows))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.text(), body.int32())
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The call of a function by OID, without SQL: known so that it can be refused."""

    function: int
    argument_formats: tuple[int, ...]
    arguments: tuple[bytes | None, ...]
    result_format: int
    kind: ClassVar[bytes] = b"F"

    def encode(self) -> bytes:
        formats = codec.many(map(codec.int16, self.argument_formats))
        arguments = codec.many(map(codec.value, self.arguments))
        return frame(self.kind, codec.uint32(self.function), formats, arguments, codec.int16(self.result_format))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        formats_and_values = (body.uint32(), body.many(body.int16, least_bytes=2), body.many(body.value, least_bytes=4))
        message = cls(*formats_and_values, body.int16())
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class PasswordMessage(_OneText):
    kind = b"p"


@dataclass(frozen=True, slots=True)
class SASLInitialResponse:
    """The mechanism that the client chose, and its first words."""

    mechanism: bytes
    data: bytes | None
    kind: ClassVar[bytes] = b"p"

    def encode(self) -> bytes:
        return frame(self.kind, codec.text(self.mechanism), codec.value(self.data))

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        message = cls(body.text(), body.value())
        body.end()
        return message


@dataclass(frozen=True, slots=True)
class SASLResponse:
    data: bytes
    kind: ClassVar[bytes] = b"p"

    def encode(self) -> bytes:
        return frame(self.kind, self.data)

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        return cls(Reader(raw).rest())
