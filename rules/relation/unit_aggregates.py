"""Aggregates over the rows of one unit, below a block: exact, in integers or numeric, in no order.

Nothing is noised here; what comes out is one more column of the unit. Its range is not believed: a count of a unit's
rows has no upper bound until it is clamped, and its declared range says only where to.
"""

from fractions import Fraction

from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.relation import domain
from rules.relation.bind_expression import Binding
from rules.relation.domain import ANYTHING, Domain, Range
from rules.relation.expression import Apply, Column, Constant, Expression
from rules.relation.functions.guard import as_passed, as_value
from rules.relation.nodes import Aggregate, Facts
from rules.relation.ties import one_of_equals
from rules.relation.types import FLOAT8, INT8, NUMERIC, Type
from rules.relation.value import decimal_text
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
_PLACES = frozenset(("percentile_cont", "percentile_disc", "mode"))  # of a row in an order: WITHIN GROUP


def unit_aggregate(given: s.Call, number: int, binding: Binding, facts: Facts) -> tuple[int, Aggregate, Column]:
    """One aggregate of a per-unit subquery, and the column that it makes."""
    with pointing_at(given.name):
        return _aggregate(given, number, binding, facts)


def _aggregate(given: s.Call, number: int, binding: Binding, facts: Facts) -> tuple[int, Aggregate, Column]:
    if given.name in _PLACES and not given.order_by and len(given.within_group) == 1:
        return _place(given, number, binding)
    if given.name not in KNOWN or given.order_by or given.within_group:
        hint = f"Over one unit's rows these are supported: {', '.join(sorted(KNOWN | _PLACES))}."
        raise NotAllowed(f'the aggregate "{given.name}" is not supported below another aggregate', hint=hint)
    arguments = tuple(binding.bind(each) for each in given.arguments)
    if len(arguments) != (0 if given.star else 1):
        raise NotSupported(f'the aggregate "{given.name}" with {len(arguments)} arguments is not supported')
    sql, made, image, declared = _made(given, arguments, binding, facts)
    sql, held = _filtered(sql, made, given, binding)
    sql = f"{sql}{{over}}"
    result = _type(given, arguments)
    if given.name in ("min", "max"):
        sql = one_of_equals(made[0], sql)
    sql = f"({sql})::{result.sql}" if result.kind in ("float", "numeric") else sql
    column = Column(number, result, image, declared, nullable=given.name != "count", name=given.name)
    return number, Aggregate(sql, held), column


def _filtered(
    sql: str, made: tuple[Expression, ...], given: s.Call, binding: Binding
) -> tuple[str, tuple[Expression, ...]]:  # fmt: skip
    if given.filter is None:
        return sql, made
    return f"{sql} FILTER (WHERE {{{len(made)}}})", (*made, binding.condition(given.filter))


def _place(given: s.Call, number: int, binding: Binding) -> tuple[int, Aggregate, Column]:
    """A median, quantile or most frequent value of the unit's rows: equal values are one, so no order of rows shows."""
    (item,) = given.within_group
    setting = binding.setting
    value = as_passed(binding.bind(item.expression), setting)
    if value.type.kind in ("boolean", "other", "unknown", "interval"):
        raise NotSupported(f"{given.name} of {value.type.sql} is not supported over protected rows")
    declared: Domain = ANYTHING
    if given.name == "percentile_cont":
        declared = domain.range_of(value.domain)
        value = _double(given.name, value)
    order = f"ORDER BY {{0}}{' DESC' if item.descending else ''}"
    sql, held = _filtered(f"{given.name}({_fraction(given, binding)}) WITHIN GROUP ({order})", (value,), given, binding)
    kind = value.type if value.type.name else value.type.plain()
    column = Column(number, kind, value.domain, declared, nullable=True, name=given.name)
    return number, Aggregate(f"({one_of_equals(value, sql)})::{kind.sql}", held), column


def _double(name: str, given: Expression) -> Expression:
    """What lies between two values is computed in double precision."""
    if not given.type.is_number:
        raise NotSupported(f"{name} of {given.type.sql} is not supported over protected rows")
    sql = "round({0}, 200)::double precision" if given.type.kind == "numeric" else "({0})::double precision"
    return Apply("double", sql, (given,), FLOAT8, domain.UNBOUNDED, given.nullable)


def _fraction(given: s.Call, binding: Binding) -> str:
    """The constant share of the rows that lie below; mode has none."""
    if given.name == "mode" and not given.arguments:
        return ""
    bound = binding.bind(given.arguments[0]) if len(given.arguments) == 1 else None
    share = bound.value if isinstance(bound, Constant) else None
    text = decimal_text(share) if isinstance(share, Fraction) and 0 <= share <= 1 else None
    if text is None:
        raise NotSupported(f"the fraction of {given.name} must be a constant between 0 and 1")
    return text


def _made(
    given: s.Call, arguments: tuple[Expression, ...], binding: Binding, facts: Facts
) -> tuple[str, tuple[Expression, ...], Domain, Domain]:
    cap = facts.rows.cap
    distinct = "DISTINCT " if given.distinct else ""
    if given.distinct and arguments[0].type.kind in ("other", "unknown"):
        raise NotSupported(f"{given.name}(DISTINCT …) of {arguments[0].type.sql} is not supported over protected rows")
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
