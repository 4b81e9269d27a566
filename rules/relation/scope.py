"""Names of the analyst's text and the columns that they mean, as PostgreSQL resolves them."""

from dataclasses import dataclass, replace
from datetime import datetime

from rules.catalog import Catalog
from rules.policy.model import Policy
from rules.refusal import NotAllowed, NotSupported
from rules.relation.expression import Constant
from rules.relation.functions.guard import PLAIN, Setting, Styles
from rules.relation.released import Links, Released, Use, constants, find_released, readings, value
from rules.relation.scan import Names
from rules.relation.walk_syntax import unnumbered
from rules.sql.syntax import Expression, Query

SYSTEM_COLUMNS = frozenset(("ctid", "oid", "tableoid", "xmin", "xmax", "cmin", "cmax"))
ROW_HINT = "Ask for an aggregate, such as count(*) or avg(x), instead of rows."


class UnknownName(NotAllowed):
    """A name that means no column where it stands; in a subquery it may mean one of the row around it."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside the text that its meaning depends on."""

    policy: Policy
    catalog: Catalog
    search_path: tuple[str, ...] = ("public",)
    parameter_types: tuple[str, ...] = ()
    parameters: tuple[str | None, ...] = ()
    time_zone: str = "UTC"
    now: str = ""
    styles: Styles = PLAIN
    released: tuple[Released, ...] = ()  # the answers of inner queries that must be known before

    def find_released(self, query: Query, use: Use = "rows") -> Released:
        """The rows of an inner query; raises AnswerFirst when they are not known yet."""
        return find_released(query, use, self.released)

    def released_rows(self, query: Query, links: Links) -> tuple[tuple[Constant, ...], ...]:
        """What a scalar subquery gives for each value of what it depends on: these, and then the answer."""
        found = find_released(query, "lookup", self.released, links)
        return constants(found, self.catalog, self.setting())

    def released_value(self, query: Query, use: Use) -> Constant:
        """What a scalar subquery or EXISTS over released answers says."""
        return value(self.find_released(query, use), self.catalog, self.setting())

    def released_list(self, query: Query) -> tuple[tuple[Constant, ...], ...]:
        """The rows that IN (SELECT …) compares with, each once and in one order."""
        rows = constants(self.find_released(query), self.catalog, self.setting())
        return tuple(
            dict.fromkeys(sorted(rows, key=lambda row: [(cell.text is None, cell.text or "") for cell in row]))
        )

    def setting(self, *, as_key: bool = False) -> Setting:
        now = datetime.fromisoformat(self.now) if self.now else None
        there = self.catalog.version, self.catalog.time_zones
        return Setting(self.time_zone, now, as_key, self.styles, readings(self.released), *there)


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of FROM: a table or subquery under its name."""

    name: str | None
    columns: Names
    schema: str | None = None  # of a table without alias, which may be named with it


@dataclass(frozen=True, slots=True)
class Scope:
    """The items of FROM, the columns that USING made one of two, and the subqueries that became columns."""

    entries: tuple[Entry, ...] = ()
    merged: Names = ()
    subqueries: tuple[tuple[Expression, int], ...] = ()

    def find(self, parts: tuple[str, ...]) -> int | None:
        """The column that a name means; None when there is none here."""
        *qualifier, name = parts
        if not qualifier:
            found = [number for each, number in self.merged if each == name]
            if not found:
                found = [number for entry in self.entries for each, number in entry.columns if each == name]
        else:
            found = [number for entry in self._named(qualifier) for each, number in entry.columns if each == name]
        if len(found) > 1:
            raise NotSupported(f'the name "{name}" stands for more than one column here', hint="Write table.column.")
        return found[0] if found else None

    def find_subquery(self, given: Expression) -> int | None:
        """The column that a subquery became, wherever it is read again."""
        wanted = unnumbered(given) if self.subqueries else given
        return next((number for each, number in self.subqueries if each == wanted), None)

    def with_subquery(self, given: Expression, number: int) -> "Scope":
        return replace(self, subqueries=(*self.subqueries, (unnumbered(given), number)))

    def _named(self, qualifier: list[str]) -> tuple[Entry, ...]:
        schema = qualifier[-2] if len(qualifier) > 1 else None
        named = (entry for entry in self.entries if entry.name == qualifier[-1])
        return tuple(entry for entry in named if schema is None or schema == entry.schema)

    def star(self, qualifier: tuple[str, ...]) -> Names:
        """What * stands for: merged columns first, then the rest of each item."""
        if qualifier:
            return tuple(column for entry in self._named(list(qualifier)) for column in entry.columns)
        names = {name for name, _ in self.merged}
        rest = tuple(column for entry in self.entries for column in entry.columns if column[0] not in names)
        return (*self.merged, *rest)

    def refuse(self, parts: tuple[str, ...]) -> NotAllowed:
        """Why a name that means no column is refused."""
        name = parts[-1]
        if any(entry.name == name for entry in self.entries) and len(parts) == 1:
            return NotAllowed(f'"{name}" as a whole row cannot be used over protected rows', hint=ROW_HINT)
        if name in SYSTEM_COLUMNS:
            return NotAllowed(f'the system column "{name}" tells of single rows', hint=ROW_HINT)
        hint = "The rules may hide it; \\d lists the columns that there are."
        return UnknownName(f'the column "{".".join(parts)}" is not known here', hint=hint)


def merge(left: Scope, right: Scope, merged: Names = ()) -> Scope:
    """The scope of a join. Columns that an inner USING merged stay merged unless a new one has their name."""
    names = {name for name, _ in merged}
    kept = tuple(column for column in (*left.merged, *right.merged) if column[0] not in names)
    return Scope((*left.entries, *right.entries), (*merged, *kept))


def single(name: str | None, columns: Names, aliases: tuple[str, ...] = (), schema: str | None = None) -> Scope:
    """The scope of one item of FROM; `AS t(a, b)` renames its first columns."""
    renamed = tuple((alias, number) for alias, (_, number) in zip(aliases, columns, strict=False))
    return Scope((Entry(name, (*renamed, *columns[len(renamed) :]), schema),))
