"""Expressions as SQL: every template checked, every argument in its place, every constant typed.

What the planner says of an expression (its domain, whether it may be NULL) is not looked at. Of a column only its
number counts: its type is the one that the relation knows.

The registry writes templates, and a script carries them. Whoever wrote one, it is let through only if every word in it
is on a list: so no template can select, call a function that reads a table, a setting or the clock, or end a statement.
That functions never fail is the registry's work; amounts rest on this list alone.

Wherever values are compared (units, keys, DISTINCT, ties) equal must mean identical, so equal values have one spelling.
5.0 and 5.00 are equal numerics, 0 and -0 equal doubles: which of them stands for a group would follow from the order in
which rows are read, and so from other units' rows. Texts of deterministic collations are equal only if they are
identical; others are no texts to the planner (`types.type_of`), and character(n) is read as text.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from rules.refusal import Mismatch, NotSupported, TooComplex
from rules.values.expression import Apply, Column, Constant, Expression, columns_in
from rules.values.types import TEXT, Type

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>'(?:[^'{}\\]|''|\{\{|\}\})*')
    |(?P<hole>\{(?:[0-9]{1,5}|over)\})
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*|"(?:left|right|substring|overlay|position|trim)")
    |(?P<cast>::)
    |(?P<collation>"C"|"default")
    |(?P<sign>[-+*/<>=~!@#%^&|?]+)
    |(?P<mark>[(),.\[\]:])""",
    re.VERBOSE,
)
_TYPE = re.compile(
    r"""(?:"(?:[^"\0]|"")+"|[a-z_][a-z0-9_$]*)(?:\.(?:"(?:[^"\0]|"")+"|[a-z_][a-z0-9_$]*))?"""
    r"""(?:[ ](?:varying|precision))?(?:\([0-9]+(?:,-?[0-9]+)?\))?(?:[ ](?:with|without)[ ]time[ ]zone)?(?:\[\])*"""
)
_SIGNS = frozenset(
    "+ - * / % ^ = <> != < <= > >= || ~ ~* !~ !~* ~~ ~~* !~~ !~~* & | # << >> "
    "-> ->> #> #>> @> <@ && ? ?| ?& @ |/ ||/".split()
)
# None of them makes a window: OVER is written by the renderer, with the unit in front.
KEYWORDS = frozenset(
    """
    all and any array as asc at between both by case collate day days desc distinct else end escape false filter
    from group groups hour ilike in is isnull last leading like minute month not notnull null nulls or order placing
    second similar symmetric then time to trailing true unknown when where within without with year zone
    """.split()
)
TYPES = frozenset(
    """
    bigint bool boolean bytea bpchar char character date decimal double precision float4 float8 int int2 int4 int8
    integer interval json jsonb jsonpath name numeric real smallint text time timestamp timestamptz uuid varchar varying
    """.split()
)
FIELDS = frozenset(
    """
    century day days decade dow doy epoch hour hours isodow isoyear julian microseconds millennium milliseconds minute
    minutes month months quarter second seconds timezone timezone_hour timezone_minute week weeks year years
    """.split()
)
# Immutable functions of pg_catalog, and a few that read nothing but the pinned settings TimeZone and DateStyle.
FUNCTIONS = frozenset(
    """
    abs acos acosd acosh age array_length array_lower array_ndims array_position array_positions array_remove
    array_to_string array_upper ascii asin asind asinh atan atan2 atan2d atand atanh bit_length btrim cardinality cbrt
    ceil ceiling char_length character_length chr coalesce concat concat_ws cos cosd cosh cot cotd date date_bin
    date_part date_trunc degrees div exp extract factorial float8 floor format gcd greatest hashint4extended
    hashint8extended hashtextextended initcap isfinite jsonb_array_length jsonb_exists jsonb_exists_all
    jsonb_exists_any jsonb_extract_path jsonb_extract_path_text jsonb_object_field jsonb_object_field_text
    jsonb_path_exists jsonb_path_match jsonb_path_query_first jsonb_typeof justify_days justify_hours
    justify_interval lcm least left length like_escape ln log log10 lower lpad ltrim make_date make_interval make_time
    make_timestamp make_timestamptz md5 min_scale mod normalize nullif num_nonnulls num_nulls numeric octet_length
    overlaps overlay pi position pow power radians regexp_count regexp_instr regexp_like regexp_match regexp_replace
    regexp_substr repeat replace reverse right round row rpad rtrim scale sha256 sign similar_to_escape sin sind sinh
    split_part sqrt starts_with string_to_array strpos substr substring tan tand tanh time timetz timezone to_char
    to_date to_hex to_number to_timestamp translate trim trim_scale trunc unistr upper width_bucket
    """.split()
)
AGGREGATES = frozenset(
    """
    avg bool_and bool_or count every max min mode percentile_cont percentile_disc stddev stddev_pop stddev_samp sum
    var_pop var_samp variance
    """.split()
)
# Window functions that tell rows apart which an ORDER BY leaves equal, and those that treat equal rows alike.
ORDINAL = frozenset(("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"))
RANKS = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))
_TAKING_FROM = frozenset(("extract", "substring", "trim", "overlay"))
LONGEST = 200_000  # characters of one inner statement; guards repeat what they guard
_ONE_SPELLING = frozenset(("boolean", "integer", "date", "timestamp", "timestamptz", "time", "text", "enum", "uuid"))
_TEXTS = ("text", "character")  # with a collation of their own, which are read in the database's


