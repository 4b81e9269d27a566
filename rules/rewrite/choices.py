"""Medians, quantiles, smallest, largest and most frequent values: one of a list of candidates, chosen by its rank.

The candidates follow from the bounds, never from the data: every value that the bounds allow, or the middles of equal
bins where these are too many. Which candidate each row has is a number, counted as one more key of the block.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from rules.noise.measures import Chosen, ChosenList, End, Ends, Text
from rules.refusal import NotAllowed, NotSupported
from rules.relation import domain
from rules.relation.bind_expression import Binding
from rules.relation.domain import ONE, Range
from rules.relation.expression import TRUE, Apply, Constant, Expression
from rules.relation.functions.guard import as_passed, as_value
from rules.relation.types import FLOAT8, INT8, Type
from rules.relation.value import text_of
from rules.rewrite.clip_sums import clip
from rules.rewrite.contributions import Pick, Recipe
from rules.sql import syntax as s

MOST_CANDIDATES = 4096
_FINEST = 10**9  # parts of the rows: ranks are whole numbers of such parts, and stay in the range of scores
_DAY_HINT = (
    "Ask your DBA for lower and upper in the rules, or narrow it in WHERE: x BETWEEN '2024-01-01' AND '2024-12-31'."
)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A number as an integer from low to high, and what one of it stands for."""

    integer: Expression
    low: int
    high: int
    step: Fraction


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The number of each row's candidate from 0, and the values that each number stands for: those of a bin."""

    number: Expression
    lowest: tuple[Fraction, ...]
    values: tuple[Fraction, ...]
    highest: tuple[Fraction, ...]


