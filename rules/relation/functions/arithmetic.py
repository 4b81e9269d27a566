"""+ - * / % and their kin: typed as PostgreSQL types them, made so that no row overflows or divides by zero."""

from collections.abc import Callable
from fractions import Fraction
from operator import add, mul, sub

from rules.refusal import NotSupported
from rules.relation import domain, image
from rules.relation.domain import Domain, Range, Values
from rules.relation.expression import Apply, Constant, Expression, Operand
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_double, as_value, finite, safe_factor
from rules.relation.types import FLOAT8, NUMERIC, Type, integer_range, wider_number

Image = Callable[[Range, Range], Range]

_LISTED = 1000  # values of a finite domain that are followed one by one
_EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul}
_IMAGES: dict[str, Image] = {
    "+": image.add,
    "-": lambda left, right: image.add(left, image.negate(right)),
    "*": image.multiply,
}


def arithmetic(name: str, left: Operand, right: Operand, setting: Setting) -> Expression:
    """left + right and so on, for two numbers."""
    first, second = _numbers(name, left, right, setting)
    result = wider_number(first.type, second.type)
    if result.kind == "float":
        return _float(name, as_double(first), as_double(second))
    if result.kind == "numeric":
        return _numeric(name, finite(first), finite(second))
    return _integer(name, first, second, result)


def negative(operand: Operand, setting: Setting) -> Expression:
    """- x; of a constant it is a constant, so that bounds may be negative."""
    given = as_value(typed(operand, setting, FLOAT8), setting)
    if isinstance(given, Constant) and isinstance(given.value, Fraction) and given.text is not None:
        text = given.text.removeprefix("-") if given.text.startswith("-") else f"-{given.text}"
        return Constant(given.type, text, -given.value)
    if not given.type.is_number:
        raise _no_operator("-", given.type)
    found = image.negate(domain.range_of(given.domain))
    if given.type.kind == "integer":
        return _fitted("negative", "-{0}", (given,), given.type.plain(), found)
    return Apply("negative", "(-{0})", (given,), given.type.plain(), found, given.nullable)


def absolute(given: Expression) -> Expression:
    found = image.absolute(domain.range_of(given.domain))
    if given.type.kind == "integer":
        return _fitted("abs", "abs({0})", (given,), given.type.plain(), found)
    return Apply("abs", "abs({0})", (given,), given.type.plain(), found, given.nullable)


def _numbers(name: str, left: Operand, right: Operand, setting: Setting) -> tuple[Expression, Expression]:
    first = typed(left, setting, right.type if isinstance(right, Apply | Constant) else _type_of(right))
    second = typed(right, setting, first.type)
    for each in (first, second):
        if not each.type.is_number:
            raise _no_operator(name, first.type, second.type)
    return as_value(first, setting), as_value(second, setting)


def _type_of(operand: Operand) -> Type:
    given = getattr(operand, "type", None)
    return given if isinstance(given, Type) else NUMERIC


def _no_operator(name: str, *types: Type) -> NotSupported:
    written = f" {name} ".join(each.sql for each in types) if len(types) > 1 else f"{name} {types[0].sql}"
    return NotSupported(f"the operator {written} is not supported over protected rows")


def _nullable(*given: Expression) -> bool:
    return any(each.nullable for each in given)


def _float(name: str, left: Expression, right: Expression) -> Expression:
    """Operands are first made small enough, and not too near zero, for no error to be possible."""
    if name == "%":
        raise NotSupported("% of double precision is not supported", hint="Cast to numeric first: mod(x::numeric, 10).")
    if name in ("*", "/"):
        first, second = safe_factor(left), safe_factor(right)
    else:
        first, second = finite(left), finite(right)
    ranges = domain.range_of(first.domain), domain.range_of(second.domain)
    if name == "/":
        found = image.divide(Range(ranges[0].low, ranges[0].high), Range(ranges[1].low, ranges[1].high))
        return Apply(
            "/", "({0} / nullif({1}, 0))", (first, second), FLOAT8, Range(found.low, found.high), nullable=True
        )
    found = _IMAGES[name](*ranges)
    return Apply(name, f"({{0}} {name} {{1}})", (first, second), FLOAT8, Range(found.low, found.high), nullable=True)


