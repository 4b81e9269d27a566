"""A local relation, the facts of its rows that hold because of how it was made, and refusals that follow from them."""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field

from rules.catalog import TableName
from rules.kernel import script as k
from rules.kernel.expressions import check_columns
from rules.kernel.ground import GroundTable, UnitPath
from rules.kernel.statement import Sealed
from rules.refusal import Mismatch, NotAllowed
from rules.values.expression import Column, Expression
from rules.values.types import Type, equality

LINK_HINT = "Join protected tables on their unit columns, or on the foreign key that the rules file names."

Place = tuple[TableName, str]  # a column of a table
Places = Mapping[int, Place]
Types = Mapping[int, Type]


@dataclass(frozen=True, slots=True)
class Unit:
    """The column that tells whose row it is. None where rows have no identity: each is a unit of its own."""

    kind: str  # "customers.id"; with `unit: row` the table's own name
    column: int | None


@dataclass(frozen=True, slots=True)
class Known:
    """Facts of a relation's rows that hold because of how they are made.

    `origins`: the column holds, in a row of unit u, what a row of this table that belongs to u has there, or NULL.
    `links`: the row's unit is that of the row of this table which has the column's value there, in a unique column.
    """

    types: Types
    unit: Unit | None = None
    is_single: bool = False  # each unit has one row at most
    is_far: bool = False  # whether the unit has to be joined to rows that do not have it themselves
    determined: frozenset[int] = frozenset()  # columns that have one value in all rows of a unit
    keys: frozenset[frozenset[int]] = frozenset()  # columns of a table on which no two rows agree, NULLs aside
    origins: Places = field(default_factory=dict)
    links: Places = field(default_factory=dict)
    identity: frozenset[int] | None = None  # columns that no two rows have alike, of which NULL is a value


@dataclass(frozen=True, eq=False)
class Relation(Sealed):
    """A local relation. Made by `relations.build` alone."""

    __slots__ = ("known", "parts", "script", "table")
    script: k.Script
    parts: tuple["Relation", ...]
    known: Known
    table: GroundTable | None  # of a scan
    seal: InitVar[object]

    @property
    def types(self) -> Types:
        return self.known.types

    @property
    def unit(self) -> Unit | None:
        return self.known.unit

    @property
    def tables(self) -> frozenset[TableName]:
        """All tables that are read, those on the way to a unit too: their keys are what is believed."""
        below = frozenset[TableName]().union(*(part.tables for part in self.parts))
        if self.table is None:
            return below
        hops = self.table.unit.hops if isinstance(self.table.unit, UnitPath) else ()
        return below.union([self.table.name], (hop.target for hop in hops))


def are_linked(equal: tuple[tuple[int, int], ...], one: Relation, two: Relation) -> bool:
    """Return whether rows that meet where these columns are equal are of one unit, without their units being compared.

    Let column a of a row r be T.k of a row t of r's unit (an origin), and let the unit of a row s be that of the row of
    T whose k is s's column b (a link). T.k is unique, so a = b names one row of T, and r and s have its unit. Two
    links to T.k name one row of it likewise.
    """
    first, second = one.known, two.known
    for left, right in equal:
        if one.unit and two.unit and (left, right) == (one.unit.column, two.unit.column):
            return True
        for some, other in ((first.origins, second.links), (first.links, second.origins), (first.links, second.links)):
            place = some.get(left)
            if place is not None and place == other.get(right):
                return True
    return False


def is_stored(relation: Relation, expression: Expression) -> bool:
    """Return whether it is one of a table's columns, as it is stored there or NULL."""
    if not isinstance(expression, Column):
        return False
    match relation.script:
        case k.Scan(columns=columns):
            return expression.id in dict(columns)
        case k.PerUnit() | k.UnionAll():
            return False
    return any(expression.id in part.types and is_stored(part, expression) for part in relation.parts)


def check_same_units(one: Known, two: Known) -> None:
    """Refuse units that cannot be compared: of different kinds, without identity, or of types with two equalities."""
    assert one.unit is not None and two.unit is not None
    if one.unit.kind != two.unit.kind:
        raise NotAllowed(f"rows of {one.unit.kind} and rows of {two.unit.kind} are different units", hint=LINK_HINT)
    if one.unit.column is None or two.unit.column is None:
        raise NotAllowed("rows of a table without a primary key cannot be joined")
    if equality(one.types[one.unit.column], two.types[two.unit.column]) != "same":
        raise NotAllowed("unit columns of different types cannot be compared", hint=LINK_HINT)


def check_meeting(equal: tuple[tuple[int, int], ...], condition: Expression, one: Types, two: Types) -> None:
    """Refuse columns that the rows do not have, and equalities of columns that have several."""
    if not one.keys().isdisjoint(two.keys()):
        raise Mismatch("both sides of a join in the plan have one column")
    for left, right in equal:
        if left not in one or right not in two:
            raise Mismatch("the plan compares a column that its rows do not have")
        if equality(one[left], two[right]) != "same":
            raise Mismatch("the plan compares columns of different types")
    check_columns(condition, {**one, **two})


def check_new(number: int, types: Types) -> None:
    if number in types:
        raise Mismatch("the plan numbers two columns alike")
