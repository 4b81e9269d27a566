"""Ground truth on tables for the kernel: from the rules and the catalog of the process that runs statements.

Which tables are protected, on which way a row finds its unit, and which keys PostgreSQL enforces. The catalog is held
against the database in each statement's own snapshot, so what is said here is true there or nothing is run.

The way from a row to its unit goes along foreign keys of the rules, each to the row that a unique key finds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rules.catalog import Catalog, Column, Table, TableName
from rules.policy.model import Policy, TableRules, UnitStep
from rules.refusal import NotAllowed
from rules.values.types import Type, equality, is_collated, is_recast, type_of

MOST_HOPS = 16
UNIT_KINDS = ("integer", "numeric", "text", "uuid", "enum", "date")


@dataclass(frozen=True, slots=True)
class Hop:
    """One join on the way from a row to its unit, by a column of the target that is unique there."""

    column: str  # of the row before
    target: TableName
    target_column: str
    is_plain: bool  # as that of a table: the key of the target says nothing of children that are attached later
    may_clash: bool  # the columns have collations of their own, between which PostgreSQL does not choose


@dataclass(frozen=True, slots=True)
class UnitPath:
    """The way from a row to its unit, and whether every step of it finds one row of one row."""

    hops: tuple[Hop, ...]
    column: str  # of the table, or of the last hop's
    type: Type
    nullable: bool
    is_unique: bool  # a unit has one row at most
    is_recast: bool  # the column may have a collation of its own, or be of a domain of an enum


def follow(table: Table, step: UnitStep, policy: Policy, catalog: Catalog) -> UnitPath:
    """Follow the declared foreign keys from a row to its unit.

    A hop has to find one row of each row, or a row would have two units. It finds different rows of different rows only
    where both columns have the same equality: elsewhere a unique key of the column before says nothing of units. A
    column that has the unit itself must have the same equality as the unit's own, or one unit would pass for several.
    """
    hops: list[Hop] = []
    column = _find_column(table, step.column)
    nullable, unique = not column.not_null, table.is_unique((step.column,))
    while step.target is not None:
        target, rules = catalog.find_table(step.target), policy.find_table(step.target)
        if target is None or rules is None or rules.public or rules.unit is None or len(hops) == MOST_HOPS:
            raise NotAllowed(f'the rules file has no complete path from table "{table.name}" to its unit')
        if not target.is_unique((step.target_column,)):
            named = f'column "{step.target}.{step.target_column}"'
            raise NotAllowed(f"{named} is not unique, so a row could belong to two units")
        found = _find_column(target, step.target_column)
        equal = equality(type_of(column), type_of(found))
        if equal == "none":
            named = f'table "{table.name}" references "{step.target}"'
            raise NotAllowed(f"{named} by another type, so a row could belong to two units, or to none")
        hops.append(Hop(step.column, step.target, step.target_column, is_plain(target), _may_clash(column, found)))
        step = rules.unit_step()
        column = _find_column(target, step.column)
        nullable = nullable or not column.not_null
        unique = unique and equal == "same" and target.is_unique((step.column,))
    key, named = policy.find_unit_key(catalog), f'the unit column of table "{table.name}"'
    if type_of(column).kind not in UNIT_KINDS:
        raise NotAllowed(f"{named} has a type whose equal values can differ in their text")
    if key is None or equality(type_of(column), type_of(key)) != "same":
        raise NotAllowed(f'{named} has another equality than "{policy.unit}", so one unit could pass for several')
    return UnitPath(tuple(hops), column.name, type_of(column), nullable, unique, is_recast(column))


def _may_clash(one: Column, other: Column) -> bool:
    """Return whether comparing two columns may fail for their collations, which it does once there are rows."""
    own = all(is_collated(column) or column.type.base == "name" for column in (one, other))
    return own and (one.collation != other.collation or (one.collation is None and one.type != other.type))


def _find_column(table: Table, name: str) -> Column:
    column = table.find_column(name)
    if column is None:
        raise NotAllowed(f'column "{name}" of table "{table.name}", which the rules file names, does not exist')
    return column


@dataclass(frozen=True, slots=True)
class RowAsUnit:
    """Every row is a unit of its own; its primary key tells it. Without one rows cannot be told apart."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroundTable:
    """One table that the rules name."""

    name: TableName
    types: Mapping[str, Type]
    recast: frozenset[str]  # columns with a collation of their own, or of a domain of an enum
    is_plain: bool  # has no children now: read with ONLY, none that is attached later is read
    may_change: bool  # rows that are read again may be others: of other servers or a new child, or missed by an index
    keys: tuple[frozenset[str], ...]  # unique now
    identity: frozenset[str] | None  # the shortest of them whose columns are never NULL, and have an order
    unit: UnitPath | RowAsUnit | None  # None: public


class Ground:
    """All tables that the rules name, and the unit that they protect. Tables are looked at when they are asked for."""

    __slots__ = ("_catalog", "_policy", "_tables")

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self._policy, self._catalog = policy, catalog
        self._tables: dict[TableName, GroundTable] = {}

    @property
    def unit(self) -> str:
        return self._policy.unit

    def table(self, name: TableName) -> GroundTable:
        """A table of the rules; raises a Refusal where there is none, or where its rules do not lead to a unit."""
        known = self._tables.get(name)
        if known is None:
            table, rules = self._catalog.find_table(name), self._policy.find_table(name)
            if table is None or rules is None or rules.view:
                raise NotAllowed(f'table "{name}" is not in the rules file')
            known = self._tables[name] = ground_table(table, rules, self._policy, self._catalog)
        return known


def ground_table(table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> GroundTable:
    """One table; raises a Refusal where its rules do not lead to a unit, or where reading its rows may fail.

    A column that is computed when it is read can fail on some rows, so it does not exist here.
    """
    if table.foreign and rules.foreign is None:
        raise NotAllowed(f'table "{table.name}" has rows on a foreign server, where reading a row can fail')
    keys = () if table.has_children else tuple(frozenset(key.columns) for key in table.keys if key.proves)
    required = {column.name for column in table.columns if column.not_null and type_of(column).kind != "other"}
    return GroundTable(
        table.name,
        {column.name: type_of(column) for column in table.columns if not column.unreadable},
        frozenset(column.name for column in table.columns if is_recast(column)),
        is_plain(table),
        table.foreign or table.has_children or table.distribution is not None or bool(table.outdated),
        keys,
        min((key for key in keys if key <= required), key=lambda key: (len(key), sorted(key)), default=None),
        _unit(table, rules, policy, catalog),
    )


def is_plain(table: Table) -> bool:
    """Return whether all rows of a table are its own."""
    return table.kind == "table" and not table.has_children


def _unit(table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> UnitPath | RowAsUnit | None:
    if rules.public and table.kind in ("view", "materialized view"):
        raise NotAllowed(f'"{table.name}" is a view: what it computes may fail on rows that a join chooses')
    if rules.public:
        return None
    if table.kind not in ("table", "partitioned", "foreign table"):
        raise NotAllowed(f'the rules file names no unit for table "{table.name}"')
    if policy.unit == "row":
        return _row_as_unit(table)
    if rules.unit is None:
        raise NotAllowed(f'the rules file names no unit for table "{table.name}"')
    return follow(table, rules.unit_step(), policy, catalog)


def _row_as_unit(table: Table) -> RowAsUnit:
    primary = next((key for key in table.keys if key.primary and key.proves), None)
    columns = () if primary is None or table.has_children else primary.columns
    known = all(type_of(_find_column(table, name)).kind != "other" for name in columns)
    return RowAsUnit(columns if known else ())
