"""noisegate.typical(expression over aggregates, lower, upper, blocks => n): the median of a statistic of many blocks.

The statistic needs no known sensitivity: whatever one unit does, it replaces the value of one block. What is released
is a candidate between the bounds, chosen by how many blocks lie below and above it (sample and aggregate).

PostgreSQL's float aggregates can fail, and their last digits follow the order of rows. So every number is an integer of
a lattice here, sums of integers and of their products are numeric, and what is computed follows from these.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from rules.aggregates.contributions import Recipe, Typical, both_true, present, where
from rules.aggregates.quantiles import fraction_of, ordered
from rules.aggregates.sums import OF_ONE, OF_TWO, clip_widely
from rules.bind.expression import Binding
from rules.bind.walk_syntax import is_plain_aggregate
from rules.frozen import replace
from rules.functions.function import EvalContext
from rules.functions.guard import as_value, short
from rules.kernel.added import canonical
from rules.kernel.special.blocks import (
    MOST_BLOCKS,
    BlockAggregate,
    BlockDistinct,
    BlockMoment,
    BlockPlace,
    BlockRows,
    BlockValue,
    Cells,
)
from rules.kernel.summand import Summand
from rules.mechanisms.noised_outputs import Chosen, Ends
from rules.mechanisms.release_plan import End
from rules.refusal import BadSetting, NotAllowed, NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values.expression import TRUE, Apply, Column, Constant, Expression, Operand, is_true
from rules.values.types import FLOAT8, INT8, KEY_KINDS, NUMERIC, TEXT, Type, hint_for, integer_range
from rules.values.value import decimal_text, text_of

_EXACT = frozenset(("count", "sum", "avg", *OF_ONE, *OF_TWO))
_PLACES = frozenset(("min", "max", "mode", "percentile_disc", "percentile_cont"))
_ANSWERED = "Use count, sum, avg, min, max, variance, stddev, covar_…, corr, regr_…, percentile_… or mode."
_NOBODY = "A block has the rows of many units; only numbers that are made of all of them stand for it."

# Of n rows, with Σx, Σx² and so on: PostgreSQL's statistics, each in steps of the lattices of x and y.
_ONE = {
    "var_pop": "({0} * {2} - {1} * {1}) / nullif({0} * {0}, 0)",
    "var_samp": "({0} * {2} - {1} * {1}) / nullif({0} * ({0} - 1), 0)",
}
_SPREAD_X, _SPREAD_Y, _BOTH = "({0} * {2} - {1} * {1})", "({0} * {4} - {3} * {3})", "({0} * {5} - {1} * {3})"
_TWO = {
    "covar_pop": f"{_BOTH} / nullif({{0}} * {{0}}, 0)",
    "covar_samp": f"{_BOTH} / nullif({{0}} * ({{0}} - 1), 0)",
    "regr_avgx": "{1} / nullif({0}, 0)",
    "regr_avgy": "{3} / nullif({0}, 0)",
    "regr_sxx": f"{_SPREAD_X} / nullif({{0}}, 0)",
    "regr_syy": f"{_SPREAD_Y} / nullif({{0}}, 0)",
    "regr_sxy": f"{_BOTH} / nullif({{0}}, 0)",
    "regr_slope": f"{_BOTH} / nullif({_SPREAD_X}, 0)",
    "regr_intercept": f"({{3}} * {{2}} - {{1}} * {{5}}) / nullif({_SPREAD_X}, 0)",
    "regr_r2": f"CASE WHEN {_SPREAD_X} > 0 THEN CASE WHEN {_SPREAD_Y} > 0 THEN "
    f"least({_BOTH} * {_BOTH} / ({_SPREAD_X} * {_SPREAD_Y}), 1) ELSE 1 END END",
    "corr": f"CASE WHEN {_SPREAD_X} > 0 AND {_SPREAD_Y} > 0 THEN "
    f"greatest(least({_BOTH} / sqrt({_SPREAD_X} * {_SPREAD_Y}), 1), -1) END",
}
# The powers of the steps of x and y in each of them.
_STEPS = {
    "covar_pop": (1, 1), "covar_samp": (1, 1), "regr_avgx": (1, 0), "regr_avgy": (0, 1), "regr_sxx": (2, 0),
    "regr_syy": (0, 2), "regr_sxy": (1, 1), "regr_slope": (-1, 1), "regr_intercept": (0, 1), "regr_r2": (0, 0),
    "corr": (0, 0),
}  # fmt: skip


@dataclass(slots=True)
class BlockReading:
    """Reads aggregates over the rows of one block; each becomes an expression over exact numbers, noted here once."""

    binding: Binding
    aggregates: dict[BlockAggregate, None] = field(default_factory=dict)

    def aggregate(self, call: s.Call) -> Expression:
        """The value of one aggregate in a block."""
        if call.order_by or (call.name not in _EXACT and call.name not in _PLACES):
            raise self._unknown(call)
        tested = TRUE if call.filter is None else self.binding.condition(call.filter)
        if call.name == "count":
            return self._count(call, tested)
        if call.name in ("mode", "percentile_disc", "percentile_cont"):
            argument, descending = ordered(call, self.binding)
            fraction = Fraction(0) if call.name == "mode" else fraction_of(call.arguments[0], call, self.binding)
            return self._place(call.name, argument, tested, fraction, descending=descending)
        if call.distinct:
            raise NotSupported(f"{call.name}(DISTINCT …) is not supported in noisegate.typical")
        arguments = tuple(map(self.binding.bind, call.arguments))
        match call.name, arguments:
            case (("min" | "max"), (argument,)):
                return self._place(call.name, argument, tested)
            case "sum", (argument,):
                return self._sum(argument, tested)
            case name, (argument,) if name == "avg" or name in OF_ONE:
                return self._of_one(name, argument, tested)
            case name, (y, x) if name in OF_TWO:
                return self._of_two(name, y, x, tested)
        raise self._unknown(call)

    def _note(self, aggregate: BlockAggregate) -> Column:
        """The column of an exact number."""
        self.aggregates.setdefault(aggregate)
        place = list(self.aggregates).index(aggregate)
        return Column(place, aggregate.type, nullable=not isinstance(aggregate, BlockRows | BlockDistinct))

    def _count(self, call: s.Call, tested: Expression) -> Expression:
        if call.star:
            return self._note(BlockRows(tested))
        if not call.distinct:
            (argument,) = map(self.binding.bind, call.arguments)
            return self._note(BlockRows(both_true(present(argument, self.binding), tested)))
        argument = distinct_argument(self.binding, call.arguments[0])
        if argument.type.kind not in KEY_KINDS:
            raise NotSupported(
                f"count(DISTINCT …) of {argument.type.sql} is not supported", hint=hint_for(argument.type)
            )
        return self._note(BlockDistinct(where_true(argument, tested)))

    def _sum(self, argument: Expression, tested: Expression) -> Expression:
        """Of no rows NULL."""
        x = self._summand(argument, tested, "sum")
        rows, total = self._moments((x,), (0,), (1,))
        small = argument.type.base in ("int2", "int4")
        result = INT8 if small else FLOAT8 if argument.type.kind == "float" else NUMERIC
        return _exact("CASE WHEN {0} > 0 THEN {1} END", (rows, total), x.lattice.step, result)

    def _of_one(self, name: str, argument: Expression, tested: Expression) -> Expression:
        x = self._summand(argument, tested, name)
        result = FLOAT8 if argument.type.kind == "float" else NUMERIC
        if name == "avg":
            return _exact("{1} / nullif({0}, 0)", self._moments((x,), (0,), (1,)), x.lattice.step, result)
        kind = OF_ONE[name]
        variance = _ONE[f"var_{kind.partition('_')[2]}"]
        moments = self._moments((x,), (0,), (1,), (2,))
        if kind.startswith("stddev"):
            return _exact(f"sqrt(greatest({variance}, 0))", moments, x.lattice.step, result, guard=variance)
        return _exact(variance, moments, x.lattice.step**2, result)

    def _of_two(self, name: str, y_argument: Expression, x_argument: Expression, tested: Expression) -> Expression:
        x, y = (self._summand(expression, tested, name) for expression in (x_argument, y_argument))
        moments = self._moments((x, y), (0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1))
        if name == "regr_count":
            return _exact("{0}", moments[:1], Fraction(1), INT8)
        of_x, of_y = _STEPS[name]
        return _exact(_TWO[name], moments, x.lattice.step**of_x * y.lattice.step**of_y, FLOAT8)

    def _place(
        self, name: str, argument: Expression, tested: Expression, fraction: Fraction = Fraction(0),
        *, descending: bool = False,
    ) -> Expression:  # fmt: skip
        summand = self._summand(argument, tested, name)
        match name:
            case "min" | "max" | "mode" | "percentile_disc" | "percentile_cont":
                column = self._note(BlockPlace(summand, name, fraction, descending))
            case _:
                raise TypeError(f"{name} is no place in an order")
        result = FLOAT8 if name == "percentile_cont" else argument.type.plain()
        return _exact("{0}", (column,), summand.lattice.step, result)

    def _moments(self, summands: tuple[Summand, ...], *powers: tuple[int, ...]) -> tuple[Column, ...]:
        return tuple(self._note(BlockMoment(summands, power)) for power in powers)

    def _summand(self, argument: Expression, tested: Expression, name: str) -> Summand:
        return where(clip_widely(argument, self.binding.setting, name), tested)

    def _unknown(self, call: s.Call) -> NotAllowed | NotSupported:
        if call.name.startswith(("array", "string", "json", "xml", "range", "any_value")):
            return NotAllowed(f'the aggregate "{call.name}" would reveal values of single rows', hint=_NOBODY)
        return NotSupported(f'the aggregate "{call.name}" is not supported in noisegate.typical', hint=_ANSWERED)


CANDIDATES = 1001  # a thousandth of the bounds apart
_HINT = (
    "Put an expression over aggregates first, then a lower and an upper bound: noisegate.typical(corr(a, b), -1, 1)."
)


def where_true(expression: Expression, tested: Expression) -> Expression:
    """A value where the FILTER is true."""
    if is_true(tested):
        return expression
    return Apply("case", "CASE WHEN {0} THEN {1} END", (tested, expression), expression.type, strict=False)


def _exact(
    sql: str, columns: tuple[Column, ...], step: Fraction, result: Type, *, guard: str = ""
) -> Expression:  # fmt: skip
    """An exact number of the lattice in steps of its value, as PostgreSQL's own type; a double if one of them is."""
    numerator, denominator = (decimal_text(Fraction(part)) for part in (step.numerator, step.denominator))
    scaled = f"({sql})"
    if step != 1:
        scaled = f"(({sql}) * '{numerator}'::numeric / '{denominator}'::numeric)"
    if any(column.type.kind == "float" for column in columns):  # a place: a double already, between the bounds
        scaled = scaled.replace("::numeric", "::double precision")
        return Apply("exact", f"({scaled})::{result.sql}", columns, result, strict=False)
    if guard:
        scaled = f"CASE WHEN ({guard}) IS NOT NULL THEN {scaled} END"
    return Apply("exact", _AS.get(result.kind, _as_numeric)(scaled, result), columns, result, strict=False)


