"""Statistics of blocks: units are hashed into so many blocks, and a statistic of each block's rows is one value.

Sample and aggregate (Nissim, Raskhodnikova, Smith 2007). All rows of a unit lie in the block of its hash, and what a
block says is a function of its own rows. Without one unit exactly one block of each group has other rows, so one value
is replaced, by whatever, and a histogram over the values moves by at most 2: one less in a cell, one more in another.
A unit counts in K groups at most, which is cut by rank, so L1 ≤ 2K. Rows of a unit need no cap.

The value of a block depends on nothing but its rows: not on their order, nor on the plan, which other units' rows may
tip. So numbers are summed as integers of a lattice, in numeric, and never as doubles. None of it fails: a block without
a value is in no cell.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from rules.kernel.added import hashed, saturated
from rules.kernel.expressions import check_columns, expression_sql, key_wrap
from rules.kernel.forms import grouped
from rules.kernel.keys import Key, column_of, count_of
from rules.kernel.measures import Sensitivity
from rules.kernel.relation import Relation
from rules.kernel.rows import Rows
from rules.kernel.script import Script
from rules.kernel.source import Columns, source_of
from rules.kernel.statement import SEAL, Bounded, KeyColumn, Measured, Numbers, Ordinals
from rules.kernel.summand import Summand
from rules.refusal import NotSupported
from rules.values.expression import TRUE, Expression
from rules.values.types import FLOAT8, INT8, NUMERIC, Type
from rules.values.value import decimal_text

MOST_BLOCKS = 4096
MOST_CELLS = 4096
_FURTHEST = Fraction(10) ** 30  # of an end of the cells from zero, and how many of their widths fit into one
_LARGEST_INTEGER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Count the rows of a block that fulfil a condition."""

    type = INT8
    condition: Expression = TRUE


@dataclass(frozen=True, slots=True)
class BlockDistinct:
    """Count the different values of a block."""

    type = INT8
    expression: Expression


@dataclass(frozen=True, slots=True)
class BlockMoment:
    """The sum of products of powers of summands, over the rows of a block that have all of them; of no powers 1."""

    type = NUMERIC
    summands: tuple[Summand, ...]
    powers: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.summands or len(self.powers) != len(self.summands):
            raise NotSupported("a moment needs a power for each of its summands")
        if any(type(power) is not int or not 0 <= power <= 2 for power in self.powers):
            raise NotSupported("the powers of a moment must be 0, 1 or 2")


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """The integer at a place in the order of a block's, or the most frequent one; between two of them a double."""

    summand: Summand
    place: Literal["min", "max", "mode", "percentile_disc", "percentile_cont"]
    fraction: Fraction = Fraction(0)
    descending: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise NotSupported("the fraction of a percentile must be a constant between 0 and 1")

    @property
    def type(self) -> Type:
        return FLOAT8 if self.place == "percentile_cont" else NUMERIC


BlockAggregate = BlockRows | BlockDistinct | BlockMoment | BlockPlace


@dataclass(frozen=True, slots=True)
class Cells:
    """Evenly spaced values from low to high; any other value stands for the nearest of them."""

    low: Fraction
    high: Fraction
    count: int

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 2 <= self.count <= MOST_CELLS:
            raise NotSupported(f"a block's value must be one of 2 to {MOST_CELLS:,}")
        ends, width = max(abs(self.low), abs(self.high)), self.high - self.low
        if width <= 0 or ends > _FURTHEST or ends > width * _FURTHEST:
            raise NotSupported("the lower bound must be below the upper bound, and both within 10^30")

    @property
    def values(self) -> tuple[Fraction, ...]:
        width = (self.high - self.low) / (self.count - 1)
        return tuple(self.low + width * place for place in range(self.count))


@dataclass(frozen=True, slots=True)
class BlockValue:
    """Compute an expression over aggregates of a block, whose columns are their places, and cells for its value."""

    aggregates: tuple[BlockAggregate, ...]
    expression: Expression
    cells: Cells


@dataclass(frozen=True, slots=True)
class BlockStatement:
    """Count the blocks that each group has in each cell: the last key column, as its number."""

    rows: Script
    keys: tuple[Key, ...]
    value: BlockValue
    blocks: int
    salt: int
    groups_per_unit: int


def block_values(relation: Relation, statement: BlockStatement) -> Bounded:
    """The statement over the rows of its script."""
    rows, keys, value = _checked(relation, statement), statement.keys, statement.value
    groups, most = count_of(keys), _most_groups(rows, statement)
    terms: list[str] = []

    def read(columns: Columns) -> None:
        terms.extend(_aggregate(aggregate, columns) for aggregate in value.aggregates)

    source = source_of(rows, keys, (), (), also=read)
    is_cut = not rows.proved_one and (groups is None or most < groups)
    order = ", ".join([source.hashed(), *source.names])
    cut = f"(SELECT *, dense_rank() OVER (PARTITION BY u ORDER BY {order}) AS rn FROM r) AS k WHERE rn <= {most}"
    block = f"(({hashed('u', f'{statement.salt}::int8')} & {_LARGEST_INTEGER}) % {statement.blocks})::int4"
    names = ", ".join((*source.names, ""))
    term_list = ", ".join(f"{term} AS a{place}" for place, term in enumerate(terms))
    by = grouped([str(place + 1) for place in range(len(source.names) + 1)])
    sql = (
        f"WITH r AS ({source.sql}), b AS (SELECT {names}{block} AS b, {term_list} FROM {cut if is_cut else 'r'}{by}), "
        f"v AS (SELECT {names}{_value(value)} AS v FROM b), c AS (SELECT {names}{_cell(value)} AS cell FROM v) "
        f"SELECT {', '.join([*source.shown, 'cell', saturated('count(*)')])} FROM c WHERE cell IS NOT NULL"
        f"{grouped([*source.names, 'cell'])}"
    )
    return Bounded(sql, _columns(statement), (_measured(most),), None, SEAL)


