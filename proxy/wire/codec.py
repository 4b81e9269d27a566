"""Read and write the bodies of messages by their layouts: no count and no length is believed before it is checked."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

HEADER: Final = struct.Struct("!ci")  # kind, and a length that counts itself but not the kind
HEADER_SIZE: Final = HEADER.size

_INT16: Final = struct.Struct("!h")
_UINT16: Final = struct.Struct("!H")
_INT32: Final = struct.Struct("!i")
_UINT32: Final = struct.Struct("!I")

Item = TypeVar("Item")


class ProtocolViolation(Exception):
    """Bytes that are no message of protocol 3. The texts are ours and quote nothing that was sent."""


class NoPacket(ProtocolViolation):
    """A first packet that is none of the protocol: of HTTP, say. Its connection is closed without a message."""


class Reader:
    """Takes the body of one whole frame apart, from the front to the very end."""

    __slots__ = ("_at", "_end", "_raw")

    def __init__(self, raw: bytes, start: int = HEADER_SIZE) -> None:
        self._raw = raw
        self._at = start
        self._end = len(raw)

    @property
    def left(self) -> int:
        return self._end - self._at

    def take(self, size: int) -> bytes:
        """So many bytes, as they are."""
        if not 0 <= size <= self.left:
            raise ProtocolViolation("insufficient data left in message")
        start = self._at
        self._at = start + size
        return self._raw[start : self._at]

    def rest(self) -> bytes:
        return self.take(self.left)

    def text(self) -> bytes:
        """Bytes up to a NUL, which is taken too."""
        end = self._raw.find(b"\0", self._at, self._end)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        start = self._at
        self._at = end + 1
        return self._raw[start:end]

    def byte(self) -> bytes:
        return self.take(1)

    def int16(self) -> int:
        return self._number(_INT16)

    def uint16(self) -> int:
        return self._number(_UINT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def uint32(self) -> int:
        return self._number(_UINT32)

    def value(self) -> bytes | None:
        """A length and so many bytes; the length -1 is NULL."""
        size = self.int32()
        if size == -1:
            return None
        return self.take(size)

    def many(self, item: Callable[[], Item], *, least_bytes: int) -> tuple[Item, ...]:
        """A 16-bit count and so many items, each of which takes some bytes at the least."""
        count = self.uint16()
        if count * least_bytes > self.left:
            raise ProtocolViolation("insufficient data left in message")
        return tuple([item() for _ in range(count)])

    def end(self) -> None:
        if self._at != self._end:
            raise ProtocolViolation("invalid message format")

    def _number(self, shape: struct.Struct) -> int:
        if shape.size > self.left:
            raise ProtocolViolation("insufficient data left in message")
        (number,) = shape.unpack_from(self._raw, self._at)
        self._at += shape.size
        return int(number)


def frame(kind: bytes, *parts: bytes) -> bytes:
    """One whole message: kind, length, body."""
    return HEADER.pack(kind, 4 + sum(map(len, parts))) + b"".join(parts)


def text(value: bytes) -> bytes:
    if b"\0" in value:
        raise ValueError("a string in a message cannot contain a NUL byte")
    return value + b"\0"


def int16(value: int) -> bytes:
    return _INT16.pack(value)


def uint16(value: int) -> bytes:
    return _UINT16.pack(value)


def int32(value: int) -> bytes:
    return _INT32.pack(value)


def uint32(value: int) -> bytes:
    return _UINT32.pack(value)


def value(data: bytes | None) -> bytes:
    return _INT32.pack(-1) if data is None else _INT32.pack(len(data)) + data


def many(items: Iterable[bytes]) -> bytes:
    """A 16-bit count and the items, encoded already."""
    encoded = tuple(items)
    return _UINT16.pack(len(encoded)) + b"".join(encoded)


@dataclass(frozen=True, slots=True)
class Part(Generic[Item]):
    """One field of a layout."""

    read: Callable[[Reader], Item]
    write: Callable[[Item], bytes]
    least_bytes: int = 0  # that it takes


TEXT: Final = Part(Reader.text, text, 1)  # up to a NUL; in whatever encoding the client has
BYTE: Final = Part(Reader.byte, bytes, 1)
REST: Final = Part(Reader.rest, bytes)
INT16: Final = Part(Reader.int16, int16, 2)
INT32: Final = Part(Reader.int32, int32, 4)
UINT32: Final = Part(Reader.uint32, uint32, 4)
VALUE: Final = Part(Reader.value, value, 4)


def counted(part: Part[Item]) -> Part[tuple[Item, ...]]:
    """Describe a 16-bit count and so many of a part."""

    def read(body: Reader) -> tuple[Item, ...]:
        return body.many(lambda: part.read(body), least_bytes=part.least_bytes)

    def write(items: Iterable[Item]) -> bytes:
        return many(map(part.write, items))

    return Part(read, write, 2)


class Message:
    """A message whose fields are those of its layout, in that order."""

    __slots__ = ()
    kind: ClassVar[bytes]
    prefix: ClassVar[bytes] = b""  # that every message of this class begins with
    layout: ClassVar[tuple[Part[Any], ...]] = ()
    __match_args__: ClassVar[tuple[str, ...]]  # the names of the fields; dataclasses set it

    def encode(self) -> bytes:
        fields = zip(self.layout, self.__match_args__, strict=False)
        return frame(self.kind, self.prefix, *[part.write(getattr(self, name)) for part, name in fields])

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        body = Reader(raw)
        if cls.prefix and body.take(len(cls.prefix)) != cls.prefix:
            raise ProtocolViolation("unexpected message type")
        message = cls(*[part.read(body) for part in cls.layout])
        body.end()
        message.check()
        return message

    def check(self) -> None:
        """Raise ProtocolViolation for fields that do not go together."""
