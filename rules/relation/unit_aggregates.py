"""Aggregates over the rows of one unit, below a block: exact, in integers or numeric, in no order.

Nothing is noised here; what comes out is one more column of the unit. Its range is not believed: a count of a unit's
rows has no upper bound until it is clamped, and its declared range says only where to.
"""

from fractions import Fraction

from rules.refusal import NotAllowed, NotSupported
from rules.relation import domain
from rules.relation.bind_expression import Binding
from rules.relation.domain import ANYTHING, Domain, Range
from rules.relation.expression import Apply, Column, Expression
from rules.relation.functions.guard import as_passed, as_value
from rules.relation.nodes import Aggregate, Facts
from rules.relation.ties import one_of_equals
from rules.relation.types import FLOAT8, INT8, NUMERIC, Type
from rules.sql import syntax as s

_SUMS: dict[str, Type] = {
    "int2": INT8,
    "int4": INT8,
    "int8": NUMERIC,
    "numeric": NUMERIC,
    "float4": FLOAT8,
    "float8": FLOAT8,
}
_SPREADS = frozenset(("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"))
_TRUTHS = {"bool_and": "bool_and", "every": "bool_and", "bool_or": "bool_or"}
KNOWN = frozenset(("count", "sum", "avg", "min", "max", *_TRUTHS, *_SPREADS))


def unit_aggregate(given: s.Call, number: int, binding: Binding, facts: Facts) -> tuple[int, Aggregate, Column]:
    """One aggregate of a per-unit subquery, and the column that it makes."""
    if given.name not in KNOWN or given.order_by or given.within_group:
        hint = f"Over one unit's rows these are supported: {', '.join(sorted(KNOWN))}."
        raise NotAllowed(f'the aggregate "{given.name}" is not supported below another aggregate', hint=hint)
    arguments = tuple(binding.bind(each) for each in given.arguments)
    if len(arguments) != (0 if given.star else 1):
        raise NotSupported(f'the aggregate "{given.name}" with {len(arguments)} arguments is not supported')
    sql, made, image, declared = _made(given, arguments, binding, facts)
    held = tuple(made)
    if given.filter is not None:
        held = (*held, binding.condition(given.filter))
        sql = f"{sql} FILTER (WHERE {{{len(held) - 1}}})"
    sql = f"{sql}{{over}}"
    result = _type(given, arguments)
    if given.name in ("min", "max"):
        sql = one_of_equals(made[0], sql)
    sql = f"({sql})::{result.sql}" if result.kind in ("float", "numeric") else sql
    column = Column(number, result, image, declared, nullable=given.name != "count", name=given.name)
    return number, Aggregate(sql, held), column


def _made(
    given: s.Call, arguments: tuple[Expression, ...], binding: Binding, facts: Facts
) -> tuple[str, tuple[Expression, ...], Domain, Domain]:
    cap = facts.rows.cap
    distinct = "DISTINCT " if given.distinct else ""
    if given.name == "count":
        image = Range(Fraction(0), Fraction(2**63 - 1), domain.ONE)
        limit = ANYTHING if cap is None else Range(Fraction(0), Fraction(cap), domain.ONE)
        return f"count({distinct}{'*' if given.star else '{0}'})", arguments, image, limit
    if given.name in _TRUTHS:
        return f"{_TRUTHS[given.name]}({{0}})", (binding.condition(given.arguments[0]),), domain.TRUTHS, ANYTHING
    if given.name in ("min", "max"):
        return _extreme(given.name, as_passed(arguments[0], binding.setting))
    number = _number(given.name, as_value(arguments[0], binding.setting))
    found = domain.range_of(number.domain)
    added = f"DISTINCT {one_of_equals(number, '{0}')}" if given.distinct else "{0}"
    if given.name == "sum":
        return f"sum({added})", (number,), _sum_image(found), _total(found, cap)
    spread = ANYTHING if given.name != "avg" else Range(found.low, found.high)
    return f"{given.name}({added})", (number,), domain.UNBOUNDED, spread


def _extreme(name: str, given: Expression) -> tuple[str, tuple[Expression, ...], Domain, Domain]:
    if given.type.kind in ("boolean", "other", "unknown", "interval", "uuid"):
        raise NotSupported(f"{name} of {given.type.sql} is not supported over protected rows")
    return f"{name}({{0}})", (given,), given.domain, ANYTHING


def _number(name: str, given: Expression) -> Expression:
    """Sums of doubles depend on the order of rows, so doubles become numeric first."""
    if not given.type.is_number:
        raise NotSupported(f"{name} of {given.type.sql} is not supported over protected rows")
    if given.type.kind != "float":
        return given
    return Apply("exact", "({0})::numeric", (given,), NUMERIC, given.domain, given.nullable)


def _sum_image(found: Range) -> Range:
    """Any number of rows: only the sign and the step are sure."""
    low = Fraction(0) if found.low is not None and found.low >= 0 else None
    high = Fraction(0) if found.high is not None and found.high <= 0 else None
    return Range(low, high, found.step)


def _total(found: Range, cap: int | None) -> Domain:
    """What the sum of as many rows as the rules count can be: it is clamped to this where it is used."""
    if cap is None or found.low is None or found.high is None:
        return ANYTHING
    low, high = min(found.low, Fraction(0)), max(found.high, Fraction(0))
    return Range(low * cap, high * cap, found.step)


def _type(given: s.Call, arguments: tuple[Expression, ...]) -> Type:
    if given.name == "count":
        return INT8
    argument = arguments[0].type
    if given.name == "sum":
        return _SUMS[argument.base]
    if given.name == "avg" or given.name in _SPREADS:
        return FLOAT8 if argument.kind == "float" else NUMERIC
    return argument.plain() if not argument.name else argument
