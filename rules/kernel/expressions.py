"""Expressions as SQL: every template checked, every argument in its place, every constant typed.

What the planner says of an expression (its domain, whether it may be NULL) is not looked at. Of a column only its
number counts: its type is the one that the relation knows.

Templates are checked in `templates`, whoever wrote them. That functions never fail is the registry's work; amounts rest
on that list alone.

What the kernel adds around columns by itself, whatever an expression says, is in `added`.
"""

from collections.abc import Callable, Mapping

from rules.kernel.added import canonical, canonical_key, type_sql, typed
from rules.kernel.script import Call
from rules.kernel.templates import check_call, check_template, is_operand
from rules.refusal import Mismatch, NotSupported, TooComplex
from rules.values.expression import Apply, Column, Constant, Expression, columns_in
from rules.values.types import TEXT, Type

LONGEST = 200_000  # characters of one inner statement; guards repeat what they guard


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


def check_columns(expression: Expression, types: Mapping[int, Type]) -> None:
    """Refuse columns that the rows do not have, and a type that is not theirs."""
    for column in columns_in(expression):
        known = types.get(column.id)
        if known is not column.type and known != column.type:
            raise Mismatch("the plan reads a column that its rows do not have, or as another type")


def key_wrap(expression: Expression) -> str:
    """The canonical key that an expression makes, whose text stands for {0}."""
    return canonical_key(expression.type, "{0}", is_computed=isinstance(expression, Apply))


def label_sql(label: str, wanted: Type) -> str:
    """A label as the type of the key that it is compared with, in canonical form."""
    kind = TEXT if wanted.kind == "enum" else Type(wanted.base)
    return canonical_key(kind, constant_sql(Constant(kind, label)))
