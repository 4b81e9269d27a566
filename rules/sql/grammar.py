"""PostgreSQL's own grammar: text to a tree of plain dicts, and back to canonical text.

The one module that knows libpg_query. It is C code that can be driven to death by a hostile text, so it is called in
worker processes only. The JSON form of the tree is used since the protobuf one ends at a nesting of some 48 operators.
libpg_query forgets parentheses as it prints ((a AND b) IS NULL comes out as a AND b IS NULL), so a condition inside an
operator gets a cast to boolean, which it has already and which is printed in parentheses.

A tree of plain dicts as the bytes of libpg_query's protobuf messages.

protobuf's own reader of dicts takes some milliseconds for a usual statement; this one takes a tenth of that, since it
looks each field up once (Protocol Buffers encoding: a tag, then a varint or a length and its bytes).
"""

import ctypes
import json
import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from postgast import pg_query_pb2
from postgast.native import PgQueryProtobuf, lib

from rules.sql.tree import PLACES, Json, Node, items, kind, strings, words_in


class Unreadable(Exception):
    """A text that PostgreSQL's grammar does not accept."""


@dataclass(frozen=True)
class Piece:
    """One statement of a text: its tree, and where it stands, in bytes."""

    tree: Node
    start: int
    length: int  # 0: to the end

    @cached_property
    def words(self) -> AbstractSet[str]:
        """All words in the tree."""
        return words_in(self.tree)


def parse(text: str) -> list[Piece]:
    """The statements of a text."""
    tree = json.loads(_parsed(text))
    return [Piece(raw["stmt"], raw.get("stmt_location", 0), raw.get("stmt_len", 0)) for raw in tree.get("stmts", ())]


def _parsed(text: str) -> bytes:
    """The tree of a text as JSON."""
    result = lib.pg_query_parse(text.encode())
    try:
        if result.error:
            raise Unreadable
        tree: bytes = result.parse_tree
        return tree
    finally:
        lib.pg_query_free_parse_result(result)


def trees_without_places(text: str) -> list[Node]:
    """The trees of a text's statements without what says where their parts stand: equal ones are equal dicts.

    The places are cut out of the JSON, which takes a fraction of the time of a walk. No quote inside a text of JSON
    follows a comma or a brace: a backslash stands before it.
    """
    return [raw["stmt"] for raw in json.loads(_PLACE.sub(b"", _parsed(text))).get("stmts", ())]


_PLACE = re.compile(
    rb',"(?:%(names)s)":-?[0-9]+|(?<={)"(?:%(names)s)":-?[0-9]+,?' % {b"names": "|".join(PLACES).encode()}
)


@lru_cache(maxsize=1)
def parse_kept(text: str) -> Sequence[Piece]:
    """The same, kept for whoever reads the text next: a statement is planned soon after it was read. Nobody may change
    these trees."""
    return parse(text)


def deparse(tree: Node) -> str:
    """A statement's tree as canonical text: no comments, no tricks with quotes, one spelling for one meaning."""
    return _printed(encode_statement(tree))


def deparse_with_holes(tree: Node) -> tuple[str | int, ...]:
    """The same text in parts, with a number wherever it has $n outside quotes."""
    data = encode_statement(tree)
    return _parts_kept(data) if len(data) <= _KEPT_BYTES else _parts(data)


def _parts(data: bytes) -> tuple[str | int, ...]:
    written = _printed(data).encode()
    parts: list[str | int] = []
    at = 0
    for number, start, end in _parameters(written):
        parts += [written[at:start].decode(), number]
        at = end
    return (*parts, written[at:].decode())


_KEPT_BYTES = 16_384  # of a statement whose parts are kept: 256 of them are a few megabytes
_parts_kept = lru_cache(maxsize=256)(_parts)  # around a query that is asked with other constants nothing changes


def _printed(data: bytes) -> str:
    buffer = ctypes.create_string_buffer(data, len(data))
    result = lib.pg_query_deparse_protobuf(PgQueryProtobuf(len(data), ctypes.cast(buffer, ctypes.c_void_p).value))
    try:
        if result.error:
            raise Unreadable
        text: bytes = result.query
        return text.decode()
    finally:
        lib.pg_query_free_deparse_result(result)


def deparse_expression(node: Json) -> str:
    """One expression as canonical text."""
    select: Node = {"targetList": [{"ResTarget": {"val": node}}], "limitOption": "LIMIT_OPTION_DEFAULT"}
    return deparse({"SelectStmt": select | {"op": "SETOP_NONE"}}).removeprefix("SELECT ")


