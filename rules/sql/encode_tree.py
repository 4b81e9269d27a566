"""A tree of plain dicts as the bytes of libpg_query's protobuf messages.

protobuf's own reader of dicts takes some milliseconds for a usual statement; this one takes a tenth of that, since it
looks each field up once (Protocol Buffers encoding: a tag, then a varint or a length and its bytes).
libpg_query forgets parentheses as it prints ((a AND b) IS NULL comes out as a AND b IS NULL), so a condition inside an
operator gets a cast to boolean, which it has already and which is printed in parentheses. It forgets quotes around
the names of windows, arguments and what JOIN … USING joins ("a.b" comes out as a.b), so these stand quoted in the tree.
Of what may stand in FROM in place of a function it prints some and leaves out the rest, so that is selected there.
"""

from collections.abc import Callable, Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from postgast import pg_query_pb2

from rules.sql.selects import column_name
from rules.sql.tree import PLACES, Json, Node, items, kind, strings

Path = tuple[str, ...]  # fields on the way to a name

_BARE_NAMES: dict[str, Path] = {  # that are printed as they are, by the nodes that have them
    "WindowDef": ("name",),
    "FuncCall": ("over", "name"),
    "JsonArrayAgg": ("constructor", "over", "name"),
    "JsonObjectAgg": ("constructor", "over", "name"),
    "NamedArgExpr": ("name",),
    "JoinExpr": ("join_using_alias", "aliasname"),
}
_WINDOWS = {name: path for name, path in _BARE_NAMES.items() if name == "WindowDef" or "over" in path}
_FRAMES = ("partition", "range", "rows", "groups")
"""Names that stand without quotes where another window is made of theirs: OVER ("rows" ORDER BY a) comes out as a
frame. Nobody sees the name of a window, so these get a space, with which they are quoted."""


def quote(name: str, body: Node) -> Node:
    """The body of a wrapped node with its bare name in quotes."""
    if name in _WINDOWS:
        for field in ("name", "refname"):
            body = _changed(body, (*_WINDOWS[name][:-1], field), lambda text: text + " " * (text in _FRAMES))
    return _changed(body, _BARE_NAMES[name], lambda text: '"' + text.replace('"', '""') + '"')


def _changed(node: Node, path: Path, change: Callable[[str], str]) -> Node:
    field, *rest = path
    match node.get(field):
        case str() as text if text:
            return node | {field: change(text)}
        case dict() as inner if rest:
            return node | {field: _changed(inner, tuple(rest), change)}
    return node


_LEFT_OUT = frozenset(
    "JsonParseExpr JsonScalarExpr JsonSerializeExpr JsonObjectConstructor JsonArrayConstructor "
    "JsonArrayQueryConstructor JsonFuncExpr A_Expr".split()
)  # in FROM; the A_Expr that may stand there is NULLIF


def select_from(name: str, body: Node) -> tuple[str, Node]:
    """FROM json_array(a) AS x is FROM LATERAL (SELECT json_array(a)) AS x(x): it has one row and one column."""
    functions = [items(kind(function)[1], "items")[0] for function in items(body, "functions")]
    called = kind(functions[0])[0] if len(functions) == 1 else ""
    if called not in _LEFT_OUT or body.get("ordinality") or body.get("coldeflist"):
        return name, body
    alias = body.get("alias") or {"aliasname": column_name(functions[0])}
    assert isinstance(alias, dict), "an alias is a node"
    columns = alias.get("colnames") or [{"String": {"sval": alias["aliasname"]}}]
    select: Node = {"targetList": [{"ResTarget": {"val": functions[0]}}], "limitOption": "LIMIT_OPTION_DEFAULT"}
    query: Node = {"SelectStmt": select | {"op": "SETOP_NONE"}}
    return "RangeSubselect", {"lateral": True, "subquery": query, "alias": alias | {"colnames": columns}}


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


Encode = Callable[[Json], bytes]
Rewrite = Callable[[str, Node], tuple[str, Node]]  # of a wrapped node: its name and its body

_MOST_NAMES = 1_000  # that are kept
_LONGEST_NAME = 63  # characters: PostgreSQL cuts names after so many bytes


class _Encoder:
    """Messages of one kind as bytes, from dicts by the names of their fields in JSON."""

    def __init__(self, descriptor: Descriptor, rewrites: dict[str, Rewrite], known: dict[str, "_Encoder"]) -> None:
        self._descriptor, self._rewrites, self._known = descriptor, rewrites, known
        self._is_wrapper = descriptor.name == "Node"
        self._fields: dict[str, Encode] = {}
        self._names: dict[str, bytes] = {}

    def encode(self, node: Json) -> bytes:
        """Encode a message; what is no dict is an empty one. Where its parts stood in a text changes nothing."""
        if type(node) is not dict:
            return b""
        fields = self._fields or self._look_up()
        if self._is_wrapper and len(node) == 1:
            return self._wrapped(fields, node)
        return b"".join(
            [fields[name](value) for name, value in node.items() if value is not None and name not in PLACES]
        )

    def _wrapped(self, fields: Mapping[str, Encode], node: Node) -> bytes:
        """Encode the one body of a wrapper. A third of a tree is names, and nearly all of them come again."""
        ((name, body),) = node.items()
        if type(body) is dict:
            text = body.get("sval")
            if name == "String" and type(text) is str:
                known = self._names.get(text)
                return self._kept(text, fields[name](body)) if known is None else known
            if (rewrite := self._rewrites.get(name)) is not None:
                name, body = rewrite(name, body)
        return fields[name](body)

    def _kept(self, text: str, encoded: bytes) -> bytes:
        if len(text) <= _LONGEST_NAME:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[text] = encoded
        return encoded

    def _look_up(self) -> dict[str, Encode]:
        self._fields = {field.json_name: self._field(field) for field in self._descriptor.fields}
        return self._fields

    def _field(self, descriptor: FieldDescriptor) -> Encode:
        one = self._value(descriptor)
        if not descriptor.is_repeated:
            return one
        return lambda values: b"".join(map(one, values if isinstance(values, list) else ()))

    def _value(self, descriptor: FieldDescriptor) -> Encode:
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
    return _FENCING.encode({"version": 180004, "stmts": [{"stmt": tree}]})


def _with_length(tag: bytes, encode: Encode) -> Encode:
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
_FENCES: dict[str, Rewrite] = {
    **dict.fromkeys(_OPERANDS, lambda name, body: (name, fence(name, body))),
    **dict.fromkeys(_BARE_NAMES, lambda name, body: (name, quote(name, body))),
    "RangeFunction": select_from,
}
_FENCING = _Encoder(pg_query_pb2.ParseResult.DESCRIPTOR, _FENCES, {})
