"""noisegate.estimate(column, value): how many hold a value, from reports that people randomized themselves.

An estimate is a linear function of counts of reports, so these are measured as any counts, and chance is undone of what
was released. Its law is that of all reports: conditions on the randomized column itself would choose among them.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import sqrt

from rules.aggregates.contributions import Contribution, Pick, Recipe, both_true, present
from rules.algebra.nodes import (
    Filter,
    Gathered,
    Join,
    Node,
    PerUnit,
    Project,
    SemiJoin,
    Union,
    Windowed,
    below,
    scans_in,
)
from rules.bind.expression import Binding
from rules.frozen import frozen
from rules.functions.coerce import typed
from rules.functions.comparison import compare
from rules.kernel.keys import Bins, Listed
from rules.kernel.measures import Count, Distinct, DistinctSum, DistinctValues, Products, Sum, Units, Values
from rules.mechanisms.noised_outputs import Estimate
from rules.policy.model import Policy
from rules.policy.rule_values import Randomized
from rules.refusal import BadSetting, NotSupported
from rules.sql import syntax as s
from rules.values import domain
from rules.values.expression import TRUE, Column, Constant, Expression, Literal, columns_in, condition, ids_in
from rules.values.types import FLOAT8
from rules.values.value import find_value, text_of

_HINT = "Write the column, and the value that is asked for: noisegate.estimate(mood, 'glad')."
_WHOLE = "An estimate undoes the chance in all reports. Conditions on other columns are answered."


@frozen
class _EstimateCall:
    """The randomized column of an estimate, and what is asked of it."""

    column: Column
    law: Randomized
    call: s.Call
    tested: Expression  # its FILTER
    binding: Binding

    index: Column | None = None  # of a sketch: by which function a word was hashed

    @property
    def present(self) -> Count:
        """All its reports. One of a sketch has a function that there is."""
        is_there = present(self.column, self.binding)
        if self.index is not None:
            known = condition("hash function", f"(({{0}}) BETWEEN 0 AND {(self.law.hashes or 0) - 1})", self.index)
            is_there = both_true(is_there, known)
        return Count(both_true(is_there, self.tested))


def estimate(call: s.Call, binding: Binding, node: Node, keys: Sequence[Expression]) -> Recipe:
    """The recipe of an estimate: of one value, of the values that are groups, or of a mean."""
    request = _read_call(call, binding, node)
    key = next((place for place, key in enumerate(keys) if request.column.id in ids_in(key)), None)
    if len(call.arguments) == 1:
        return _mean(request) if request.law.by == "mean" else _of_group(request, key, keys)
    if key is not None or request.law.by == "mean":
        hint = f"Write noisegate.estimate({request.column.name})."
        what = "is a group here" if key is not None else "was randomized for means"
        raise NotSupported(f'"{request.column.name}" {what}, so no value of it can be asked for', hint=hint)
    if request.law.by == "sketch":
        return _sketch(request)
    return _unary(request) if request.law.by == "unary" else _of_one(request)


def _check_listed(recipes: Sequence[Recipe]) -> None:
    """Refuse estimates of values that are groups where groups are found: those that are left out are missing in it."""
    if any((estimate := _find_estimate(recipe)) is not None and estimate.key is not None for recipe in recipes):
        message = "an estimate of a group needs all groups to be known, and these are found in the data"
        raise NotSupported(message, hint="GROUP BY columns whose values the rules list.", about="estimate")


def _find_estimate(recipe: Recipe) -> Estimate | None:
    output = recipe.output(tuple(range(len(recipe.parts))))
    return output if isinstance(output, Estimate) else None


def notices_of_reports(
    recipes: Sequence[Recipe], keys: Sequence[Expression], node: Node, policy: Policy, *, is_listed: bool
) -> tuple[str, ...]:  # fmt: skip
    """Said of each randomized column that something else than an estimate is made of: the chance is in it."""
    if not is_listed:
        _check_listed(recipes)
    known = randomized_columns(node, policy)
    if not known:
        return ()
    names = {number: name for scan in scans_in(node) for number, name in scan.names}
    plain = [recipe for recipe in recipes if _find_estimate(recipe) is None]
    columns_used = ids_in(*(expression for recipe in recipes for part in recipe.parts for expression in _in(part)))
    collisions = tuple(
        f'words of "{names[number]}" share bits by chance: beyond its margin an estimate may be off by about '
        f"{100 / sqrt((law.hashes or 1) * (law.width or 1)):.2g}% of the people with other words"
        for number, law in known.items()
        if law.by == "sketch" and number in columns_used
    )
    if recipes and not plain:
        return collisions
    used = ids_in(
        *keys,
        *_conditions(node),
        *(expression for recipe in plain for part in recipe.parts for expression in _in(part)),
    )
    return collisions + tuple(
        f'"{names[number]}" was randomized at epsilon {known[number].epsilon:f}: this counts reports; '
        f"noisegate.estimate({names[number]}) undoes it"
        for number in sorted(used & known.keys())
    )


def _in(part: Contribution) -> tuple[Expression, ...]:
    """Return what a measure or a choice looks at."""
    match part:
        case Count(condition=holding) | Units(condition=holding):
            return (holding,)
        case Distinct(expression=expression):
            return (expression,)
        case Products(first=first, second=second):
            return first.expression, second.expression
        case Values(summand=summand) | Sum(summand=summand) | DistinctValues(summand=summand):
            return (summand.expression,)
        case DistinctSum(summand=summand) | Pick(candidate=Bins(summand=summand)):
            return (summand.expression,)
        case Pick(candidate=Listed(expressions=expressions)):
            return expressions
    return ()


def randomized_columns(node: Node, policy: Policy) -> dict[int, Randomized]:
    """The columns of a relation that people randomized, by number."""
    randomizeds: dict[int, Randomized] = {}
    for scan in scans_in(node):
        rules = policy.find_table(scan.table)
        for number, name in scan.names if rules is not None else ():
            column_rules = rules.columns.get(name) if rules is not None else None
            if column_rules is not None and column_rules.randomized is not None:
                randomizeds[number] = column_rules.randomized
    return randomizeds


def _read_call(call: s.Call, binding: Binding, node: Node) -> _EstimateCall:
    if call.star or call.distinct or not 1 <= len(call.arguments) <= 2:
        raise NotSupported("noisegate.estimate takes a column and a value", hint=_HINT)
    column = binding.bind(call.arguments[0])
    known = randomized_columns(node, binding.context.policy)
    if not isinstance(column, Column) or column.id not in known:
        name = f'"{column.name}"' if isinstance(column, Column) else "this expression"
        raise NotSupported(f"{name} was not randomized, so it has no estimate", hint="Count it as it is.")
    tested = TRUE if call.filter is None else binding.condition(call.filter)
    for used in (tested, *_conditions(node)):
        if chosen := next((column for column in columns_in(used) if column.id in known), None):
            message = f'an estimate needs all reports: "{chosen.name}" cannot be filtered here'
            raise NotSupported(message, hint=_WHOLE)
    if any(isinstance(part, PerUnit | Windowed | Gathered | Union) for part in _nodes(node)):
        raise NotSupported("an estimate over rows of a subquery is not supported", hint="Ask it of the table itself.")
    law = known[column.id]
    index = None if law.index is None else _index_of(column, law.index, node)
    return _EstimateCall(column, law, call, tested, binding, index)


def _index_of(column: Column, name: str, node: Node) -> Column:
    """The column beside a sketch's bits, of the same row."""
    scan = next(scan for scan in scans_in(node) if column.id in dict(scan.names))
    number = next((number for number, column_name in scan.names if column_name == name), None)
    listed = next((column for column in node.facts.columns if column.id == number), None)
    if listed is None:
        message = f'an estimate of "{column.name}" also needs the column "{name}"'
        raise NotSupported(message, hint="Ask it of the table itself.")
    return listed


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for part in below(node):
        yield from _nodes(part)


