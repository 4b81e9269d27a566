"""A text as PostgreSQL's grammar reads it: its statements, their kinds, and the tables that they name."""

from collections.abc import Iterator, Sequence
from typing import Literal

from rules.frozen import replace
from rules.refusal import TooComplex
from rules.sql.forbidden import refusal_by_kind
from rules.sql.grammar import Piece, Unreadable, deparse, deparse_expression, names_of, parse_kept
from rules.sql.grammar import shape as shape_of
from rules.sql.normalize.nodes import AGGREGATES
from rules.sql.selects import query_of
from rules.sql.statement import MOST_SHAPE, Kind, Reading, RelationName, Statement
from rules.sql.system_views import BARS, REQUEST, REQUESTS, SCHEMA
from rules.sql.tree import Json, Node, bodies, holders, items, kind, strings

KINDS = {
    "SelectStmt": Kind.QUERY,
    "DeclareCursorStmt": Kind.DECLARE,
    "CopyStmt": Kind.COPY_OUT,
    "PrepareStmt": Kind.PREPARE,
    "ExecuteStmt": Kind.EXECUTE,
    "ExplainStmt": Kind.EXPLAIN,
    "DeallocateStmt": Kind.DEALLOCATE,
    "DiscardStmt": Kind.DISCARD,
    "TransactionStmt": Kind.TRANSACTION,
    "VariableSetStmt": Kind.SET,
    "ViewStmt": Kind.VIEW,
    "DropStmt": Kind.VIEW,
}
TRANSACTIONS: dict[str, Literal["begin", "commit", "rollback", "savepoint"]] = {
    "TRANS_STMT_BEGIN": "begin",
    "TRANS_STMT_START": "begin",
    "TRANS_STMT_COMMIT": "commit",
    "TRANS_STMT_ROLLBACK": "rollback",
    "TRANS_STMT_SAVEPOINT": "savepoint",
    "TRANS_STMT_RELEASE": "savepoint",
    "TRANS_STMT_ROLLBACK_TO": "savepoint",
}


def read(text: str) -> Reading:
    """All statements of a text, with character positions.

    Example:
        >>> [statement.kind.value for statement in read("begin; select 1 from t").statements]
        ['transaction', 'query']
    """
    try:
        pieces = parse_kept(text)
    except Unreadable:
        return Reading(unreadable=True)
    except RecursionError:
        raise TooComplex("the statement is nested too deeply") from None
    data = text.encode()
    return Reading(tuple(_statement(piece, data) for piece in pieces))


def _statement(piece: Piece, data: bytes) -> Statement:
    end = piece.start + piece.length if piece.length else len(data)
    raw = data[piece.start : end]
    own = raw.lstrip(b" \t\n\r\f\v")
    start = end - len(own)
    name, body = kind(piece.tree)
    characters = len(data[:start].decode())
    positions = _Positions(data, start)
    calls = piece.index.bodies("FuncCall")
    fingerprint, shape = _names(own.decode(), piece.tree)
    statement = Statement(
        kind=KINDS.get(name, Kind.OTHER),
        text=own.decode(),
        start=characters,
        relations=(*_relations(piece, positions), *_requests(calls)),
        settings=tuple(_set_by_function(calls)),
        fingerprint=fingerprint,
        bars=tuple(_bars(calls, positions)),
        shape=shape[:MOST_SHAPE],
    )
    if refusal := refusal_by_kind(piece, calls):
        refusal.position = next(
            (positions.of(call) for call in calls if strings(call.get("funcname"))[-1] == refusal.about), None
        )
        return replace(statement, kind=Kind.FORBIDDEN, refusal=refusal, command=refusal.about)
    return _with_details(statement, name, body)


def _names(text: str, tree: Node) -> tuple[str, str]:
    """The fingerprint of a statement, and the shape of its query if it has one."""
    fingerprint, shape = names_of(text)
    if (query := query_of(tree)) is tree:
        return fingerprint, shape
    try:
        return fingerprint, "" if query is None else shape_of(deparse(query))
    except Unreadable:
        return fingerprint, ""


