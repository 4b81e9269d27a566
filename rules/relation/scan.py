"""A table as a relation: what the catalog proves of its rows, what the rules declare, and whose rows they are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from rules import catalog as real
from rules.catalog import Catalog, Table
from rules.policy.model import Bound, ColumnRules, Policy, TableRules, UnitStep
from rules.policy.model import Value as DeclaredValue
from rules.refusal import NotAllowed
from rules.relation import domain
from rules.relation.checks import bounds_of_checks
from rules.relation.domain import ANYTHING, TRUTHS, Domain, Range, Values
from rules.relation.expression import Column
from rules.relation.nodes import Facts, Hop, Rows, Scan, Step, Unit
from rules.relation.types import TEXT, Type, finds_one, integer_range, type_of
from rules.relation.value import DAY, days_of, microseconds_of

Fresh = Callable[[], int]
Names = tuple[tuple[str, int], ...]

_MOST_HOPS = 16
_UNIT_KINDS = ("integer", "numeric", "text", "uuid", "enum", "date")


@dataclass(frozen=True, slots=True)
class _Path:
    """The way from a row to its unit, and whether every step of it finds one row of one row."""

    hops: tuple[Hop, ...]
    column: real.Column
    nullable: bool
    proved: int | None


def scan(table: Table, rules: TableRules, policy: Policy, catalog: Catalog, fresh: Fresh) -> tuple[Scan, Names]:
    """The rows of a table that the rules name, and the columns that exist for analysts."""
    columns = tuple(_column(each, table, rules, fresh()) for each in table.columns)
    shown = tuple((each.name, each.id) for each in columns if not _is_hidden(rules, each.name))
    numbers = tuple((each.id, each.name) for each in columns)
    keys = frozenset(
        frozenset(each.id for each in columns if each.name in key.columns)
        for key in table.keys
        if key.proves and not table.has_children
    )
    facts = Facts(columns=columns, keys=keys)
    if rules.public:
        made = Scan(table.name, numbers, (), "", drops_null_units=False, facts=facts)
    elif policy.unit == "row":
        made = _rows_as_units(table, numbers, facts, fresh)
    else:
        made = _with_unit(table, rules, policy, catalog, numbers, facts, fresh)
    own = zip(columns, table.columns, strict=True)
    return replace(made, collated=frozenset(each.id for each, real_one in own if real_one.collation is not None)), shown


def _is_hidden(rules: TableRules, name: str) -> bool:
    found = rules.columns.get(name)
    return found is not None and found.hidden


def _rows_as_units(table: Table, numbers: tuple[tuple[int, str], ...], facts: Facts, fresh: Fresh) -> Scan:
    """Every row is its own unit; its primary key is its identity, as one text where it has several columns."""
    primary = next((key for key in table.keys if key.primary and key.proves), None)
    ids = {name: number for number, name in numbers}
    every, own, columns = frozenset(ids.values()), facts.columns, () if primary is None else primary.columns
    if table.has_children or any(facts.column(ids[name]).type.kind == "other" for name in columns):
        columns = ()
    identity = ids[columns[0]] if len(columns) == 1 else None
    if len(columns) > 1:
        identity = fresh()
        own, numbers = (*own, Column(identity, TEXT, nullable=False)), (*numbers, (identity, ""))
    unit = Unit(str(table.name), identity)
    told = facts.keys if identity is None else facts.keys | {frozenset([identity])}
    made = replace(facts, columns=own, keys=told, unit=unit, rows=Rows(1, 1), determined=every, determinants=told)
    joined = columns if len(columns) > 1 else ()
    return Scan(table.name, numbers, (), "", drops_null_units=False, facts=made, identity=joined)


def _with_unit(
    table: Table, rules: TableRules, policy: Policy, catalog: Catalog, numbers: tuple[tuple[int, str], ...],
    facts: Facts, fresh: Fresh,
) -> Scan:  # fmt: skip
    if rules.unit is None or table.kind not in ("table", "partitioned", "foreign table"):
        raise NotAllowed(f'the rules do not say whose rows "{table.name}" holds')
    step = rules.unit_step()
    path = _follow(table, step, policy, catalog)
    if type_of(path.column).kind not in _UNIT_KINDS:
        raise NotAllowed(f'the unit of "{table.name}" has a type whose equal values differ, so it names nobody')
    first = next(each for each in facts.columns if each.name == step.column)
    unit, columns = first.id, facts.columns
    if path.hops:
        unit = fresh()
        columns = (*columns, Column(unit, type_of(path.column), nullable=False))
    columns = tuple(replace(each, nullable=False) if each.id in (unit, first.id) else each for each in columns)
    cap = rules.rows_per_unit if rules.rows_per_unit is not None else path.proved
    every = frozenset(each.id for each in columns)
    made = replace(
        facts,
        columns=columns,
        unit=Unit(policy.unit, unit),
        rows=Rows(path.proved, cap),
        determined=every if path.proved == 1 else frozenset([unit]),
        determinants=frozenset([frozenset([unit]), frozenset([first.id])]) | facts.keys,
        steps=_first_step(step, first),
        anchors=_anchors(table, facts),
    )
    names = (*numbers, (unit, "")) if path.hops else numbers
    return Scan(table.name, names, path.hops, path.column.name, drops_null_units=path.nullable, facts=made)


def _first_step(step: UnitStep, column: Column) -> tuple[Step, ...]:
    return () if step.target is None else (Step(column.id, step.target, step.target_column),)


def _anchors(table: Table, facts: Facts) -> tuple[Step, ...]:
    return tuple(Step(each.id, table.name, each.name) for each in facts.columns if table.is_unique((each.name,)))


def _follow(table: Table, step: UnitStep, policy: Policy, catalog: Catalog) -> _Path:
    """Along the declared foreign keys. A step that does not lead to exactly one row would give a row two units."""
    hops: list[Hop] = []
    column = _real_column(table, step.column)
    nullable, proved = not column.not_null, table.is_unique((step.column,))
    while step.target is not None:
        target, rules = catalog.find_table(step.target), policy.find_table(step.target)
        if target is None or rules is None or rules.public or rules.unit is None or len(hops) == _MOST_HOPS:
            raise NotAllowed(f'the way from "{table.name}" to its unit is broken in the rules')
        if not target.is_unique((step.target_column,)):
            raise NotAllowed(
                f'"{step.target}.{step.target_column}" is not proved unique, so a row could have two units'
            )
        if not finds_one(type_of(column), type_of(_real_column(target, step.target_column))):
            message = (
                f'"{table.name}" refers to "{step.target}" by values of another type, so a row could have two units'
            )
            raise NotAllowed(message)
        hops.append(Hop(step.column, step.target, step.target_column))
        step = rules.unit_step()
        column = _real_column(target, step.column)
        nullable = nullable or not column.not_null
        proved = proved and target.is_unique((step.column,))
    return _Path(tuple(hops), column, nullable, 1 if proved else None)


def _real_column(table: Table, name: str) -> real.Column:
    found = table.find_column(name)
    if found is None:
        raise NotAllowed(f'"{table.name}" has no column "{name}", which the rules name')
    return found


def _column(given: real.Column, table: Table, rules: TableRules, number: int) -> Column:
    kind = type_of(given)
    declared = rules.columns.get(given.name)
    proved = domain.intersect(type_domain(kind), bounds_of_checks(table, given, kind))
    return Column(
        number,
        kind,
        proved,
        ANYTHING if declared is None else _declared(declared, kind),
        nullable=not given.not_null,
        name=given.name,
    )


def type_domain(given: Type) -> Domain:
    """What a type alone says. A double or a numeric without precision can be anything, NaN included."""
    match given.kind:
        case "integer":
            first, last = integer_range(given.base)
            return Range(Fraction(first), Fraction(last), domain.ONE)
        case "numeric" if given.size is not None and given.scale is not None:
            step = Fraction(10) ** -given.scale
            largest = step * (10**given.size - 1)
            return Range(-largest, largest, step)
        case "numeric" | "float" | "timestamp" | "timestamptz":
            return domain.UNBOUNDED
        case "date":
            return Range(None, None, domain.ONE)
        case "boolean":
            return TRUTHS
        case "enum":
            return Values(given.labels)
        case _:
            return ANYTHING


def _declared(rules: ColumnRules, given: Type) -> Domain:
    if rules.values is not None:
        known = [found for each in rules.values if (found := _value(each, given)) is not None]
        return Values(tuple(known)) if given.kind == "enum" else domain.values(known)
    if rules.lower is None or rules.upper is None:
        return ANYTHING
    low, high = _bound(rules.lower, given, last=False), _bound(rules.upper, given, last=True)
    if given.kind == "integer":
        low, high = Fraction(ceil(low)), Fraction(floor(high))
    return Range(low, high, _step(given))


def _step(given: Type) -> Fraction | None:
    return domain.ONE if given.kind in ("integer", "date") else None


def _value(each: DeclaredValue, given: Type) -> Fraction | str | bool | None:
    match each:
        case str() if given.base == "bpchar":
            return each.rstrip(" ")
        case bool() | str():
            return each
        case int() | Decimal():
            return Fraction(each)
        case date():
            return _bound(each, given, last=False)


def _bound(bound: Bound, given: Type, *, last: bool) -> Fraction:
    """A bound in the planner's numbers. A date bounds timestamps from its first moment to its last, in UTC."""
    match bound:
        case datetime():
            naive = bound.astimezone(UTC).replace(tzinfo=None) if bound.tzinfo else bound
            return Fraction(microseconds_of(naive) if given.kind != "date" else days_of(naive.date()))
        case date():
            if given.kind == "date":
                return Fraction(days_of(bound))
            moment = datetime(bound.year, bound.month, bound.day)
            return Fraction(microseconds_of(moment)) + (DAY - 1 if last else 0)
        case _:
            number = Fraction(bound)
            return Fraction(float(number)) if given.kind == "float" else number
