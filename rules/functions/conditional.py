"""CASE, COALESCE, NULLIF, GREATEST and LEAST."""

from fractions import Fraction

from rules.functions.casts import cast_to
from rules.functions.coerce import is_open, typed, unified
from rules.functions.collation import check_collation
from rules.functions.comparison import are_padded, as_padded, boolean, compare, without_padding
from rules.functions.function import EvalContext, Operands, function, function_of_name
from rules.functions.guard import as_double, as_passed
from rules.values import domain, enforced, interval_arithmetic
from rules.values.domain import Domain
from rules.values.enforced import Sure, between
from rules.values.expression import FALSE, Apply, Constant, Expression, Literal, Operand
from rules.values.types import FLOAT8, INT4, TEXT, Type
from rules.values.value import Span


def case(branches: tuple[tuple[Operand, Operand], ...], default: Operand, setting: EvalContext) -> Expression:
    """CASE WHEN … THEN … ELSE … END; a branch whose condition is constantly false is left out."""
    kept = [(boolean(test, setting), result) for test, result in branches if test != FALSE]
    (last, *branch_results), common = alike((default, *(result for _, result in kept)), setting, "CASE")
    results = (*branch_results, last)  # PostgreSQL looks at ELSE first, too, when it chooses the type
    parts = [f"WHEN {{{2 * place}}} THEN {{{2 * place + 1}}}" for place in range(len(kept))]
    arguments = [argument for (test, _), result in zip(kept, results, strict=False) for argument in (test, result)]
    arguments.append(results[-1])
    if not parts:
        return results[-1]
    sql = f"CASE {' '.join(parts)} ELSE {{{len(arguments) - 1}}} END"
    nullable = any(result.nullable for result in results)
    return Apply("case", sql, tuple(arguments), common, _image(results), nullable, _sure(results), strict=False)


def simple_case(
    operand: Operand, branches: tuple[tuple[Operand, Operand], ...], default: Operand, setting: EvalContext
) -> Expression:
    """CASE x WHEN v THEN … is CASE WHEN x = v THEN …"""
    tests = tuple((compare("=", operand, value, setting), result) for value, result in branches)
    return case(tests, default, setting)


@function(
    "coalesce",
    arguments=(1, 100),
    examples="""
    coalesce(i4, 0) | coalesce(i4, n, f8) | coalesce(t, vc) | coalesce(tm, '12:00') | coalesce(d, ts)
    """,
)
def coalesce(operands: Operands, setting: EvalContext) -> Expression:
    arguments, common = alike(operands, setting, "COALESCE")
    nullable = all(argument.nullable for argument in arguments)
    return Apply(
        "coalesce",
        f"coalesce({_holes(arguments)})",
        arguments,
        common,
        _image(arguments),
        nullable,
        _sure(arguments),
        strict=False,
    )


@function(
    "nullif",
    arguments=2,
    examples="""
    nullif(i4, 7) | nullif(n, f8) | nullif(i4, f4) | nullif(f4, n) | nullif(t, 'a') | nullif(d, '2024-02-29')
    """,
)
def nullif(operands: Operands, setting: EvalContext) -> Expression:
    """x unless it equals y; typed as x, and as both where numbers of several kinds are made alike to be compared."""
    operands = without_padding(operands, setting)
    test = compare("=", operands[0], operands[1], setting)
    (first, _), common = unified(operands, setting, "NULLIF")
    is_untyped = isinstance(operands[0], Literal) or is_open(operands[0])
    argument = as_passed(first, setting)
    if argument.type.is_number and argument.type.kind != common.kind:  # no number but a double is compared with a real
        argument = cast_to(argument, FLOAT8 if common.kind == "float" else common, setting)
    is_text = argument.type.base in ("varchar", "bpchar") and not are_padded(operands)  # which compares them as text
    kept = common if is_untyped and common.base in ("bpchar", "name") else argument.type
    kept = kept.plain() if is_untyped or kept.domain else kept  # a domain is compared as what it is of
    sql = "CASE WHEN {0} THEN NULL ELSE {1} END"
    return Apply(
        "nullif",
        sql,
        (test, argument),
        TEXT if is_text else kept,
        argument.domain,
        nullable=True,
        held=argument.sure,
        strict=False,
    )


