"""Two parsers, one meaning: what sqlglot made of a text must be what PostgreSQL's own grammar made of it.

The planner's tree is printed and read by PostgreSQL's grammar; the result must equal the tree of the text that the
planner was given, but for spellings that mean the same. A misreading of sqlglot's thus ends in a refusal.
"""

from decimal import Decimal
from functools import reduce
from itertools import product

from rules.refusal import NotSupported
from rules.sql.grammar import Json, Node, Unreadable, items, kind, parse, same, strings
from rules.sql.print import print_query
from rules.sql.syntax import Query

NEGATED: dict[tuple[str, ...], tuple[str, str]] = {
    ("AEXPR_IN", "="): ("AEXPR_IN", "<>"),
    ("AEXPR_LIKE", "~~"): ("AEXPR_LIKE", "!~~"),
    ("AEXPR_ILIKE", "~~*"): ("AEXPR_ILIKE", "!~~*"),
    ("AEXPR_OP", "~"): ("AEXPR_OP", "!~"),
    ("AEXPR_OP", "~*"): ("AEXPR_OP", "!~*"),
    ("AEXPR_DISTINCT", "="): ("AEXPR_NOT_DISTINCT", "="),
    ("AEXPR_BETWEEN", "BETWEEN"): ("AEXPR_NOT_BETWEEN", "NOT BETWEEN"),
}
TESTS = {"IS_TRUE": "IS_NOT_TRUE", "IS_FALSE": "IS_NOT_FALSE"}
FRAME_BETWEEN = 0x10  # PostgreSQL's FRAMEOPTION_BETWEEN: how a frame was written, not what it is
DROPPED = frozenset(  # where things stand and how they were spelled
    (
        "location name_location list_start list_end rexpr_list_start rexpr_list_end stmt_len stmt_location funcformat "
        "jumble_args ctematerialized"
    ).split()
)


def check_agreement(tree: Node, query: Query) -> None:
    """Refuse a statement that the two parsers read differently."""
    try:
        (piece,) = parse(print_query(query))
    except (Unreadable, ValueError):
        raise _disagreement() from None
    if not same(_normal(piece.tree), _normal(tree)):
        raise _disagreement()


def _disagreement() -> NotSupported:
    return NotSupported("this spelling cannot be planned safely", hint="Write the same question in simpler SQL.")


def _normal(node: Json) -> Json:
    """One form for spellings that mean the same, from the leaves up."""
    if isinstance(node, list):
        return [_normal(child) for child in node]
    if not isinstance(node, dict):
        return node
    plain: Node = {key: _normal(child) for key, child in node.items() if key not in DROPPED}
    name, body = kind(plain)
    match name:
        case "SelectStmt":
            return {name: _select(body)}
        case "BoolExpr":
            return _boolean(body)
        case "BooleanTest" if body.get("booltesttype") == "IS_UNKNOWN":
            return {"NullTest": {"arg": body.get("arg"), "nulltesttype": "IS_NULL"}}
        case "SubLink":
            return _sublink(body)
        case "A_Expr" if strings(body.get("name")) == ("+",) and "lexpr" not in body:
            return body.get("rexpr")
        case "A_Const" if isinstance(number := body.get("fval"), dict):
            return {"A_Const": {"fval": str(Decimal(str(number.get("fval", "0"))).normalize())}}
    if "funcname" in plain or "names" in plain:
        return _unqualified(plain)
    return plain


def _unqualified(node: Node) -> Node:
    """Names of pg_catalog are written with and without it."""
    for key in ("funcname", "names"):
        names = items(node, key)
        if len(names) > 1 and strings(names)[0] == "pg_catalog":
            node = node | {key: names[1:]}
    return node


def _select(body: Node) -> Node:
    """FROM a, b is a cross join; ROLLUP stands for its sets; a named window for its definition."""
    sources = items(body, "fromClause")
    if sources:
        body = body | {"fromClause": [reduce(_crossed, sources)]}
    if groups := items(body, "groupClause"):
        body = body | {"groupClause": [_spelled_out(each) for each in groups]}
    named = {str(kind(window)[1].get("name")): kind(window)[1] for window in items(body, "windowClause")}
    inlined = _windows({key: value for key, value in body.items() if key != "windowClause"}, named)
    assert isinstance(inlined, dict)
    return inlined