def quantile(given: s.Call, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """percentile_cont and percentile_disc, of one fraction or of an array of them."""
    argument, descending = _ordered(given, binding)
    (written,) = given.arguments
    asked = written.items if isinstance(written, s.Array) else (written,)
    fractions = tuple(_fraction(each, given, binding) for each in asked)
    if given.name == "percentile_cont" and not argument.type.is_number:
        raise NotSupported("percentile_cont of dates is not supported", hint="percentile_disc gives a date.")
    found = _candidates(argument, tested, binding, rows, given.name)
    result = FLOAT8 if given.name == "percentile_cont" else argument.type.plain()
    texts = _texts(found, result)
    picks = tuple(Pick(found.number, texts, 1 - each if descending else each) for each in fractions)
    if not isinstance(written, s.Array):
        return _recipe(picks[0], found, result)
    return Recipe(picks, lambda numbers: ChosenList(numbers, texts), result, is_array=True, barred=_no_bars_of_lists)


def extreme(name: str, argument: Expression, tested: Expression, binding: Binding, rows: int) -> Recipe:
    """min and max: the value at a place, counted from that end, that is not one unit's alone."""
    result = argument.type.plain()
    found = _candidates(argument, tested, binding, rows, name)
    return _recipe(Pick(found.number, _texts(found, result), largest=name == "max"), found, result)


def most_frequent(given: s.Call, tested: Expression, binding: Binding) -> Recipe:
    """mode() over values that the rules or the type list."""
    argument, _ = _ordered(given, binding)
    listed_argument = as_passed(argument, replace(binding.setting, as_key=True))
    listed = domain.items_of(listed_argument.domain, MOST_CANDIDATES)
    if not listed or argument.type.is_time:
        hint = "Group by it and order by count(*), or ask your DBA to list its values in the rules."
        raise NotAllowed("mode is only known for a column whose values are listed", hint=hint)
    texts = tuple(text_of(value, argument.type) for value in listed)
    branches = " ".join(f"WHEN {{{place}}} THEN {place - 1}" for place in range(1, len(listed) + 1))
    constants = tuple(Constant(argument.type.plain(), text, value) for text, value in zip(texts, listed, strict=True))
    image = Range(Fraction(0), Fraction(len(listed) - 1), ONE)
    number = Apply("candidate", f"CASE {{0}} {branches} END", (listed_argument, *constants), INT8, image)
    pick = Pick(_where(number, tested), texts)
    return Recipe((pick,), lambda numbers: Chosen(numbers[0], texts), argument.type.plain(), barred=_no_bars_of_modes)


def _recipe(pick: Pick, found: _Candidates, result: Type) -> Recipe:
    def barred(level: Decimal) -> Recipe:
        """How far the choice may be off depends on how dense the rows lie, which only more choices can tell."""
        low, high = replace(pick, end=End(-1, level)), replace(pick, end=End(1, level))
        lowest, highest = (tuple(text_of(each, result) for each in edge) for edge in (found.lowest, found.highest))

        def output(numbers: tuple[int, ...]) -> Chosen:
            return Chosen(numbers[0], pick.candidates, Ends(numbers[1], numbers[2], lowest, highest))

        return Recipe((pick, low, high), output, result)

    return Recipe((pick,), lambda numbers: Chosen(numbers[0], pick.candidates), result, barred=barred)


def _no_bars_of_lists(level: Decimal) -> Recipe:
    hint = "Ask for each fraction by itself, and for the error bar of each."
    raise NotSupported("an array of quantiles has no error bar", hint=hint)


def _no_bars_of_modes(level: Decimal) -> Recipe:
    hint = "Group by the values and ask for the error bars of count(*)."
    raise NotSupported("the most frequent value has no error bar", hint=hint)


def _ordered(given: s.Call, binding: Binding) -> tuple[Expression, bool]:
    """What an ordered-set aggregate looks at, and whether from the largest down."""
    if len(given.within_group) != 1:
        raise NotSupported(f"{given.name} takes one expression, WITHIN GROUP (ORDER BY x)")
    (item,) = given.within_group
    return binding.bind(item.expression), item.descending


def _fraction(written: s.Expression, given: s.Call, binding: Binding) -> Fraction:
    """0.333…, with however many digits, is a third: what lies below a thousand millionth of the rows is not told."""
    bound = binding.bind(written)
    value = bound.value if isinstance(bound, Constant) else None
    if not isinstance(value, Fraction) or not 0 <= value <= 1:
        raise NotSupported(f"the fraction of {given.name} must be a constant between 0 and 1")
    return value.limit_denominator(_FINEST)


def _candidates(argument: Expression, tested: Expression, binding: Binding, rows: int, name: str) -> _Candidates:
    whole = _moment(argument, binding, name) if argument.type.is_time else _number(argument, binding, rows, name)
    count = whole.high - whole.low + 1
    width = -(-count // MOST_CANDIDATES)
    bins = -(-count // width)
    image = Range(Fraction(0), Fraction(bins - 1), ONE)
    sql = f"({{0}}::int8 - ({whole.low})) / {width}"
    number = Apply("candidate", sql, (whole.integer,), INT8, image, whole.integer.nullable)

    def values(inside: int) -> tuple[Fraction, ...]:
        places = (whole.low + width * place + inside for place in range(bins))
        return tuple(min(place, whole.high) * whole.step for place in places)

    return _Candidates(_where(number, tested), values(0), values((width - 1) // 2), values(width - 1))


def _number(argument: Expression, binding: Binding, rows: int, name: str) -> _Whole:
    if not argument.type.is_number:
        hint = "Group by it and count, or ask for the smallest and largest of a number or date."
        raise NotAllowed(f"{name} of {argument.type.sql} would give out the value of one row", hint=hint)
    given = clip(as_value(argument, binding.setting), rows, name)
    return _Whole(given.integer, given.lattice.low, given.lattice.high, given.lattice.step)


def _moment(argument: Expression, binding: Binding, name: str) -> _Whole:
    """Dates are days and timestamps microseconds since 1970, as in `rules.relation.value`."""
    given = as_value(argument, binding.setting)
    bounds = domain.range_of(given.domain)
    if bounds.low is None or bounds.high is None or not _is_declared(argument, bounds):
        raise NotAllowed(f"{name}: nothing says between which dates it lies", hint=_DAY_HINT)
    low, high = int(bounds.low), int(bounds.high)
    if argument.type.kind == "date":
        sql = "({0} - '1970-01-01'::date)"
    else:
        zone = "+00" if argument.type.kind == "timestamptz" else ""
        origin = f"'1970-01-01 00:00:00{zone}'::{argument.type.plain().sql}"
        sql = f"(extract(epoch FROM {{0}} - {origin}) * 1000000)::int8"
    inside = f"CASE WHEN {{0}} IS NOT NULL THEN least(greatest({sql}, {low}), {high}) END"
    image = Range(Fraction(low), Fraction(high), ONE)
    return _Whole(Apply("days", inside, (given,), INT8, image, given.nullable), low, high, Fraction(1))


def _is_declared(argument: Expression, bounds: Range) -> bool:
    """Whether more than the calendar bounds it: the years 1 to 9999 would hide every answer."""
    assert bounds.low is not None and bounds.high is not None
    days = 1 if argument.type.kind == "date" else 86_400_000_000
    return bounds.high - bounds.low < 200 * 366 * days


def _where(number: Expression, tested: Expression) -> Expression:
    """The candidate where the FILTER is true."""
    if tested == TRUE:
        return number
    return Apply("case", "CASE WHEN {0} THEN {1} END", (tested, number), number.type, number.domain)


def _texts(found: _Candidates, result: Type) -> tuple[Text, ...]:
    return tuple(text_of(value, result) for value in found.values)
