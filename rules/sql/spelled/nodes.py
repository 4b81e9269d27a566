"""Small trees that the one spelling is made of."""

import re

from rules.sql.grammar import Json, Node, items, kind

RESERVED = "_ng"  # the schema of operators that are no functions, and the alias of a SELECT's number
DEFAULT_FRAME = 1058  # RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, not written out


def call(name: tuple[str, ...], *arguments: Json) -> Node:
    """A plain call."""
    body: Node = {"funcname": [{"String": {"sval": part}} for part in name], "funcformat": "COERCE_EXPLICIT_CALL"}
    if arguments:
        body["args"] = list(arguments)
    return {"FuncCall": body}


def operator(name: str, *arguments: Json) -> Node:
    """What is no function of PostgreSQL's, as a call in the reserved schema."""
    return call((RESERVED, name), *arguments)


def integer(number: int) -> Node:
    return {"A_Const": {"ival": {"ival": number} if number else {}}}


def text(value: str) -> Node:
    return {"A_Const": {"sval": {"sval": value}}}


def constant(body: Node) -> Node:
    """A constant; a number has digits on both sides of its point."""
    match body.get("fval"):
        case {"fval": str(number)}:
            number = re.sub(r"^(-?)\.", r"\g<1>0.", number)
            return {"A_Const": {"fval": {"fval": re.sub(r"\.(?!\d)", ".0", number)}}}
    return {"A_Const": {key: value for key, value in body.items() if key != "location"}}


def negation(node: Json) -> Node:
    return {"BoolExpr": {"boolop": "NOT_EXPR", "args": [node]}}


def some(**entries: Json) -> Node:
    """The entries that are there: PostgreSQL's JSON leaves out empty ones."""
    return {key: value for key, value in entries.items() if value is not None and value != [] and value is not False}


def numbered(number: int) -> Node:
    """The first entry of a SELECT's list: its number."""
    return {"ResTarget": {"name": RESERVED, "val": integer(number)}}


def flat(node: Json, boolop: Json) -> list[Json]:
    """The operands of an AND below an AND, or of an OR below an OR."""
    name, body = kind(node)
    return items(body, "args") if name == "BoolExpr" and body["boolop"] == boolop else [node]


def table(body: Node) -> Node:
    """A table as it is named, without the database, which can only be this one."""
    kept = {"schemaname", "relname", "inh", "relpersistence", "alias"}
    return {"RangeVar": {key: value for key, value in body.items() if key in kept}}


def function_source(function: Json, alias: Json) -> Node:
    """A function in FROM."""
    listed: Json = [{"List": {"items": [function, {}]}}]
    return {"RangeFunction": some(functions=listed, alias=alias)}
