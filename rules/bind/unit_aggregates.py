"""Aggregates over the rows of one unit, below a block: exact, in integers or numeric, in no order.

Nothing is noised here; what comes out is one more column of the unit. Its range is not believed: a count of a unit's
rows has no upper bound until it is clamped, and its declared range says only where to. None fails, however many rows
there are: arguments are guarded inside the aggregate, since one around it comes too late; sums are made in numeric, and
what does not fit the type of a result is NULL.
"""

from fractions import Fraction

from rules.algebra.nodes import Aggregate, Facts
from rules.algebra.unit_facts import one_of_equals
from rules.bind.expression import Binding
from rules.functions.casts import cast_to, real
from rules.functions.collation import check_collation
from rules.functions.function import EvalContext
from rules.functions.guard import as_passed, as_value, few_digits, finite
from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values import domain
from rules.values.domain import ANYTHING, Domain, Range
from rules.values.enforced import Sure
from rules.values.expression import Apply, Column, Constant, Expression
from rules.values.types import FLOAT4, FLOAT8, INT8, NUMERIC, TEXT, Type
from rules.values.value import decimal_text

_SUMS: dict[str, Type] = {
    "int2": INT8,
    "int4": INT8,
    "int8": NUMERIC,
    "numeric": NUMERIC,
    "float4": FLOAT4,
    "float8": FLOAT8,
}
_SPREADS = frozenset(("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"))
_TRUTHS = {"bool_and": "bool_and", "every": "bool_and", "bool_or": "bool_or"}
KNOWN = frozenset(("count", "sum", "avg", "min", "max", *_TRUTHS, *_SPREADS))
_LEAST_SHARE = Fraction(1, 10**300)  # that is a double
_PLACES = frozenset(("percentile_cont", "percentile_disc", "mode"))  # of a row in an order: WITHIN GROUP


def unit_aggregate(call: s.Call, number: int, binding: Binding, facts: Facts) -> tuple[int, Aggregate, Column]:
    """One aggregate of a per-unit subquery, and the column that it makes."""
    with pointing_at(call.name):
        return _aggregate(call, number, binding, facts)


def _aggregate(call: s.Call, number: int, binding: Binding, facts: Facts) -> tuple[int, Aggregate, Column]:
    if call.name in _PLACES and not call.order_by and len(call.within_group) == 1:
        return _place(call, number, binding)
    if call.name not in KNOWN or call.order_by or call.within_group:
        hint = f"Functions that are supported over the rows of one unit: {', '.join(sorted(KNOWN | _PLACES))}."
        raise NotAllowed(f'aggregate "{call.name}" is not supported in a subquery of another aggregate', hint=hint)
    arguments = tuple(binding.bind(argument) for argument in call.arguments)
    if len(arguments) != (0 if call.star else 1):
        raise NotSupported(f'the aggregate "{call.name}" with {len(arguments)} arguments is not supported')
    sql, made, image, declared = _rendered(call, arguments, binding, facts)
    sql, held = _filtered(sql, made, call, binding)
    sql = f"{sql}{{over}}"
    result = _type(call, arguments)
    if call.name in ("min", "max"):
        sql = one_of_equals(made[0], sql)
    sql = _fitted(sql, call.name, result)
    is_total = call.name in ("count", "sum")
    column = Column(number, result, image, declared, nullable=call.name != "count", name=call.name, total=is_total)
    return number, Aggregate(sql, held), column


def _filtered(
    sql: str, made: tuple[Expression, ...], call: s.Call, binding: Binding
) -> tuple[str, tuple[Expression, ...]]:  # fmt: skip
    if call.filter is None:
        return sql, made
    return f"{sql} FILTER (WHERE {{{len(made)}}})", (*made, binding.condition(call.filter))


def _place(call: s.Call, number: int, binding: Binding) -> tuple[int, Aggregate, Column]:
    """A median, quantile or most frequent value of the unit's rows: equal values are one, so no order of rows shows."""
    (item,) = call.within_group
    setting = binding.setting
    value = as_passed(binding.bind(item.expression), setting)
    if value.type.kind in ("boolean", "other", "unknown", "interval"):
        raise NotSupported(f"{call.name} of {value.type.sql} is not supported over protected rows")
    check_collation(call.name, value)
    declared: Domain = ANYTHING
    if call.name == "percentile_cont":
        declared = domain.range_of(value.domain)
        value = _double(call.name, value)
    else:
        value = _own(value)
    order = f"ORDER BY {{0}}{' DESC' if item.descending else ''}"
    sql, held = _filtered(f"{call.name}({_fraction(call, binding)}) WITHIN GROUP ({order})", (value,), call, binding)
    kind = FLOAT8 if call.name == "percentile_cont" else value.type.passed(is_cast=isinstance(item.expression, s.Cast))
    column = Column(number, kind, value.domain, declared, nullable=True, name=call.name)
    return number, Aggregate(f"({one_of_equals(value, sql)})::{kind.sql}", held), column


def _fitted(sql: str, name: str, result: Type) -> str:
    """An aggregate as its own type: of a sum that does not fit it NULL, of a double that is nearly zero zero."""
    if name in ("count", "min", "max") or result.kind not in ("integer", "float", "numeric"):
        return f"({sql})::{result.sql}" if result.kind in ("float", "numeric") else sql
    if result.kind == "numeric":
        return f"({sql})::numeric"
    end = "3.4e38" if result.base == "float4" else "1e300"
    limits = (f"-{end}", end) if result.kind == "float" else (f"{-(2**63) - 1}", f"{2**63}")
    low, high = (f"'{limit}'::numeric" for limit in limits)
    held = f"nullif(nullif(least(greatest({sql}, {low}), {high}), {low}), {high})"
    places = 45 if result.base == "float4" else 300  # of the least that is not zero
    return f"round({held}, {places})::{result.sql}" if result.kind == "float" else f"{held}::bigint"


