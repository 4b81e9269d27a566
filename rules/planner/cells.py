"""Find the released cells of which a block's groups may be sums: its relation but for conditions on whole groups."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Final

from rules.aggregates.contributions import Contribution
from rules.algebra.nodes import Filter, Node
from rules.bind.scope import PlannerContext
from rules.functions.casts import cast_to
from rules.functions.context import EvalContext
from rules.functions.datetime.extraction import extract
from rules.functions.datetime.truncation import date_trunc, truncate
from rules.kernel.measures import Count, Products, Sum, Units
from rules.kernel.measures import Values as Summed
from rules.mechanisms.cells import PARTS, WHOLE, CellKey, Cells, Clock, Field, Finer, Halves, Span, Test, View
from rules.planner.bounding import Bounding
from rules.planner.names import CanonicalNames, expression_name
from rules.planner.select_partitions import Keyed
from rules.refusal import Refusal
from rules.release.cells import local_time, value_of_local
from rules.values import domain, value
from rules.values.domain import Range, Values
from rules.values.expression import Apply, Column, Constant, Expression, Literal, columns_in, conjuncts, ids_in
from rules.values.time_zones import noting_zones
from rules.values.types import DATE, INT4, Type
from rules.values.value import DAY, Value

_MOST_VIEWED: Final = 4  # columns whose conditions may be left out: each set of them is looked for
_LONGEST_LIST: Final = 20  # values
_FIELDS: Final[tuple[Field, ...]] = ("day", "week", "month", "quarter", "year")
_NUMBERS_OF: Final[tuple[Field, ...]] = ("of year", "of quarter", "of month", "of isodow", "of dow")
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HOURS: Final = 3 * DAY // 24
_NUMBERS: Final = ("integer", "numeric")
_COMPARED: Final = ("date", "timestamp", "timestamptz", *_NUMBERS)


@dataclass(frozen=True, slots=True)
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
    total, count = map(names.part, centred)
    return Halves(total, count, part.summand.lattice.low + part.summand.lattice.high)


@dataclass(frozen=True, slots=True)
class _Maker:
    keyed: Keyed
    names: CanonicalNames
    bounding: Bounding
    context: PlannerContext
    after: str  # what was answered first

    def cells(self, parts: Sequence[Contribution], *, is_in_one: bool) -> Cells:
        conditions, layers = _conditions(self.keyed.unlisted)
        spans, rest = _spans(conditions)
        columns = {column.id: column for column in self.keyed.unlisted.facts.columns}
        used = ids_in(*self.keyed.keys, *spans)
        times = {number: self._times(columns[number]) for number in sorted(used)}
        tests = {span: self._tests(span, spans, columns, times) for span in spans}
        keys = tuple(self._key(key, tests, columns, times) for key in self.keyed.keys)
        named = {key.name for key in keys}
        own = {
            expression for expression, own in tests.items() if any(test.key in named and not test.field for test in own)
        }
        known = {expression: f"{self._name(expression)} in {span.plain()}" for expression, span in spans.items()}
        others = [self.names.expression(expression) for expression in rest]

        def family(left_out: Iterable[Expression]) -> str:
            left = [text for expression, text in known.items() if expression not in left_out]
            text = self.names.family(self.bounding, layers, [*left, *others]) + self.after
            return hashlib.sha256(text.encode()).hexdigest()

        tested = [test for test in tests if tests[test]][:_MOST_VIEWED]
        views = tuple(View(family(some), tuple(tests[expression] for expression in some)) for some in _sets(tested))
        counted = tuple(isinstance(part, Units) for part in parts)
        adding = tuple(isinstance(part, Count | Sum | Summed | Products) for part in parts)
        return Cells(family(own), keys, views, adding, counted, is_in_one, self.context.time_zone, ())

    def _name(self, expression: Expression) -> str:
        return _short(self.names.expression(expression))

    def _key(
        self,
        key: Expression,
        tests: Mapping[Expression, tuple[Test, ...]],
        columns: Mapping[int, Column],
        times: Mapping[int, tuple[_TimeKey, ...]],
    ) -> CellKey:
        name, listed = self._name(key), self._listed(key)
        span = listed or WHOLE
        for test in (test for tested in tests.values() for test in tested if test.key == name and not test.field):
            span = span.met(test.span)
        cut = [time_key for known in times.values() for time_key in known if time_key.name == name]
        made = CellKey(name, _type_of(key), listed is not None, span)
        if not cut:
            return made
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
            case Values(items=items) if len(items) <= _LONGEST_LIST:
                return Span(tuple(sorted(items, key=str)), null=known.nullable)
            case Range(low=low, high=high):
                return Span(low=low, high=high, null=known.nullable)
        return None

    def _tests(
        self,
        tested: Expression,
        spans: Mapping[Expression, Span],
        columns: Mapping[int, Column],
        times: Mapping[int, Sequence[_TimeKey]],
    ) -> tuple[Test, ...]:
        """The keys by whose values a condition on a column, or on a number of its clock, can be told."""
        name, (number,), span = self._name(tested), ids_in(tested), spans[tested]
        bare = Test(name, _type_of(tested), span)
        if isinstance(tested, Column):
            of, zone = columns[number].type, self.context.time_zone
            moved = ((time, _whole_span(span, of, time, zone)) for time in times[number])
            return (bare, *(Test(time_key.name, time_key.type, new) for time_key, new in moved if new is not None))
        said = (span for of, span in spans.items() if isinstance(of, Column) and of.id == number)
        is_inside = any(_is_declared(span, columns[number]) for span in said)  # what is clamped is the moment itself
        known = (*times[number], *(self._clamped(next(iter(columns_in(tested)))) if is_inside else ()))
        field = next((time_key.field for time_key in known if time_key.name == name), None)
        if field is None:
            return (bare,)
        finer = (time for time in times[number] if time.field in PARTS[field])
        return (bare, *(Test(time_key.name, time_key.type, span, field) for time_key in finer))

    def _clamped(self, column: Column) -> tuple[_TimeKey, ...]:
        """Numbers of the clock as conditions have them: of a moment that is clamped to its declared bounds."""
        column, setting = _nameable(column), self.context.setting()
        numbers = [(extract((Literal(field[3:]), column), setting), field) for field in _NUMBERS_OF]
        whole = [(cast_to(expression, INT4, setting), field) for expression, field in numbers]
        return tuple(
            _TimeKey(self._name(expression), _type_of(expression), field) for expression, field in (*numbers, *whole)
        )

    def _times(self, column: Column) -> tuple[_TimeKey, ...]:
        """The keys that a moment is usually cut to."""
        if column.type.kind not in ("timestamptz", "timestamp", "date"):
            return ()
        name, setting = self.names.rendered.names[column.id], self.context.setting(as_key=True)
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


def _is_declared(span: Span, column: Column) -> bool:
    """Tell whether all moments of a span are within the bounds that the rules declare."""
    bounds = domain.range_of(column.declared)
    return span.is_within(Span(low=bounds.low, high=bounds.high, null=False))


def _sets(tested: Sequence[Expression]) -> Iterator[tuple[Expression, ...]]:
    for size in range(len(tested) + 1):
        yield from combinations(tested, size)


def _conditions(node: Node) -> tuple[list[Expression], int]:
    """The conditions that stand outermost, and on how many nodes."""
    expressions, layers = list[Expression](), 0
    while isinstance(node, Filter):
        expressions += conjuncts(node.condition)
        node, layers = node.source, layers + 1
    return expressions, layers


def _spans(conditions: Sequence[Expression]) -> tuple[dict[Expression, Span], list[Expression]]:
    """By column, or number of its clock, what simple conditions leave of it, and all other conditions."""
    spans, rest = dict[Expression, Span](), list[Expression]()
    for condition in conditions:
        if (said := _said(condition)) is None:
            rest.append(condition)
        else:
            tested, span = said
            same = next((known for known in spans if _is_same(known, tested)), tested)
            spans[same] = spans.get(same, WHOLE).met(span)
    return spans, rest


def _is_same(one: Expression, other: Expression) -> bool:
    """Columns are known by their numbers: what is said of them differs along the way."""
    return one.id == other.id if isinstance(one, Column) and isinstance(other, Column) else one == other


def _said(condition: Expression) -> tuple[Expression, Span] | None:
    """A column, or a number of its clock, and exactly the values for which a condition on it is true."""
    match condition:
        case Column(type=of) if of.kind == "boolean":
            return condition, Span((True,), null=False)
        case Apply(name="not", arguments=(Column(type=of) as column,)) if of.kind == "boolean":
            return column, Span((False,), null=False)
        case Apply(name="is null", arguments=(Column() as column,)):
            return column, Span((), null=True)
        case Apply(name="is not null", arguments=(Column() as column,)):
            return column, Span(null=False)
        case Apply(name=name, sql=sql, arguments=(column, Constant() as constant)) if name in _MIRRORED:
            return _compared(column, name, constant) if sql == f"({{0}} {name} {{1}})" else None
        case Apply(name=name, sql=sql, arguments=(Constant() as constant, column)) if name in _MIRRORED:
            return _compared(column, _MIRRORED[name], constant) if sql == f"({{0}} {name} {{1}})" else None
        case Apply(name="in", sql=sql, arguments=(column, *items)) if sql.startswith("({0} IN ("):
            listed = [_value(column, item) for item in items if isinstance(item, Constant)]
            known = tuple(dict.fromkeys(value for value in listed if value is not None))
            if len(listed) < len(items) or None in listed or len(known) > _LONGEST_LIST:
                return None
            return column, Span(tuple(sorted(known, key=str)), null=False)
    return None


def _is_simple(tested: Expression) -> bool:
    """A column, or a number of the clock of one."""
    match tested:
        case Column() | Apply(name="extract"):
            return len(ids_in(tested)) == 1
        case Apply(name="cast", arguments=(Apply(name="extract") as inner,)):
            return len(ids_in(inner)) == 1
    return False


def _compared(column: Expression, name: str, constant: Constant) -> tuple[Expression, Span] | None:
    item = _value(column, constant)
    if item is None:
        return None
    if name == "=":
        return column, Span((item,), null=False)
    if not isinstance(item, Fraction) or column.type.kind not in _COMPARED:
        return None
    if column.type.kind != "numeric":  # whole numbers: of days, or of microseconds
        edge = Fraction(math.floor(item) + 1) if name in ("<=", ">") else Fraction(math.ceil(item))
        item, name = edge, "<" if name in ("<", "<=") else ">="
    if name in ("<", "<="):
        return column, Span(high=item, below=name == "<", null=False)
    return column, Span(low=item, above=name == ">", null=False)


def _value(column: Expression, constant: Constant) -> Value | None:
    """A constant that is a value of the column's own kind, of which equal ones are equal here too."""
    if not _is_simple(column):
        return None
    kinds, item = {column.type.kind, constant.type.kind}, constant.value
    if column.type.base == "bpchar" or constant.type.base == "bpchar" or not isinstance(item, Fraction | str | bool):
        return None
    is_alike = len(kinds) == 1 or kinds == set(_NUMBERS)
    return item if is_alike and column.type.kind in (*_COMPARED, "text", "enum", "boolean") else None


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