def block_numbers(relation: Relation, statement: BlockStatement) -> Numbers:
    """What the statement says of its columns, without its text."""
    most = _most_groups(_checked(relation, statement), statement)
    return Numbers(_columns(statement), (_measured(most),), None)


def _most_groups(rows: Rows, statement: BlockStatement) -> int:
    """In how many groups a unit is at most."""
    groups, declared = count_of(statement.keys), 1 if rows.proved_one else statement.groups_per_unit
    return declared if groups is None else min(declared, max(groups, 1))


def _columns(statement: BlockStatement) -> tuple[KeyColumn, ...]:
    return *map(column_of, statement.keys), Ordinals(statement.value.cells.count)


def _measured(most: int) -> Measured:
    """One unit moves its block, in each of its groups, from one cell to another."""
    return Measured(Sensitivity(1, 2 * most, 2 * most, 2))


def _checked(relation: Relation, statement: BlockStatement) -> Rows:
    """The rows of a statement whose numbers are in order."""
    rows = Rows(relation)
    if type(statement.blocks) is not int or not 1 <= statement.blocks <= MOST_BLOCKS:
        raise NotSupported(f"the number of blocks must lie between 1 and {MOST_BLOCKS:,}")
    if type(statement.salt) is not int or not 0 <= statement.salt <= _LARGEST_INTEGER:
        raise NotSupported("the salt of a hash must be a bigint that is not below 0")
    if type(statement.groups_per_unit) is not int or statement.groups_per_unit < 1:
        raise NotSupported("the limits of rows and groups per unit must be integers of at least 1")
    if not rows.has_identity:
        raise NotSupported("rows of a table without a primary key cannot be distinguished, so they make no blocks")
    check_columns(
        statement.value.expression,
        {place: aggregate.type for place, aggregate in enumerate(statement.value.aggregates)},
    )
    return rows


def _aggregate(aggregate: BlockAggregate, columns: Columns) -> str:
    """One aggregate over the rows of a block: whole numbers alone, so that neither order nor plan can show."""
    match aggregate:
        case BlockRows(condition=condition):
            return f"count(*){_filter(filter(None, [columns.condition(condition)]))}"
        case BlockDistinct(expression=expression):
            return f"count(DISTINCT {columns.read(expression, key_wrap(expression))})"
        case BlockMoment(summands=summands, powers=powers):
            names = [columns.summand(summand) for summand in summands]
            factors = [f"{name}::numeric" for name, power in zip(names, powers, strict=True) for _ in range(power)]
            there = _filter(f"{name} IS NOT NULL" for name in dict.fromkeys(names))
            return f"coalesce(sum({' * '.join(factors) or '1::numeric'}){there}, 0)"
    return _place(aggregate, columns.summand(aggregate.summand))


def _filter(conditions: Iterable[str]) -> str:
    where = " AND ".join(conditions)
    return f" FILTER (WHERE {where})" if where else ""


def _place(place: BlockPlace, name: str) -> str:
    order = f"WITHIN GROUP (ORDER BY {{}}{' DESC' if place.descending else ''})"
    match place.place:
        case "min" | "max":
            return f"{place.place}({name})::numeric"
        case "mode":
            return f"mode() {order.format(name)}::numeric"
        case "percentile_disc":
            return f"percentile_disc({_share(place)}) {order.format(name)}::numeric"
    return f"percentile_cont({_share(place)}) {order.format(f'{name}::float8')}"


def _share(place: BlockPlace) -> str:
    return f"({place.fraction.numerator}::numeric / {place.fraction.denominator})::float8"


def _value(value: BlockValue) -> str:
    """The value of a block, as a number of which any two can be compared."""
    sql = expression_sql(value.expression, {place: f"a{place}" for place in range(len(value.aggregates))})
    match value.expression.type.kind:
        case "float":
            return f"({sql})::float8"
        case "integer" | "numeric":
            return f"({sql})::numeric"
    raise NotSupported(f"a value of type {value.expression.type.sql} has no place between two bounds")


def _cell(value: BlockValue) -> str:
    """The nearest cell of a value, clamped before it is computed with and at the end; NULL and NaN have none."""
    kind = "float8" if value.expression.type.kind == "float" else "numeric"
    low, high = (f"'{_decimal(bound)}'" for bound in (value.cells.low, value.cells.high))
    width, last = f"'{_decimal(value.cells.high - value.cells.low)}'::numeric", value.cells.count - 1
    clamped = f"least(greatest(v, {low}::{kind}), {high}::{kind})::numeric"
    place = f"least(greatest(round(({clamped} - {low}::numeric) * {last} / {width}), 0), {last})::int4"
    return f"CASE WHEN v IS NOT NULL AND v <> 'NaN' THEN {place} END"


def _decimal(number: Fraction) -> str:
    text = decimal_text(number)
    if text is None:
        raise NotSupported("the bounds of a block's value must be decimal numbers")
    return text
