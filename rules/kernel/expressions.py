"""Expressions as SQL: every template checked, every argument in its place, every constant typed.

What the planner says of an expression (its domain, whether it may be NULL) is not looked at. Of a column only its
number counts: its type is the one that the relation knows.
"""

from collections.abc import Mapping

from rules.kernel.templates import check_template, check_type
from rules.refusal import Mismatch, NotSupported, TooComplex
from rules.values.expression import Apply, Column, Constant, Expression, columns_in
from rules.values.types import Type

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
        raise TooComplex("an expression over protected rows is nested too deeply")
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
    """A string constant, which standard_conforming_strings reads as it is written."""
    if "\0" in text:
        raise NotSupported("a text value cannot contain the character with code 0")
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_columns(expression: Expression, types: Mapping[int, Type]) -> None:
    """Refuse columns that the rows do not have, and a type that is not theirs."""
    for column in columns_in(expression):
        if types.get(column.id) != column.type:
            raise Mismatch("the plan reads a column that its rows do not have, or as another type")
