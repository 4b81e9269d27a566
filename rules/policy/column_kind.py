"""Kinds of a column's values, and whether a value of the rules file can be one."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from rules.catalog import TypeName
from rules.policy.model import Bound, Value

Kind = Literal["boolean", "integer", "number", "float", "date", "timestamp", "text", "enum", "other"]

KINDS: dict[str, Kind] = {
    "bool": "boolean",
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    "numeric": "number",
    **dict.fromkeys(("float4", "float8"), "float"),
    "date": "date",
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), "text"),
    "enum": "enum",
}  # fmt: skip
WIDTHS = {"int2": 16, "int4": 32, "int8": 64}


def kind_of(type_name: TypeName) -> Kind:
    return KINDS.get(type_name.base, "other")


def misfit(value: Bound | Value, type_name: TypeName) -> str:
    """Explain why a value cannot stand in such a column; "" when it can."""
    kind = kind_of(type_name)
    match kind, value:
        case "boolean", bool():
            return ""
        case "integer", int() if not isinstance(value, bool):
            limit = 2 ** (WIDTHS[type_name.base] - 1)
            return "" if -limit <= value < limit else f"{value} does not fit into {type_name.sql}"
        case (("number" | "float"), (int() | Decimal())) if not isinstance(value, bool):
            return ""
        case "timestamp", datetime():
            return ""
        case (("date" | "timestamp"), date()) if not isinstance(value, datetime):
            return ""
        case "text", str():
            return ""
        case "text", _:
            return f'{value} is not text: write it in quotes, "{value}"'
        case "enum", str():
            return "" if value in type_name.labels else f'"{value}" is not a label of {type_name.sql}'
    return f'"{value}" is not a value of type {type_name.sql}'