def expression_sql(expression: Expression, names: Mapping[int, str]) -> str:
    """An expression with its columns called by these names."""
    match expression:
        case Column(id=number) if number in names:
            return names[number]
        case Constant():
            return constant_sql(expression)
        case Apply(sql=template, arguments=arguments):
            check_template(template)
            return _filled(template, [expression_sql(argument, names) for argument in arguments])
    raise Mismatch("the plan reads a column that its rows do not have")


def call_sql(template: str, arguments: tuple[Expression, ...], names: Mapping[int, str], over: str = "") -> str:
    """An aggregate or window function, with what stands in OVER."""
    check_template(template, is_call=True)
    return _filled(template, [expression_sql(argument, names) for argument in arguments], over)


def _filled(template: str, arguments: list[str], over: str = "") -> str:
    try:
        filled = template.format(*arguments, over=over)
    except (IndexError, KeyError, ValueError):
        raise Mismatch("a part of this plan lacks an argument") from None
    if len(filled) > LONGEST:
        raise TooComplex("an expression over protected rows is too long or nested too deeply")
    return filled


def constant_sql(constant: Constant) -> str:
    """A typed constant. Whole numbers of type integer and booleans need no cast; a character(n) is read as text."""
    if constant.text is None:
        return f"NULL::{check_type(constant.type.sql)}" if constant.type.base != "unknown" else "NULL"
    if constant.type.kind == "boolean" and constant.text in ("true", "false"):
        return constant.text.upper()
    if constant.type.base == "bpchar":
        return f"{quoted_text(constant.text.rstrip(' '))}::text"
    if constant.type.base == "int4" and constant.text.removeprefix("-").isdecimal() and constant.text.isascii():
        return constant.text if not constant.text.startswith("-") else f"({constant.text})"
    return f"{quoted_text(constant.text)}::{check_type(constant.type.sql)}"


def quoted_text(text: str) -> str:
    """A string constant that reads alike whatever standard_conforming_strings says.

    Statements are planned in the message that pins the setting, and a server reads all of a message before it runs any.
    """
    if "\0" in text:
        raise NotSupported("a text value cannot contain the character with code 0")
    quoted = text.replace("'", "''")
    return f" E'{quoted.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{quoted}'"


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def stored(kind: Type, sql: str, *, is_recast: bool = False) -> str:
    """A table's own column. Of types that do not compare as their bytes it is read as text of the database's collation,
    and of a domain of an enum as the enum: the type that COALESCE has, which need not be named."""
    if is_recast and kind.kind == "enum":
        return f"coalesce({sql}, NULL)"
    if is_recast:
        return f'({sql}){"::text" if kind.kind == "text" else ""} COLLATE "default"'
    return f"({sql})::text" if kind.base in ("bpchar", "name") else sql


def check_columns(expression: Expression, types: Mapping[int, Type]) -> None:
    """Refuse columns that the rows do not have, and a type that is not theirs."""
    for column in columns_in(expression):
        if types.get(column.id) != column.type:
            raise Mismatch("the plan reads a column that its rows do not have, or as another type")


