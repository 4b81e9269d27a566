"""PostgreSQL's tree without special call syntax, as the outer statement is cut from it."""

import re

from rules.sql.tree import TREES, Json, Node, items, kind, strings

_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_FIELDS = {1 << 1: "month", 1 << 2: "year", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}


def canonical_tree(tree: Node) -> Node:
    """The tree with every call a plain one: EXTRACT, SUBSTRING FROM, AT TIME ZONE and the like become functions."""
    return {key: _plain(value) for key, value in tree.items()}


def _plain(node: Json) -> Json:
    if isinstance(node, list):
        return [_plain(child) for child in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _plain(value) if isinstance(value, TREES) else value for key, value in node.items()}
    if plain.get("funcformat") == "COERCE_SQL_SYNTAX":
        plain["funcformat"] = "COERCE_EXPLICIT_CALL"
    return _interval(plain) if "typeName" in plain else plain


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
