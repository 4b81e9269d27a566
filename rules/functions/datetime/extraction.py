"""Extract fields of moments, and read moments in another time zone."""

from fractions import Fraction

from rules.functions.casts import cast_to
from rules.functions.coerce import typed
from rules.functions.datetime.intervals import part_of_span
from rules.functions.datetime.moments import constant_field, constant_zone, mapped, moment
from rules.functions.function import EvalContext, Operands, function
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.clocks import find_shown
from rules.values.domain import Domain, Range
from rules.values.enforced import UNSURE, Sure
from rules.values.expression import Apply, Expression
from rules.values.types import FLOAT8, NUMERIC, TIMESTAMP, TIMESTAMPTZ, Type
from rules.values.value import DAY

# field -> what date_part can say of a moment in the years 1 to 9999, with its step
FIELDS: dict[str, tuple[int, int, Fraction]] = {
    "year": (1, 9999, Fraction(1)),
    "isoyear": (1, 10_000, Fraction(1)),
    "decade": (0, 1000, Fraction(1)),
    "century": (1, 100, Fraction(1)),
    "millennium": (1, 10, Fraction(1)),
    "quarter": (1, 4, Fraction(1)),
    "month": (1, 12, Fraction(1)),
    "week": (1, 53, Fraction(1)),
    "day": (1, 31, Fraction(1)),
    "doy": (1, 366, Fraction(1)),
    "dow": (0, 6, Fraction(1)),
    "isodow": (1, 7, Fraction(1)),
    "hour": (0, 23, Fraction(1)),
    "minute": (0, 59, Fraction(1)),
    "second": (0, 60, Fraction(1, 10**6)),
    "milliseconds": (0, 60_000, Fraction(1, 1000)),
    "microseconds": (0, 60_000_000, Fraction(1)),
    "epoch": (-62_135_596_800, 253_402_300_800, Fraction(1, 10**6)),
}
_CLOCK = frozenset(("hour", "minute", "second", "milliseconds", "microseconds"))  # that a date has not


@function(
    "extract",
    arguments=2,
    examples="""
    extract(year FROM d) | extract(epoch FROM tz) | extract(epoch FROM d) | extract(second FROM ts)
    extract(week FROM tz) | extract(isoyear FROM d) | extract(decade FROM ts) | extract(century FROM ts)
    extract(quarter FROM d) | extract(dow FROM tz) | extract(isodow FROM tz) | extract(doy FROM d)
    extract(hour FROM tz) | extract(minute FROM ts) | extract(epoch FROM iv) | extract(day FROM ts - ts_)
    extract(epoch FROM tz - tz_) | extract(year FROM age(ts, ts_)) | extract(month FROM age(tz, d))
    extract(year FROM age(d, '2000-01-01')) | extract(day FROM age(ts)) | extract(milliseconds FROM ts)
    extract(millennium FROM d) | extract(epoch FROM age(tz)) | extract(decade FROM age(ts, ts_))
    extract(century FROM age(ts, ts_)) | extract(second FROM age(ts, ts_))
    extract(epoch FROM interval '90 sec' * (i4 % 7)) | extract(hour FROM ts - tz)
    """,
)
def extract(operands: Operands, setting: EvalContext) -> Expression:
    """EXTRACT(field FROM x): numeric."""
    return _part(operands, setting, NUMERIC)


@function(
    "date_part",
    arguments=2,
    examples="""
    date_part('month', tz) | date_part('epoch', ts) | date_part('day', d) | date_part('microseconds', tz)
    """,
)
def date_part(operands: Operands, setting: EvalContext) -> Expression:
    """date_part('field', x): double precision."""
    return _part(operands, setting, FLOAT8)


def _part(operands: Operands, setting: EvalContext, result: Type) -> Expression:
    field = constant_field("extract", operands[0], setting)
    second = typed(operands[1], setting, TIMESTAMPTZ)
    if second.type.kind == "interval":
        return part_of_span(field, second, result)
    argument = moment(second, setting)
    if field not in FIELDS or (argument.type.kind == "date" and field in _CLOCK):
        raise NotSupported(
            f"extract({field} from {argument.type.sql}) is not supported",
            hint=f"The supported fields are {', '.join(FIELDS)}.",
        )
    # What PostgreSQL 14 and later type as numeric was double precision before; the outer cast says which.
    sql = f"extract({field} from {{0}})::{result.sql}"
    image = _part_image(field, argument, setting)
    held = Sure(digits=0) if result == NUMERIC and FIELDS[field][2] == 1 else UNSURE
    return Apply("extract", sql, (argument,), result, image, argument.nullable, held)


def _part_image(field: str, expression: Expression, setting: EvalContext) -> Domain:
    low, high, step = FIELDS[field]
    zone = setting.time_zone if expression.type.kind == "timestamptz" else None
    image = domain.range_of(expression.domain)
    if field not in ("year", "epoch") or image.low is None or image.high is None:
        return Range(Fraction(low), Fraction(high), step)
    if field == "epoch" and expression.type.kind == "date":
        return Range(image.low * 86_400, image.high * 86_400, Fraction(86_400))
    if field == "epoch":
        slack = Fraction(0) if setting.server_version >= 140000 else _INEXACT
        return Range(image.low / 10**6 - slack, image.high / 10**6 + slack, step)
    years = [_year(int(bound), expression.type, zone) for bound in (image.low, image.high)]
    if years[0] is None or years[1] is None:
        return Range(Fraction(low), Fraction(high), step)
    return Range(Fraction(years[0]), Fraction(years[1]), step if years[1] - years[0] < _MOST_YEARS else None)


_MOST_YEARS = 1000  # that are listed: those of the whole calendar are nobody's bounds
_INEXACT = Fraction(1, 1000)  # seconds: before PostgreSQL 14 extract makes a double, of which 15 digits are kept


def _year(bound: int, sql_type: Type, zone: str | None) -> int | None:
    local = bound * DAY if sql_type.kind == "date" else bound if zone is None else value.to_local(bound, zone)
    return None if local is None or not value.is_dated(local) else value.day_at(local // DAY).year


@function(
    "timezone",
    arguments=2,
    examples="""
    tz AT TIME ZONE 'America/New_York' | ts AT TIME ZONE 'Europe/Berlin' | timezone('UTC', d)
    """,
)
def at_time_zone(operands: Operands, setting: EvalContext) -> Expression:
    """timezone('zone', x), spelled x AT TIME ZONE 'zone'; the zone is a constant that is known here and there."""
    zone = constant_zone(operands[0], setting)
    argument = moment(operands[1], setting)
    if argument.type.kind == "date":
        argument = cast_to(argument, TIMESTAMPTZ, setting)
    name = zone.text or "UTC"
    to_local = argument.type.kind == "timestamptz"

    def change(item: Fraction) -> Fraction | None:
        changed = value.to_local(int(item), name) if to_local else value.to_instant(int(item), name)
        return None if changed is None else Fraction(changed)

    moved = _shown(argument.domain, name) if to_local else None
    moved = moved or mapped(argument.domain, change, slack=lambda bound: value.unevenness(int(bound), name))
    result = TIMESTAMP if to_local else TIMESTAMPTZ
    return Apply("timezone", "timezone({1}, {0})", (argument, zone), result, moved, argument.nullable)


def _shown(known: Domain, zone: str) -> Domain | None:
    """Return what a zone's clock shows between two instants; None where it is not known for all of them."""
    match known:
        case Range(low=Fraction() as low, high=Fraction() as high):
            shown = find_shown(int(low), int(high), zone)
            return None if shown is None else Range(*map(Fraction, shown))
    return None
