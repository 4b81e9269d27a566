"""The columns of a table: what its types and checks prove of their values, and what the rules declare."""

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from rules import catalog as real
from rules.algebra.check_constraints import bounds_of_checks
from rules.catalog import Table
from rules.policy.model import Bound, ColumnRules, TableRules
from rules.policy.model import Value as DeclaredValue
from rules.values import domain
from rules.values.domain import ANYTHING, TRUTHS, Domain, Range, Values
from rules.values.expression import Column
from rules.values.types import Type, integer_range, is_collated, type_of
from rules.values.value import DAY, days_of, microseconds_of


def column_of(column: real.Column, table: Table, rules: TableRules, number: int) -> Column:
    """A column under its number in a statement."""
    kind = type_of(column)
    declared = rules.columns.get(column.name)
    proved = domain.intersect(type_domain(kind), bounds_of_checks(table, column, kind))
    return Column(
        number,
        kind,
        proved,
        ANYTHING if declared is None else _declared(declared, kind),
        nullable=not column.not_null,
        name=column.name,
        filled=declared is not None and (not declared.nullable or declared.randomized is not None),
        other=declared is not None and declared.other,
        collated=is_collated(column) and not column.by_database,
    )


def type_domain(sql_type: Type) -> Domain:
    """Return what a type alone says. A double or a numeric without precision can be anything, NaN included."""
    match sql_type.kind:
        case "integer":
            first, last = integer_range(sql_type.base)
            return Range(Fraction(first), Fraction(last), domain.ONE)
        case "numeric" if sql_type.size is not None and sql_type.scale is not None:
            step = Fraction(10) ** -sql_type.scale
            largest = step * (10**sql_type.size - 1)
            return Range(-largest, largest, step)
        case "numeric" | "float" | "timestamp" | "timestamptz":
            return domain.UNBOUNDED
        case "date":
            return Range(None, None, domain.ONE)
        case "boolean":
            return TRUTHS
        case "enum":
            return Values(sql_type.labels)
        case _:
            return ANYTHING


def _declared(rules: ColumnRules, sql_type: Type) -> Domain:
    values = rules.values if rules.randomized is None or rules.randomized.by != "k-ary" else rules.randomized.values
    if values is not None:
        known = [constant for value in values if (constant := _value(value, sql_type)) is not None]
        return Values(tuple(known)) if sql_type.kind == "enum" else domain.values(known)
    if rules.lower is None or rules.upper is None:
        return ANYTHING
    low, high = _bound(rules.lower, sql_type, last=False), _bound(rules.upper, sql_type, last=True)
    if sql_type.kind == "integer":
        low, high = Fraction(ceil(low)), Fraction(floor(high))
    return Range(low, high, _step(sql_type))


def _step(sql_type: Type) -> Fraction | None:
    return domain.ONE if sql_type.kind in ("integer", "date") else None


def _value(literal: DeclaredValue, sql_type: Type) -> Fraction | str | bool | None:
    match literal:
        case str() if sql_type.base == "bpchar":
            return literal.rstrip(" ")
        case bool() | str():
            return literal
        case int() | Decimal():
            return Fraction(literal)
        case date():
            return _bound(literal, sql_type, last=False)


def _bound(bound: Bound, sql_type: Type, *, last: bool) -> Fraction:
    """A bound in the planner's numbers. A date bounds timestamps from its first moment to its last, in UTC."""
    match bound:
        case datetime():
            naive = bound.astimezone(UTC).replace(tzinfo=None) if bound.tzinfo else bound
            return Fraction(microseconds_of(naive) if sql_type.kind != "date" else days_of(naive.date()))
        case date():
            if sql_type.kind == "date":
                return Fraction(days_of(bound))
            moment = datetime(bound.year, bound.month, bound.day)
            return Fraction(microseconds_of(moment)) + (DAY - 1 if last else 0)
        case _:
            number = Fraction(bound)
            return Fraction(float(number)) if sql_type.kind == "float" else number