def shape(tree: Node) -> str:
    """A query as canonical text with a ? for every constant; "" where that cannot be printed.

    Example:
        >>> shape(parse("select count(*) from t where city = 'Berlin' limit 3")[0].tree)
        'SELECT count(*) FROM t WHERE city = ? LIMIT ?'
    """
    try:
        return _printed(_BLANKING.encode(_result_of(tree)))
    except Unreadable:
        return ""


def names_of(text: str, query: Node | None) -> tuple[str, str]:
    """The fingerprint of one statement, and the shape of its query if it has one."""
    normalized = _normalized(text)
    if query is None:
        return _fingerprint(normalized), ""
    if not normalized or "$" in text:  # a parameter is normalized as constants are
        return _fingerprint(normalized), shape(query)
    known = _SHAPES.get(normalized)
    if known is None:
        if len(_SHAPES) >= _MOST_SHAPES:
            _SHAPES.clear()
        known = _SHAPES[normalized] = shape(query)
    return _fingerprint(normalized), known


_MOST_SHAPES = 256  # that are kept, by their normalized texts: a dashboard asks the same with other constants
_SHAPES: dict[str, str] = {}


def fingerprint(text: str) -> str:
    """A short name of one statement's normalized text: equal for statements that differ in constants and spelling only.

    It is libpg_query's own, so other tools find the same; "" for what has no such text.

    Example:
        >>> fingerprint("select 1 from t where a = 'x'") == fingerprint("SELECT 2 FROM t WHERE a = 'y' -- again")
        True
    """
    return _fingerprint(_normalized(text))


def _normalized(text: str) -> str:
    """A text without its constants; "" where there is none."""
    result = lib.pg_query_normalize(text.encode())
    try:
        return "" if result.error else str(result.normalized_query.decode())
    finally:
        lib.pg_query_free_normalize_result(result)


@lru_cache(maxsize=256)
def _fingerprint(normalized: str) -> str:
    if not normalized:
        return ""
    result = lib.pg_query_fingerprint(normalized.encode())
    try:
        return "" if result.error else str(result.fingerprint_str.decode())
    finally:
        lib.pg_query_free_fingerprint_result(result)


