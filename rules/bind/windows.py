"""Windows over the rows of one unit, below a block: what they say of a row follows from that unit's rows alone.

Functions that tell equal rows apart (row_number, lag, first_value, a sum over ROWS) see them in a total order, which
the kernel makes; the others (rank, a sum over RANGE) treat equal rows alike and need none.

An offset is a constant, so that it is wrong for all rows or for none. RANGE adds it to what the rows are ordered by:
numbers are compared as numeric or double precision, which do not overflow there, and moments lie so far inside the
years 1 to 9999 that the sum is a moment too; others are NULL, as they are in all arithmetic of moments.
"""

import re
from collections.abc import Callable
from fractions import Fraction

from rules.algebra.nodes import Aggregate, Facts, Node, Order, Window, WindowCall
from rules.algebra.unit_facts import Computed, filtered, tells_unit, windowed
from rules.bind.expression import Binding
from rules.bind.unit_aggregates import KNOWN, unit_aggregate
from rules.frozen import frozen, replace
from rules.functions.casts import real
from rules.functions.coerce import typed
from rules.functions.collation import check_collation
from rules.functions.comparison import compare
from rules.functions.conditional import alike
from rules.functions.guard import within, year_limits
from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values import domain
from rules.values.domain import ANYTHING, Domain, Range
from rules.values.expression import Apply, Column, Constant, Expression, ids_in, is_collated
from rules.values.types import FLOAT8, INT4, INT8, INTERVAL, NUMERIC, Type
from rules.values.value import DAY, Span, decimal_text

_RANKS = ("row_number", "rank", "dense_rank")
_SHARES = frozenset(("percent_rank", "cume_dist"))
_PICKS = frozenset(("first_value", "last_value", "nth_value"))
_MOST_STEPS = 1_000_000
_UNITS_HINT = (
    "Use PARTITION BY with the unit column first, or a window function over aggregates, such as sum(count(*)) OVER ()."
)
_EDGE = r"UNBOUNDED PRECEDING|UNBOUNDED FOLLOWING|CURRENT ROW|\$ PRECEDING|\$ FOLLOWING"
_FRAME = re.compile(rf"(ROWS|RANGE|GROUPS) BETWEEN ({_EDGE}) AND ({_EDGE})(?: EXCLUDE (CURRENT ROW|GROUP|TIES))?")
_MOST_ROWS = 999_999_999
_NEAREST = Fraction(1, 10**300)  # and the inverse of the furthest: what is a double for certain
_FURTHEST = Span(12 * 2_000)  # of an offset: the years 1 to 9999 have room for it on both sides


@frozen
class Frame:
    """Its text as the inner statement has it, and its parts: $ is an offset."""

    text: str = ""
    mode: str = "RANGE"
    start: str = "UNBOUNDED PRECEDING"
    end: str = "CURRENT ROW"
    without: str = ""  # what EXCLUDE leaves out

    @property
    def is_whole(self) -> bool:
        return (self.start, self.end) == ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING") and not self.without

    @property
    def is_never_empty(self) -> bool:
        """Tell whether every row's frame has the row itself: one that lies before or behind it is empty at an end."""
        return not (self.start.endswith("FOLLOWING") or self.end.endswith("PRECEDING") or self.without)

    @property
    def has_offset(self) -> bool:
        return "$" in self.start + self.end


@frozen
class _Place:
    """The place where a window function is computed."""

    binding: Binding
    facts: Facts
    window: Window
    frame: Frame

    @property
    def is_same_for_all(self) -> bool:
        """Return whether all rows of a unit lie in one partition."""
        return ids_in(*self.window.partition) <= self.facts.determined


def with_windows(
    node: Node, calls: tuple[s.Call, ...], binding: Binding, fresh: Callable[[], int]
) -> tuple[Node, dict[s.Call, int]]:
    """The rows with a column for each call. Those of one OVER see one order, as PostgreSQL promises for equal ones."""
    numbers = {call: fresh() for call in calls}
    for over in dict.fromkeys(call.over for call in calls):
        assert over is not None
        facts = node.facts
        alike = tuple((call, number) for call, number in numbers.items() if call.over == over)
        with pointing_at(alike[0][0].name):
            window = _window(over, binding, facts)
            frame, order = _frame_of(over, window.order, binding)
            place = _Place(binding, facts, replace(window, order=order), frame)
            made = tuple(_computed(call, number, place) for call, number in alike)
        node = windowed(node, place.window, made)
    return node, numbers


