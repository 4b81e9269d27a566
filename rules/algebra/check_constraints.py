"""Read valid CHECK constraints of a column and of its domain: bounds, and lists of values.

NaN passes x >= 0 and infinity is a date: the kernel's clamp sees to both, so that this is no more than advice. A CHECK
holds too where it is NULL, so only comparisons of the column with constants say something: of a value that is not NULL
they are true or false.
"""

import re
from fractions import Fraction
from functools import lru_cache

from rules.catalog import Column, Table
from rules.refusal import Refusal
from rules.sql import syntax as s
from rules.sql.lower import parse_expression
from rules.values import domain
from rules.values.domain import ANYTHING, Domain, Range, Values
from rules.values.expression import MIRRORED
from rules.values.types import NUMERIC, Type, find_type
from rules.values.value import find_value

_LONGEST = 4000  # characters of a definition
_OFFSET = re.compile(r"[+-][0-9]{2}(:[0-9]{2})?$")  # without one the text means another instant in each zone


def bounds_of_checks(table: Table, column: Column, sql_type: Type) -> Domain:
    """Return what the CHECKs of table and domain prove of one column. NULL passes all of them, so nullability stays."""
    held: Domain = ANYTHING
    is_known = sql_type.is_number or sql_type.is_time or sql_type.kind == "text"
    if not is_known or sql_type.base in ("bpchar", "name"):
        return held
    own = (check for check in table.checks if column.name in check.columns and not table.has_children)
    for name, check in (*((column.name, check) for check in own), *(("value", check) for check in column.checks)):
        condition = _read(check.definition) if check.proves else None
        allowed = None if condition is None else _passing_domain(condition, name, sql_type)
        held = domain.intersect(held, allowed) if allowed is not None else held
    return held


@lru_cache(maxsize=1000)
def _read(definition: str) -> s.Expression | None:
    """Read pg_get_constraintdef's CHECK (((age >= 0) AND (age <= 120))); None where the planner has no words."""
    text = definition.removeprefix("CHECK ").removesuffix(" NO INHERIT")
    if len(text) > _LONGEST:
        return None
    try:
        return parse_expression(text)
    except Refusal:
        return None


def _passing_domain(condition: s.Expression, name: str, sql_type: Type) -> Domain | None:
    """All values other than NULL that can pass; None where it depends on more than the column."""
    match condition:
        case s.Operator(name="and", arguments=arguments):
            known = [
                allowed for argument in arguments if (allowed := _passing_domain(argument, name, sql_type)) is not None
            ]
            return _all_of(known) if known else None
        case s.Operator(name="or", arguments=arguments):
            arms = [_passing_domain(argument, name, sql_type) for argument in arguments]
            return None if None in arms else _any_of([arm for arm in arms if arm is not None])
        case s.Operator(name="is null", arguments=(argument,)) if _is_column(argument, name):
            return Values(())
        case s.Operator(name=sign, arguments=(argument, constant)) if sign in MIRRORED and _is_column(argument, name):
            return _compared(sign, constant, sql_type)
        case s.Operator(name=sign, arguments=(constant, argument)) if sign in MIRRORED and _is_column(argument, name):
            return _compared(MIRRORED[sign], constant, sql_type)
        case s.Quantified(operator="=", argument=argument, array=array, all=False) if _is_column(argument, name):
            return _listed(array, sql_type)
    return None


def _all_of(known: list[Domain]) -> Domain:
    held = known[0]
    for arm in known[1:]:
        held = domain.intersect(held, arm)
    return held


def _any_of(arms: list[Domain]) -> Domain:
    held = arms[0]
    for arm in arms[1:]:
        held = domain.union(held, arm)
    return held


def _is_column(expression: s.Expression, name: str) -> bool:
    """The column itself; varchar is compared as text."""
    match expression:
        case s.Cast(argument=s.Name(parts=(column_name,)), type="text"):
            return column_name == name
        case s.Name(parts=(column_name,)):
            return column_name == name
    return False


def _compared(sign: str, constant: s.Expression, sql_type: Type) -> Domain | None:
    value = _value(constant, sql_type)
    if isinstance(value, str):
        return Values((value,)) if sign == "=" else None
    if value is None:
        return None
    step = domain.ONE if sql_type.kind in ("integer", "date") else Fraction(0)
    match sign:
        case ">=":
            return Range(value, None)
        case ">":
            return Range(value + step, None)
        case "<=":
            return Range(None, value)
        case "<":
            return Range(None, value - step)
    return Range(value, value) if sql_type.kind == "float" else domain.values((value,))


def _listed(array: s.Expression, sql_type: Type) -> Domain | None:
    match array:
        case s.Cast(argument=s.Array() as inner, type="text[]"):
            return _listed(inner, sql_type)
        case s.Array(items=items):
            values = [_value(item, sql_type) for item in items]
            return (
                None
                if None in values or sql_type.kind == "float"
                else domain.values(value for value in values if value is not None)
            )
    return None


def _value(constant: s.Expression, sql_type: Type) -> Fraction | str | None:
    """A number for a column of numbers, a date for one of dates, a text for one of texts."""
    match constant:
        case s.Constant(kind="number", text=text) if sql_type.is_number:
            is_whole = text.removeprefix("-").isdigit()
            return _read_value(text, sql_type) if is_whole or sql_type.kind != "integer" else None
        case s.Cast(argument=inner, type=written) if sql_type.is_number and _is_number(written, sql_type):
            return _value(_plain(inner), sql_type)
        case s.Cast(argument=s.Constant(kind="string", text=text), type=written) if sql_type.is_time:
            target = find_type(written)
            is_one = sql_type.kind != "timestamptz" or _OFFSET.search(text) is not None
            return (
                _read_value(text, sql_type) if target is not None and target.kind == sql_type.kind and is_one else None
            )
        case s.Cast(argument=s.Constant(kind="string", text=text), type="text" | "character varying"):
            return text if sql_type.kind == "text" else None
    return None


def _read_value(text: str, sql_type: Type) -> Fraction | None:
    """The value of a number or moment; of a whole number also one that is none of the column's."""
    value = find_value(text, NUMERIC if sql_type.is_number and sql_type.kind != "float" else sql_type.plain())
    return value if isinstance(value, Fraction) else None


def _is_number(written: str, sql_type: Type) -> bool:
    """Return whether a constant's type leaves its value as it is; whole numbers are compared with whole ones alone."""
    target = find_type(written)
    if target is None or not target.is_number or target.scale is not None:
        return False
    return target.kind == "integer" or sql_type.kind != "integer"


def _plain(expression: s.Expression) -> s.Expression:
    """'-5'::integer is printed where -5 was written."""
    return (
        s.Constant("number", expression.text)
        if isinstance(expression, s.Constant) and expression.kind == "string"
        else expression
    )