@function_of_name(
    "greatest",
    arguments=(1, 100),
    examples="""
    greatest(i4, i8, 0) | greatest(t, vc) | greatest(tm, ts::time) | greatest(ts, tz)
    """,
)
@function_of_name(
    "least",
    arguments=(1, 100),
    examples="least(n, f8) | least(i4, 5) | least(ts - tz, '30 days', interval '1 year -2 days')",
)
def extreme(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """greatest(…) or least(…), which leave NULLs out: a clamp by the analyst narrows what a sum can be."""
    arguments, common = alike(operands, setting, name.upper())
    check_collation(name, *arguments)
    nullable = all(argument.nullable for argument in arguments)
    # PostgreSQL leaves NULLs out, but a constant is always there: nothing greatest is below it.
    sure = _sure(arguments)
    for expression in arguments:
        if isinstance(expression, Constant) and isinstance(expression.value, Fraction):
            limit = expression.value
            sure = between(sure, limit, None) if name == "greatest" else between(sure, None, limit)
    image = _extreme_image(name, arguments)
    return Apply(name, f"{name}({_holes(arguments)})", arguments, common, image, nullable, sure, strict=False)


def _extreme_image(name: str, expressions: tuple[Expression, ...]) -> Domain:
    """Return where an argument may be NULL the others alone decide, so then only their hull is known on that side."""
    is_span = expressions[0].type.kind == "interval"
    if not is_span and not expressions[0].type.is_number and not expressions[0].type.is_time:
        return _image(expressions)
    present = [each for each in expressions if not isinstance(each, Constant) or each.text is not None]
    present = present or [expressions[0]]
    image = interval_arithmetic.hull(*map(_range, present))
    for held in (_range(each) for each in present if not each.nullable):
        bound, sign = (held.high, 1) if name == "least" else (held.low, -1)
        if is_span and bound is not None:  # compared, a year has 360 days
            bound += sign * abs(bound) * _LONGER_YEAR
        limit = domain.Range(None, bound) if name == "least" else domain.Range(bound, None)
        narrowed = domain.range_of(domain.intersect(image, limit))
        image = domain.Range(narrowed.low, narrowed.high, image.step)
    return image


def _range(expression: Expression) -> domain.Range:
    """The bounds of a number or a moment, or of how long an interval is."""
    if isinstance(expression, Constant) and isinstance(expression.value, Span):
        return domain.Range(expression.value.length, expression.value.length)
    return domain.range_of(expression.domain)


_LONGER_YEAR = Fraction(1461, 1440) - 1  # 365.25 days to 360


@function_of_name("num_nulls", arguments=(1, 100), examples="num_nulls(b, d) > 0")
@function_of_name("num_nonnulls", arguments=(1, 100), examples="num_nonnulls(i4, t, u) = 2")
def counted(name: str, operands: Operands, setting: EvalContext) -> Expression:
    """num_nulls(…) and num_nonnulls(…)."""
    arguments = tuple(typed(operand, setting) for operand in operands)
    image = domain.Range(Fraction(0), Fraction(len(arguments)), domain.ONE)
    return Apply(name, f"{name}({_holes(arguments)})", arguments, INT4, image, nullable=False, strict=False)


def alike(operands: tuple[Operand, ...], setting: EvalContext, what: str) -> tuple[tuple[Expression, ...], Type]:
    """Operands of which one is handed on, so that none fails where it is made the type of the others."""
    arguments, common = unified(operands, setting, what)
    passed = tuple(_same_kind(as_passed(argument, setting), common, setting) for argument in arguments)
    has_null = any(not isinstance(operand, Literal) and is_open(operand) for operand in operands)
    has_length = common.base == "bpchar" and all(_fills(argument, common) for argument in arguments)
    if not has_length and (has_null or any(argument.type != common for argument in passed)):
        common = common.plain()  # a bound of numeric(10,2) has no zeros after the point
    return tuple(as_double(argument) for argument in passed) if common.kind == "float" else passed, common


def _fills(expression: Expression, common: Type) -> bool:
    """Return whether its values have the blanks that all of this character(n) have, and no more."""
    is_whole = isinstance(expression, Constant) and (expression.text is None or len(expression.text) == common.size)
    return is_whole or expression.type == common


def _same_kind(expression: Expression, common: Type, setting: EvalContext) -> Expression:
    """Days and microseconds are not mixed: a date among timestamps becomes one. No blanks end a character(n)."""
    if common.base == "bpchar":
        return as_padded(expression, setting)
    return (
        cast_to(expression, common, setting)
        if expression.type.is_time and expression.type.kind != common.kind
        else expression
    )


def _image(expressions: tuple[Expression, ...]) -> Domain:
    image: Domain = domain.Values(())
    for expression in expressions:
        image = domain.union(image, expression.domain)
    return image


def _sure(expressions: tuple[Expression, ...]) -> Sure:
    return enforced.either(*(expression.sure for expression in expressions))


def _holes(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(f"{{{place}}}" for place in range(len(expressions)))