def first_of_each(
    node: Node,
    keys: tuple[Expression, ...],
    order: tuple[s.OrderItem, ...],
    binding: Binding,
    number: int,
    most: int = 1,
) -> Node:
    """The rows that come first among those with the same keys, which tell the unit."""
    facts = node.facts
    window = _checked(keys, order, binding, facts)
    made = _rank("row_number", number, _Place(binding, facts, window, Frame()))
    node = windowed(node, window, (made,))
    last = Constant(INT4, str(most), Fraction(most))
    return filtered(node, compare("=" if most == 1 else "<=", made.column, last, binding.setting))


def _window(over: s.Window, binding: Binding, facts: Facts) -> Window:
    return _checked(tuple(map(binding.bind, over.partition_by)), over.order_by, binding, facts)


def _checked(
    partition: tuple[Expression, ...], written: tuple[s.OrderItem, ...], binding: Binding, facts: Facts
) -> Window:
    if facts.unit is None or facts.unit.column is None:
        raise NotSupported("a window function over the rows of a unit needs a table with a primary key")
    if not tells_unit(facts, partition):
        message = "a window function over rows of different units would let one unit change the values of others"
        raise NotAllowed(message, hint=_UNITS_HINT)
    order = tuple(
        Order(binding.bind(order_item.expression), order_item.descending, order_item.nulls_first)
        for order_item in written
    )
    check_collation("ORDER BY", *(key.expression for key in order))
    return Window(
        tuple(_sortable(expression) for expression in partition if ids_in(expression)),
        tuple(key for key in order if ids_in(_sortable(key.expression))),
    )


def _sortable(expression: Expression) -> Expression:
    if expression.type.kind in ("other", "unknown"):
        raise NotSupported(f"values of type {expression.type.sql} cannot be ordered over protected rows")
    return expression


def _computed(call: s.Call, number: int, place: _Place) -> Computed:
    if call.schema is not None or call.distinct or call.order_by or call.within_group:
        raise _unknown(call)
    match call.name:
        case name if name in _RANKS and not call.arguments:
            return _rank(name, number, place)
        case name if name in _SHARES and not call.arguments:
            column = Column(number, FLOAT8, Range(Fraction(0), Fraction(1)), nullable=False, name=name)
            return Computed(WindowCall(Aggregate(f"{name}(){{over}}", ())), column)
        case "ntile":
            return _tile(call, number, place)
        case "lag" | "lead":
            return _neighbour(call, number, place)
        case name if name in _PICKS:
            return _pick(call, number, place)
        case name if name in KNOWN:
            return _aggregate(call, number, place)
    raise _unknown(call)


def _unknown(call: s.Call) -> NotSupported:
    known = sorted((*_RANKS, *_SHARES, *_PICKS, "ntile", "lag", "lead", *KNOWN))
    hint = f"Functions that are supported over the rows of one unit: {', '.join(known)}."
    return NotSupported(f'window function "{call.name}" is not supported over protected rows', hint=hint)


def _rank(name: str, number: int, place: _Place) -> Computed:
    """A unit's rows from 1. No more of them than the rules count are told apart where the number is a key."""
    cap = place.facts.rows.cap
    image = Range(domain.ONE, Fraction(2**63 - 1), domain.ONE)
    declared = ANYTHING if cap is None else Range(domain.ONE, Fraction(max(cap, 1)), domain.ONE)
    column = Column(number, INT8, image, declared, nullable=False, name=name)
    call = WindowCall(Aggregate(f"{name}(){{over}}", ()))
    return Computed(call, column, is_key=name == "row_number")


def _tile(function: s.Call, number: int, place: _Place) -> Computed:
    count = _whole(function, 0, place, least=1)
    image = Range(domain.ONE, Fraction(count), domain.ONE)
    call = WindowCall(Aggregate(f"ntile({count}){{over}}", ()))
    return Computed(call, Column(number, INT4, image, nullable=False, name=function.name))


