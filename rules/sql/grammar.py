"""PostgreSQL's own grammar: text to a tree of plain dicts, and back to canonical text.

The one module that knows libpg_query. It is C code that can be driven to death by a hostile text, so it is called in
worker processes only. The JSON form of the tree is used since the protobuf one ends at a nesting of some 48 operators.
"""

import ctypes
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf import json_format
from postgast import pg_query_pb2
from postgast.native import PgQueryProtobuf, lib

Node = dict[str, "Json"]
Json = Node | list["Json"] | str | int | float | bool | None

PLACES = frozenset(("location", "stmt_location", "stmt_len", "rexpr_list_start", "rexpr_list_end"))
DEEPEST = 20_000  # of Python's stack: the limits of `limits.py` keep texts far below


class Unreadable(Exception):
    """A text that PostgreSQL's grammar does not accept."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text: its tree, and where it stands, in bytes."""

    tree: Node
    start: int
    length: int  # 0: to the end


def parse(text: str) -> list[Piece]:
    """The statements of a text."""
    sys.setrecursionlimit(DEEPEST)
    result = lib.pg_query_parse(text.encode())
    try:
        if result.error:
            raise Unreadable
        tree = json.loads(result.parse_tree)
    finally:
        lib.pg_query_free_parse_result(result)
    return [Piece(raw["stmt"], raw.get("stmt_location", 0), raw.get("stmt_len", 0)) for raw in tree.get("stmts", ())]


def deparse(tree: Node) -> str:
    """A statement's tree as canonical text: no comments, no tricks with quotes, one spelling for one meaning."""
    message = pg_query_pb2.ParseResult(version=180004)
    statement = message.stmts.add().stmt
    json_format.ParseDict(tree, statement, max_recursion_depth=DEEPEST)
    data = message.SerializeToString()
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
    return deparse({"SelectStmt": _select_of(node)}).removeprefix("SELECT ")


def _select_of(node: Json) -> Node:
    return {"targetList": [{"ResTarget": {"val": node}}], "limitOption": "LIMIT_OPTION_DEFAULT", "op": "SETOP_NONE"}


def parameters(text: str) -> Iterator[tuple[int, int, int]]:
    """Each $n outside quotes: its number, and where it starts and ends in bytes."""
    result = lib.pg_query_scan(text.encode())
    try:
        if result.error:
            raise Unreadable
        scanned = pg_query_pb2.ScanResult.FromString(ctypes.string_at(result.pbuf.data, result.pbuf.len))
    finally:
        lib.pg_query_free_scan_result(result)
    data = text.encode()
    for token in scanned.tokens:
        if token.token == pg_query_pb2.PARAM:
            yield int(data[token.start + 1 : token.end]), token.start, token.end


def walk(node: Json) -> Iterator[Node]:
    """Every dict below and at a node, outermost first."""
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from walk(child)
    elif isinstance(node, list):
        for child in node:
            yield from walk(child)


def kind(node: Json) -> tuple[str, Node]:
    """The name and the body of a wrapped node: {"ColumnRef": {...}}."""
    if isinstance(node, dict) and len(node) == 1:
        name, body = next(iter(node.items()))
        if isinstance(body, dict):
            return name, body
    return "", {}


def items(body: Node, key: str) -> list[Json]:
    """A list below a node; the JSON leaves out empty ones."""
    found = body.get(key)
    return found if isinstance(found, list) else []


def strings(nodes: Json) -> tuple[str, ...]:
    """The texts of a list of String nodes; "*" for A_Star."""
    found = []
    for node in nodes if isinstance(nodes, list) else ():
        name, body = kind(node)
        found.append("*" if name == "A_Star" else str(body.get("sval", "")))
    return tuple(found)


def same(left: Json, right: Json) -> bool:
    """Equal trees, wherever they stand."""
    match left, right:
        case dict(), dict():
            keys = (left.keys() | right.keys()) - PLACES
            return all(same(left.get(key), right.get(key)) for key in keys)
        case list(), list():
            return len(left) == len(right) and all(map(same, left, right))
    return left == right