class _Positions:
    """Byte offsets of the whole text as characters, from 1, of one statement."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start

    def of(self, node: Node) -> int | None:
        location = node.get("location", 0)  # the JSON leaves out zeros
        if not isinstance(location, int) or location < self._start:
            return None
        return len(self._data[self._start : location].decode("utf-8", "replace")) + 1


def _relations(piece: Piece, positions: _Positions) -> list[RelationName]:
    """The tables that a statement names, names of CTEs left out where they are in scope."""
    if "withClause" not in piece.words:
        return [_relation(body, positions) for body in piece.index.holders("relname")]
    found: list[RelationName] = []
    _look(piece.tree, frozenset(), positions, found)
    return found


def _relation(body: Node, positions: _Positions) -> RelationName:
    schema = body.get("schemaname")
    return RelationName(None if schema is None else str(schema), str(body["relname"]), positions.of(body))


def _look(node: Json, hidden: frozenset[str], positions: _Positions, found: list[RelationName]) -> None:
    waiting = [node]
    while waiting:
        tree = waiting.pop()
        if type(tree) is list:
            waiting += reversed(tree)
        if type(tree) is not dict:
            continue
        if "relname" in tree:
            relation = _relation(tree, positions)
            if relation.schema is not None or relation.name not in hidden:
                found.append(relation)
        elif isinstance(clause := tree.get("withClause"), dict):
            inside = _look_into_ctes(clause, hidden, positions, found)
            _look([child for key, child in tree.items() if key != "withClause"], inside, positions, found)
        else:
            waiting += reversed(tree.values())


def _look_into_ctes(
    clause: Node, hidden: frozenset[str], positions: _Positions, found: list[RelationName]
) -> frozenset[str]:
    """Note the tables inside a WITH clause; returns the names that hide tables after it."""
    ctes = [kind(cte)[1] for cte in items(clause, "ctes")]
    names = [_text(cte, "ctename") for cte in ctes]
    if clause.get("recursive"):
        hidden = hidden.union(names)
    for cte, name in zip(ctes, names, strict=True):
        _look(cte.get("ctequery"), hidden, positions, found)
        hidden = hidden | {name}
    return hidden


def _with_details(statement: Statement, name: str, body: Node) -> Statement:
    match name:
        case "DeclareCursorStmt" | "FetchStmt" | "ClosePortalStmt":
            return replace(statement, name=_text(body, "portalname"))
        case "PrepareStmt":
            types = tuple(_type_text(node) for node in items(body, "argtypes"))
            return replace(statement, name=_text(body, "name"), query=_inner(body), parameter_types=types)
        case "ExecuteStmt":
            return _executing(statement, body)
        case "DeallocateStmt":
            return replace(statement, name=_text(body, "name") or None)
        case "DiscardStmt":
            return replace(statement, name=_text(body, "target").removeprefix("DISCARD_").lower())
        case "ExplainStmt":
            name, executed = kind(body.get("query"))
            statement = _executing(statement, executed) if name == "ExecuteStmt" else statement
            analyze, generic_plan = (_has_option(body, option) for option in ("analyze", "generic_plan"))
            return replace(statement, query=_inner(body), analyze=analyze, generic_plan=generic_plan)
        case "TransactionStmt":
            return replace(statement, transaction=TRANSACTIONS.get(_text(body, "kind"), ""))
        case "ViewStmt":
            view = body.get("view")
            return replace(statement, name=_text(view, "relname") if isinstance(view, dict) else None)
        case "VariableSetStmt":
            value = next((_constant(argument) for argument in items(body, "args")), None)
            return replace(statement, name=_text(body, "name"), settings=((_text(body, "name"), value),))
    return statement


def _executing(statement: Statement, body: Node) -> Statement:
    """EXECUTE name(arguments), by itself or inside an EXPLAIN."""
    params = items(body, "params")
    arguments = tuple(map(deparse_expression, params))
    called = (strings(call.get("funcname"))[-1] for call in bodies(params, "FuncCall"))
    has_rows = bool(holders(params, "SubLink")) or not AGGREGATES.isdisjoint(called)
    return replace(statement, name=_text(body, "name"), arguments=arguments, has_rows_in_arguments=has_rows)


def _set_by_function(calls: Sequence[Node]) -> Iterator[tuple[str, str | None]]:
    """Yield what set_config changes, as far as it is written there."""
    for body in calls:
        if strings(body.get("funcname"))[-1] == "set_config":
            setting, value = (*map(_written, items(body, "args")), None, None)[:2]
            yield setting or "", value


def _requests(calls: Sequence[Node]) -> Iterator[RelationName]:
    """A request for budget is the proxy's to answer, as the relation that shows requests is."""
    for body in calls:
        if strings(body.get("funcname")) == (SCHEMA, REQUEST):
            yield RelationName(SCHEMA, REQUESTS.name, None)


def _bars(calls: Sequence[Node], positions: _Positions) -> Iterator[int | None]:
    """Calls of noisegate.margin, low and high; by their bare names where a search path finds them."""
    for body in calls:
        *schema, function = strings(body.get("funcname"))
        if function in BARS and schema in ([], [SCHEMA]):
            yield positions.of(body)


def _written(node: Json) -> str | None:
    """The text of a literal, be it cast or not."""
    name, body = kind(node)
    if name == "TypeCast":
        return _written(body.get("arg"))
    return _constant(node) or None if name == "A_Const" else None


def _text(body: Node, key: str) -> str:
    return str(body.get(key, ""))


def _constant(node: Json) -> str:
    """The word, text or number that SET is given; PostgreSQL's tree leaves out a zero."""
    nodes = [value for value in kind(node)[1].values() if isinstance(value, dict)]
    return str(next(iter(nodes[0].values()), 0)) if nodes else ""


def _inner(body: Node) -> str:
    """The statement inside a PREPARE or an EXPLAIN, as canonical text."""
    query = body.get("query")
    return deparse(query) if isinstance(query, dict) else ""


def _type_text(node: Json) -> str:
    """A type's name as it was written: what a cast of a constant to it prints."""
    cast: Json = {"TypeCast": {"arg": {"A_Const": {"isnull": True}}, "typeName": kind(node)[1]}}
    return deparse_expression(cast).removeprefix("NULL::")


def _has_option(body: Node, name: str) -> bool:
    """EXPLAIN ANALYZE or EXPLAIN (ANALYZE), unless the option says off; of several the last one counts."""
    values = [element.get("arg") for _, element in map(kind, items(body, "options")) if element.get("defname") == name]
    if not values:
        return False
    written, value = kind(values[-1])
    text = str(value.get("ival", 0) if written == "Integer" else value.get("sval", ""))
    return text.lower() not in ("off", "false", "0")
