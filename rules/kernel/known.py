"""Facts of a relation's rows that hold because of how they are made, and refusals that follow from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.catalog import TableName
from rules.kernel.expressions import check_columns
from rules.refusal import Mismatch, NotAllowed
from rules.values.expression import Expression
from rules.values.types import Type, have_one_equality

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
    keys: frozenset[frozenset[int]] = frozenset()  # columns on which no two rows agree, NULLs aside
    origins: Places = field(default_factory=dict)
    links: Places = field(default_factory=dict)


def check_same_units(one: Known, two: Known) -> None:
    """Refuse units that cannot be compared: of different kinds, without identity, or of types with two equalities."""
    assert one.unit is not None and two.unit is not None
    if one.unit.kind != two.unit.kind:
        raise NotAllowed(f"rows of {one.unit.kind} and rows of {two.unit.kind} are different units", hint=LINK_HINT)
    if one.unit.column is None or two.unit.column is None:
        raise NotAllowed("rows of a table without a primary key cannot be joined")
    if not have_one_equality(one.types[one.unit.column], two.types[two.unit.column]):
        raise NotAllowed("unit columns of different types cannot be compared", hint=LINK_HINT)


def check_meeting(equal: tuple[tuple[int, int], ...], condition: Expression, one: Types, two: Types) -> None:
    """Refuse columns that the rows do not have, and equalities of columns that have several."""
    if not one.keys().isdisjoint(two.keys()):
        raise Mismatch("both sides of a join in the plan have one column")
    for left, right in equal:
        if left not in one or right not in two:
            raise Mismatch("the plan compares a column that its rows do not have")
        if not have_one_equality(one[left], two[right]):
            raise Mismatch("the plan compares columns of different types")
    check_columns(condition, {**one, **two})


def check_new(number: int, types: Types) -> None:
    if number in types:
        raise Mismatch("the plan numbers two columns alike")
