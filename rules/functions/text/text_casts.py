"""Casts from and to text: a text that is no number, date, boolean or uuid is NULL, for its error would tell of a row.

PostgreSQL reads more spellings than are read here; those that are read here it reads for certain.
"""

from collections.abc import Sequence
from fractions import Fraction

from rules.frozen import replace
from rules.functions.function import EvalContext
from rules.functions.guard import short
from rules.refusal import NotSupported
from rules.values import domain, value
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
LONGEST_NAME = 64  # bytes, with the one that ends it
_WIDEST = Fraction(10) ** 1000  # of a numeric(n,digits), counted in its last digit
MOST_ITEMS = 10_000  # of a finite domain, that are carried through a cast one by one
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


def as_text(expression: Expression, target: Type, setting: EvalContext) -> Expression:
    """Anything as text; varchar(n) cuts silently. The text of a timestamp with time zone is in the session's zone.

    A character(n) is its text without the blanks at the end, which PostgreSQL does not compare: 'a ' and 'a' are one.
    """
    if expression.type.is_time and not setting.styles.date.startswith("ISO"):
        hint = "SET DateStyle = 'ISO', or use to_char(x, 'YYYY-MM-DD')."
        raise NotSupported("casting a date to text over protected rows needs DateStyle ISO", hint=hint)
    if expression.type.kind == "float" and setting.styles.has_short_floats:
        hint = "SET extra_float_digits = 1, or use round(x::numeric, 2)."
        raise NotSupported("casting a double to text over protected rows needs extra_float_digits 1 or more", hint=hint)
    image: Domain = ANYTHING
    items = domain.items_of(expression.domain, MOST_ITEMS)
    kind = expression.type
    if kind.kind == "numeric":
        kind = replace(kind, scale=shown_digits(expression))
    if items is not None and kind.kind != "float" and (kind.kind != "numeric" or kind.scale is not None):
        texts = [value.text_of(item, kind, setting.time_zone) for item in items]
        known = [cut_to(text, target) for text in texts if text is not None]
        image = domain.values(known) if len(known) == len(texts) and _are_whole(known, target) else ANYTHING
    if target.base != "bpchar":
        return Apply("cast", f"({{0}})::{target.sql}", (expression,), target, image, expression.nullable)
    sql = "rtrim(({0})::text, ' ')" if target.size is None else f"({{0}})::{target.sql}::text"
    return Apply("cast", sql, (expression,), target, image, expression.nullable)


def cut_to(text: str, target: Type) -> str:
    """As varchar(n) and character(n) keep it. The blanks that fill up a character(n) are no part of it."""
    cut = text if target.size is None else text[: target.size]
    return cut.rstrip(" ") if target.base == "bpchar" else cut


def _are_whole(texts: list[str], target: Type) -> bool:
    """Return whether none is too long to be a name, which is cut by its bytes."""
    return target.base != "name" or all(len(text.encode()) < LONGEST_NAME for text in texts)


def shown_type(expression: Expression) -> str:
    """The type of what is computed, by casts after which a value has the zeros or blanks that PostgreSQL shows."""
    kind, digits = expression.type, shown_digits(expression)
    if kind.base == "numeric" and digits is not None:
        return f"numeric(1000,{digits})::numeric"
    return f"{kind.sql}::bpchar" if kind.base == "bpchar" else kind.plain().sql


def shown_digits(expression: Expression) -> int | None:
    """How many digits PostgreSQL shows behind the point of a number, zeros too; None where each row has its own.

    None too where a number with that many could be too long for a numeric(n,digits): the cast to it would fail.
    """
    digits, known = _digits_of(expression), domain.range_of(expression.domain)
    reach = expression.sure.reach
    if reach is None and known.low is not None and known.high is not None:
        reach = max(abs(known.low), abs(known.high))
    if digits and reach is None:
        return None
    return digits if digits is None or reach is None or max(reach, ONE) * 10**digits < _WIDEST else None


def _digits_of(expression: Expression) -> int | None:
    if expression.type.kind != "numeric" or expression.type.scale is not None:
        return max(expression.type.scale or 0, 0) if expression.type.kind in ("integer", "numeric") else None
    match expression:
        case Constant(text=str() as text):
            return len(text.partition(".")[2])
        case Apply(name="round" | "trunc", arguments=(_, Constant(value=Fraction() as places))):
            return max(int(places), 0)
        case Apply(name="floor" | "ceil" | "ceiling" | "round" | "trunc" | "sign" | "div"):
            return 0
        case Apply(name="extract"):
            return 0 if domain.range_of(expression.domain).step == ONE else None
        case Apply(name="+" | "-" | "%" | "*" as name, arguments=(left, right)):
            one, two = shown_digits(left), shown_digits(right)
            return None if one is None or two is None else one + two if name == "*" else max(one, two)
        case Apply(name="case", arguments=(*branches, default)):
            return _alike((*branches[1::2], default))
        case Apply(name="nullif", arguments=(_, argument)):
            return shown_digits(argument)
        case Apply(name="coalesce" | "greatest" | "least", arguments=arguments):
            return _alike(arguments)
        case Apply(name=name, arguments=(first, *_)) if expression.passes or name in _SHOWN_ALIKE:
            return shown_digits(first)
    return None


_SHOWN_ALIKE = frozenset(("abs", "negative", "clamp", "cast", "few digits"))


def _alike(expressions: Sequence[Expression]) -> int | None:
    """The digits that all have, but for NULLs."""
    there = (each for each in expressions if not isinstance(each, Constant) or each.text is not None)
    digits = {shown_digits(each) for each in there}
    return digits.pop() if len(digits) == 1 else None
