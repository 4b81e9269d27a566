"""Names of the analyst's text and the columns that they mean, as PostgreSQL resolves them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from rules.bind.inner_answers import InnerAnswer, Links, Use, constants, find_released, readings, value
from rules.bind.walk_syntax import unnumbered
from rules.catalog import Catalog, Table, TableName
from rules.frozen import frozen, replace
from rules.functions.function import PLAIN, EvalContext, LiteralSettings, Styles
from rules.policy.model import Policy
from rules.refusal import NotAllowed, NotSupported
from rules.sql.syntax import Call, Case, Cast, Expression, Name, Operator, Query
from rules.sql.syntax import Constant as Written
from rules.values.expression import Constant
from rules.values.types import find_type

Names = tuple[tuple[str, int], ...]

SYSTEM_COLUMNS = frozenset(("ctid", "oid", "tableoid", "xmin", "xmax", "cmin", "cmax"))
ROW_HINT = "Select an aggregate such as count(*) or avg(x) instead of rows."


class RowsSelected(NotAllowed):
    """A query whose result would be rows of a protected table; their count is answered."""


class UnknownName(NotAllowed):
    """A name that means no column where it stands; in a subquery it may mean one of the row around it."""


class MisplacedLateral(NotSupported):
    """LATERAL before the rows that it depends on are bound."""


@dataclass(frozen=True)
class PlannerContext:
    """Everything outside the text that its meaning depends on."""

    policy: Policy
    catalog: Catalog
    search_path: tuple[str, ...] = ("public",)
    parameter_types: tuple[str, ...] = ()
    parameters: tuple[str | None, ...] = ()
    time_zone: str = "UTC"
    now: str = ""
    styles: Styles = PLAIN
    parsed_under: LiteralSettings | None = None
    released: tuple[InnerAnswer, ...] = ()  # the answers of inner queries that must be known before
    other: bool = False  # whether values that are not as the rules declare make a group too
    closed: frozenset[TableName] = frozenset()  # public tables of which the twin has no rows
    ctes: frozenset[str] = frozenset()  # the names of all CTEs, which hide tables where they are in scope

    def find_table(self, schema: str | None, name: str) -> Table | None:
        """Find the table of the rules that a name means, by the search path if no schema is written.

        A synopsis that comes first there hides it, as on the twin.
        """
        for each in (schema,) if schema is not None else self.search_path:
            if self.is_synthetic(each, name):
                return None
            table = self.catalog.find_table(TableName(each, name))
            if table is not None and self.policy.find_table(table.name) is not None:
                return table
        return None

    def is_synthetic(self, schema: str, name: str) -> bool:
        """Return whether this is a table of a synopsis, which the real database does not have."""
        synopsis = self.policy.schemas.get(schema)
        return synopsis is not None and name in {text.rpartition(".")[2] for text in synopsis.tables}

    @cached_property
    def setting(self) -> EvalContext:
        """What expressions see of it."""
        now = datetime.fromisoformat(self.now) if self.now else None
        there = self.catalog.version, self.catalog.time_zones, self.catalog.encoding
        return EvalContext(self.time_zone, now, False, self.styles, readings(self.released), *there, self.parsed_under)

    @cached_property
    def key_setting(self) -> EvalContext:
        """The same for keys."""
        return replace(self.setting, as_key=True)

    def find_released(self, query: Query, use: Use = "rows") -> InnerAnswer:
        """The rows of an inner query; what is not known yet is demanded."""
        return find_released(query, use, self.released)

    def released_rows(self, query: Query, links: Links) -> tuple[tuple[Constant, ...], ...]:
        """Return what a scalar subquery gives for each value of what it depends on, and where it has no rows.

        First comes whether it may have some, then these values, and last the answer.
        """
        released = find_released(query, "lookup", self.released, links)
        return constants(released, self.catalog, self.setting)

    def released_value(self, query: Query, use: Use) -> Constant:
        """Return what a scalar subquery or EXISTS over released answers says."""
        return value(self.find_released(query, use), self.catalog, self.setting)

    def released_list(self, query: Query) -> tuple[tuple[Constant, ...], ...]:
        """The rows that IN (SELECT …) compares with, each once and in one order."""
        rows = constants(self.find_released(query), self.catalog, self.setting)
        return tuple(
            dict.fromkeys(sorted(rows, key=lambda row: [(cell.text is None, cell.text or "") for cell in row]))
        )

    def read_there(self, tables: Iterable[TableName]) -> tuple[TableName, ...]:
        """All of these public tables, if the real database is to be asked for the rows of one; else none."""
        named = tuple(sorted(set(tables)))
        can_be_read = self.policy.public_reader is not None
        return named if can_be_read and not self.closed.isdisjoint(named) else ()

    def find_unread(self, tables: Iterable[TableName]) -> TableName | None:
        """Find one of these public tables whose rows nobody can be asked for but in a private statement."""
        unread = () if self.policy.public_reader is not None else self.closed
        return min((table for table in tables if table in unread), key=str, default=None)


@frozen
class Entry:
    """One item of FROM: a table or subquery under its name."""

    name: str | None
    columns: Names
    schema: str | None = None  # of a table without alias, which may be named with it
    bare: frozenset[str] = frozenset()  # columns whose length and precision a cast took away


@frozen
class Scope:
    """The items of FROM, the columns that USING made one of two, and the subqueries that became columns."""

    entries: tuple[Entry, ...] = ()
    merged: Names = ()
    subqueries: tuple[tuple[Expression, int], ...] = ()

    def find(self, parts: tuple[str, ...]) -> int | None:
        """The column that a name means; None when there is none here."""
        *qualifier, name = parts
        if not qualifier:
            ids = [number for column_name, number in self.merged if column_name == name]
            if not ids:
                ids = [number for entry in self.entries for column_name, number in entry.columns if column_name == name]
        else:
            ids = [
                number
                for entry in self._named(qualifier)
                for column_name, number in entry.columns
                if column_name == name
            ]
        if len(ids) > 1:
            raise NotSupported(
                f'column reference "{name}" is ambiguous', hint="Qualify the column with its table, as in table.column."
            )
        return ids[0] if ids else None

    def is_bare(self, parts: tuple[str, ...]) -> bool:
        """Return whether the column that a name means has lost its length and precision, if it had any."""
        *qualifier, name = parts
        return any(name in entry.bare for entry in (self._named(qualifier) if qualifier else self.entries))

    def find_subquery(self, expression: Expression) -> int | None:
        """The column that a subquery became, wherever it is read again."""
        wanted = unnumbered(expression) if self.subqueries else expression
        return next((number for expression, number in self.subqueries if expression == wanted), None)

    def with_subquery(self, expression: Expression, number: int) -> "Scope":
        return replace(self, subqueries=(*self.subqueries, (unnumbered(expression), number)))

    def _named(self, qualifier: list[str]) -> tuple[Entry, ...]:
        schema = qualifier[-2] if len(qualifier) > 1 else None
        named = (entry for entry in self.entries if entry.name == qualifier[-1])
        return tuple(entry for entry in named if schema is None or schema == entry.schema)

    def star(self, qualifier: tuple[str, ...]) -> Names:
        """Return what * stands for: merged columns first, then the rest of each item."""
        if qualifier:
            return tuple(column for entry in self._named(list(qualifier)) for column in entry.columns)
        names = {name for name, _ in self.merged}
        rest = tuple(column for entry in self.entries for column in entry.columns if column[0] not in names)
        return (*self.merged, *rest)

    def bare(self, qualifier: tuple[str, ...]) -> tuple[bool, ...]:
        """Return which of the columns of * are bare."""
        if qualifier:
            return tuple(name in entry.bare for entry in self._named(list(qualifier)) for name, _ in entry.columns)
        names = {name for name, _ in self.merged}
        rest = (name in entry.bare for entry in self.entries for name, _ in entry.columns if name not in names)
        return (*(self.is_bare((name,)) for name, _ in self.merged), *rest)

    def refuse(self, parts: tuple[str, ...]) -> NotAllowed:
        """Explain why a name that means no column is refused."""
        name = parts[-1]
        if any(entry.name == name for entry in self.entries) and len(parts) == 1:
            return NotAllowed(f'whole-row reference "{name}" cannot be used over protected rows', hint=ROW_HINT)
        if name in SYSTEM_COLUMNS:
            return NotAllowed(f'system column "{name}" would identify single rows', hint=ROW_HINT)
        hint = "The rules file may hide it; \\d lists the visible columns."
        return UnknownName(f'column "{".".join(parts)}" does not exist or is hidden', hint=hint)


def merge(left: Scope, right: Scope, merged: Names = ()) -> Scope:
    """The scope of a join. Columns that an inner USING merged stay merged unless a new one has their name."""
    names = {name for name, _ in merged}
    kept = tuple(column for column in (*left.merged, *right.merged) if column[0] not in names)
    return Scope((*left.entries, *right.entries), (*merged, *kept))


def single(
    name: str | None,
    columns: Names,
    aliases: tuple[str, ...] = (),
    schema: str | None = None,
    *,
    bare: Iterable[bool] = (),
) -> Scope:
    """The scope of one item of FROM; `AS t(a, b)` renames its first columns."""
    renamed = tuple((alias, number) for alias, (_, number) in zip(aliases, columns, strict=False))
    shown = (*renamed, *columns[len(renamed) :])
    names = frozenset(column for (column, _), is_bare in zip(shown, bare, strict=False) if is_bare)
    return Scope((Entry(name, shown, schema, names),))


def takes_size(expression: Expression, scope: Scope) -> bool:
    """Return whether it gives a column without the length and precision that it has.

    A cast to the bare type of a column, and a plus, are that column: its bounds stay, and its values. The largest of
    several character(n) has their blanks, and no length. Of branches all must have the same one.
    """
    match expression:
        case Cast(type=written):
            target = find_type(written)
            return target is not None and target.size is None
        case Operator(name="+", arguments=(_,)):
            return True
        case Name(parts=parts):
            return scope.is_bare(parts)
        case Written():
            return True
        case Call(name="min" | "max"):
            return True
        case Call(name="nullif", arguments=(left, *_)):
            return takes_size(left, scope)
        case Call(name="coalesce" | "greatest" | "least", arguments=branches):
            return any(takes_size(branch, scope) for branch in branches)
        case Case(branches=branches, default=default):
            shown = (*(result for _, result in branches), default)
            return any(branch is None or takes_size(branch, scope) for branch in shown)
    return False
