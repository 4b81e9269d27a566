"""Find the released cells of which a block's groups may be sums: its relation but for conditions on whole groups."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Final

from rules.aggregates.contributions import Contribution
from rules.bind.scope import PlannerContext
from rules.frozen import frozen, replace
from rules.functions.casts import cast_to
from rules.functions.datetime.extraction import extract
from rules.functions.datetime.truncation import date_trunc, truncate
from rules.functions.function import EvalContext
from rules.kernel.measures import Count, Products, Sum, Units
from rules.kernel.measures import Values as Summed
from rules.mechanisms.cells import PARTS, WHOLE, CellKey, Cells, Clock, Field, Finer, Halves, Span, Test, View, Way
from rules.planner.bound_contributions import Bounding
from rules.planner.condition_spans import LONGEST_LIST, outermost_conditions, spans_of
from rules.planner.names import CanonicalNames, expression_name
from rules.planner.select_partitions import Keyed
from rules.planner.tabulate import Tabulation
from rules.refusal import Refusal
from rules.release.cell_labels import local_time, value_of_local
from rules.values import domain, value
from rules.values.domain import Range, Values
from rules.values.expression import Column, Expression, Literal, ids_in
from rules.values.time_zones import noting_zones
from rules.values.types import DATE, INT4, Type
from rules.values.value import DAY

_MOST_VIEWED: Final = 4  # columns whose conditions may be left out: each set of them is looked for
_FIELDS: Final[tuple[Field, ...]] = ("day", "week", "month", "quarter", "year")
_NUMBERS_OF: Final[tuple[Field, ...]] = ("of year", "of quarter", "of month", "of isodow", "of dow")
_HOURS: Final = 3 * DAY // 24


@frozen
class _TimeKey:
    """A moment that is cut to its day, week, month …: what that is called, and its type."""

    name: str
    type: Type
    field: Field


def cells_of(
    keyed: Keyed,
    names: CanonicalNames,
    bounding: Bounding,
    parts: Sequence[Contribution],
    centred: Mapping[Contribution, Sequence[Contribution]],
    context: PlannerContext,
    *,
    is_in_one: bool,
    after: str,
) -> Cells | None:
    """The cells of a block whose groups are listed. None where a group stands for what is not declared."""
    if keyed.others:
        return None
    with noting_zones():  # which are told by the plan whose cells are taken: its list of groups needs them
        made = _Maker(keyed, names, bounding, context, after).cells(parts, is_in_one=is_in_one)
        return replace(made, halves=tuple(_halves(part, centred.get(part), names) for part in parts))


def _halves(part: Contribution, centred: Sequence[Contribution] | None, names: CanonicalNames) -> Halves | None:
    """The centred sum of what a part sums, and the count that belongs to it."""
    if centred is None or not isinstance(part, Sum):
        return None
    halves, count = centred
    assert isinstance(halves, Sum)
    return Halves(names.part(halves), names.part(count), halves.summand.lattice.low + halves.summand.lattice.high)


@frozen
class _Maker:
    keyed: Keyed
    names: CanonicalNames
    bounding: Bounding
    context: PlannerContext
    after: str  # what was answered first

    def cells(self, parts: Sequence[Contribution], *, is_in_one: bool) -> Cells:
        spans, rest = spans_of(outermost_conditions(self.keyed.unlisted))
        columns = {column.id: column for column in self.keyed.unlisted.facts.columns}
        used = ids_in(*self.keyed.keys, *spans)
        times = {number: self._times(columns[number]) for number in sorted(used)}
        tests = {tested: self._tests(tested, span, columns, times) for tested, span in spans.items()}
        tabulation = Tabulation.of(self.keyed.unlisted, self.context, self._ways)
        keys = tuple(self._key(key, tests, columns, times, tabulation) for key in self.keyed.keys)
        named = {key.name for key in keys}
        own = {
            expression for expression, own in tests.items() if any(test.key in named and not test.field for test in own)
        }
        known = {expression: f"{self._name(expression)} in {span.plain()}" for expression, span in spans.items()}
        known |= {expression: self.names.expression(expression) for expression in rest}

        def families(left_out: Iterable[Expression]) -> Iterator[str]:
            left = [text for expression, text in known.items() if expression not in left_out]
            for text in self.names.families(self.bounding, left):
                yield hashlib.sha256((text + self.after).encode()).hexdigest()

        tested = [test for test in tests if tests[test]][:_MOST_VIEWED]
        tables = {expression: table for expression in rest if (table := tabulation.condition(expression)) is not None}
        views = tuple(
            View(family, some, tuple(more.values()))
            for more in ([tables, {}] if tables else [{}])
            for some in _sets(len(tested))
            for family in families([*(tested[place] for place in some), *more])
        )
        counted = tuple(isinstance(part, Units) for part in parts)
        adding = tuple(isinstance(part, Count | Sum | Summed | Products) for part in parts)
        telling = tuple(tests[expression] for expression in tested)
        family, zone = next(families(own)), self.context.time_zone
        return Cells(family, keys, telling, views, adding, counted, is_in_one, zone, halves=())

    def _name(self, expression: Expression) -> str:
        return _short(self.names.expression(expression))

    def _key(
        self,
        key: Expression,
        tests: Mapping[Expression, tuple[Test, ...]],
        columns: Mapping[int, Column],
        times: Mapping[int, tuple[_TimeKey, ...]],
        tabulation: Tabulation,
    ) -> CellKey:
        name, listed = self._name(key), self._listed(key)
        span = listed or WHOLE
        for test in (test for tested in tests.values() for test in tested if test.key == name and not test.field):
            span = span.met(test.span)
        cut = [time_key for known in times.values() for time_key in known if time_key.name == name]
        made = CellKey(name, _type_of(key), listed is not None, span)
        if not cut:
            return made if isinstance(key, Column) else replace(made, table=tabulation.key(key))
        field, (number,) = cut[0].field, ids_in(key)
        finer = (time for time in times[number] if time.field in PARTS[field] and time.name != name)
        clock = Clock(self._name(columns[number]), field, made.type)
        return replace(made, clock=clock, finer=tuple(Finer(time_key.name, time_key.type) for time_key in finer))

    def _listed(self, key: Expression) -> Span | None:
        """The values outside of which a key leaves rows out by itself; None where they are too many to be told."""
        if not isinstance(key, Column):
            return WHOLE  # the conditions on its columns are the relation's
        known = next(column for column in self.keyed.unlisted.facts.columns if column.id == key.id)
        if domain.is_within(known.domain, key.declared):
            return WHOLE
        match key.declared:
            case Values(items=items) if len(items) <= LONGEST_LIST:
                return Span(tuple(sorted(items, key=str)), null=known.nullable)
            case Range(low=low, high=high):
                return Span(low=low, high=high, null=known.nullable)
        return None

    def _tests(
        self,
        tested: Expression,
        span: Span,
        columns: Mapping[int, Column],
        times: Mapping[int, Sequence[_TimeKey]],
    ) -> tuple[Test, ...]:
        """The keys by whose values a condition on a column, or on a number of its clock, can be told."""
        name, (number,) = self._name(tested), ids_in(tested)
        bare = Test(name, _type_of(tested), span)
        if isinstance(tested, Column):
            of, zone = columns[number].type, self.context.time_zone
            moved = ((time, _whole_span(span, of, time, zone)) for time in times[number])
            return (bare, *(Test(time_key.name, time_key.type, new) for time_key, new in moved if new is not None))
        field = next((time.field for time in times[number] if time.name == name), None)
        if field is None:  # or a moment may lie beyond what is declared: keys that clamp it have other names
            return (bare,)
        finer = (time for time in times[number] if time.field in PARTS[field])
        return (bare, *(Test(time_key.name, time_key.type, span, field) for time_key in finer))

    def _ways(self, column: Column) -> tuple[Way, ...]:
        """The keys that tell the value of a column, or on which day it is."""
        if column.type.is_time:
            known = [time_key for field in _FIELDS for time_key in self._times(column) if time_key.field == field]
            return tuple(Way(time_key.name, time_key.type, time_key.field) for time_key in known)
        return (Way(self._name(column), _type_of(column)),)

    def _times(self, column: Column) -> tuple[_TimeKey, ...]:
        """The keys that a moment is usually cut to."""
        if column.type.kind not in ("timestamptz", "timestamp", "date"):
            return ()
        name, setting = self.names.columns[column.id], self.context.key_setting
        nameless, timeless = replace(_nameable(column), id=0), replace(setting, now=None, readings=())
        return _times_of(nameless, name, self.names.zone, timeless)


@lru_cache(maxsize=256)
def _times_of(column: Column, name: str, zone: str, setting: EvalContext) -> tuple[_TimeKey, ...]:
    """The same of a column with this name: charts of a dashboard read the same ones."""
    try:
        truncations = [(date_trunc((Literal(field), column), setting), field) for field in _FIELDS]
        dates = [(cast_to(expression, DATE, setting), field) for expression, field in truncations]
        day = column if column.type.kind == "date" else cast_to(column, DATE, setting)
        numbers = [(extract((Literal(field[3:]), column), setting), field) for field in _NUMBERS_OF]
        whole = [(cast_to(expression, INT4, setting), field) for expression, field in numbers]
    except Refusal:  # of the session's styles
        return ()
    made = [*truncations, *dates, (day, _FIELDS[0]), *numbers, *whole]
    names = [_short(expression_name(expression, {column.id: name}, zone)) for expression, _ in made]
    return tuple(_TimeKey(short, _type_of(key), field) for short, (key, field) in zip(names, made, strict=True))


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:20]


def _nameable(column: Column) -> Column:
    """A column as if it had one value: none are counted out for the sake of names.

    Of values they say one thing, whether the column is clamped: so that one lies outside of what is declared if any
    may.
    """
    bounds, declared = domain.range_of(column.domain), domain.range_of(column.declared)
    one = bounds.low or bounds.high or Fraction(0)
    if declared.high is not None and not domain.is_within(bounds, declared):
        one = declared.high + 1
    return replace(column, domain=Range(one, one))


def _type_of(key: Expression) -> Type:
    return key.type if isinstance(key, Column) or key.type.name else key.type.plain()


def _sets(number: int) -> Iterator[tuple[int, ...]]:
    for size in range(number + 1):
        yield from combinations(range(number), size)


def _whole_span(span: Span, of: Type, key: _TimeKey, zone: str) -> Span | None:
    """A range of moments as one of days, weeks, months …, if it begins and ends with one."""
    if span.items is not None or span.null or span.low is None or span.high is None or span.above or not span.below:
        return None
    ends = [_start(end, of, key, zone) for end in (span.low, span.high)]
    low, high = ends
    return None if low is None or high is None else Span(low=low, high=high, below=True, null=False)


def _start(moment: Fraction, of: Type, key: _TimeKey, zone: str) -> Fraction | None:
    """The key's value from this moment on; None where it is within one, or where the clock is changed near it."""
    local = local_time(moment, of, zone)
    if local is None or truncate(local, key.field) != local:
        return None
    if "timestamptz" in (of.kind, key.type.kind):
        instant = value.to_instant(local, zone)
        around = None if instant is None else [value.to_local(instant + hours, zone) for hours in (-_HOURS, 0, _HOURS)]
        if around != [local - _HOURS, local, local + _HOURS]:
            return None
    return value_of_local(local, key.type, zone)