def _numeric(name: str, left: Expression, right: Expression) -> Expression:
    ranges = domain.range_of(left.domain), domain.range_of(right.domain)
    if name in _IMAGES:
        exact = _listed(name, left, right) or _IMAGES[name](*ranges)
        return Apply(name, f"({{0}} {name} {{1}})", (left, right), NUMERIC, exact, _nullable(left, right))
    maker = _quotient if name == "/" else _remainder
    return maker(left, right, NUMERIC)


def _quotient(left: Expression, right: Expression, result: Type) -> Expression:
    ranges = domain.range_of(left.domain), domain.range_of(right.domain)
    if result.kind == "integer":
        return _by_nonzero("/", left, right, result, image.truncated_quotient(*ranges))
    found = image.divide(*ranges)
    low = None if found.low is None else found.low - _rounding(found.low)
    high = None if found.high is None else found.high + _rounding(found.high)
    return _by_nonzero("/", left, right, result, Range(low, high))


def _rounding(bound: Fraction) -> Fraction:
    """Quotients are rounded to 16 digits or more: never past a whole number of fewer."""
    is_whole = bound.denominator == 1 and abs(bound) < 10**15
    return Fraction(0) if is_whole else abs(bound) / 10**15


def _remainder(left: Expression, right: Expression, result: Type) -> Expression:
    ranges = domain.range_of(left.domain), domain.range_of(right.domain)
    return _by_nonzero("%", left, right, result, image.remainder(*ranges))


def _by_nonzero(name: str, left: Expression, right: Expression, result: Type, found: Range) -> Expression:
    """x / 0 is NULL here, not an error."""
    if domain.contains(right.domain, Fraction(0)):
        return Apply(name, f"({{0}} {name} nullif({{1}}, 0))", (left, right), result, found, nullable=True)
    return Apply(name, f"({{0}} {name} {{1}})", (left, right), result, found, _nullable(left, right))


def _integer(name: str, left: Expression, right: Expression, result: Type) -> Expression:
    ranges = domain.range_of(left.domain), domain.range_of(right.domain)
    if name == "%":
        # The one overflow of %, -2^63 % -1, is caught by PostgreSQL itself.
        return _remainder(left, right, result)
    if name == "/":
        found = image.truncated_quotient(*ranges)
        guarded = "{0} / nullif({1}, 0)" if domain.contains(right.domain, Fraction(0)) else "{0} / {1}"
        return _fitted(name, guarded, (left, right), result, found, maybe_null=guarded.endswith("0)"))
    exact = _listed(name, left, right) or _IMAGES[name](*ranges)
    return _fitted(name, f"{{0}} {name} {{1}}", (left, right), result, exact)


def _listed(name: str, left: Expression, right: Expression) -> Values | None:
    """Each value of a short list with a constant: bins that begin at 25 lie 50 apart, and not at every 25."""
    if not (isinstance(left, Constant) or isinstance(right, Constant)):
        return None
    first, second = (domain.items_of(each.domain, _LISTED) for each in (left, right))
    if not first or not second:
        return None
    operation = _EXACT[name]
    pairs = ((one, two) for one in first for two in second)
    return domain.values(
        operation(one, two) for one, two in pairs if isinstance(one, Fraction) and isinstance(two, Fraction)
    )


def _fitted(
    name: str, sql: str, given: tuple[Expression, ...], result: Type, found: Domain, *, maybe_null: bool = False
) -> Expression:
    """An integer operation whose result may not fit: computed wider, NULL where PostgreSQL would report overflow."""
    first, last = integer_range(result.base)
    limits = Range(Fraction(first), Fraction(last))
    nullable = _nullable(*given) or maybe_null
    if domain.is_within(found, limits):
        return Apply(name, f"({sql})", given, result, found, nullable)
    wide = "numeric" if result.base == "int8" else "bigint"
    widened = sql.replace("{0}", f"{{0}}::{wide}")
    if name == "/" and wide == "numeric":
        widened = sql.replace(" / ", ", ").join(("div(", ")")).replace("{0}", "{0}::numeric")
    text = f"CASE WHEN ({widened}) BETWEEN {first} AND {last} THEN ({widened})::{result.sql} END"
    return Apply(name, text, given, result, domain.intersect(found, limits), nullable=True)
