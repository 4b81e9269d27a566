"""The integer that stands for a number in a sum: total on every value of its type, and clamped last, always.

A value x becomes q = round(x / step), clamped to [low, high], in four steps of which each is there for a reason:

1. NULL and NaN become NULL first: `greatest(NULL, low)` is low, and a NaN that is cast to bigint raises.
2. x is clamped in its own type, to the ends of the lattice: infinities, 1e308 and numerics of 131,072 digits would
   overflow in what follows. Rounding is monotone, so this changes no integer that the last clamp would not.
3. It is scaled, rounded and cast to bigint, which cannot overflow any more.
4. The integer is clamped to [low, high] again. The sensitivity rests on this last step and on nothing before it.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from rules.refusal import NotSupported
from rules.values.expression import Column, Expression
from rules.values.types import Type
from rules.values.value import decimal_text, text_of

LARGEST = 2**60  # of a bound: twice of it, centred, is still a bigint


@dataclass(frozen=True, slots=True)
class Lattice:
    """Values are step · n for whole n from low to high."""

    step: Fraction = field(hash=False)  # whose hash takes longer than all others of a statement
    low: int
    high: int

    @property
    def reach(self) -> int:
        """The largest absolute value of one row's integer, at least 1 so that there is always noise."""
        return max(abs(self.low), abs(self.high), 1)

    @property
    def width(self) -> int:
        """The largest absolute value of 2n − (low + high): the distance from the middle, in halves of a step."""
        return max(self.high - self.low, 1)


@dataclass(frozen=True, slots=True)
class Summand:
    """An expression, and the lattice on which it is summed."""

    expression: Expression
    lattice: Lattice

    def __post_init__(self) -> None:
        low, high = self.lattice.low, self.lattice.high
        whole = isinstance(low, int) and isinstance(high, int) and isinstance(self.lattice.step, Fraction)
        if not whole or not -LARGEST <= low <= high <= LARGEST or self.lattice.step.numerator <= 0:
            raise NotSupported("the bounds of a sum must be multiples of its step, in ascending order and below 2^60")

    def wrap(self, *, is_stored: bool = False) -> str:
        """SQL of q, with {0} for the expression's text: a bigint, or NULL.

        A column is looked at twice, which costs nothing. What is computed is written once, in functions that keep NULL
        and take a NaN for the highest value: none that is computed is one.
        """
        lattice, kind = self.lattice, self.expression.type
        is_column = isinstance(self.expression, Column)
        match kind.kind:
            case "integer" if lattice.step == 1:
                return _seen("({0}) IS NOT NULL", "({0})::int8", lattice)
            case "numeric" if is_column and is_stored and _is_small(kind, lattice):
                return _seen("{0} <> 'NaN'", f"({{0}} * {_decimal(1 / lattice.step)})::int8", lattice)
            case "integer" | "numeric" if is_column:
                return _seen("({0})::numeric <> 'NaN'", _from_numeric(lattice, _CLAMPED), lattice)
            case "integer" | "numeric":
                return clamped(_from_numeric(lattice, "numeric_smaller(numeric_larger({}, {}), {})"), lattice)
            case "float" if is_column or lattice.step > 1:
                return _seen("({0})::float8 <> 'NaN'", _from_float(lattice, _CLAMPED), lattice)
            case "float":
                return clamped(_from_float(lattice, "float8smaller(float8larger({}, {}), {})"), lattice)
            case "date" | "timestamp" | "timestamptz" if lattice.step == 1:
                return _seen("({0}) IS NOT NULL", _from_time(self), lattice)
        raise NotSupported(f"values of type {kind.sql} cannot be summed in these steps")


_CLAMPED = "least(greatest({}, {}), {})"  # which take NULL for the lowest value


def _seen(there: str, whole: str, lattice: Lattice) -> str:
    return f"CASE WHEN {there} THEN least(greatest({whole}, {lattice.low}), {lattice.high}) END"


def clamped(whole: str, lattice: Lattice) -> str:
    """An integer that is clamped last; NULL stays NULL."""
    return f"int8smaller(int8larger({whole}, {lattice.low}), {lattice.high})"


def _is_small(kind: Type, lattice: Lattice) -> bool:
    """Return whether all that numeric(p, s) can be is a bigint in steps of the lattice, and needs no rounding."""
    if kind.size is None or kind.scale is None or kind.scale < 0:
        return False
    step = Fraction(1, 10**kind.scale)
    return (step / lattice.step).denominator == 1 and 10**kind.size * step / lattice.step < LARGEST


def _from_numeric(lattice: Lattice, clamp: str) -> str:
    """Multiplied by 1/step, which is exact: a quotient would be rounded twice."""
    low, high, scale = (
        _decimal(bound) for bound in (lattice.low * lattice.step, lattice.high * lattice.step, 1 / lattice.step)
    )
    return f"round({clamp.format('({0})::numeric', low, high)} * {scale})::int8"


def _decimal(number: Fraction) -> str:
    text = decimal_text(number)
    if text is None:
        raise NotSupported("a step must be a whole number of times a power of ten, or a power of two")
    return f"'{text}'::numeric"


def _from_float(lattice: Lattice, clamp: str) -> str:
    """Denormal numbers times less than one would be an underflow, which raises: far below a step, they are 0."""
    low, high, scale = (
        _double(bound) for bound in (lattice.low * lattice.step, lattice.high * lattice.step, 1 / lattice.step)
    )
    scaled = f"{clamp.format('({0})::float8', low, high)} * {scale}"
    if lattice.step > 1:
        scaled = f"CASE WHEN abs(({{0}})::float8) < 0.25 THEN 0 ELSE {scaled} END"
    return f"round({scaled})::int8"


def _double(number: Fraction) -> str:
    try:
        double = float(number)
    except OverflowError:
        double = float("inf")
    if not abs(double) < 1e300 or 0 < abs(double) < 1e-300 or (double == 0) != (number == 0):
        raise NotSupported("the bounds or the step of a double precision sum are out of range")
    return f"'{double!r}'::float8"


def _from_time(summand: Summand) -> str:
    """Days, or microseconds, since 1970; a timestamp's from its day and its time of day, exactly on every server.

    Clamped to years from 1 to 9999, where neither differences nor time zones can overflow.
    """
    kind = summand.expression.type.plain()
    ends = [text_of(Fraction(end), kind, "UTC") for end in (summand.lattice.low, summand.lattice.high)]
    if None in ends:
        raise NotSupported("the bounds of a date must lie within the years 1 to 9999")
    low, high = (f"'{end}'::{kind.sql}" for end in ends)
    clamped = f"least(greatest(({{0}}), {low}), {high})"
    if kind.kind == "date":
        return f"({clamped} - '1970-01-01'::date)::int8"
    if kind.kind == "timestamptz":
        clamped = f"({clamped} AT TIME ZONE 'UTC')"
    days = f"({clamped}::date - '1970-01-01'::date)::int8 * 86400000000"
    return f"{days} + round(extract(epoch FROM {clamped}::time)::numeric * 1000000)::int8"
