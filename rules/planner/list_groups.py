"""The groups of a block that can be listed: each combination of the keys' values that some row may have.

Keys that have nothing in common are listed each by itself, by what the planner knows of their values. Keys of public
tables, keys that refer to public tables, and keys that are computed from one column are listed together: the twin
evaluates them over the public rows that meet in the query, and over the values between declared bounds. The list is
advice: the kernel counts no row that is not of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from math import prod

from rules.algebra.cover import Cover, clamped, cover_of, equal_columns, is_of_days, is_over, reached
from rules.algebra.nodes import Node
from rules.bind.inner_answers import InnerQuery
from rules.bind.scope import PlannerContext
from rules.frozen import replace
from rules.functions.function import Needed
from rules.planner.compared_keys import can_be
from rules.planner.public_rows import ListedRows, Piece, PublicTables, every_day, groups_sql, listed, tables_of
from rules.planner.referred_tables import referred
from rules.planner.select_partitions import Item, KeyPart, item_of, own_part
from rules.planner.tried_conditions import means_the_same, of_days, tried
from rules.refusal import TooComplex
from rules.sql.limits import check_size
from rules.values import domain, value
from rules.values.domain import Range, Values
from rules.values.expression import Apply, Column, Constant, Expression, columns_in, ids_in

MOST_ROWS = 10_000  # of a list that the twin makes
_LONGEST = 300_000  # characters of all labels together: they stand in the inner statement
_MOST_COMBINATIONS = 3_000_000  # of listed values that the twin goes through, in about a second
_MOST_CHOSEN = 500  # values that a condition leaves of a public column


def list_parts(keys: tuple[Expression, ...], node: Node, context: PlannerContext) -> tuple[KeyPart, ...] | None:
    """The parts of a list of groups, each of keys that go together; None where some key cannot be listed.

    Raises Needed where the twin has to be asked.
    """
    limit = min(context.policy.groups_limit, MOST_ROWS)
    cover = _Cover.of(keys, node, context)
    parts: list[KeyPart] = []
    for places in cover.components() if len(keys) > 1 else [[place] for place in range(len(keys))]:
        key = keys[places[0]]
        alone = own_part(key, places[0], limit, context.time_zone) if len(places) == 1 else None
        if len(places) == 1 and not cover.is_better(places[0]):
            if alone is not None:
                parts.append(alone)
                continue
            if isinstance(key.domain, Values) or domain.range_of(key.domain).is_bounded:
                return None  # too many, or with no text of their own: the twin knows no fewer
        key_part = cover.part(places, limit)
        apart = [own_part(keys[place], place, limit, context.time_zone) for place in places]
        known = [key_part] if key_part is not None else [part for part in apart if part is not None]
        if key_part is None and len(known) < len(places):
            return None
        parts.extend(known)
    return tuple(parts)


@dataclass(slots=True)
class _Cover:
    """The public rows around the keys of one block, and the keys as they are over these."""

    keys: tuple[Expression, ...]
    context: PlannerContext
    cover: Cover
    known: Mapping[int, Column]  # what conditions say of columns
    tables: list[PublicTables] = field(default_factory=list)
    columns: list[Mapping[int, Column]] = field(default_factory=list)  # of each of them
    lists: dict[Expression, ListedRows] = field(default_factory=dict)
    same: dict[int, frozenset[int]] = field(default_factory=dict)  # columns that have the value of a column
    tried: list[Expression] = field(default_factory=list)  # conditions over listed columns
    resolved: list[Expression | None] = field(default_factory=list)
    fresh: Iterator[int] = field(default_factory=lambda: count(-1, -1))

    @classmethod
    def of(cls, keys: tuple[Expression, ...], node: Node, context: PlannerContext) -> "_Cover":
        cover = cover_of(node)
        made = cls(keys, context, cover, {column.id: column for column in node.facts.columns})
        made.tables = list(tables_of(cover))
        inner = tuple(condition for table in made.tables for condition in table.conditions)
        made.same = equal_columns((*cover.conditions, *inner), cover.computed)
        made._refer()
        made.columns = [table.columns() for table in made.tables]
        made._count_days()
        made._try()
        made.resolved = [made._asked(key) for key in keys]
        return made

    def components(self) -> list[list[int]]:
        """The places of keys that have columns or public rows in common."""
        connected: list[tuple[set[object], list[int]]] = []
        for place, key in enumerate(self.keys):
            roots, places = self._roots(key, self.resolved[place]), [place]
            for other in [component for component in connected if component[0] & roots]:
                roots, places = roots | other[0], [*other[1], *places]
                connected.remove(other)
            connected.append((roots, sorted(places)))
        return sorted(places for _, places in connected)

    def is_better(self, place: int) -> bool:
        """Tell whether the twin knows more of a key than its list: public rows, or which values of a range."""
        key, resolved = self.keys[place], self.resolved[place]
        if resolved is None:
            return False
        if not ids_in(resolved).isdisjoint(ids_in(*self.tried)):
            return True
        if isinstance(key.domain, Range) and isinstance(key, Apply) and isinstance(resolved, Apply):
            return True
        return any(isinstance(piece, PublicTables) for piece in self._connected([resolved]))

    def part(self, places: list[int], limit: int) -> KeyPart | None:
        """Return the twin's list of these keys; None where it cannot be asked, or has too much or nothing to say."""
        keys = [key for place in places if (key := self.resolved[place]) is not None]
        if len(keys) < len(places) or any(self._is_long(key, limit) for key in keys):
            return None
        pieces = self._connected(keys)
        if prod(piece.length for piece in pieces if isinstance(piece, ListedRows)) > _MOST_COMBINATIONS:
            return None
        owned = {number for piece in pieces for number in piece.columns()}
        conditions = [condition for condition in self._conditions() if is_over(condition, owned)]
        public = self._public() & owned
        chosen = {number: values for number in sorted(public) if (values := self._chosen(number)) is not None}
        used = ids_in(*keys, *conditions) | chosen.keys()
        for piece in pieces:
            if isinstance(piece, PublicTables):
                used |= ids_in(*piece.conditions, *piece.on)
        names = {number: f"c{place}" for place, number in enumerate(_in_order(pieces, used), start=1)}
        tables = [piece for piece in pieces if isinstance(piece, PublicTables)]
        read = self.context.read_there(scan.table for table in tables for scan in table.scans)
        tied = {table: replace(self._tied(table, owned), on_real=bool(read)) for table in tables}
        pieces = [tied[piece] if isinstance(piece, PublicTables) else piece for piece in pieces]
        sql = groups_sql(pieces, conditions, chosen, keys, names, min(limit + 1, MOST_ROWS))
        try:
            check_size(sql)
        except TooComplex:
            return None
        return self._answered(InnerQuery(use="groups", sql=sql, tables=read), places, limit, least=1 if tables else 0)

    def _is_long(self, key: Expression, limit: int) -> bool:
        """Return whether a key is a list of more days than may be groups."""
        lists = {
            listed_rows.number: listed_rows.days for listed_rows in self.lists.values() if listed_rows.days is not None
        }
        days = lists.get(key.id) if isinstance(key, Column) else None
        return days is not None and days[1] - days[0] >= limit

    def _answered(self, inner: InnerQuery, places: list[int], limit: int, *, least: int) -> KeyPart | None:
        released = next((inner_answer for inner_answer in self.context.released if inner_answer.inner == inner), None)
        if released is None:
            raise Needed(inner)
        if not least <= len(released.rows) <= min(limit, MOST_ROWS - 1):
            return None
        rows: list[tuple[Item, ...]] = []
        for row in released.rows:
            cells = [self._item(self.keys[place], text) for place, text in zip(places, row, strict=True)]
            if None in cells:
                return None
            if all(
                can_be(self.keys[place], cell) for place, cell in zip(places, cells, strict=True) if cell is not None
            ):
                rows.append(tuple(cell for cell in cells if cell is not None))
        if sum(len(text) for row in rows for _, text in row if text is not None) > _LONGEST:
            return None
        return KeyPart(tuple(places), tuple(dict.fromkeys(rows)))

    def _item(self, key: Expression, text: str | None) -> Item | None:
        """A value of a key with the text that is shown of it; None for what is no value to the planner."""
        if text is None:
            return None, None
        kind = key.type if key.type.kind == "enum" else key.type.plain()
        held = value.find_value(text, kind, self.context.time_zone)
        return None if held is None else item_of(held, key, self.context.time_zone)

    def _roots(self, key: Expression, resolved: Expression | None) -> set[object]:
        """Return what a key has in common with others that are computed from the same."""
        roots: set[object] = {("column", number) for number in ids_in(key)}
        if resolved is None:
            return roots
        for piece in self._connected([resolved]):
            roots |= {("piece", number) for number in piece.columns()}
        return roots

    def _refer(self) -> None:
        """Public tables that protected columns of the keys refer to by a foreign key: what is referred to is there."""
        covered = {number for table in self.tables for number in table.columns()}
        for number in sorted(ids_in(*self.keys)):
            column = self.known.get(number)
            if column is None or self.same.get(number, frozenset([number])) & covered:
                continue
            if domain.number_of_items(column.domain, MOST_ROWS) is not None and isinstance(column.domain, Values):
                continue  # by type or rules
            origins = self.same.get(number, frozenset([number]))
            targets = (referred(scan, origins, self.context, self.fresh) for scan in self.cover.scans())
            target = next(filter(None, targets), None)
            if target is not None:
                there, other = target
                self.tables.append(PublicTables((there,), optional=column.nullable))
                self.same[number] = self.same.get(number, frozenset([number])) | {other}

    def _count_days(self) -> None:
        """Columns of dates and times of which the keys tell no more than the day: all days between their bounds."""
        columns = {column.id: column for key in self.keys for column in columns_in(key) if column.type.is_time}
        expressions = reached(self.keys, self.cover.computed)  # a key may be the hour of another's moment
        for number, column in columns.items():
            used = [expression for expression in expressions if number in ids_in(expression)]
            if all(is_of_days(key, number) for key in used):
                bounded = replace(column, domain=domain.intersect(column.domain, clamped(used, number)))
                made = every_day(number, bounded, self.context.time_zone)
                if made is not None:
                    self.lists[Column(number, column.type)] = made

    def _try(self) -> None:
        """Conditions over columns of the keys of which all values are listed: the twin tries these."""
        columns = {column.id: column for key in self.keys for column in columns_in(key) if self._is_apart(column.id)}
        moments = (of_days(condition, self.context.setting) for condition in self.cover.conditions)
        conditions = [*self.cover.conditions, *(condition for condition in moments if condition is not None)]
        for condition in tried(conditions, self.keys, columns.values(), self.context.catalog.locale):
            own = [columns[number] for number in sorted(ids_in(condition))]
            if all(Column(column.id, column.type) in self.lists or self._listed(column) for column in own):
                self.tried.append(condition)

    def _is_apart(self, number: int) -> bool:
        return self.same.get(number, frozenset([number])).isdisjoint(self._public())

    def _asked(self, key: Expression) -> Expression | None:
        """A key over public rows and lists, if the twin computes of them what the real database does."""
        resolved = self._resolve(key)
        return resolved if resolved is not None and self._is_alike(resolved) else None

    def _is_alike(self, expression: Expression) -> bool:
        """Return whether an expression over public rows and lists is the same on the twin, and at noon as all day."""
        columns = {number: column for table in self.columns for number, column in table.items()}
        for made in self.lists.values():
            columns[made.number] = replace(made.columns()[made.number], domain=made.expression.domain)
        days = [made.number for made in self.lists.values() if made.days is not None]
        own = [columns[number] for number in ids_in(expression) if number in columns]
        is_of_noons = all(is_of_days(expression, number) for number in days)
        return is_of_noons and means_the_same(expression, own, self.context.catalog.locale)

    def _resolve(self, expression: Expression) -> Expression | None:
        """An expression over the columns of public rows and lists; None where it depends on something else.

        A range says what lies between two ends, not which of it can be: what it is computed from says more.
        """
        match expression:
            case Constant():
                return expression
            case Column():
                resolved = self._column(expression)
                return resolved if resolved is not None else self._listed(expression)
        is_tried = not ids_in(expression).isdisjoint(ids_in(*self.tried))
        is_listed = not is_tried and not self._is_covered(expression) and not isinstance(expression.domain, Range)
        if is_listed and (resolved := self._listed(expression)) is not None:
            return resolved
        arguments = tuple(map(self._resolve, expression.arguments))
        known = tuple(argument for argument in arguments if argument is not None)
        if len(known) == len(arguments):
            return replace(expression, arguments=known)
        return None if self._is_covered(expression) else self._listed(expression)

    def _is_covered(self, expression: Expression) -> bool:
        return any(self._column(column) is not None for column in columns_in(expression))

    def _column(self, column: Column) -> Expression | None:
        """A column as a public one, as that of a list of days, or as what it is computed from."""
        days = self.lists.get(Column(column.id, column.type))
        if days is not None:
            return Column(days.number, column.type)
        for columns in self.columns:
            for number in sorted(self.same.get(column.id, frozenset([column.id]))):
                if number in columns and (number == column.id or columns[number].type.kind == column.type.kind):
                    return Column(number, columns[number].type)
        computed = self.cover.computed.get(column.id)
        if computed is None or isinstance(computed, Column) or not self._is_covered(computed):
            return None
        return self._resolve(computed)

    def _listed(self, expression: Expression) -> Expression | None:
        """An expression of which all values are known, as a column of its own."""
        if expression not in self.lists:
            number = expression.id if isinstance(expression, Column) else next(self.fresh)
            made = listed(number, expression, MOST_ROWS)
            if made is None:
                return None
            self.lists[expression] = made
        return Column(self.lists[expression].number, expression.type)

    def _conditions(self) -> list[Expression]:
        """Return what is known to hold of public columns, and which of them are equal because others are."""
        public = self._public()
        conditions = (condition for condition in self.cover.conditions if is_over(condition, public))
        expressions = [*filter(self._is_alike, conditions), *self.tried]
        covered = {
            number: Column(number, column.type)
            for table, columns in zip(self.tables, self.columns, strict=True)
            if not table.optional
            for number, column in columns.items()
        }
        for group in sorted({tuple(sorted(group & covered.keys())) for group in self.same.values()}):
            for first, second in pairwise(group):
                one, two = covered[first], covered[second]
                expressions.append(Apply("=", "({0} = {1})", (one, two), one.type))
        return list(dict.fromkeys(expressions))

    def _public(self) -> frozenset[int]:
        return frozenset[int]().union(*self.columns)

    def _tied(self, table: PublicTables, owned: set[int]) -> PublicTables:
        """A table with those of its conditions that the twin can try."""
        ties = (tie for tie in table.on if is_over(tie, owned) and self._is_alike(tie))
        return replace(table, conditions=tuple(filter(self._is_alike, table.conditions)), on=tuple(ties))

    def _chosen(self, number: int) -> Values | None:
        """The values that conditions leave of a public column, where these are listed."""
        for other in sorted(self.same.get(number, frozenset([number]))):
            column = self.known.get(other)
            if column is None or column.type.kind in ("float", "boolean", "other") or column.type.base == "bpchar":
                continue
            match column.domain:
                case Values(items=items) if 0 < len(items) <= _MOST_CHOSEN and items != column.type.labels:
                    return column.domain
        return None

    def _connected(self, keys: Sequence[Expression]) -> list[Piece]:
        """The public rows and lists that keys are made of, and the public rows that these meet."""
        pieces: list[Piece] = [*self.tables, *self.lists.values()]
        wanted = set(ids_in(*keys))
        public, ties = self._public(), [ids_in(condition) for condition in self._conditions()]
        ties += [ids_in(expression) for table in self.tables for expression in table.on if is_over(expression, public)]
        sources: list[Piece] = []
        while True:
            more = [piece for piece in pieces if piece not in sources and piece.columns().keys() & wanted]
            if not more:
                return [piece for piece in pieces if piece in sources]
            sources += more
            owned = {number for piece in more for number in piece.columns()}
            for tie in ties:
                wanted |= tie if tie & owned else set()


def _in_order(pieces: Sequence[Piece], used: frozenset[int] | set[int]) -> list[int]:
    return [number for piece in pieces for number in piece.columns() if number in used]
