"""What stands in a jsonb document, by constant keys. A json document is kept as written: parts may be unreadable."""

import json

from rules.refusal import NotSupported
from rules.relation.domain import Values
from rules.relation.expression import Apply, Constant, Expression, Literal, Operand, condition
from rules.relation.functions.arrays import items_of
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting
from rules.relation.functions.text import constant_text
from rules.relation.types import JSONB, TEXT

Operands = tuple[Operand, ...]
SIGNS = frozenset(("->", "->>", "?", "#>", "#>>", "@>", "<@"))
_PATHS = {"#>": "jsonb_extract_path", "#>>": "jsonb_extract_path_text"}
_KINDS = Values(("array", "boolean", "null", "number", "object", "string"))


def part(name: str, document: Operand, key: Operand, setting: Setting) -> Expression:
    """document -> 'key' and document ->> 'key', also by an item's number; document ? 'key'."""
    if name in ("@>", "<@"):
        return _contained(name, document, key)
    if name in _PATHS:
        keys = items_of(constant_text(name, key, setting).text or "")
        if None in keys or not keys:
            raise NotSupported(f"{name} needs a path of constant keys", hint="Write it as '{a,b}'.")
        return path(_PATHS[name], (document, *(Literal(each or "") for each in keys)), setting)
    given, found = _document(document), _key(name, key, setting)
    if name == "?":
        return condition(name, "({0} ? {1})", given, found)
    return Apply(name, f"({{0}} {name} {{1}})", (given, found), TEXT if name == "->>" else JSONB)


def _contained(name: str, left: Operand, right: Operand) -> Expression:
    """document @> '{"key": "value"}', and the other way round."""
    given = tuple(_written(each) if isinstance(each, Literal) else _document(each) for each in (left, right))
    return condition(name, f"({{0}} {name} {{1}})", *given)


def _written(given: Literal) -> Constant:
    """A document of the analyst's text."""
    try:
        json.loads(given.text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise NotSupported(f"'{given.text[:60]}' is not read as a document here") from None
    if "\\u" in given.text or "\x00" in given.text:  # of which PostgreSQL takes not all that Python takes
        raise NotSupported("a document with escapes of characters is not supported", hint="Write the characters.")
    return Constant(JSONB, given.text, given.text)


def _no_number(word: str) -> None:
    raise ValueError(word)


def path(name: str, operands: Operands, setting: Setting) -> Expression:
    """jsonb_extract_path(document, 'a', 'b') and its text."""
    given = _document(operands[0])
    keys = tuple(constant_text(name, operand, setting) for operand in operands[1:])
    holes = ", ".join(f"{{{place}}}" for place in range(1 + len(keys)))
    return Apply(name, f"{name}({holes})", (given, *keys), TEXT if name.endswith("text") else JSONB)


def kind(operands: Operands, setting: Setting) -> Expression:
    """jsonb_typeof(document)."""
    given = _document(operands[0])
    return Apply("jsonb_typeof", "jsonb_typeof({0})", (given,), TEXT, _KINDS, given.nullable)


def _document(operand: Operand) -> Expression:
    if isinstance(operand, Literal) or operand.type != JSONB:
        raise NotSupported("keys of documents are looked for in jsonb over protected rows", hint="Store it as jsonb.")
    return operand


def _key(name: str, operand: Operand, setting: Setting) -> Expression:
    found = typed(operand, setting)
    if isinstance(found, Constant) and found.type.base == "int4" and name != "?":
        return found
    return constant_text(name, found, setting)
