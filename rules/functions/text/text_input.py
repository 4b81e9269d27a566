"""Texts read as numbers, dates, booleans and uuids: a text that is none is NULL, for its error would tell of a row.

PostgreSQL reads more spellings than are read here; those that are read here it reads for certain.
"""

from fractions import Fraction

from rules.functions.guard import short
from rules.values.domain import ANYTHING, ONE, TRUTHS, UNBOUNDED, Domain, Range
from rules.values.expression import Apply, Constant, Expression
from rules.values.types import BOOLEAN, DATE, FLOAT8, JSONB, NUMERIC, TEXT, TIMESTAMP, UUID, Type
from rules.values.value import FIRST_DAY, LAST_DAY

_SIGNED = "[-+]?"
_WHOLE = rf"^{_SIGNED}[0-9]{{1,100}}$"
_DECIMAL = rf"^{_SIGNED}([0-9]{{1,100}}(\.[0-9]{{0,100}})?|\.[0-9]{{1,100}})$"
# The days of a month: 28 of any, 29 and 30 but of February, 31 of the long ones, 29 of February in leap years.
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_YEAR = "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_DAY = f"({_YEAR}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|{_LEAP}-02-29)"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_PATTERNS = {
    "integer": _WHOLE,
    "numeric": _DECIMAL,
    "float": _DECIMAL,
    "date": rf"^{_DAY}([T ]{_CLOCK})?$",
    "timestamp": rf"^{_DAY}([T ]{_CLOCK})?$",
    "boolean": "(?i)^(true|false|yes|no|on|off|[tfyn01])$",
    "uuid": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
}
_HUGE = Fraction(10) ** 101
# What a kind of types is read as: integers of any width as numeric, which holds all of them.
_READ_AS: dict[str, tuple[Type, Domain]] = {
    "integer": (NUMERIC, Range(-_HUGE, _HUGE, ONE)),
    "numeric": (NUMERIC, Range(-_HUGE, _HUGE)),
    "float": (FLOAT8, Range(-_HUGE, _HUGE)),
    "date": (DATE, Range(Fraction(FIRST_DAY), Fraction(LAST_DAY), ONE)),
    "timestamp": (TIMESTAMP, UNBOUNDED),
    "boolean": (BOOLEAN, TRUTHS),
    "uuid": (UUID, ANYTHING),
}


def find_read(expression: Expression, target: Type) -> Expression | None:
    """A text as a value of the target's kind, still to be cast to the target itself; None where texts are not read."""
    if target.kind not in _READ_AS:
        return None
    read_as, image = _READ_AS[target.kind]
    pattern = Constant(TEXT, _PATTERNS[target.kind], _PATTERNS[target.kind])
    sql = f"CASE WHEN {{0}} ~ {{1}} THEN ({{0}})::{read_as.sql} END"
    return Apply("read", sql, (short(expression), pattern), read_as, image, nullable=True)


def find_in_document(expression: Expression, target: Type) -> Expression | None:
    """A number or truth in a document; NULL where something else stands, for which PostgreSQL has an error."""
    word, read_as = ("boolean", BOOLEAN) if target.kind == "boolean" else ("number", NUMERIC)
    if expression.type != JSONB or not (target.is_number or target.kind == "boolean"):
        return None
    value = f"({{0}})::{read_as.sql}"
    if target.is_number:  # as far as all numbers are computed with
        value = f"CASE WHEN abs({value}) <= 1e300 THEN {value} END"
    sql = f"CASE WHEN jsonb_typeof({{0}}) = '{word}' THEN {value} END"
    return Apply("read", sql, (expression,), read_as, TRUTHS if target.kind == "boolean" else UNBOUNDED, nullable=True)
