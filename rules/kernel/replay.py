"""Whole statements as plain data, and their replay: the one way from what a planner wrote to what may be run.

The planner's process writes `Statement`s; the process that holds the budget replays them over its own `Ground`. What
comes out is sealed, and has the sensitivities of what its SQL enforces.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from rules.catalog import TableName
from rules.kernel.bins import ColumnBins
from rules.kernel.blocks import BlockValue, block_values
from rules.kernel.bounded import bounded
from rules.kernel.canonical import canonical
from rules.kernel.expressions import check_columns, expression_sql
from rules.kernel.forms import Form
from rules.kernel.ground import Ground
from rules.kernel.keys import Key
from rules.kernel.marginals import Counted, bounded_marginals
from rules.kernel.measures import Measure
from rules.kernel.relations import Relation, build
from rules.kernel.render import Renderer
from rules.kernel.rows import Item
from rules.kernel.script import Correlated, Filter, Join, PerUnit, Project, Scan, Script, Semi, UnionAll, Window
from rules.kernel.statement import Bounded, Marginals, Tally
from rules.kernel.tally import Ladder, tally
from rules.kernel.unit_path import UnitPath
from rules.values.expression import Column, Expression, ids_in

_Made = TypeVar("_Made", Bounded, Tally)
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Statement:
    """A bounded statement: rows, keys, measures and caps. The form is advice."""

    rows: Script
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    rows_per_unit: int
    groups_per_unit: int | None = None
    pivots: tuple[tuple[Expression, ...], ...] = ()
    form: Form | None = None
    finds_groups: bool = True  # or is about groups that another statement found


@dataclass(frozen=True, slots=True)
class TallyStatement:
    """A tally: for each ladder the units by the rung that they need."""

    rows: Script
    keys: tuple[Key, ...]
    ladders: tuple[Ladder, ...]
    rows_per_unit: int
    pivots: tuple[tuple[Expression, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class BlockStatement:
    """A histogram of what blocks of units say, by group."""

    rows: Script
    keys: tuple[Key, ...]
    value: BlockValue
    blocks: int
    salt: int
    groups_per_unit: int


@dataclass(frozen=True, slots=True)
class MarginalsStatement:
    """Marginals: rows, the bins of columns, and which sets of them are counted."""

    rows: Script
    bins: tuple[ColumnBins, ...]
    counted: tuple[Counted, ...]
    rows_per_unit: int


_Written = Statement | TallyStatement | BlockStatement


class Kernel:
    """Replays statements over the tables of one generation of rules, and keeps what it made of the last of them."""

    __slots__ = ("_ground", "_made")

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._made: OrderedDict[_Written, Bounded | Tally] = OrderedDict()

    def relation(self, script: Script) -> Relation:
        """The local relation of a script; raises a Refusal where it cannot be made local."""
        return build(script, self._ground)

    def tables(self, script: Script) -> frozenset[TableName]:
        """All tables that a relation reads, those on the way to a unit too: their keys are what is believed."""
        return _tables(self.relation(script))

    def bounded(self, statement: Statement | BlockStatement) -> Bounded:
        """The sealed statement; raises a Refusal where it cannot be made sound."""
        made = self._find(statement)
        if isinstance(made, Bounded):
            return made
        if isinstance(statement, Statement):
            return self._keep(statement, _bounded(statement, self._ground))
        return self._keep(statement, _block_values(statement, self._ground))

    def tally(self, statement: TallyStatement) -> Tally:
        """The sealed tally; raises a Refusal where it cannot be made sound."""
        made = self._find(statement)
        if isinstance(made, Tally):
            return made
        return self._keep(statement, _tally(statement, self._ground))

    def marginals(self, statement: MarginalsStatement) -> Marginals:
        """The sealed marginals; raises a Refusal where they cannot be made sound."""
        rows = LocalRows(build(statement.rows, self._ground))
        return bounded_marginals(rows, statement.bins, statement.counted, rows_per_unit=statement.rows_per_unit)

    def _find(self, statement: _Written) -> Bounded | Tally | None:
        made = self._made.get(statement)
        if made is not None:
            self._made.move_to_end(statement)
        return made

    def _keep(self, statement: _Written, made: _Made) -> _Made:
        self._made[statement] = made
        if len(self._made) > _MOST_KEPT:
            self._made.popitem(last=False)
        return made


def _bounded(statement: Statement, ground: Ground) -> Bounded:
    return bounded(
        LocalRows(build(statement.rows, ground)),
        statement.keys,
        statement.measures,
        rows_per_unit=statement.rows_per_unit,
        groups_per_unit=statement.groups_per_unit,
        pivots=statement.pivots,
        form=statement.form,
        finds_groups=statement.finds_groups,
    )


def _block_values(statement: BlockStatement, ground: Ground) -> Bounded:
    return block_values(
        LocalRows(build(statement.rows, ground)),
        statement.keys,
        statement.value,
        blocks=statement.blocks,
        salt=statement.salt,
        groups_per_unit=statement.groups_per_unit,
    )


def _tally(statement: TallyStatement, ground: Ground) -> Tally:
    return tally(
        LocalRows(build(statement.rows, ground)),
        statement.keys,
        statement.ladders,
        rows_per_unit=statement.rows_per_unit,
        pivots=statement.pivots,
    )


@dataclass(frozen=True, slots=True)
class LocalRows:
    """A local relation, as bounded statements read it (see `rows.Rows`)."""

    relation: Relation

    @property
    def proved_one(self) -> bool:
        return self.relation.known.is_single

    @property
    def has_identity(self) -> bool:
        return self.relation.unit is not None and self.relation.unit.column is not None

    @property
    def repeatable(self) -> bool:
        """Templates have immutable functions of PostgreSQL's own alone, and stable ones whose settings are pinned."""
        return True

    def is_stored(self, expression: Expression) -> bool:
        return isinstance(expression, Column) and _is_stored(self.relation, expression.id)

    def select(self, items: Sequence[Item]) -> str:
        for item in items:
            check_columns(item.expression, self.relation.types)
        used = ids_in(*(item.expression for item in items)) | self._units()
        source = Renderer().render(self.relation, used)
        columns = [f"{self._unit_sql(source.names[number])} AS u" for number in self._units()]
        columns += [
            f"{item.wrap.replace('{0}', expression_sql(item.expression, source.names))} AS {item.alias}"
            for item in items
        ]
        return f"SELECT {', '.join(columns)} {source.clause()}"

    def candidates(self) -> str | None:
        """The units of a relation with fewer conditions, each of which can only take rows away."""
        stripped = _stripped(self.relation)
        if stripped.unit is None or stripped.unit.column is None:
            return None
        unit = stripped.unit.column
        source = Renderer().render(stripped, frozenset([unit]))
        sql = canonical(stripped.types[unit], source.names[unit], is_column=True)
        return f"SELECT {sql} AS u {source.clause()}"

    def _units(self) -> frozenset[int]:
        unit = self.relation.unit
        return frozenset() if unit is None or unit.column is None else frozenset([unit.column])

    def _unit_sql(self, sql: str) -> str:
        """In its canonical form, which a relation's unit has already; a text by its bytes, for hashes and equality."""
        (unit,) = self._units()
        return f'({sql}) COLLATE "C"' if self.relation.types[unit].kind == "text" else sql