def _conditions(node: Node) -> Iterator[Expression]:
    """Yield what decides over rows."""
    for item in _nodes(node):
        match item:
            case Filter(condition=holding) | Join(condition=holding) | SemiJoin(condition=holding):
                yield holding
            case Project(computed=computed):
                yield from (made for _, made in computed)


def _of_one(request: _EstimateCall) -> Recipe:
    """One of k values. All k cells are measured, in which a report lies in one at most: they pay ε once."""
    values = _values(request)
    wanted = _place(request, values)
    parts = tuple(Count(both_true(_matches(request, value), request.tested)) for value in values)
    p, q = request.law.law.p, request.law.law.q
    return Recipe(parts, lambda numbers: Estimate(numbers[wanted], numbers, p, q), FLOAT8)


def _of_group(request: _EstimateCall, key: int | None, keys: Sequence[Expression]) -> Recipe:
    """Of the group's value: the other reports are those of the groups of other values."""
    if key is None or not isinstance(keys[key], Column) or request.law.by in ("unary", "sketch"):
        hint = (
            _HINT if request.law.by in ("unary", "sketch") else f"GROUP BY {request.column.name}, or write the value."
        )
        raise NotSupported(f'no value of "{request.column.name}" is asked for', hint=hint)
    p, q, groups = request.law.law.p, request.law.law.q, len(_values(request))
    parts = (request.present,)
    return Recipe(parts, lambda numbers: Estimate(numbers[0], numbers, p, q, key=key, groups=groups), FLOAT8)


