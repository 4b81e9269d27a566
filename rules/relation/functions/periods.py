"""Whether two periods meet: (a, b) OVERLAPS (c, d), each with an end or with a length."""

from rules.refusal import NotSupported
from rules.relation.expression import Expression, Operand, condition
from rules.relation.functions.cast import cast_to
from rules.relation.functions.coerce import typed
from rules.relation.functions.guard import Setting, as_passed
from rules.relation.functions.shift import shifted
from rules.relation.types import TIMESTAMP, TIMESTAMPTZ, Type


def overlaps(operands: tuple[Operand, ...], setting: Setting) -> Expression:
    first, second = operands[:2], operands[2:]
    kind = TIMESTAMPTZ if any(_kind(each) == "timestamptz" for each in operands) else TIMESTAMP
    ends = (*_ends(first, kind, setting), *_ends(second, kind, setting))
    return condition("overlaps", "(({0}, {1}) OVERLAPS ({2}, {3}))", *ends)


def _kind(operand: Operand) -> str:
    given = getattr(operand, "type", None)
    return given.kind if isinstance(given, Type) else ""


def _ends(period: tuple[Operand, ...], kind: Type, setting: Setting) -> tuple[Expression, Expression]:
    start = _moment(period[0], kind, setting)
    if _kind(period[1]) == "interval":
        found = shifted("+", start, period[1], setting)
        assert found is not None, "a moment moves"
        return start, found
    return start, _moment(period[1], kind, setting)


def _moment(operand: Operand, kind: Type, setting: Setting) -> Expression:
    given = as_passed(typed(operand, setting, kind), setting)
    if not given.type.is_time:
        raise NotSupported(f"OVERLAPS of {given.type.sql} is not supported over protected rows")
    return given if given.type.kind == kind.kind else cast_to(given, kind, setting)
