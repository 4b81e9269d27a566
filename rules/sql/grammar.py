"""PostgreSQL's own grammar: text to a tree of plain dicts, and back to canonical text.

The one module that knows libpg_query. It is C code that can be driven to death by a hostile text, so it is called in
worker processes only. The JSON form of the tree is used since the protobuf one ends at a nesting of some 48 operators.
"""

import ctypes
import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache

from postgast import pg_query_pb2
from postgast.native import PgQueryProtobuf, lib

from rules.sql.encode_tree import encode_statement
from rules.sql.tree import PLACES, Index, Json, Node


class Unreadable(Exception):
    """A text that PostgreSQL's grammar does not accept."""


@dataclass(frozen=True)
class Piece:
    """One statement of a text: its tree, and where it stands, in bytes."""

    tree: Node
    start: int
    length: int  # 0: to the end

    @cached_property
    def index(self) -> Index:
        """What the tree holds."""
        return Index(self.tree)

    @property
    def words(self) -> AbstractSet[str]:
        """All words in the tree."""
        return self.index.words


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


_LATEST: dict[str, Sequence[Piece]] = {}


def parse_kept(text: str) -> Sequence[Piece]:
    """The same, kept for who takes them: a statement is planned soon after it was read. Nobody may change these trees
    before."""
    if text not in _LATEST:
        _LATEST.clear()
        _LATEST[text] = parse(text)
    return _LATEST[text]


def parse_taken(text: str) -> Sequence[Piece]:
    """The same for who changes the trees: they are kept no more."""
    kept = _LATEST.pop(text, None)
    return parse(text) if kept is None else kept


def deparse(tree: Node) -> str:
    """A statement's tree as canonical text: no comments, no tricks with quotes, one spelling for one meaning."""
    return _printed(encode_statement(tree))


def deparse_with_holes(tree: Node) -> tuple[str | int, ...]:
    """The same text in parts, with a number wherever it has $n outside quotes."""
    data = encode_statement(tree)
    return _parts_kept(data) if len(data) <= _KEPT_BYTES else _parts(data)


def _parts(data: bytes) -> tuple[str | int, ...]:
    written = _printed(data)
    parts: list[str | int] = []
    at = 0
    for found in _QUOTED_OR_HOLE.finditer(written):
        if found["number"]:
            parts += [written[at : found.start()], int(found["number"])]
            at = found.end()
    return (*parts, written[at:])


_QUOTED_OR_HOLE = re.compile(  # as libpg_query prints them: quotes are doubled, whatever stands before
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<number>[0-9]+)""", re.VERBOSE
)


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


def names_of(text: str) -> tuple[str, str]:
    """The fingerprint of one statement, and its shape, which is meant for a query."""
    normalized = _normalized(_without_comments(text))
    return _fingerprint(normalized), _blanked(normalized)


def shape(query: str) -> str:
    """A query's text with a ? for every constant, but for what counts columns or characters; "" where others remain.

    Example:
        >>> shape("select count(*) from t  where city = 'Berlin' group by 1 -- weekly")
        'select count(*) from t where city = ? group by 1'
    """
    return names_of(query)[1]


def _blanked(normalized: str) -> str:
    """A normalized text in one line, with a ? for each parameter. libpg_query leaves some constants as they are."""
    parts = _QUOTED_NAME.split(normalized)  # every other one is a name in quotes, and stays as it is
    parts[::2] = [_SPACE.sub(" ", _PARAMETER.sub("?", part)) for part in parts[::2]]
    return "" if any("'" in part for part in parts[::2]) else "".join(parts).strip()


_QUOTED_NAME = re.compile(r'("(?:[^"]|"")*")')
_PARAMETER = re.compile(r"\$[0-9]+")
_SPACE = re.compile(r"\s+")


def fingerprint(text: str) -> str:
    """A short name of one statement's normalized text: equal for statements that differ in constants and spelling only.

    It is libpg_query's own, so other tools find the same; "" for what has no such text.

    Example:
        >>> fingerprint("select 1 from t where a = 'x'") == fingerprint("SELECT 2 FROM t WHERE a = 'y' -- again")
        True
    """
    return _fingerprint(_normalized(_without_comments(text)))


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


def _without_comments(text: str) -> str:
    """A text without its comments: a client may write into one who asks, or what for."""
    if "--" not in text and "/*" not in text:
        return text
    data = text.encode()
    parts, at = [], 0
    try:
        tokens = _tokens(data)
    except Unreadable:
        return text
    for token in tokens:
        if token.token in _COMMENTS:
            parts.append(data[at : token.start])
            at = token.end
    return b" ".join((*parts, data[at:])).rstrip().decode()


_COMMENTS = (pg_query_pb2.SQL_COMMENT, pg_query_pb2.C_COMMENT)


def _tokens(data: bytes) -> list[pg_query_pb2.ScanToken]:
    """The words and signs of a text, and its comments."""
    result = lib.pg_query_scan(data)
    try:
        if result.error:
            raise Unreadable
        scanned = pg_query_pb2.ScanResult.FromString(ctypes.string_at(result.pbuf.data, result.pbuf.len))
    finally:
        lib.pg_query_free_scan_result(result)
    return list(scanned.tokens)
