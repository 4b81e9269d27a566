"""What valid CHECK constraints prove of a column: bounds of whole numbers, and lists of whole numbers and texts.

Of other numbers nothing is proved, for NaN passes x >= 0. A CHECK holds too where it is NULL, so only comparisons of
the column with constants say something: of a value that is not NULL they are true or false.
"""

from fractions import Fraction
from functools import lru_cache

from rules.catalog import Column, Table
from rules.refusal import Refusal
from rules.relation import domain
from rules.relation.domain import ANYTHING, Domain, Range, Values
from rules.relation.types import Type
from rules.sql import syntax as s
from rules.sql.parse import parse_expression

_LONGEST = 4000  # characters of a definition
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def bounds_of_checks(table: Table, column: Column, given: Type) -> Domain:
    """What the table's CHECKs prove of one column. NULL passes every CHECK, so nullability stays."""
    found: Domain = ANYTHING
    if given.kind not in ("integer", "text") or given.base in ("bpchar", "name") or table.has_children:
        return found
    for check in table.checks:
        if check.proves and column.name in check.columns:
            condition = _read(check.definition)
            said = None if condition is None else _said(condition, column.name, given)
            found = domain.intersect(found, said) if said is not None else found
    return found


@lru_cache(maxsize=1000)
def _read(definition: str) -> s.Expression | None:
    """What pg_get_constraintdef says: CHECK (((age >= 0) AND (age <= 120))); None where the planner has no words."""
    text = definition.removeprefix("CHECK ").removesuffix(" NO INHERIT")
    if len(text) > _LONGEST:
        return None
    try:
        return parse_expression(text)
    except Refusal:
        return None


def _said(condition: s.Expression, name: str, given: Type) -> Domain | None:
    """All values other than NULL that can pass; None where it depends on more than the column."""
    match condition:
        case s.Operator(name="and", arguments=arguments):
            known = [said for each in arguments if (said := _said(each, name, given)) is not None]
            return _all_of(known) if known else None
        case s.Operator(name="or", arguments=arguments):
            arms = [_said(each, name, given) for each in arguments]
            return None if None in arms else _any_of([each for each in arms if each is not None])
        case s.Operator(name="is null", arguments=(argument,)) if _is_column(argument, name):
            return Values(())
        case s.Operator(name=sign, arguments=(argument, constant)) if sign in _MIRRORED and _is_column(argument, name):
            return _compared(sign, constant, given)
        case s.Operator(name=sign, arguments=(constant, argument)) if sign in _MIRRORED and _is_column(argument, name):
            return _compared(_MIRRORED[sign], constant, given)
        case s.Quantified(operator="=", argument=argument, array=array, all=False) if _is_column(argument, name):
            return _listed(array, given)
    return None


def _all_of(known: list[Domain]) -> Domain:
    found = known[0]
    for each in known[1:]:
        found = domain.intersect(found, each)
    return found


def _any_of(arms: list[Domain]) -> Domain:
    found = arms[0]
    for each in arms[1:]:
        found = domain.union(found, each)
    return found


def _is_column(given: s.Expression, name: str) -> bool:
    """The column itself; varchar is compared as text."""
    match given:
        case s.Cast(argument=s.Name(parts=(found,)), type="text"):
            return found == name
        case s.Name(parts=(found,)):
            return found == name
    return False


def _compared(sign: str, constant: s.Expression, given: Type) -> Domain | None:
    value = _value(constant, given)
    if isinstance(value, str):
        return Values((value,)) if sign == "=" else None
    if value is None:
        return None
    match sign:
        case ">=":
            return Range(value, None)
        case ">":
            return Range(value + 1, None)
        case "<=":
            return Range(None, value)
        case "<":
            return Range(None, value - 1)
    return domain.values((value,))


def _listed(array: s.Expression, given: Type) -> Domain | None:
    match array:
        case s.Cast(argument=s.Array() as inner, type="text[]"):
            return _listed(inner, given)
        case s.Array(items=items):
            values = [_value(each, given) for each in items]
            return None if None in values else domain.values(each for each in values if each is not None)
    return None


def _value(constant: s.Expression, given: Type) -> Fraction | str | None:
    """A whole number for an integer column, a text for one of texts."""
    match constant:
        case s.Constant(kind="number", text=text) if given.kind == "integer" and text.removeprefix("-").isdigit():
            return Fraction(text)
        case s.Cast(argument=inner, type="smallint" | "integer" | "bigint") if given.kind == "integer":
            return _value(_plain(inner), given)
        case s.Cast(argument=s.Constant(kind="string", text=text), type="text" | "character varying"):
            return text if given.kind == "text" else None
    return None


def _plain(given: s.Expression) -> s.Expression:
    """'-5'::integer is printed where -5 was written."""
    return s.Constant("number", given.text) if isinstance(given, s.Constant) and given.kind == "string" else given