def _neighbour(call: s.Call, number: int, place: _Place) -> Computed:
    """The value of a row before or after, as it is; with a default, clamped as an operand is."""
    if not 1 <= len(call.arguments) <= 3:
        raise _unknown(call)
    steps = 1 if len(call.arguments) == 1 else _whole(call, 1, place, least=-_MOST_STEPS)
    sql = f"{call.name}({{0}}, {steps}){{over}}"
    if len(call.arguments) < 3:
        argument = _sortable(place.binding.bind(call.arguments[0]))
        return Computed(WindowCall(Aggregate(sql, (argument,))), _taken(call, number, argument))
    setting = place.binding.setting
    operands = tuple(place.binding.operand(expression) for expression in (call.arguments[0], call.arguments[2]))
    held, common = alike(operands, setting, call.name)
    if common.base == "float4":
        held = tuple(map(real, held))
    image = domain.union(held[0].domain, held[1].domain)
    nullable, collated = held[0].nullable or held[1].nullable, any(map(is_collated, held))
    column = Column(number, common, image, nullable=nullable, name=call.name, collated=collated)
    same = common.plain().sql  # before PostgreSQL 14 there is no lag of two types
    sql = f"{call.name}(({{0}})::{same}, {steps}, ({{1}})::{same}){{over}}"
    return Computed(WindowCall(Aggregate(sql, held)), column)


def _taken(call: s.Call, number: int, argument: Expression) -> Column:
    """A column of values that another row has, or NULL where there is no such row."""
    declared: Domain = argument.declared if isinstance(argument, Column) else ANYTHING
    kind, collated = argument.type.passed(is_cast=isinstance(call.arguments[0], s.Cast)), is_collated(argument)
    return Column(number, kind, argument.domain, declared, nullable=True, name=call.name, collated=collated)


def _pick(function: s.Call, number: int, place: _Place) -> Computed:
    """The value of the first, last or n-th row of the frame. Frames that end at equal rows would leave it open."""
    count = 2 if function.name == "nth_value" else 1
    if len(function.arguments) != count:
        raise _unknown(function)
    frame = place.frame
    open_start, open_end = frame.start == "UNBOUNDED PRECEDING", frame.end == "UNBOUNDED FOLLOWING"
    settled = {"first_value": open_start, "last_value": open_end, "nth_value": frame.is_whole}[function.name]
    if frame.mode != "ROWS" and (not settled or frame.without or frame.has_offset):
        hint = f"Use {function.name}(…) OVER (… ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)."
        raise NotSupported(
            f"{function.name} over this frame depends on the order of rows with equal ORDER BY values", hint=hint
        )
    argument = _sortable(place.binding.bind(function.arguments[0]))
    place_sql = f", {_whole(function, 1, place, least=1)}" if count == 2 else ""
    call = WindowCall(Aggregate(f"{function.name}({{0}}{place_sql}){{over}}", (argument,)), frame.text)
    is_same = settled and frame.is_never_empty and place.is_same_for_all
    return Computed(call, _taken(function, number, argument), is_same=is_same)


def _aggregate(aggregate: s.Call, number: int, place: _Place) -> Computed:
    _, function, column = unit_aggregate(replace(aggregate, over=None), number, place.binding, place.facts)
    is_whole = place.frame.is_whole or not (place.frame.text or place.window.order)
    call = WindowCall(function, place.frame.text)
    return Computed(call, column, is_same=is_whole and place.is_same_for_all)


def _whole(call: s.Call, at: int, place: _Place, *, least: int) -> int:
    """A whole number that is the same for all rows: one that differs could be wrong for some."""
    bound = place.binding.bind(call.arguments[at]) if at < len(call.arguments) else None
    value = bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or not least <= value <= _MOST_STEPS:
        raise NotSupported(f"{call.name} needs a constant integer of at least {max(least, 0)}")
    return int(value)


def _frame_of(over: s.Window, order: tuple[Order, ...], binding: Binding) -> tuple[Frame, tuple[Order, ...]]:
    """The frame, and the order in which its offsets can be added to every row's value."""
    if not over.frame:
        return Frame(), order
    match = _FRAME.fullmatch(over.frame)
    if match is None:
        raise NotSupported(f'the window frame "{over.frame}" is not supported over protected rows')
    frame = Frame("", match[1], match[2], match[3], match[4] or "")
    _check(frame, order)
    if frame.mode != "RANGE" or not frame.has_offset:
        offsets = tuple(_rows(offset, binding) for offset in over.offsets)
    else:
        offsets, order = _distances(over.offsets, order[0], binding)
    parts = over.frame.split("$")
    text = "".join(f"{part}{offset}" for part, offset in zip(parts, (*offsets, ""), strict=True))
    return Frame(text, *match.groups("")), order


