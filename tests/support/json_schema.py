"""What a JSON Schema says of a value, by the keywords that ours has; another keyword is an error of the test."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str, date),  # YAML 1.2 has no dates
    "integer": (int,),
    "number": (int, float, Decimal),
    "boolean": (bool,),
    "null": (type(None),),
}
_WORDS = {"$schema", "$defs", "title", "description", "default", "examples"}


def problems(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str = "") -> list[str]:
    """Everything in a value that the schema forbids."""
    found: list[str] = []
    for keyword, rule in schema.items():
        if keyword not in _WORDS:
            found += _problems(keyword, rule, value, schema, root, path)
    return found


def _problems(
    keyword: str, rule: Any, value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> Sequence[str]:  # fmt: skip
    members = value.items() if isinstance(value, dict) else ()
    match keyword:
        case "$ref":
            return problems(value, root["$defs"][rule.removeprefix("#/$defs/")], root, path)
        case "anyOf":
            tried = [problems(value, each, root, path) for each in rule]
            return [] if [] in tried else [f"{path}: none of {len(tried)}: {min(tried, key=len)}"]
        case "required":
            return [f"{path}.{each}: missing" for each in rule if isinstance(value, dict) and each not in value]
        case "properties":
            inside = [(key, part) for key, part in members if key in rule]
            return [problem for key, part in inside for problem in problems(part, rule[key], root, f"{path}.{key}")]
        case "additionalProperties":
            others = [(key, part) for key, part in members if key not in schema.get("properties", {})]
            if rule is False:
                return [f"{path}.{key}: unknown" for key, _ in others]
            return [problem for key, part in others for problem in problems(part, rule, root, f"{path}.{key}")]
        case "items":
            parts = value if isinstance(value, list) else ()
            return [problem for part in parts for problem in problems(part, rule, root, path)]
    return [] if _fits(keyword, rule, value) else [f"{path}: {keyword} {rule}"]


def _fits(keyword: str, rule: Any, value: Any) -> bool:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    match keyword:
        case "type":
            return isinstance(value, _TYPES[rule]) and (rule == "boolean" or not isinstance(value, bool))
        case "enum":
            return value in rule
        case "const":
            return bool(value == rule and type(value) is type(rule))
        case "pattern":
            return not isinstance(value, str) or re.search(rule, value) is not None
    limits = {
        "minLength": not isinstance(value, str) or len(value) >= rule,
        "minItems": not isinstance(value, list) or len(value) >= rule,
        "minProperties": not isinstance(value, dict) or len(value) >= rule,
        "minimum": not is_number or value >= rule,
        "maximum": not is_number or value <= rule,
        "exclusiveMinimum": not is_number or value > rule,
        "exclusiveMaximum": not is_number or value < rule,
    }
    return bool(limits[keyword])