def _parameters(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Each $n of a text outside quotes: its number, and where it starts and ends."""
    result = lib.pg_query_scan(data)
    try:
        if result.error:
            raise Unreadable
        scanned = pg_query_pb2.ScanResult.FromString(ctypes.string_at(result.pbuf.data, result.pbuf.len))
    finally:
        lib.pg_query_free_scan_result(result)
    for token in scanned.tokens:
        if token.token == pg_query_pb2.PARAM:
            yield int(data[token.start + 1 : token.end]), token.start, token.end


_COMPARISONS = frozenset(("=", "<>", "<", ">", "<=", ">="))
_OPERANDS = {
    "A_Expr": ("lexpr", "rexpr"),
    "NullTest": ("arg",),
    "BooleanTest": ("arg",),
    "SubLink": ("testexpr",),
    "CollateClause": ("arg",),
    "A_Indirection": ("arg",),
}
_BOOLEAN: Node = {"names": [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": "bool"}}], "typemod": -1}

_TRUE: Node = {"A_Const": {"boolval": {"boolval": True}}}


def fence(name: str, body: Node) -> Node:
    """The body of a wrapped node with every condition that is an operand in a cast."""
    return body | {key: _cast(body[key]) for key in _OPERANDS.get(name, ()) if key in body}


def _cast(operand: Json) -> Json:
    if isinstance(operand, list):
        return [_cast(node) for node in operand]
    name, body = kind(operand)
    if name == "List":
        return {"List": body | {"items": [_cast(node) for node in items(body, "items")]}}
    if not _is_condition(name, body):
        return operand
    if name == "SubLink":  # a cast of it is printed without parentheses too
        operand = {"BoolExpr": {"boolop": "AND_EXPR", "args": [operand, _TRUE]}}
    return {"TypeCast": {"arg": operand, "typeName": _BOOLEAN}}


def _is_condition(name: str, body: Node) -> bool:
    """Return what binds no closer than an operator around it."""
    if name == "A_Expr" and body.get("kind") == "AEXPR_OP":
        return strings(body.get("name"))[-1:] != () and strings(body.get("name"))[-1] in _COMPARISONS
    if name == "A_Expr":
        return body.get("kind") != "AEXPR_NULLIF"
    if name == "SubLink":
        return body.get("subLinkType") in ("ANY_SUBLINK", "ALL_SUBLINK")
    return name in ("BoolExpr", "NullTest", "BooleanTest")


VARINT, BYTES = 0, 2  # the wire types that these messages have


Rewrite = Callable[[str, Node], tuple[str, Node]]  # of a wrapped node: its name and its body


class _Encoder:
    """Messages of one kind as bytes, from dicts by the names of their fields in JSON."""

    def __init__(self, descriptor: Descriptor, rewrites: dict[str, Rewrite], known: dict[str, "_Encoder"]) -> None:
        self._descriptor, self._rewrites, self._known = descriptor, rewrites, known
        self._is_wrapper = descriptor.name == "Node"
        self._fields: dict[str, Callable[[Json], bytes]] = {}

    def encode(self, node: Json) -> bytes:
        """Encode a message; what is no dict is an empty one."""
        if type(node) is not dict:
            return b""
        fields = self._fields or self._look_up()
        if self._is_wrapper and len(node) == 1:
            ((name, body),) = node.items()
            if isinstance(body, dict) and (rewrite := self._rewrites.get(name)) is not None:
                name, body = rewrite(name, body)
            return fields[name](body)
        return b"".join([fields[name](value) for name, value in node.items() if value is not None])

    def _look_up(self) -> dict[str, Callable[[Json], bytes]]:
        self._fields = {field.json_name: self._field(field) for field in self._descriptor.fields}
        return self._fields

    def _field(self, descriptor: FieldDescriptor) -> Callable[[Json], bytes]:
        one = self._value(descriptor)
        if not descriptor.is_repeated:
            return one
        return lambda values: b"".join(map(one, values if isinstance(values, list) else ()))

    def _value(self, descriptor: FieldDescriptor) -> Callable[[Json], bytes]:
        wire_type = BYTES if descriptor.type in (descriptor.TYPE_MESSAGE, descriptor.TYPE_STRING) else VARINT
        tag = _varint(descriptor.number << 3 | wire_type)
        match descriptor.type:
            case descriptor.TYPE_MESSAGE:
                return _with_length(tag, self.of(descriptor.message_type).encode)
            case descriptor.TYPE_STRING:
                return _with_length(tag, lambda value: str(value).encode())
            case descriptor.TYPE_ENUM:
                numbers = {value.name: tag + _varint(value.number) for value in descriptor.enum_type.values}
                return lambda value: numbers[str(value)]
        return lambda value: tag + _varint(value if isinstance(value, int) else int(str(value)))

    def of(self, descriptor: Descriptor) -> "_Encoder":
        """The encoder of another kind of message, which rewrites alike."""
        if descriptor.full_name not in self._known:
            self._known[descriptor.full_name] = _Encoder(descriptor, self._rewrites, self._known)
        return self._known[descriptor.full_name]


def encode_statement(tree: Node) -> bytes:
    """One statement as a ParseResult of PostgreSQL 18's grammar, its conditions fenced."""
    return _FENCING.encode(_result_of(tree))


def _result_of(tree: Node) -> Node:
    return {"version": 180004, "stmts": [{"stmt": tree}]}


def _with_length(tag: bytes, encode: Callable[[Json], bytes]) -> Callable[[Json], bytes]:
    heads = [tag + length for length in SMALL]  # of what is short, as nearly all is

    def encoded(value: Json) -> bytes:
        data = encode(value)
        length = len(data)
        return (heads[length] if length < 0x80 else tag + _varint(length)) + data

    return encoded


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
_FENCES: dict[str, Rewrite] = dict.fromkeys(_OPERANDS, lambda name, body: (name, fence(name, body)))


def _unprintable(name: str, body: Node) -> tuple[str, Node]:
    raise Unreadable


# Number 0 is printed as ?. The paths of JSON_TABLE must be constants: a ? in their place ends the process that prints.
_BLANKS: dict[str, Rewrite] = {"A_Const": lambda name, body: ("ParamRef", {}), "JsonTable": _unprintable}
_FENCING = _Encoder(pg_query_pb2.ParseResult.DESCRIPTOR, _FENCES, {})
_BLANKING = _Encoder(pg_query_pb2.ParseResult.DESCRIPTOR, _FENCES | _BLANKS, {})
