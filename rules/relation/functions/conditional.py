"""CASE, COALESCE, NULLIF, GREATEST and LEAST."""

from fractions import Fraction

from rules.relation import domain, image
from rules.relation.domain import Domain
from rules.relation.expression import FALSE, Apply, Constant, Expression, Operand
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed, unified
from rules.relation.functions.comparison import boolean, compare
from rules.relation.functions.guard import Setting, as_double, as_passed
from rules.relation.types import INT4, Type


def case(branches: tuple[tuple[Operand, Operand], ...], default: Operand, setting: Setting) -> Expression:
    """CASE WHEN … THEN … ELSE … END; a branch whose condition is constantly false is left out."""
    kept = [(boolean(test, setting), result) for test, result in branches if test != FALSE]
    results, common = alike((*(result for _, result in kept), default), setting, "CASE")
    parts = [f"WHEN {{{2 * place}}} THEN {{{2 * place + 1}}}" for place in range(len(kept))]
    arguments = [each for (test, _), result in zip(kept, results, strict=False) for each in (test, result)]
    arguments.append(results[-1])
    if not parts:
        return results[-1]
    sql = f"CASE {' '.join(parts)} ELSE {{{len(arguments) - 1}}} END"
    nullable = any(each.nullable for each in results)
    return Apply("case", sql, tuple(arguments), common, _image(results), nullable)


def simple_case(
    operand: Operand, branches: tuple[tuple[Operand, Operand], ...], default: Operand, setting: Setting
) -> Expression:
    """CASE x WHEN v THEN … is CASE WHEN x = v THEN …"""
    tests = tuple((compare("=", operand, value, setting), result) for value, result in branches)
    return case(tests, default, setting)


def coalesce(operands: tuple[Operand, ...], setting: Setting) -> Expression:
    given, common = alike(operands, setting, "COALESCE")
    nullable = all(each.nullable for each in given)
    return Apply("coalesce", f"coalesce({_holes(given)})", given, common, _image(given), nullable)


def nullif(operands: tuple[Operand, ...], setting: Setting) -> Expression:
    """x unless it equals y; typed as x, and as both where numbers of several kinds are made alike to be compared."""
    test = compare("=", operands[0], operands[1], setting)
    (first, _), common = unified(operands, setting, "NULLIF")
    given = as_passed(first, setting)
    if given.type.is_number and given.type.kind != common.kind:
        given = cast_to(given, common, setting)
    sql = "CASE WHEN {0} THEN NULL ELSE {1} END"
    return Apply("nullif", sql, (test, given), given.type.plain(), given.domain, nullable=True)


def extreme(name: str, operands: tuple[Operand, ...], setting: Setting) -> Expression:
    """greatest(…) or least(…), which leave NULLs out: a clamp by the analyst narrows what a sum can be."""
    given, common = alike(operands, setting, name.upper())
    nullable = all(each.nullable for each in given)
    return Apply(name, f"{name}({_holes(given)})", given, common, _extreme_image(name, given), nullable)


def _extreme_image(name: str, given: tuple[Expression, ...]) -> Domain:
    """Where an argument may be NULL the others alone decide, so then only their hull is known on that side."""
    if not given[0].type.is_number and not given[0].type.is_time:
        return _image(given)
    present = [each for each in given if not _is_null(each)] or [given[0]]
    found = image.hull(*(domain.range_of(each.domain) for each in present))
    for each in (domain.range_of(each.domain) for each in present if not each.nullable):
        limit = domain.Range(None, each.high) if name == "least" else domain.Range(each.low, None)
        narrowed = domain.range_of(domain.intersect(found, limit))
        found = domain.Range(narrowed.low, narrowed.high, found.step)
    return found


def counted(name: str, operands: tuple[Operand, ...], setting: Setting) -> Expression:
    """num_nulls(…) and num_nonnulls(…)."""
    given = tuple(typed(operand, setting) for operand in operands)
    found = domain.Range(Fraction(0), Fraction(len(given)), domain.ONE)
    return Apply(name, f"{name}({_holes(given)})", given, INT4, found, nullable=False)


def _is_null(given: Expression) -> bool:
    return isinstance(given, Constant) and given.text is None


def alike(operands: tuple[Operand, ...], setting: Setting, what: str) -> tuple[tuple[Expression, ...], Type]:
    """Operands of which one is handed on, so that none fails where it is made the type of the others."""
    given, common = unified(operands, setting, what)
    passed = tuple(_same_time(as_passed(each, setting), common, setting) for each in given)
    if any(each.type != common for each in passed):  # a bound of numeric(10,2) has no zeros after the point
        common = common.plain()
    return tuple(as_double(each) for each in passed) if common.kind == "float" else passed, common


def _same_time(given: Expression, common: Type, setting: Setting) -> Expression:
    """Days and microseconds are not mixed: a date among timestamps becomes one."""
    return cast_to(given, common, setting) if given.type.is_time and given.type.kind != common.kind else given


def _image(given: tuple[Expression, ...]) -> Domain:
    found: Domain = domain.Values(())
    for each in given:
        found = domain.union(found, each.domain)
    return found


def _holes(given: tuple[Expression, ...]) -> str:
    return ", ".join(f"{{{place}}}" for place in range(len(given)))