@lru_cache(maxsize=10_000)
def check_template(template: str, *, is_call: bool = False) -> frozenset[str]:
    """Refuse what an expression is not made of; return the functions that it calls."""
    tokens = _tokens(template)
    calls: set[str] = set()
    opened: list[str] = []
    for place, (kind, text) in enumerate(tokens):
        word = text.lower().strip('"')
        following = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        match kind:
            case "word" if following == "(" and word in FUNCTIONS | AGGREGATES | ORDINAL | RANKS:
                calls.add(word)
            case "word" if word == "from":
                is_distinct = place > 0 and tokens[place - 1][1].lower() == "distinct"
                if not is_distinct and not (opened and opened[-1] in _TAKING_FROM):
                    raise _refused(template)
            case "word" if word not in KEYWORDS | TYPES | FIELDS:
                raise _refused(template)
            case "sign" if not _is_sign(text):
                raise _refused(template)
            case "mark" if text in "([":
                before = tokens[place - 1] if place else ("", "")
                opened.append(before[1].lower().strip('"') if before[0] == "word" else "")
            case "mark" if text in ")]":
                if not opened:
                    raise _refused(template)
                opened.pop()
            case _:
                pass
    if opened or (calls & (AGGREGATES | ORDINAL | RANKS) and not is_call):
        raise _refused(template)
    return frozenset(calls)


def check_type(name: str) -> str:
    """A type's name as it stands in a cast, which is checked to be one."""
    if _TYPE.fullmatch(name) is None:
        raise Mismatch("the plan names an invalid type")
    return name


def _tokens(template: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    place = 0
    while place < len(template):
        is_type = bool(tokens) and tokens[-1][0] == "cast"
        token = (_TYPE if is_type else _TOKEN).match(template, place)
        if token is None:
            raise _refused(template)
        kind = "type" if is_type else token.lastgroup or ""
        if kind != "space":
            tokens.append((kind, token[0]))
        place = token.end()
    return tokens


def _is_sign(text: str) -> bool:
    """An operator, or one with signs of numbers behind it; never the beginning of a comment."""
    if "--" in text or "/*" in text:
        return False
    return text in _SIGNS or (text.endswith("-") and text[:-1].rstrip("-") in _SIGNS)


def _refused(template: str) -> Mismatch:
    return Mismatch("the plan has an expression that is not allowed to run", detail=f"It reads: {template[:200]}")


def canonical(kind: Type, sql: str, *, is_column: bool = False) -> str:
    """The one value of all that are equal to this one. A table's own numeric(p, s) has one spelling already.

    Example:
        >>> canonical(Type("numeric"), "c1"), canonical(Type("float4"), "c1")
        ('trim_scale(c1)', '(c1 + 0.0)')
    """
    match kind.kind:
        case "numeric" if is_column and kind.scale is not None:
            return sql
        case "numeric":
            return f"trim_scale({sql})"
        case "float":
            return f"({sql} + 0.0)"  # a double: a real that was computed is one too, and need not fit a real
        case word if word in _ONE_SPELLING:
            return sql
        case _ if kind.name.startswith(_TEXTS):
            return sql
    raise NotSupported(f"values of type {kind.sql} cannot be grouped, because equal values can differ in their text")


def canonical_key(kind: Type, sql: str) -> str:
    """The same as a key of groups, which are compared, hashed and sent by their bytes.

    Labels of an enum are told by their names: who may read a table need not be allowed to name its types.
    """
    if kind.kind in ("text", "enum"):
        return f'({sql})::text COLLATE "C"'
    return f"({canonical(kind, f'({sql})')})"


def identity(kind: Type, sql: str) -> str:
    """An order in which only identical values are equal, for the last word on the order of a unit's rows."""
    match kind.kind:
        case "other" if kind.name == "bytea":
            return sql  # equal bytes are identical, and as text they can be longer than PostgreSQL holds
        case "numeric" | "float" | "interval" | "other" | "unknown":
            return f'({sql})::text COLLATE "C"'
        case "text":
            return f'({sql}) COLLATE "C"'
        case _:
            return sql


def label_sql(label: str, wanted: Type) -> str:
    """A label as the type of the key that it is compared with, in canonical form."""
    kind = TEXT if wanted.kind == "enum" else Type(wanted.base)
    return canonical_key(kind, constant_sql(Constant(kind, label)))