def _unary(request: _EstimateCall) -> Recipe:
    """The reports whose bit for the value is set, and all reports."""
    values = list(map(str, request.law.values or ()))
    bound = typed(request.binding.operand(request.call.arguments[1]), request.binding.setting)
    text = bound.text if isinstance(bound, Constant) else None
    if text is None or text not in values:
        raise _off_list(request, text)
    place = values.index(text) + 1
    is_set = condition("randomized bit", f"(substr(({{0}})::text, {place}, 1) = '1')", request.column)
    parts = (Count(both_true(is_set, request.tested)), request.present)
    p, q = request.law.law.p, request.law.law.q
    return Recipe(parts, lambda numbers: Estimate(numbers[0], numbers[1:], p, q), FLOAT8)


def _sketch(request: _EstimateCall) -> Recipe:
    """The reports whose bit for the word is set, which follows from the function that its person drew, and all reports.

    An array from 0 on needs no arithmetic, and has NULL for functions that there are not: the condition never fails.
    """
    bound = typed(request.binding.operand(request.call.arguments[1]), request.binding.setting)
    if not isinstance(bound, Constant) or bound.text is None or request.index is None:
        raise NotSupported(f'no word of "{request.column.name}" is asked for', hint=_HINT)
    places = [place + 1 for place in request.law.places_of(bound.text)]
    array = f"'[0:{len(places) - 1}]={{{{{','.join(map(str, places))}}}}}'::int4[]"
    sql = f"(substr(({{0}})::text, ({array})[{{1}}], 1) = '1')"
    parts = (
        Count(both_true(condition("sketched bit", sql, request.column, request.index), request.tested)),
        request.present,
    )
    p, q = request.law.law.p, request.law.law.q
    return Recipe(parts, lambda numbers: Estimate(numbers[0], numbers[1:], p, q), FLOAT8)


def _mean(request: _EstimateCall) -> Recipe:
    randomized = request.law
    assert randomized.lower is not None and randomized.upper is not None, "a mean has bounds"
    bounds = Fraction(randomized.lower), Fraction(randomized.upper)
    is_true = compare("=", request.column, _truth(request, True), request.binding.setting)
    parts = (Count(both_true(is_true, request.tested)), request.present)
    p, q = randomized.law.p, randomized.law.q
    return Recipe(parts, lambda numbers: Estimate(numbers[0], numbers[1:], p, q, bounds), FLOAT8)


def _values(request: _EstimateCall) -> tuple[Constant, ...]:
    """The values of the list, or yes and no."""
    if request.law.by == "bit":
        return _truth(request, True), _truth(request, False)
    kind = request.column.type
    items = domain.items_of(request.column.declared, len(request.law.values or ())) or ()
    plain = kind if kind.kind == "enum" else kind.plain()
    return tuple(Constant(plain, text_of(item, kind), item) for item in items)


def _truth(request: _EstimateCall, value: bool) -> Constant:
    kind = request.column.type.plain()
    return Constant(kind, text_of(value, kind), value)


def _matches(request: _EstimateCall, value: Constant) -> Expression:
    return compare("=", request.column, value, request.binding.setting)


def _place(request: _EstimateCall, values: tuple[Constant, ...]) -> int:
    """Return which of the values is asked for."""
    kind = request.column.type
    plain = kind if kind.kind == "enum" else kind.plain()
    expression = request.binding.operand(request.call.arguments[1])
    if isinstance(expression, Literal) and find_value(expression.text, plain) is None:
        raise _off_list(request, expression.text)
    bound = typed(expression, request.binding.setting, plain)
    wanted = bound.value if isinstance(bound, Constant) else None
    listed_place = next(
        (place for place, value in enumerate(values) if wanted is not None and value.value == wanted), None
    )
    if listed_place is None:
        raise _off_list(request, bound.text if isinstance(bound, Constant) else None)
    return listed_place


def _off_list(request: _EstimateCall, text: str | None) -> BadSetting:
    listed = ", ".join(str(value) for value in request.law.values or ("true", "false"))
    shown = "NULL" if text is None else f'"{text[:60]}"'
    return BadSetting(f'{shown} is not among the values of "{request.column.name}"', hint=f"They are: {listed[:200]}.")