def _double(name: str, expression: Expression) -> Expression:
    """Return what lies between two values is computed in double precision."""
    if not expression.type.is_number:
        raise NotSupported(f"{name} of {expression.type.sql} is not supported over protected rows")
    if expression.type.kind == "float":
        return expression
    return cast_to(expression, FLOAT8, EvalContext())


def _own(expression: Expression) -> Expression:
    """A real among its like: what it is computed with as may be more than a real can be."""
    return real(expression) if expression.type.base == "float4" else expression


def _fraction(call: s.Call, binding: Binding) -> str:
    """The constant share of the rows that lie below; mode has none."""
    if call.name == "mode" and not call.arguments:
        return ""
    bound = binding.bind(share_of(call.arguments[0])) if len(call.arguments) == 1 else None
    share = bound.value if isinstance(bound, Constant) else None
    is_share = isinstance(share, Fraction) and (share == 0 or _LEAST_SHARE <= share <= 1)
    text = decimal_text(share) if isinstance(share, Fraction) and is_share else None
    if text is None:
        raise NotSupported(f"the fraction of {call.name} must be a constant between 0 and 1")
    return text


def share_of(written: s.Expression) -> s.Expression:
    """The number in (0.5)::double precision, as PostgreSQL prints the fraction of a quantile in a view."""
    match written:
        case s.Cast(s.Constant("number") as number, "double precision"):
            return number
    return written


def _rendered(
    call: s.Call, arguments: tuple[Expression, ...], binding: Binding, facts: Facts
) -> tuple[str, tuple[Expression, ...], Domain, Domain]:
    cap = facts.rows.cap
    distinct = "DISTINCT " if call.distinct else ""
    if call.distinct and arguments[0].type.kind in ("other", "unknown"):
        raise NotSupported(f"{call.name}(DISTINCT …) of {arguments[0].type.sql} is not supported over protected rows")
    if call.name == "count":
        image = Range(Fraction(0), Fraction(2**63 - 1), domain.ONE)
        limit = ANYTHING if cap is None else Range(Fraction(0), Fraction(cap), domain.ONE)
        return f"count({distinct}{'*' if call.star else '{0}'})", arguments, image, limit
    if call.name in _TRUTHS:
        return f"{_TRUTHS[call.name]}({{0}})", (binding.condition(call.arguments[0]),), domain.TRUTHS, ANYTHING
    if call.name in ("min", "max"):
        check_collation(call.name, *arguments)
        return _extreme(call.name, as_passed(arguments[0], binding.setting))
    number = _number(call.name, as_value(arguments[0], binding.setting))
    if call.name in _SPREADS:
        number = few_digits(number)
    held = domain.range_of(number.domain)
    added = f"DISTINCT {one_of_equals(number, '{0}')}" if call.distinct else "{0}"
    if call.name == "sum":
        return f"sum({added})", (number,), _sum_image(held), _total(held, cap)
    spread = ANYTHING if call.name != "avg" else Range(held.low, held.high)
    return f"{call.name}({added})", (number,), domain.UNBOUNDED, spread


def _extreme(name: str, expression: Expression) -> tuple[str, tuple[Expression, ...], Domain, Domain]:
    if expression.type.kind in ("boolean", "other", "unknown", "interval", "uuid"):
        raise NotSupported(f"{name} of {expression.type.sql} is not supported over protected rows")
    return f"{name}({{0}})", (_own(expression),), expression.domain, ANYTHING


def _number(name: str, expression: Expression) -> Expression:
    """Sums of doubles depend on the order of rows, so doubles become numeric first; sums of integer are not checked."""
    if not expression.type.is_number:
        raise NotSupported(f"{name} of {expression.type.sql} is not supported over protected rows")
    small = finite(expression)
    exact = {"float": NUMERIC, "integer": INT8}.get(expression.type.kind)
    if exact is None or exact == expression.type:
        return small
    held = Sure() if expression.type.kind == "float" else expression.sure
    return Apply("exact", f"({{0}})::{exact.sql}", (small,), exact, small.domain, small.nullable, held)


def _sum_image(image: Range) -> Range:
    """Any number of rows: only the sign and the step are sure."""
    low = Fraction(0) if image.low is not None and image.low >= 0 else None
    high = Fraction(0) if image.high is not None and image.high <= 0 else None
    return Range(low, high, image.step)


def _total(image: Range, cap: int | None) -> Domain:
    """Return what the sum of as many rows as the rules count can be: it is clamped to this where it is used."""
    if cap is None or image.low is None or image.high is None:
        return ANYTHING
    low, high = min(image.low, Fraction(0)), max(image.high, Fraction(0))
    return Range(low * cap, high * cap, image.step)


def _type(call: s.Call, arguments: tuple[Expression, ...]) -> Type:
    if call.name == "count":
        return INT8
    argument = arguments[0].type
    if call.name == "sum":
        return _SUMS[argument.base]
    if call.name == "avg" or call.name in _SPREADS:
        return FLOAT8 if argument.kind == "float" else NUMERIC
    if argument.base == "bpchar":
        return argument  # which says how many blanks are shown
    return TEXT if argument.base in ("varchar", "name") else argument.plain()