def _as_integer(sql: str, result: Type) -> str:
    low, high = integer_range(result.base)
    held = f"least(greatest(round({sql}), '{low}'::numeric), '{high}'::numeric)"
    return f"CASE WHEN {sql} IS NOT NULL THEN ({held})::{result.sql} END"


def _as_double(sql: str, result: Type) -> str:
    """Held to what a double can be: PostgreSQL converts no numeric that is too large, or too near zero."""
    held = f"least(greatest(({sql})::numeric, '-1e308'::numeric), '1e308'::numeric)::double precision"
    large = f"abs(({sql})::numeric) > '1e-300'::numeric"
    return f"CASE WHEN {large} THEN {held} WHEN ({sql}) IS NOT NULL THEN 0::double precision END"


def _as_numeric(sql: str, result: Type) -> str:
    return f"({sql})::numeric"


_AS: dict[str, Callable[[str, Type], str]] = {"integer": _as_integer, "float": _as_double}


def distinct_argument(binding: Binding, expression: s.Expression) -> Expression:
    """Return what DISTINCT compares: the value, or the row of several as a text."""
    if not (isinstance(expression, s.Operator) and expression.name == "row" and expression.arguments):
        return binding.bind(expression)
    parts = tuple(_part(binding.bind(argument), binding.setting) for argument in expression.arguments)
    lengths = (f"coalesce(char_length({{{place}}}) || ':' || {{{place}}}, '-')" for place in range(len(parts)))
    return Apply("row", f"({' || '.join(lengths)})", parts, TEXT, nullable=False, strict=False)


