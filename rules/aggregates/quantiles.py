"""Medians, quantiles, smallest, largest and most frequent values: one of a list of candidates, chosen by its rank.

The candidates follow from the bounds, never from the data: every value that the bounds allow, or the middles of equal
bins where these are too many. Which candidate each row has is a number, counted as one more key of the block.
"""

from decimal import Decimal
from fractions import Fraction

from rules.aggregates.arguments import argument_of
from rules.aggregates.contributions import Pick, Recipe, value_where, where
from rules.aggregates.sums import clip
from rules.bind.declared_columns import type_domain
from rules.bind.expression import Binding
from rules.bind.unit_aggregates import share_of
from rules.frozen import frozen, replace
from rules.functions.guard import as_passed, as_value, check_blanks
from rules.kernel.keys import Bins, Listed
from rules.kernel.summand import Lattice, Summand
from rules.mechanisms.noised_outputs import MOST_CANDIDATES, Chosen, ChosenList, Ends, Text
from rules.mechanisms.release_plan import End
from rules.refusal import NotAllowed, NotSupported
from rules.sql import syntax as s
from rules.values import domain
from rules.values.domain import Range
from rules.values.expression import Constant, Expression
from rules.values.types import FLOAT8, Type
from rules.values.value import text_of

_FINEST = 10**6  # parts of the rows: ranks are whole numbers of such parts, and stay in the range of scores
_SECOND = 10**6  # microseconds
_DAY_HINT = (
    "Ask your DBA to set lower and upper in the rules, or limit it in WHERE: x BETWEEN '2024-01-01' AND '2024-12-31'."
)


@frozen
class _Candidates:
    """Bins over the bounds, and the values that each of them stands for."""

    bins: Bins
    lowest: tuple[Fraction, ...]
    values: tuple[Fraction, ...]
    highest: tuple[Fraction, ...]
    reach: Fraction  # how far the values of a bin are from the one that stands for them, at most


