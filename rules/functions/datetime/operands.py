"""Operands of functions of dates and times: moments in the years 1 to 9999, constant fields and zones, the clock."""

from rules.functions.casts import cast_to
from rules.functions.coerce import literal, typed
from rules.functions.context import EvalContext
from rules.functions.guard import as_value, within, year_limits
from rules.refusal import NotSupported
from rules.values import value
from rules.values.expression import Constant, Expression, Literal, Operand
from rules.values.time_zones import note_name
from rules.values.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import DAY

_SPOKEN = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "y": "year", "mon": "month", "mons": "month", "d": "day", "h": "hour",
    "m": "minute", "s": "second", "sec": "second", "min": "minute", "mins": "minute", "secs": "second",
    "decades": "decade", "centuries": "century", "millisecond": "milliseconds", "microsecond": "microseconds",
}  # fmt: skip


def moment(operand: Operand, setting: EvalContext, sql_type: Type = TIMESTAMPTZ) -> Expression:
    argument = as_value(typed(operand, setting, sql_type), setting)
    if not argument.type.is_time:
        raise NotSupported(f"the argument must be a date or timestamp, not {argument.type.sql}")
    return _dated(argument)


def _dated(expression: Expression) -> Expression:
    """Return what was computed may have left the calendar: the decade of the year 5 began in 1 BC."""
    first, last = year_limits(expression.type)
    if expression.type.kind != "timestamptz":  # whose first and last day have no text in every zone
        day = 1 if expression.type.kind == "date" else DAY
        first, last = first - day, last + 2 * day - 1
    if expression.sure.is_within(first, last):
        return expression
    return within(expression, first, last)


def constant_field(name: str, operand: Operand, setting: EvalContext) -> str:
    field = operand.text if isinstance(operand, Literal) else typed(operand, setting, TEXT)
    text = field.text if isinstance(field, Constant) else field
    if not isinstance(text, str):
        raise NotSupported(f"{name} needs a constant field, as in {name}('month', …)")
    plain = text.strip().lower()
    return _SPOKEN.get(plain, plain)


def constant_zone(operand: Operand, setting: EvalContext) -> Constant:
    zone = typed(operand, setting, TEXT)
    if not isinstance(zone, Constant) or zone.text is None or value.find_zone(zone.text) is None:
        hint = "Use a constant time zone name, as in AT TIME ZONE 'Europe/Berlin'."
        raise NotSupported("AT TIME ZONE over protected rows needs a constant time zone name", hint=hint)
    if setting.time_zones is not None and zone.text not in setting.time_zones:
        shown = f"the real database has no time zone '{zone.text[:60]}'"
        raise NotSupported(shown, hint="The view pg_timezone_names of the real database lists its time zones.")
    note_name(zone.text)
    return zone


def clock(name: str, setting: EvalContext) -> Expression:
    """now() and its kin: one value for the statement."""
    if setting.now is None:
        raise NotSupported(f"{name} has no value in this context")
    instant = setting.now.isoformat(sep=" ")
    constant = literal(instant, TIMESTAMPTZ, setting)
    if name == "current_date":
        return cast_to(constant, DATE, setting)
    return cast_to(constant, TIMESTAMP, setting) if name == "localtimestamp" else constant
