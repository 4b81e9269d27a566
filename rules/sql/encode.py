"""A tree of plain dicts as the bytes of libpg_query's protobuf messages.

protobuf's own reader of dicts takes some milliseconds for a usual statement; this one takes a tenth of that, since it
looks each field up once (Protocol Buffers encoding: a tag, then a varint or a length and its bytes).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from postgast import pg_query_pb2

from rules.sql.tree import Json, Node

VARINT, BYTES = 0, 2  # the wire types that these messages have


@dataclass(slots=True)
class _Message:
    """The fields of one kind of message by their names in JSON."""

    descriptor: Descriptor
    fields: dict[str, Callable[[Json], bytes]] = field(default_factory=dict)

    def encode(self, node: Node) -> bytes:
        fields = self.fields or self._look_up()
        return b"".join([fields[name](value) for name, value in node.items() if value is not None])

    def _look_up(self) -> dict[str, Callable[[Json], bytes]]:
        self.fields = {field.json_name: _encoder(field) for field in self.descriptor.fields}
        return self.fields


def encode_statement(tree: Node) -> bytes:
    """One statement as a ParseResult of PostgreSQL 18's grammar."""
    return RESULT.encode({"version": 180004, "stmts": [{"stmt": tree}]})


def _encoder(descriptor: FieldDescriptor) -> Callable[[Json], bytes]:
    one = _encoder_of_one(descriptor)
    if not descriptor.is_repeated:
        return one
    return lambda values: b"".join(map(one, values if isinstance(values, list) else ()))


def _encoder_of_one(descriptor: FieldDescriptor) -> Callable[[Json], bytes]:
    tag = _varint(
        descriptor.number << 3
        | (BYTES if descriptor.type in (descriptor.TYPE_MESSAGE, descriptor.TYPE_STRING) else VARINT)
    )
    match descriptor.type:
        case descriptor.TYPE_MESSAGE:
            message = _message(descriptor.message_type)
            return lambda value: _with_length(tag, message.encode(value if isinstance(value, dict) else {}))
        case descriptor.TYPE_STRING:
            return lambda value: _with_length(tag, str(value).encode())
        case descriptor.TYPE_ENUM:
            numbers = {value.name: tag + _varint(value.number) for value in descriptor.enum_type.values}
            return lambda value: numbers[str(value)]
    return lambda value: tag + _varint(value if isinstance(value, int) else int(str(value)))


MESSAGES: dict[str, _Message] = {}


def _message(descriptor: Descriptor) -> _Message:
    return MESSAGES.setdefault(descriptor.full_name, _Message(descriptor))


def _with_length(tag: bytes, data: bytes) -> bytes:
    return tag + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits."""
    if 0 <= number < 0x80:
        return SMALL[number]
    number &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


SMALL = [bytes((number,)) for number in range(0x80)]
RESULT = _message(pg_query_pb2.ParseResult.DESCRIPTOR)