def quantile(call: s.Call, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """percentile_cont and percentile_disc, of one fraction or of an array of them."""
    written_argument, descending = ordered(call, binding)
    chosen = argument_of(written_argument, tested, binding.setting, name=call.name)
    argument, tested = chosen.value, chosen.tested
    (written,) = call.arguments
    expressions = written.items if isinstance(written, s.Array) else (written,)
    fractions = tuple(fraction_of(expression, call, binding) for expression in expressions)
    if call.name == "percentile_cont" and not argument.type.is_number:
        raise NotSupported(
            "percentile_cont of dates is not supported", hint="Use percentile_disc, which returns a date."
        )
    candidates = _candidates(argument, tested, binding, rows, call.name)
    result = FLOAT8 if call.name == "percentile_cont" else _passed(call, written_argument)
    texts = _texts(candidates, result)
    picks = tuple(Pick(candidates.bins, texts, 1 - fraction if descending else fraction) for fraction in fractions)
    if not isinstance(written, s.Array):
        return _recipe(picks[0], candidates, result)
    return Recipe(
        picks,
        lambda numbers: ChosenList(numbers, texts, candidates.reach),
        result.plain(),
        is_array=True,
        barred=_no_bars_of_lists,
    )


def _passed(call: s.Call, argument: Expression) -> Type:
    return argument.type.passed(is_cast=isinstance(call.within_group[0].expression, s.Cast))


def extreme(name: str, argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """min and max: the value at a place, counted from that end, that is not one unit's alone."""
    result = argument.type.plain()
    candidates = _candidates(argument, tested, binding, rows, name)
    return _recipe(Pick(candidates.bins, _texts(candidates, result), largest=name == "max"), candidates, result)


def most_frequent(call: s.Call, tested: Expression, binding: Binding) -> Recipe:
    """mode() over values that the rules or the type list."""
    argument, _ = ordered(call, binding)
    listed_argument = as_passed(argument, replace(binding.setting, as_key=True))
    listed = domain.items_of(domain.intersect(listed_argument.domain, type_domain(argument.type)), MOST_CANDIDATES)
    if not listed or argument.type.is_time:
        hint = "Group by it and order by count(*), or ask your DBA to list its values in the rules file."
        raise NotAllowed(
            "mode() over protected rows needs a column whose values are listed in the rules file", hint=hint
        )
    check_blanks(argument.type)
    labels = tuple(text_of(value, argument.type) for value in listed)
    blanks = argument.type.size or 0 if argument.type.base == "bpchar" else 0
    texts = tuple(label and label.ljust(blanks) for label in labels)
    pick = Pick(Listed((value_where(listed_argument, tested),), tuple((label,) for label in labels)), texts)
    return Recipe((pick,), lambda numbers: Chosen(numbers[0], texts), _passed(call, argument), barred=_no_bars_of_modes)


def _recipe(pick: Pick, candidates: _Candidates, result: Type) -> Recipe:
    def barred(level: Decimal) -> Recipe:
        """Refuse: how far the choice may be off depends on how dense the rows lie, which only more choices can tell."""
        low, high = replace(pick, end=End(-1, level)), replace(pick, end=End(1, level))
        lowest, highest = (
            tuple(text_of(bound, result) for bound in edge) for edge in (candidates.lowest, candidates.highest)
        )

        def output(numbers: tuple[int, ...]) -> Chosen:
            return Chosen(numbers[0], pick.candidates, Ends(numbers[1], numbers[2], lowest, highest), candidates.reach)

        return Recipe((pick, low, high), output, result)

    return Recipe(
        (pick,), lambda numbers: Chosen(numbers[0], pick.candidates, reach=candidates.reach), result, barred=barred
    )


def _no_bars_of_lists(level: Decimal) -> Recipe:
    hint = "Select each fraction separately, with its own error bar."
    raise NotSupported("error bars of an array of quantiles are not supported", hint=hint)


def _no_bars_of_modes(level: Decimal) -> Recipe:
    hint = "Group by the values, and select the error bars of count(*)."
    raise NotSupported("error bars of mode() are not supported", hint=hint)


def ordered(call: s.Call, binding: Binding) -> tuple[Expression, bool]:
    """Find what an ordered-set aggregate looks at, and whether from the largest down."""
    if len(call.within_group) != 1:
        raise NotSupported(f"{call.name} needs one sort expression, as in WITHIN GROUP (ORDER BY x)")
    (item,) = call.within_group
    return binding.bind(item.expression), item.descending


def fraction_of(written: s.Expression, call: s.Call, binding: Binding) -> Fraction:
    """0.333…, with however many digits, is a third: what lies below a millionth of the rows is not told."""
    bound = binding.bind(share_of(written))
    value = bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, Fraction) or not 0 <= value <= 1:
        raise NotSupported(f"the fraction of {call.name} must be a constant between 0 and 1")
    return value.limit_denominator(_FINEST)


def _candidates(argument: Expression, tested: Expression, binding: Binding, rows: int, name: str) -> _Candidates:
    find = _moment if argument.type.is_time else _number
    summand = where(find(argument, binding, rows, name), tested)
    lattice = summand.lattice
    width = -(-(lattice.high - lattice.low + 1) // MOST_CANDIDATES)
    bins = Bins(summand, width)

    widest = domain.range_of(type_domain(argument.type))  # whose ends the steps of a lattice may pass

    def values(inside: int) -> tuple[Fraction, ...]:
        places = (lattice.low + width * place + inside for place in range(bins.count))
        reached = (min(place, lattice.high) * lattice.step for place in places)
        return tuple(_nearest(widest, value) for value in reached)

    reach = width // 2 * lattice.step / (_SECOND if argument.type.kind in ("timestamp", "timestamptz") else 1)
    return _Candidates(bins, values(0), values((width - 1) // 2), values(width - 1), reach)


def _nearest(span: Range, value: Fraction) -> Fraction:
    raised = value if span.low is None else max(value, span.low)
    return raised if span.high is None else min(raised, span.high)


def _number(argument: Expression, binding: Binding, rows: int, name: str) -> Summand:
    if not argument.type.is_number:
        hint = "Group by it and count, or use min and max of a number or date."
        raise NotAllowed(f"{name} of {argument.type.sql} would reveal the value of a single row", hint=hint)
    return clip(as_value(argument, binding.setting), rows, name)


def _moment(argument: Expression, binding: Binding, rows: int, name: str) -> Summand:
    """Dates are days and timestamps microseconds since 1970, as in `rules.values.value`."""
    expression = as_value(argument, binding.setting)
    bounds = domain.range_of(expression.domain)
    if bounds.low is None or bounds.high is None or not _is_declared(argument, bounds):
        raise NotAllowed(f"{name} over protected rows needs bounds for its dates", hint=_DAY_HINT)
    return Summand(expression, Lattice(Fraction(1), int(bounds.low), int(bounds.high)))


def _is_declared(argument: Expression, bounds: Range) -> bool:
    """Return whether more than the calendar bounds it: the years 1 to 9999 would hide every answer."""
    assert bounds.low is not None and bounds.high is not None
    days = 1 if argument.type.kind == "date" else 86_400_000_000
    return bounds.high - bounds.low < 200 * 366 * days


def _texts(candidates: _Candidates, result: Type) -> tuple[Text, ...]:
    return tuple(text_of(value, result) for value in candidates.values)
