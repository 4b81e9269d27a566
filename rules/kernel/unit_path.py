"""The way from a row to its unit: along foreign keys of the rules, each to the row that a unique key finds."""

from dataclasses import dataclass

from rules.catalog import Catalog, Column, Table, TableName
from rules.policy.model import Policy, UnitStep
from rules.refusal import NotAllowed
from rules.values.types import Type, finds_one, type_of

MOST_HOPS = 16
UNIT_KINDS = ("integer", "numeric", "text", "uuid", "enum", "date")


@dataclass(frozen=True, slots=True)
class Hop:
    """One join on the way from a row to its unit, by a column of the target that is unique there."""

    column: str  # of the row before
    target: TableName
    target_column: str


@dataclass(frozen=True, slots=True)
class UnitPath:
    """The way from a row to its unit, and whether every step of it finds one row of one row."""

    hops: tuple[Hop, ...]
    column: str  # of the table, or of the last hop's
    type: Type
    nullable: bool
    is_unique: bool  # a unit has one row at most


def follow(table: Table, step: UnitStep, policy: Policy, catalog: Catalog) -> UnitPath:
    """Along the declared foreign keys. A step that does not lead to exactly one row would give a row two units."""
    hops: list[Hop] = []
    column = find_column(table, step.column)
    nullable, unique = not column.not_null, table.is_unique((step.column,))
    while step.target is not None:
        target, rules = catalog.find_table(step.target), policy.find_table(step.target)
        if target is None or rules is None or rules.public or rules.unit is None or len(hops) == MOST_HOPS:
            raise NotAllowed(f'the rules file has no complete path from table "{table.name}" to its unit')
        if not target.is_unique((step.target_column,)):
            raise NotAllowed(
                f'column "{step.target}.{step.target_column}" is not unique, so a row could belong to two units'
            )
        if not finds_one(type_of(column), type_of(find_column(target, step.target_column))):
            raise NotAllowed(
                f'table "{table.name}" references "{step.target}" by another type, so a row could belong to two units, '
                "or to none"
            )
        hops.append(Hop(step.column, step.target, step.target_column))
        step = rules.unit_step()
        column = find_column(target, step.column)
        nullable = nullable or not column.not_null
        unique = unique and target.is_unique((step.column,))
    if type_of(column).kind not in UNIT_KINDS:
        raise NotAllowed(
            f'the unit column of table "{table.name}" has a type whose equal values can differ in their text'
        )
    return UnitPath(tuple(hops), column.name, type_of(column), nullable, unique)


def find_column(table: Table, name: str) -> Column:
    column = table.find_column(name)
    if column is None:
        raise NotAllowed(f'column "{name}" of table "{table.name}", which the rules file names, does not exist')
    return column
