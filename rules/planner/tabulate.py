"""Evaluate conditions and keys over all values of the columns that a cube has, so that its cells can be chosen by them.

The twin evaluates them over lists of its own, as it does to list groups: no protected row is read, and nothing is paid.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Final

from rules.algebra.cover import is_of_days
from rules.algebra.narrow import narrowed
from rules.algebra.nodes import Node, scans_in
from rules.bind.inner_answers import InnerQuery
from rules.bind.scope import PlannerContext
from rules.frozen import frozen, replace
from rules.functions.function import Needed
from rules.mechanisms.cells import Axis, Span, Table, Way
from rules.planner.public_rows import ListedRows, every_day, groups_sql, listed
from rules.planner.select_partitions import item_of
from rules.refusal import TooComplex
from rules.release.cell_labels import Label, local_time
from rules.sql.limits import check_size
from rules.values import domain, value
from rules.values.expression import Apply, Column, Constant, Expression, ids_in
from rules.values.types import DATE
from rules.values.value import DAY, text_of

MOST_ROWS: Final = 5_000
_MOST_COLUMNS: Final = 3
_MOST_ASKED: Final = 6  # lists that the twin makes for one statement
_PLAIN: Final = ("text", "enum", "boolean", "integer")
_TIMES: Final = ("date", "timestamp", "timestamptz")

Ways = Callable[[Column], tuple[Way, ...]]


@frozen
class Tabulation:
    """The columns of a block that cubes have, and how releases tell their values."""

    context: PlannerContext
    columns: Mapping[int, Column]  # as they are in the rows that are asked for
    ways: Ways
    original: Mapping[int, Column]  # those of cubes, as they are in their tables

    @classmethod
    def of(cls, node: Node, context: PlannerContext, ways: Ways) -> "Tabulation":
        measured = {key.column for cube in context.policy.cubes.values() for key in cube.keys}
        original = {
            number: next(column for column in scan.facts.columns if column.id == number)
            for scan in (scans_in(node) if measured else ())
            for number, name in scan.names
            if name in measured
        }
        return cls(context, {column.id: column for column in node.facts.columns}, ways, original)

    def condition(self, expression: Expression) -> Table | None:
        """Where a condition is true; None where it depends on more than columns with few values."""
        found = self._evaluated(expression, is_condition=True)
        return None if found is None else Table(found[0], tuple((row, "") for row in found[1]))

    def key(self, key: Expression) -> Table | None:
        """Which label a key has; None where it depends on more than columns with few values."""
        found = self._evaluated(key, is_condition=False)
        if found is None:
            return None
        axes, rows = found
        return Table(axes, tuple((row[:-1], row[-1]) for row in rows))

    def _evaluated(
        self, expression: Expression, *, is_condition: bool
    ) -> tuple[tuple[Axis, ...], list[tuple[Label, ...]]] | None:
        numbers = sorted(ids_in(expression))
        if not 0 < len(numbers) <= _MOST_COLUMNS or not set(numbers) <= self.original.keys() & self.columns.keys():
            return None
        columns = [self._narrowed(number, expression) if is_condition else self.columns[number] for number in numbers]
        values = [self._values(column, expression) for column in columns]
        known = [each for each in values if each is not None]
        if len(known) < len(values) or prod(len(axis.labels) for axis, _ in known) > MOST_ROWS:
            return None
        keys = (*columns, *(() if is_condition else (expression,)))
        conditions = (expression,) if is_condition else ()
        names = {number: f"c{place}" for place, number in enumerate(numbers, start=1)}
        sql = groups_sql([rows for _, rows in known], conditions, {}, keys, names, MOST_ROWS + 1)
        asked = self._asked(sql)
        if asked is None:
            return None
        return tuple(axis for axis, _ in known), [tuple(map(self._label, keys, row)) for row in asked]

    def _asked(self, sql: str) -> Sequence[tuple[str | None, ...]] | None:
        """What the twin says; None where it is asked too much for one statement."""
        inner = InnerQuery(use="groups", sql=sql)
        known = [answer for answer in self.context.released if answer.inner.use == "groups"]
        released = next((answer for answer in known if answer.inner == inner), None)
        if released is not None:
            return released.rows
        try:
            check_size(sql)
        except TooComplex:
            return None
        if len(known) >= _MOST_ASKED:
            return None
        raise Needed(inner)

    def _label(self, key: Expression, text: str | None) -> Label:
        """The label that a group of this value has; of a moment in a column its day."""
        if text is None:
            return None
        held = value.find_value(text, key.type if key.type.kind == "enum" else key.type.plain(), self.context.time_zone)
        if isinstance(key, Column) and isinstance(held, Fraction) and key.type.kind in _TIMES:
            local = local_time(held, key.type, self.context.time_zone)
            return None if local is None else text_of(Fraction(local // DAY), DATE)
        item = None if held is None else item_of(held, key, self.context.time_zone)
        return None if item is None else item[1]

    def _narrowed(self, number: int, condition: Expression) -> Column:
        """A column as it is where a condition is true: one of its alternatives is."""
        column = self.columns[number]
        met = [narrowed((column,), each)[0] for each in _alternatives(condition)]
        return replace(column, domain=reduce(domain.union, (each.domain for each in met)))

    def _values(self, column: Column, expression: Expression) -> tuple[Axis, ListedRows] | None:
        """All values of a column as labels, and as rows for the twin."""
        original = self.original[column.id]
        ways = self.ways(column)
        if column.type.kind in _TIMES:
            return self._days(column, original, ways) if self._is_of_days(expression, column) else None
        if column.type.kind not in _PLAIN or column.type.base in ("bpchar", "name"):
            return None
        exact = domain.items_of(column.domain, MOST_ROWS)
        items = domain.items_of(original.declared, MOST_ROWS) if exact is None else exact
        if items is None:
            return None
        rows = listed(column.id, replace(column, domain=domain.values(items)), MOST_ROWS)
        found = [item_of(item, column, self.context.time_zone) for item in items]
        if rows is None or None in found:
            return None
        labels = (*(item[1] for item in found if item is not None), *([None] if column.nullable else []))
        is_exact = exact is not None
        span = Span(tuple(sorted(items, key=str)), null=column.nullable) if is_exact else Span(null=column.nullable)
        return Axis(labels, ways, is_exact, span), rows

    def _days(self, column: Column, original: Column, ways: tuple[Way, ...]) -> tuple[Axis, ListedRows] | None:
        is_exact = domain.range_of(column.domain).is_bounded
        held = column.domain if is_exact else domain.intersect(column.domain, original.declared)
        rows = every_day(column.id, replace(column, domain=held), self.context.time_zone)
        if rows is None or rows.days is None or rows.days[1] - rows.days[0] >= MOST_ROWS:
            return None
        days = [text_of(Fraction(day), DATE) for day in range(rows.days[0], rows.days[1] + 1)]
        return Axis((*days, *([None] if column.nullable else [])), ways, is_exact, Span(null=column.nullable)), rows

    def _is_of_days(self, expression: Expression, column: Column) -> bool:
        """Return whether an expression is a function of a moment's day; a moment may be compared with a midnight."""
        moments = _compared(expression)
        if is_of_days(expression, column.id) or any(_is_midnight(*each, self.context.time_zone) for each in moments):
            return True
        if not isinstance(expression, Apply) or column.id not in ids_in(expression):
            return False
        return all(self._is_of_days(argument, column) for argument in expression.arguments)


def _alternatives(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Apply) and condition.name == "or":
        for argument in condition.arguments:
            yield from _alternatives(argument)
    else:
        yield condition


def _compared(expression: Expression) -> Iterator[tuple[Column, Constant]]:
    """A column of which is asked whether it lies before a moment, or not."""
    match expression:
        case Apply(name="<" | ">=" as name, sql=sql, arguments=(Column() as column, Constant() as constant)):
            written = sql == f"({{0}} {name} {{1}})"
        case Apply(name=">" | "<=" as name, sql=sql, arguments=(Constant() as constant, Column() as column)):
            written = sql == f"({{0}} {name} {{1}})"
        case _:
            return
    if written and column.type.kind == constant.type.kind:
        yield column, constant


def _is_midnight(column: Column, constant: Constant, zone: str) -> bool:
    """Return whether a day begins at a moment, and no clock is changed near it."""
    if not isinstance(constant.value, Fraction):
        return False
    local = local_time(constant.value, column.type, zone)
    if local is None or local % DAY:
        return False
    if column.type.kind != "timestamptz":
        return True
    hours = 3 * DAY // 24
    around = [value.to_local(int(constant.value) + more, zone) for more in (-hours, hours)]
    return around == [local - hours, local + hours]
