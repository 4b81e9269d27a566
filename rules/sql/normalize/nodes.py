"""Small trees that the one spelling is made of, clauses as PostgreSQL lists them, window frames, names of types."""

import re
from collections.abc import Iterator

from rules.sql.tree import Json, Node, items, kind, strings

RESERVED = "_ng"  # the schema of operators that are no functions, and the alias of a SELECT's number
DEFAULT_FRAME = 1058  # RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, not written out
EXPRESSIONS = frozenset(
    (
        "ColumnRef A_Const ParamRef TypeCast FuncCall A_Expr SubLink CaseExpr BoolExpr NullTest BooleanTest "
        "CoalesceExpr MinMaxExpr GroupingFunc SQLValueFunction A_ArrayExpr RowExpr CollateClause A_Indirection"
    ).split()
)
_BASED = re.compile(r"(?P<sign>-?)(?P<digits>0[xX][0-9a-fA-F]{1,3000}|0[oO][0-7]{1,3000}|0[bB][01]{1,3000})")
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

AGGREGATES = frozenset(
    (
        "any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp cume_dist "
        "dense_rank every json_agg json_agg_strict json_arrayagg json_object_agg json_object_agg_strict "
        "json_object_agg_unique json_object_agg_unique_strict json_objectagg jsonb_agg jsonb_agg_strict "
        "jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict max min mode "
        "percent_rank percentile_cont percentile_disc range_agg range_intersect_agg rank regr_avgx regr_avgy "
        "regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp "
        "string_agg sum var_pop var_samp variance xmlagg"
    ).split()
)

JSON_AGGREGATES = {"JsonArrayAgg": "json_arrayagg", "JsonObjectAgg": "json_objectagg"}  # that are no calls

TYPICAL = "typical"  # of schema noisegate: a function over aggregates, which is planned as one
ESTIMATE = "estimate"  # of schema noisegate: an aggregate of a column that people randomized


def call(name: tuple[str, ...], *arguments: Json) -> Node:
    """A plain call."""
    body: Node = {"funcname": [{"String": {"sval": part}} for part in name], "funcformat": "COERCE_EXPLICIT_CALL"}
    if arguments:
        body["args"] = list(arguments)
    return {"FuncCall": body}


def operator(name: str, *arguments: Json) -> Node:
    """Return what is no function of PostgreSQL's, as a call in the reserved schema."""
    return call((RESERVED, name), *arguments)


def integer(number: int) -> Node:
    return {"A_Const": {"ival": {"ival": number} if number else {}}}


def text(value: str) -> Node:
    return {"A_Const": {"sval": {"sval": value}}}


def constant(body: Node) -> Node:
    """A constant; a number has digits on both sides of its point, and as many behind it as PostgreSQL reads."""
    match body.get("fval"):
        case {"fval": str(number)}:
            number = _decimal(number.replace("_", ""))
            number = re.sub(r"^(-?)\.", r"\g<1>0.", number)
            number = re.sub(r"\.(?=e)", "", number, flags=re.IGNORECASE)
            return {"A_Const": {"fval": {"fval": re.sub(r"\.$", "e0", number)}}}
    return {"A_Const": {key: value for key, value in body.items() if key != "location"}}


def _decimal(number: str) -> str:
    """A number of some length may be written to the base of 16, 8 or 2."""
    based = _BASED.fullmatch(number)
    return number if based is None else f"{based['sign']}{int(based['digits'], 0)}"


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


def function_source(function: Json, alias: Json) -> Node:
    """A function in FROM."""
    listed: Json = [{"List": {"items": [function, {}]}}]
    return {"RangeFunction": some(functions=listed, alias=alias)}


def parts(node: Json) -> Iterator[Node]:
    """The outermost expressions and queries inside a node."""
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        name, body = kind(child)
        if name in EXPRESSIONS and isinstance(child, dict):
            yield child
        elif name == "SelectStmt":
            yield {"SubLink": {"subLinkType": "EXPR_SUBLINK", "subselect": {"SelectStmt": body}}}
        else:
            yield from parts(child)


POSITIONS: dict[
    str, tuple[tuple[str, ...], Node]
] = {  # of arguments by name, and what stands for those that are left out
    "make_interval": (("years", "months", "weeks", "days", "hours", "mins", "secs"), {"ival": {}}),
    TYPICAL: (("value", "lower", "upper", "blocks"), {"isnull": True}),
}


def positional(name: str, arguments: list[Json]) -> list[Json] | None:
    """Arguments in their places; None where names are used that only PostgreSQL knows."""
    named = {
        str(body.get("name")): body.get("arg")
        for argument in arguments
        for kind_, body in [kind(argument)]
        if kind_ == "NamedArgExpr"
    }
    if not named:
        return arguments
    plain = len(arguments) - len(named)
    places, missing = POSITIONS.get(name, ((), {}))
    if not named.keys() <= set(places[plain:]):
        return None
    last = max(map(places.index, named))
    absent: Json = {"A_Const": missing}
    return arguments[:plain] + [named.get(place, absent) for place in places[plain : last + 1]]


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
    nodes = items(node, "typmods")
    constants = [kind(node)[1] for node in nodes]
    if not all("ival" in constant for constant in constants) or (
        nodes and strings(node.get("names"))[-1] == "interval"
    ):
        return None
    numbers = [kind({"ival": constant["ival"]})[1].get("ival", 0) for constant in constants]
    return f"({','.join(map(str, numbers))})" if numbers else ""


def _quoted(name: str) -> str:
    """An identifier as it is written: in quotes where it must be."""
    return name if PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


MODES = ((2, "RANGE"), (4, "ROWS"), (8, "GROUPS"))
STARTS = ((0x20, "UNBOUNDED PRECEDING"), (0x80, "UNBOUNDED FOLLOWING"), (0x200, "CURRENT ROW"))
STARTS_BY_OFFSET = ((0x800, "PRECEDING"), (0x2000, "FOLLOWING"))
ENDS = ((0x40, "UNBOUNDED PRECEDING"), (0x100, "UNBOUNDED FOLLOWING"), (0x400, "CURRENT ROW"))
ENDS_BY_OFFSET = ((0x1000, "PRECEDING"), (0x4000, "FOLLOWING"))
EXCLUSIONS = ((0x8000, " EXCLUDE CURRENT ROW"), (0x10000, " EXCLUDE GROUP"), (0x20000, " EXCLUDE TIES"))

Bits = tuple[tuple[int, str], ...]


def frame_text(window: Node) -> str:
    """ "ROWS BETWEEN $ PRECEDING AND CURRENT ROW", with $ for an offset; nothing for the default frame."""
    options = window.get("frameOptions", DEFAULT_FRAME)
    if not isinstance(options, int) or options == DEFAULT_FRAME:
        return ""

    def edge(plain: Bits, by_offset: Bits) -> str:
        return _named(options, plain) or f"$ {_named(options, by_offset)}"

    start, end = edge(STARTS, STARTS_BY_OFFSET), edge(ENDS, ENDS_BY_OFFSET)
    return f"{_named(options, MODES)} BETWEEN {start} AND {end}{_named(options, EXCLUSIONS)}"


def frame_offsets(window: Node) -> list[Json]:
    """The expressions that the frame's text has a $ for."""
    return [window[key] for key in ("startOffset", "endOffset") if key in window]


def _named(options: int, bits: Bits) -> str:
    return next((name for bit, name in bits if options & bit), "")
