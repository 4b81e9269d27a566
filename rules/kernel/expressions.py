"""Expressions as SQL: every template checked, every argument in its place, every constant typed.

What the planner says of an expression (its domain, whether it may be NULL) is not looked at. Of a column only its
number counts: its type is the one that the relation knows.

Templates are checked in `templates`, whoever wrote them. That functions never fail is the registry's work; amounts rest
on that list alone.

Wherever values are compared (units, keys, DISTINCT, ties) equal must mean identical, so equal values have one spelling.
5.0 and 5.00 are equal numerics, 0 and -0 equal doubles: which of them stands for a group would follow from the order in
which rows are read, and so from other units' rows. Texts of deterministic collations are equal only if they are
identical; others are no texts to the planner (`types.type_of`), and character(n) is read as text.
"""

from collections.abc import Callable, Mapping

from rules.kernel.script import Call
from rules.kernel.templates import check_call, check_template, check_type, is_operand
from rules.refusal import Mismatch, NotSupported, TooComplex
from rules.values.expression import Apply, Column, Constant, Expression, columns_in
from rules.values.types import TEXT, Type

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


def typed_sql(expression: Expression, names: Mapping[int, str]) -> str:
    """The same, of the type that is said of it: a script says one of what is computed, and may be wrong."""
    sql = expression_sql(expression, names)
    return typed(expression.type, sql) if isinstance(expression, Apply) else sql


def typed(kind: Type, sql: str) -> str:
    """Of this kind, or no statement. Where it is, most casts are nothing; none is to a narrower type, which could fail.

    A double is made of it where it has to be one, in `canonical`.
    """
    match kind.kind:
        case "integer" if kind.base == "int8":
            return f"({sql})::bigint"
        case "integer":
            return f"(({sql}) | 0::smallint)"  # which only integers can be asked for
        case "enum":
            return f"enum_larger({sql}, {sql})"  # so with enums, whose names need not be known
        case "boolean" | "numeric" | "date" | "timestamp" | "timestamptz" | "time" | "uuid":
            return f"({sql})::{kind.kind}"
        case "text":
            return _compared_by_bytes(sql)
    return sql


def _compared_by_bytes(sql: str) -> str:
    """A text whose equality is that of the database: a domain, which a script may cast to, can bring another one."""
    return f'(({sql})::text COLLATE "default")'


def call_sql(call: Call, names: Mapping[int, str], is_stored: Callable[[Expression], bool], over: str = "") -> str:
    """An aggregate or window function, with what stands in OVER: the same for the same rows, in whichever order."""
    added = check_call(call.sql)
    arguments = [typed_sql(argument, names) for argument in call.arguments]
    if added is not None:
        if not call.arguments or (added == "exact" and call.arguments[0].type.kind not in ("integer", "numeric")):
            raise Mismatch("the plan adds up numbers whose sum depends on their order")
        if added != "exact":
            arguments[0] = canonical(call.arguments[0].type, arguments[0], is_stored=is_stored(call.arguments[0]))
    return _filled(call.sql, arguments, over)


def _filled(template: str, arguments: list[str], over: str = "") -> str:
    try:
        filled = template.format(*arguments, over=over)
    except (IndexError, KeyError, ValueError):
        raise Mismatch("a part of this plan lacks an argument") from None
    if len(filled) > LONGEST:
        raise TooComplex("an expression over protected rows is too long or nested too deeply")
    return filled if is_operand(template) else f"({filled})"


def constant_sql(constant: Constant) -> str:
    """A typed constant. Whole numbers of type integer and booleans need no cast; a character(n) is read as text."""
    if constant.text is None:
        return f"NULL::{type_sql(constant.type)}" if constant.type.base != "unknown" else "NULL"
    if constant.type.kind == "boolean" and constant.text in ("true", "false"):
        return constant.text.upper()
    if constant.type.base == "bpchar":
        return f"{quoted_text(constant.text.rstrip(' '))}::text"
    if constant.type.base == "int4" and constant.text.removeprefix("-").isdecimal() and constant.text.isascii():
        return constant.text if not constant.text.startswith("-") else f"({constant.text})"
    return f"{quoted_text(constant.text)}::{type_sql(constant.type)}"


def type_sql(kind: Type) -> str:
    """A type as it stands in a cast. Only those that are not known by themselves have a name that a script gives."""
    if kind.name and kind.kind not in ("enum", "other"):
        raise Mismatch("the plan gives a type another one's name")
    return check_type(kind.sql)


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
        known = types.get(column.id)
        if known is not column.type and known != column.type:
            raise Mismatch("the plan reads a column that its rows do not have, or as another type")


def canonical(kind: Type, sql: str, *, is_stored: bool = False) -> str:
    """The one value of all that are equal to this one. A table's own numeric(p, s) has one spelling already.

    Example:
        >>> canonical(Type("numeric"), "c1"), canonical(Type("float4"), "c1")
        ('trim_scale((c1)::numeric)', '((c1)::float8 + 0.0)')
    """
    match kind.kind:
        case "numeric" if is_stored and kind.scale is not None:
            return sql
        case "numeric":
            return f"trim_scale(({sql})::numeric)"
        case "float":
            return f"(({sql})::float8 + 0.0)"  # a real that was computed need not fit a real
        case word if word in _ONE_SPELLING:
            return sql
        case _ if kind.name.startswith(_TEXTS):
            return _compared_by_bytes(sql)
    raise NotSupported(f"values of type {kind.sql} cannot be grouped, because equal values can differ in their text")


def canonical_key(kind: Type, sql: str, *, is_computed: bool = False) -> str:
    """The same as a key of groups, which are compared, hashed and sent by their bytes.

    Labels of an enum are told by their names: who may read a table need not be allowed to name its types.
    """
    if kind.kind in ("text", "enum"):
        return f'({sql})::text COLLATE "C"'
    return f"({canonical(kind, typed(kind, sql) if is_computed else f'({sql})')})"


def key_wrap(expression: Expression) -> str:
    """The canonical key that an expression makes, whose text stands for {0}."""
    return canonical_key(expression.type, "{0}", is_computed=isinstance(expression, Apply))


def identity(kind: Type, sql: str) -> str:
    """An order in which only identical values are equal, for the last word on the order of a unit's rows."""
    match kind.kind:
        case "other" if kind.name == "bytea":
            return f"({sql})::bytea"  # equal bytes are identical, and as text they can be longer than PostgreSQL holds
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
