"""Read a jsonb document by constant keys. A json document is kept as written: parts may be unreadable."""

import json

from rules.functions.arrays import items_of
from rules.functions.coerce import typed
from rules.functions.function import EvalContext, Operands, function, function_of_name
from rules.functions.guard import LONGEST_TEXT
from rules.functions.text.strings import constant_text
from rules.refusal import NotSupported
from rules.values.domain import Values
from rules.values.expression import Apply, Constant, Expression, Literal, Operand, condition
from rules.values.types import JSONB, TEXT

SIGNS = frozenset(("->", "->>", "?", "#>", "#>>", "@>", "<@"))
_PATHS = {"#>": "jsonb_extract_path", "#>>": "jsonb_extract_path_text"}
_KINDS = Values(("array", "boolean", "null", "number", "object", "string"))


def part(name: str, document: Operand, key: Operand, setting: EvalContext) -> Expression:
    """document -> 'key' and document ->> 'key', also by an item's number; document ? 'key'."""
    if name in ("@>", "<@"):
        return _contained(name, document, key)
    if name in _PATHS:
        keys = items_of(constant_text(name, key, setting).text or "")
        if None in keys or not keys:
            raise NotSupported(f"{name} needs a path of constant keys", hint="Write it as '{a,b}'.")
        return path(_PATHS[name], (document, *(Literal(key or "") for key in keys)), setting)
    argument, keyed = _document(document), _key(name, key, setting)
    if name == "?":
        return condition(name, "({0} ? {1})", argument, keyed)
    if name == "->>":
        return Apply(name, _as_text("{0} -> {1}", "{0} ->> {1}"), (argument, keyed), TEXT)
    return Apply(name, "({0} -> {1})", (argument, keyed), JSONB)


def _as_text(item: str, text: str) -> str:
    """The text of an item of a document, NULL where it is large: the text of one that has items itself can be 9,216
    times as long, as 1e131071 has that many digits, and PostgreSQL fails where it passes 1 GB."""
    return f"(CASE WHEN pg_column_size({item}) <= {LONGEST_TEXT} THEN {text} END)"


def _contained(name: str, left: Operand, right: Operand) -> Expression:
    """document @> '{"key": "value"}', and the other way round."""
    arguments = tuple(
        _written(argument) if isinstance(argument, Literal) else _document(argument) for argument in (left, right)
    )
    return condition(name, f"({{0}} {name} {{1}})", *arguments)


def _written(literal: Literal) -> Constant:
    """A document of the analyst's text."""
    try:
        json.loads(literal.text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise NotSupported(f"'{literal.text[:60]}' is not a supported JSON literal") from None
    if "\\u" in literal.text or "\x00" in literal.text:  # of which PostgreSQL takes not all that Python takes
        raise NotSupported(
            "a JSON literal with character escapes is not supported", hint="Write the characters themselves."
        )
    return Constant(JSONB, literal.text, literal.text)


def _no_number(word: str) -> None:
    raise ValueError(word)


@function_of_name("jsonb_extract_path", arguments=(2, 20), examples="jsonb_extract_path(j, 'a') ->> 'b'")
@function_of_name("jsonb_extract_path_text", arguments=(2, 20), examples="jsonb_extract_path_text(j, 'a', 'b')")
def path(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """jsonb_extract_path(document, 'a', 'b') and its text."""
    argument = _document(operands[0])
    keys = tuple(constant_text(name, operand, setting) for operand in operands[1:])
    holes = ", ".join(f"{{{place}}}" for place in range(1 + len(keys)))
    item = f"jsonb_extract_path({holes})"
    if name == "jsonb_extract_path":
        return Apply(name, item, (argument, *keys), JSONB)
    return Apply(name, _as_text(item, f"{name}({holes})"), (argument, *keys), TEXT)


@function("jsonb_typeof", arguments=1, examples="jsonb_typeof(j)")
def kind(operands: Operands, setting: EvalContext) -> Expression:
    """jsonb_typeof(document)."""
    argument = _document(operands[0])
    return Apply("jsonb_typeof", "jsonb_typeof({0})", (argument,), TEXT, _KINDS, argument.nullable)


def _document(operand: Operand) -> Expression:
    if isinstance(operand, Literal) or operand.type != JSONB:
        raise NotSupported(
            "a search for keys over protected rows needs type jsonb",
            hint="Ask your DBA to store the document as jsonb.",
        )
    return operand


def _key(name: str, operand: Operand, setting: EvalContext) -> Expression:
    argument = typed(operand, setting)
    if isinstance(argument, Constant) and argument.type.base == "int4" and name != "?":
        return argument
    return constant_text(name, argument, setting)
