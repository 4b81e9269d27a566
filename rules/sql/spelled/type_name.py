"""The name of a type in a cast, as PostgreSQL prints it: "numeric(10,2)", "timestamp with time zone", "text[]"."""

import re

from rules.sql.grammar import Node, items, kind, strings

PRINTED = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "varchar": "character varying",
    "varbit": "bit varying",
    "timestamp": "timestamp{} without time zone",
    "timestamptz": "timestamp{} with time zone",
    "time": "time{} without time zone",
    "timetz": "time{} with time zone",
    "char": '"char"',
}
PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def type_text(node: Node) -> str | None:
    """The text of a TypeName; None when it is not a plain one (SETOF, %TYPE, INTERVAL DAY)."""
    modifiers = _modifiers(node)
    if modifiers is None or node.get("setof") or node.get("pct_type"):
        return None
    names = strings(node.get("names"))
    if names[:-1] in ((), ("pg_catalog",)):
        printed = _builtin(names[-1], bool(modifiers))
    else:
        printed = ".".join(map(_quoted, names))
    printed = printed.format(modifiers) if "{}" in printed else printed + modifiers
    return printed + "[]" * bool(items(node, "arrayBounds"))


def _builtin(name: str, modified: bool) -> str:
    if name == "bpchar" and modified:
        return "character"
    return PRINTED.get(name) or _quoted(name)


def _modifiers(node: Node) -> str | None:
    """(10,2); nothing for a type without."""
    found = items(node, "typmods")
    constants = [kind(each)[1] for each in found]
    if not all("ival" in each for each in constants) or (found and strings(node.get("names"))[-1] == "interval"):
        return None
    numbers = [kind({"ival": each["ival"]})[1].get("ival", 0) for each in constants]
    return f"({','.join(map(str, numbers))})" if numbers else ""


def _quoted(name: str) -> str:
    """An identifier as it is written: in quotes where it must be."""
    return name if PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