def _tables(relation: Relation) -> frozenset[TableName]:
    found = frozenset[TableName]().union(*map(_tables, relation.parts))
    if relation.table is None:
        return found
    unit = relation.table.unit
    return found.union([relation.table.name], (hop.target for hop in unit.hops) if isinstance(unit, UnitPath) else ())


def _is_stored(relation: Relation, number: int) -> bool:
    """Whether a column is one of a table's, as it is stored there or NULL."""
    match relation.script:
        case Scan(columns=columns):
            return number in dict(columns)
        case PerUnit() | UnionAll():
            return False
    return any(number in part.types and _is_stored(part, number) for part in relation.parts)


def _stripped(relation: Relation) -> Relation:
    """A relation that has every row of this one's unit at least as often: without what only takes rows away."""
    match relation.script:
        case Filter() | Project() | Window() | Semi() | Correlated():
            return _stripped(relation.parts[0])
        case Join(kind="inner") if relation.parts[1].unit is None and _finds_one(relation):
            return _stripped(relation.parts[0])
    return relation


def _finds_one(relation: Relation) -> bool:
    """Whether a join with public rows finds one of them at most for each row."""
    assert isinstance(relation.script, Join)
    equated = {right for _, right in relation.script.equal}
    return any(key <= equated for key in relation.parts[1].known.keys)
