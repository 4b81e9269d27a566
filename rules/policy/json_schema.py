"""The rules file as a JSON Schema, made from the model: editors complete and mark what a file says by it."""

from typing import Final

from rules.policy.load import AUTO
from rules.policy.logins import DURATION
from rules.policy.model import Policy
from rules.policy.rule_values import ALLOWED

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
FILE: Final = "rules.schema.json"
FIRST_LINE: Final = f"# yaml-language-server: $schema={FILE}\n"

_DURATION: Final[Json] = {"type": "string", "pattern": f"^{DURATION.pattern}$", "examples": ["1 day", "30 min"]}
_AUTO: Final[Json] = {"type": "string", "pattern": "^{}$".format(AUTO.pattern.replace("?P<ceiling>", ""))}
_BECAUSE: Final[Json] = {
    "type": "object",
    "properties": {"because": {"type": "string", "minLength": 8}},
    "required": ["because"],
    "additionalProperties": False,
}


def rules_schema() -> dict[str, Json]:
    """All keys and what they take, the short forms too."""
    schema = _tidy(Policy.model_json_schema())
    assert isinstance(schema, dict)
    table, policy = _properties(schema, "TableRules"), schema["properties"]
    assert isinstance(policy, dict)
    table["public"] = {"anyOf": [{"type": "boolean"}, _BECAUSE], "default": False}
    table["rows_per_unit"] = _or(table["rows_per_unit"], _AUTO)
    table["columns"] = _named(_or({"$ref": "#/$defs/ColumnRules"}, {"const": "hidden"}))
    policy["tables"] = _named(_or({"$ref": "#/$defs/TableRules"}, {"enum": ["public", "view"]})) | {"minProperties": 1}
    for model in ("Analyst", "Operator"):
        login = _properties(schema, model)
        login["password"] = _or({"type": "string"}, login["password"])
    setting = _or({"type": "string"}, {"type": "number"}, {"type": "boolean"})
    settings: dict[str, Json] = dict.fromkeys(sorted(ALLOWED), setting)
    policy["engine_settings"] = {"type": "object", "properties": settings, "additionalProperties": False}
    policy["fresh_for"] = _or(_DURATION, {"const": 0})
    policy["pad_to"] = _or(_DURATION, {"const": 0}, {"const": "full"}, {"type": "null"})
    head: dict[str, Json] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Rules of Noisegate"}
    return head | schema


def _tidy(schema: object) -> Json:
    """Without titles, which repeat the names, and without what is no keyword of JSON Schema."""
    match schema:
        case dict():
            return {
                str(key): {str(name): _tidy(part) for name, part in value.items()}
                if key in ("properties", "$defs")
                else _tidy(value)
                for key, value in schema.items()
                if key not in ("title", "ge", "format")
            }
        case list():
            return [_tidy(part) for part in schema]
        case str() | int() | float() | bool() | None:
            return schema
    raise TypeError(schema)


def _properties(schema: dict[str, Json], model: str) -> dict[str, Json]:
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    node = definitions[model]
    assert isinstance(node, dict)
    properties = node["properties"]
    assert isinstance(properties, dict)
    return properties


def _or(*schemas: Json) -> dict[str, Json]:
    return {"anyOf": list(schemas)}


def _named(values: Json) -> dict[str, Json]:
    return {"type": "object", "additionalProperties": values}