def _crossed(left: Json, right: Json) -> Json:
    return {"JoinExpr": {"jointype": "JOIN_INNER", "larg": left, "rarg": right}}


def _windows(node: Json, named: dict[str, Node]) -> Json:
    match node:
        case list():
            return [_windows(child, named) for child in node]
        case dict() if "frameOptions" in node:
            window = named.get(str(node.get("name")), node)
            kept = {key: value for key, value in window.items() if key not in ("name", "frameOptions")}
            options = window.get("frameOptions")
            return kept | {"frameOptions": options & ~FRAME_BETWEEN if isinstance(options, int) else 0}
        case dict():
            return {key: _windows(child, named) for key, child in node.items()}
    return node


def _spelled_out(node: Json) -> Json:
    """A ROLLUP or CUBE as the GROUPING SETS that it stands for."""
    name, body = kind(node)
    content = items(body, "content")
    if name != "GroupingSet" or body.get("kind") not in ("GROUPING_SET_ROLLUP", "GROUPING_SET_CUBE"):
        return node
    if body.get("kind") == "GROUPING_SET_ROLLUP":
        sets = [content[:length] for length in range(len(content), -1, -1)]
    else:
        choices = product((True, False), repeat=len(content))
        sets = [[part for part, taken in zip(content, choice, strict=True) if taken] for choice in choices]
    return {"GroupingSet": {"kind": "GROUPING_SET_SETS", "content": [_one_set(each) for each in sets]}}


def _one_set(columns: list[Json]) -> Json:
    flat: list[Json] = []
    for column in columns:
        name, body = kind(column)
        flat += items(body, "args") if name == "RowExpr" else [column]
    if not flat:
        return {"GroupingSet": {"kind": "GROUPING_SET_EMPTY"}}
    return flat[0] if len(flat) == 1 else {"RowExpr": {"args": flat, "row_format": "COERCE_IMPLICIT_CAST"}}


def _boolean(body: Node) -> Json:
    """AND and OR are flat; NOT is drawn into what has a negated form."""
    operator, arguments = body.get("boolop"), items(body, "args")
    if operator == "NOT_EXPR":
        return _negated(arguments[0])
    flat: list[Json] = []
    for argument in arguments:
        name, inner = kind(argument)
        flat += items(inner, "args") if name == "BoolExpr" and inner.get("boolop") == operator else [argument]
    return {"BoolExpr": {"boolop": operator, "args": flat}}


def _negated(node: Json) -> Json:
    name, body = kind(node)
    if name == "A_Expr" and (found := NEGATED.get((str(body.get("kind")), *strings(body.get("name"))))):
        new_kind, operator = found
        return {"A_Expr": body | {"kind": new_kind, "name": [{"String": {"sval": operator}}]}}
    if name == "NullTest" and body.get("nulltesttype") == "IS_NULL":
        return {name: body | {"nulltesttype": "IS_NOT_NULL"}}
    if name == "BooleanTest" and (test := TESTS.get(str(body.get("booltesttype")))):
        return {name: body | {"booltesttype": test}}
    return {"BoolExpr": {"boolop": "NOT_EXPR", "args": [node]}}


def _sublink(body: Node) -> Json:
    """x = ANY (SELECT …) is IN, x <> ALL (SELECT …) is NOT IN."""
    operator, link = strings(body.get("operName")), body.get("subLinkType")
    plain = {key: value for key, value in body.items() if key != "operName"}
    if link == "ANY_SUBLINK" and operator == ("=",):
        return {"SubLink": plain}
    if link == "ALL_SUBLINK" and operator == ("<>",):
        return _negated({"SubLink": plain | {"subLinkType": "ANY_SUBLINK"}})
    return {"SubLink": body}
