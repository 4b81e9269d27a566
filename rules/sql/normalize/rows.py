"""Comparisons of rows, spelled as comparisons of their columns: that is what PostgreSQL makes of them."""

from rules.sql.grammar import Json, Node, items, kind
from rules.sql.normalize.nodes import negation

_STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def by_columns(expression_kind: str, name: str, body: Node) -> Node | None:
    """(a, b) = (1, 2) is a = 1 AND b = 2; None where no rows of one length are compared."""
    left = _columns(body.get("lexpr"))
    if expression_kind == "IN":
        rows = [_columns(item) for item in items(kind(body["rexpr"])[1], "items")]
        if not left or any(len(row) != len(left) for row in rows):
            return None
        found = _joined("OR_EXPR", [_compared("=", left, row) for row in rows])
        return found if name == "=" else negation(found)
    right = _columns(body.get("rexpr"))
    if not left or len(left) != len(right) or name not in ("=", "<>", *_STRICT):
        return None
    return _compared(name, left, right)


def _columns(node: Json) -> list[Json]:
    """Of a plain row; rows in rows would be written twice at every level."""
    name, body = kind(node)
    columns = items(body, "args") if name == "RowExpr" else []
    return [] if any(kind(column)[0] == "RowExpr" for column in columns) else columns


def _compared(name: str, left: list[Json], right: list[Json]) -> Node:
    pairs = list(zip(left, right, strict=True))
    if name not in _STRICT:
        return _joined("AND_EXPR" if name == "=" else "OR_EXPR", [_operation(name, *pair) for pair in pairs])
    found = _operation(name, *pairs[-1])
    for pair in reversed(pairs[:-1]):  # the first pair that differs decides
        further = _joined("AND_EXPR", [_operation("=", *pair), found])
        found = _joined("OR_EXPR", [_operation(_STRICT[name], *pair), further])
    return found


def _operation(name: str, left: Json, right: Json) -> Node:
    return {"A_Expr": {"kind": "AEXPR_OP", "name": [{"String": {"sval": name}}], "lexpr": left, "rexpr": right}}


def _joined(word: str, parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else {"BoolExpr": {"boolop": word, "args": [*parts]}}