def _check(frame: Frame, order: tuple[Order, ...]) -> None:
    if frame.mode == "ROWS" and frame.without in ("GROUP", "TIES"):
        message = f"EXCLUDE {frame.without} in a ROWS frame depends on the order of rows with equal ORDER BY values"
        raise NotSupported(message, hint="Use GROUPS or RANGE instead of ROWS, or EXCLUDE CURRENT ROW.")
    if frame.mode == "GROUPS" and not order:
        raise NotSupported("a GROUPS frame needs ORDER BY with a column", hint="Use ROWS instead of GROUPS.")
    if frame.mode == "RANGE" and frame.has_offset and len(order) != 1:
        hint = "Use ROWS instead of RANGE, or order by one column."
        raise NotSupported("a RANGE frame with an offset needs ORDER BY with exactly one column", hint=hint)


def _rows(expression: s.Expression, binding: Binding) -> str:
    constant = _constant(expression, NUMERIC, binding)
    if not isinstance(constant, Fraction) or constant.denominator != 1 or not 0 <= constant <= _MOST_ROWS:
        raise NotSupported("the offset of a window frame over protected rows must be a constant integer of at least 0")
    return str(constant)


def _constant(expression: s.Expression, kind: Type, binding: Binding) -> object:
    bound = typed(binding.operand(expression), binding.setting, kind)
    return bound.value if isinstance(bound, Constant) and bound.text is not None else None


def _distances(
    expressions: tuple[s.Expression, ...], order: Order, binding: Binding
) -> tuple[tuple[str, ...], tuple[Order, ...]]:
    key = order.expression
    if key.type.is_number:
        exact = FLOAT8 if key.type.kind == "float" else NUMERIC
        made: Expression = Apply("exact", f"({{0}})::{exact.sql}", (key,), exact, key.domain, key.nullable)
        offsets = tuple(_number(expression, exact, binding) for expression in expressions)
    elif key.type.kind in ("date", "timestamp", "timestamptz"):
        spans = tuple(_span(expression, binding) for expression in expressions)
        made = _inside(key, max(map(_reach, spans)))
        offsets = tuple(f"'{span}'::{INTERVAL.sql}" for span in spans)
    else:
        hint = "Order by a number, date or timestamp, or use ROWS instead of RANGE."
        raise NotSupported(f"a RANGE frame with an offset is not supported for type {key.type.sql}", hint=hint)
    return offsets, (Order(made, order.descending, order.nulls_first),)


def _number(expression: s.Expression, kind: Type, binding: Binding) -> str:
    constant = _constant(expression, NUMERIC, binding)
    is_offset = isinstance(constant, Fraction) and (constant == 0 or _NEAREST <= constant <= 1 / _NEAREST)
    text = decimal_text(constant) if isinstance(constant, Fraction) and is_offset else None
    if text is None:
        raise NotSupported("the offset of a window frame over protected rows must be a constant number of at least 0")
    return f"'{text}'::{kind.sql}"


def _span(expression: s.Expression, binding: Binding) -> Span:
    constant = _constant(expression, INTERVAL, binding)
    if not isinstance(constant, Span) or min(constant.months, constant.days, constant.microseconds) < 0:
        raise NotSupported("the offset of a window frame over protected rows must be a constant interval of at least 0")
    if _reach(constant) > _reach(_FURTHEST):
        raise NotSupported("the offset of a window frame over protected rows must be a constant of at most 2000 years")
    return constant


def _reach(span: Span) -> Fraction:
    """Days that it moves a moment at most."""
    return Fraction(span.months * 31 + span.days + span.microseconds // DAY + 2)


def _inside(key: Expression, days: Fraction) -> Expression:
    first, last = year_limits(key.type)
    reach = days * (1 if key.type.kind == "date" else DAY)
    return within(key, first + reach, last - reach)