def _part(expression: Expression, setting: EvalContext) -> Expression:
    if expression.type.kind not in KEY_KINDS:
        raise NotSupported(
            f"count(DISTINCT …) of {expression.type.sql} is not supported", hint=hint_for(expression.type)
        )
    key = short(as_value(expression, setting)) if expression.type.kind == "text" else expression
    one = canonical(key.type, "{0}", is_stored=isinstance(key, Column))
    return Apply("text", f"({one})::text", (key,), TEXT, nullable=key.nullable)


def typical(call: s.Call, binding: Binding) -> Recipe:
    """The recipe of a typical value."""
    if not 3 <= len(call.arguments) <= 4:
        raise NotSupported("noisegate.typical takes an expression, two bounds and a number of blocks", hint=_HINT)
    statistic, lower, upper = call.arguments[:3]
    _check_total(statistic)
    reading = BlockReading(binding)
    value = replace(binding, leaf=_leaf(reading)).bind(statistic)
    if not value.type.is_number:
        raise NotSupported(
            f"noisegate.typical of {value.type.sql} is not supported", hint="Its value must be a number."
        )
    if not reading.aggregates:
        raise NotSupported("noisegate.typical needs an aggregate inside", hint=_HINT)
    low, high = _bound(lower, "lower", binding), _bound(upper, "upper", binding)
    if low >= high:
        message = "the lower bound of noisegate.typical must be below its upper bound"
        raise BadSetting(message, hint="Give the lower bound first: noisegate.typical(corr(a, b), -1, 1).")
    block_value = BlockValue(tuple(reading.aggregates), value, Cells(low, high, CANDIDATES))
    digits = _digits((high - low) / (CANDIDATES - 1))
    texts = tuple(_text(value, digits) for value in block_value.cells.values)
    return _recipe(Typical(block_value, texts, _blocks(call, binding)), block_value.cells)


