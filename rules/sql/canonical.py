"""PostgreSQL's tree without special call syntax, as the outer statement is cut from it."""

import re

from rules.sql.tree import Json, Node, items, kind, strings, walk

_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_FIELDS = {1 << 1: "month", 1 << 2: "year", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}


def canonical_tree(tree: Node) -> Node:
    """The tree with every call a plain one: EXTRACT, SUBSTRING FROM, AT TIME ZONE and the like become functions."""
    return {key: _plain(value) for key, value in tree.items()}


def sources_as_queries(tree: Json) -> None:
    """FROM f(…) AS d becomes FROM (SELECT * FROM f(…) AS d) AS d, and a list of VALUES likewise.

    A function that reads the items beside it stays as it is.
    """
    for owner in list(walk(tree)):
        sources = items(owner, "fromClause")
        sources[:] = map(_as_query, sources)
        for side in ("larg", "rarg"):
            if kind(owner.get(side))[0] in ("RangeFunction", "RangeSubselect"):
                owner[side] = _as_query(owner[side])


def _as_query(item: Json) -> Json:
    name, body = kind(item)
    is_values = name == "RangeSubselect" and bool(items(kind(body.get("subquery"))[1], "valuesLists"))
    if (
        not (is_values or name == "RangeFunction")
        or body.get("lateral")
        or any("ColumnRef" in each for each in walk(body))
    ):
        return item
    alias = kind({"Alias": body.get("alias")})[1].get("aliasname") or _function_name(body)
    query: Node = {
        "targetList": [{"ResTarget": {"val": {"ColumnRef": {"fields": [{"A_Star": {}}]}}}}],
        "fromClause": [item],
        "limitOption": "LIMIT_OPTION_DEFAULT",
        "op": "SETOP_NONE",
    }
    return {"RangeSubselect": {"subquery": {"SelectStmt": query}, "alias": {"aliasname": alias}}}


def _function_name(body: Node) -> str:
    """What FROM f(…) without an alias is called."""
    calls = (strings(kind(node)[1].get("funcname")) for node in walk(body) if kind(node)[0] == "FuncCall")
    return next((names[-1] for names in calls if names), "f")


def _plain(node: Json) -> Json:
    match node:
        case list():
            return [_plain(child) for child in node]
        case dict():
            plain = {key: _plain(value) for key, value in node.items()}
            if plain.get("funcformat") == "COERCE_SQL_SYNTAX":
                plain["funcformat"] = "COERCE_EXPLICIT_CALL"
            return _interval(plain) if "typeName" in plain else plain
    return node


def _interval(cast: Node) -> Node:
    """interval '90' day is '90 day'::interval."""
    type_name = cast["typeName"]
    if not isinstance(type_name, dict) or strings(type_name.get("names"))[-1:] != ("interval",):
        return cast
    given, fields = (_constant(each) for each in (cast.get("arg"), next(iter(items(type_name, "typmods")), None)))
    if not isinstance(given, str) or not isinstance(fields, int) or fields not in _FIELDS:
        return cast
    if _WHOLE.fullmatch(given) is None:
        return cast
    value: Node = {"A_Const": {"sval": {"sval": f"{given} {_FIELDS[fields]}"}, "location": -1}}
    return cast | {"arg": value, "typeName": {key: each for key, each in type_name.items() if key != "typmods"}}


def _constant(node: Json) -> Json:
    """The value of a constant."""
    name, body = kind(node)
    for field in ("sval", "ival") if name == "A_Const" else ():
        if isinstance(value := body.get(field), dict):
            return value.get(field)
    return None