def _recipe(part: Typical, cells: Cells) -> Recipe:
    half = (cells.high - cells.low) / (CANDIDATES - 1) / 2

    def barred(level: Decimal) -> Recipe:
        """Return how far the blocks lie apart only their own ranks can tell: two more draws."""
        middle = replace(part, level=level)
        low, high = replace(middle, end=End(-1, level)), replace(middle, end=End(1, level))
        lowest = tuple(text_of(max(value - half, cells.low), FLOAT8) for value in cells.values)
        highest = tuple(text_of(min(value + half, cells.high), FLOAT8) for value in cells.values)

        def output(numbers: tuple[int, ...]) -> Chosen:
            return Chosen(numbers[0], part.candidates, Ends(numbers[1], numbers[2], lowest, highest))

        return Recipe((middle, low, high), output, FLOAT8)

    return Recipe((part,), lambda numbers: Chosen(numbers[0], part.candidates), FLOAT8, barred=barred)


def _leaf(reading: BlockReading) -> Callable[[s.Expression], Operand | None]:
    """In the expression aggregates mean numbers of a block, and nothing means a row or a group."""

    def leaf(expression: s.Expression) -> Operand | None:
        match expression:
            case s.Call() if is_plain_aggregate(expression):
                with pointing_at(expression.name):
                    return reading.aggregate(expression)
            case s.Name(parts=(*_, name)):
                message = f'column "{name}" must be used in an aggregate inside of noisegate.typical'
                raise NotSupported(message, hint="Aggregate it, as in noisegate.typical(avg(x), …).")
        return None

    return leaf


def _check_total(statistic: s.Expression) -> None:
    """A block's count or sum grows with the block: its median is no number of all."""
    inner = statistic
    while isinstance(inner, s.Cast):
        inner = inner.argument
    if isinstance(inner, s.Call) and inner.name in ("count", "sum") and is_plain_aggregate(inner):
        message = "a block's total says nothing of the whole"
        raise NotSupported(message, hint=f"Divide it, or ask {inner.name}() itself.", about="typical")


def _bound(written: s.Expression, name: str, binding: Binding) -> Fraction:
    bound = binding.bind(written)
    value = bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, Fraction):
        raise BadSetting(f"the {name} bound of noisegate.typical must be a constant number", hint=_HINT)
    return value


def _blocks(call: s.Call, binding: Binding) -> int | None:
    """As many as are asked for; NULL and nothing mean as many as ε needs."""
    if len(call.arguments) < 4:
        return None
    bound: Expression = binding.bind(call.arguments[3])
    if isinstance(bound, Constant) and bound.text is None:
        return None
    value = bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or not 1 <= value <= MOST_BLOCKS:
        message = f"the number of blocks must be a whole number from 1 to {MOST_BLOCKS:,}"
        raise BadSetting(message, hint="Leave it out to have as many as epsilon needs.")
    return int(value)


def _digits(step: Fraction) -> int:
    """So many behind the point that a candidate is told to a tenth of a step."""
    digits = 0
    while Fraction(1, 10**digits) > step / 10:
        digits += 1
    return digits


def _text(value: Fraction, digits: int) -> str | None:
    return text_of(Fraction(round(value * 10**digits), 10**digits), FLOAT8)
