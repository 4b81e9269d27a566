"""Casts from and to text: a text that is no number, date, boolean or uuid is NULL, for its error would tell of a row.

PostgreSQL reads more forms than are read here; those that are read here it reads without an error.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from rules.frozen import replace
from rules.functions.function import EvalContext
from rules.functions.guard import short
from rules.refusal import NotSupported
from rules.values import domain, value
from rules.values.domain import ANYTHING, ONE, TRUTHS, UNBOUNDED, Domain, Range, Values
from rules.values.expression import Apply, Constant, Expression
from rules.values.types import BOOLEAN, DATE, FLOAT8, JSONB, NUMERIC, TEXT, TIMESTAMP, UUID, Type
from rules.values.value import FIRST_DAY, LAST_DAY, Value

# PostgreSQL forgives these around numbers, truths, dates and times, and no other blanks.
_BLANKS = r"[ \t\n\v\f\r]*"
_SIGNED = "[-+]?"
_WHOLE = f"{_SIGNED}[0-9]{{1,100}}"
# Exponents that neither the digits of a numeric nor the range of a double can fail on.
_EXPONENT = "([eE][-+]?(0*[0-9]{1,2}|1[0-9]{2}))?"
_DECIMAL = rf"{_SIGNED}([0-9]{{1,100}}(\.[0-9]{{0,100}})?|\.[0-9]{{1,100}}){_EXPONENT}"
# Leap years are multiples of 4, and of 100 only those of 400: by the last two digits, and then by all four.
_FOURTH = "(0[48]|[2468][048]|[13579][26])"
_YEAR = "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_LEAP_YEAR = f"([0-9]{{2}}{_FOURTH}|{_FOURTH}00)"
# PostgreSQL reads seven digits as a date with a year of three, and six as one from 1970 to 2069.
_SHORT_YEAR = "([0-9]{2}|[1-9][0-9]{2})"
_SHORT_LEAP_YEAR = f"([1-9]?{_FOURTH}|00|[48]00)"


def _day(year: str, leap: str, separator: str, zero: str) -> str:
    """A pattern of the days that there are: 28 of any month, 29 and 30 but of February, 31 of the long ones."""
    usual = f"({zero}[1-9]|1[0-2]){separator}({zero}[1-9]|1[0-9]|2[0-8])"
    late = f"({zero}[13-9]|1[0-2]){separator}(29|30)|({zero}[13578]|1[02]){separator}31"
    return f"({year}{separator}({usual}|{late})|{leap}{separator}{zero}2{separator}29)"


_DAY = "|".join(
    (
        *(_day(_YEAR, _LEAP_YEAR, separator, "0?") for separator in "-/"),
        *(_day(year, leap, "", "0") for year, leap in ((_YEAR, _LEAP_YEAR), (_SHORT_YEAR, _SHORT_LEAP_YEAR))),
    )
)
_SECONDS = r":([0-5][0-9](\.[0-9]{1,30})?|60)"
_CLOCK = rf"(([01]?[0-9]|2[0-3]):[0-5][0-9]({_SECONDS})?|24:00(:00)?)"
_ZONE = "(Z|[-+]((0?[0-9]|1[0-5])(:[0-5][0-9]){0,2}|(0[0-9]|1[0-5])[0-5][0-9]))"
_MOMENT = f"({_DAY})((T| +){_CLOCK}( ?{_ZONE})?)?"
_TRUTH = (
    "([tT]([rR]([uU][eE]?)?)?|[fF]([aA]([lL]([sS][eE]?)?)?)?|[yY]([eE][sS]?)?|[nN][oO]?|[oO][nN]|[oO][fF][fF]?|[01])"
)
_UUID = "([0-9A-Fa-f]{4}-?){7}[0-9A-Fa-f]{4}"
PATTERNS = {
    "integer": f"^{_BLANKS}{_WHOLE}{_BLANKS}$",
    "numeric": f"^{_BLANKS}{_DECIMAL}{_BLANKS}$",
    "float": f"^{_BLANKS}{_DECIMAL}{_BLANKS}$",
    "date": f"^{_BLANKS}{_MOMENT}{_BLANKS}$",
    "timestamp": f"^{_BLANKS}{_MOMENT}{_BLANKS}$",
    "boolean": f"^{_BLANKS}{_TRUTH}{_BLANKS}$",
    "uuid": rf"^({_UUID}|\{{{_UUID}\}})$",
}
_HUGE = Fraction(10) ** 300
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
    nullable = True
    if target.is_time:
        _check_form(expression, target)
        image = _moments(expression.domain, read_as) or image
        nullable = expression.nullable or not _are_all_read(expression.domain)
    pattern = Constant(TEXT, PATTERNS[target.kind], PATTERNS[target.kind])
    sql = f"CASE WHEN {{0}} ~ {{1}} THEN ({{0}})::{read_as.sql} END"
    text = short(expression)
    return Apply("read", sql, (text, pattern), read_as, image, nullable or text.nullable)


def _moments(texts: Domain, target: Type) -> Domain | None:
    """The days or moments in listed texts, as far as they have a form that is read; None where that is not known."""
    if not isinstance(texts, Values):
        return None
    found = set[Value]()
    for text in texts.items:
        if re.fullmatch(PATTERNS[target.kind], str(text), re.ASCII) is not None:
            moment = value.find_value(_COMPACT.sub(_with_hyphens, str(text).replace("/", "-")), target)
            if moment is None:
                return None
            found.add(moment)
    return domain.values(found)


_COMPACT = re.compile(r"\b([0-9]{2,4})([0-9]{2})([0-9]{2})\b")


def _with_hyphens(day: re.Match[str]) -> str:
    year = int(day[1])
    if len(day[1]) == 2:
        year += 2000 if year < 70 else 1900
    return f"{year:04}-{day[2]}-{day[3]}"


def _check_form(expression: Expression, target: Type) -> None:
    """Refuse a text that is plainly of another form than those that are read: PostgreSQL reads some of these too."""
    match _origin(expression):
        case Apply(name="cast", arguments=(number,)) if number.type.is_number and number.sure.digits != 0:
            hint = "Cast a whole number such as 20210131, or the moment itself."
        case Apply(name="to_char", arguments=(_, Constant(text=str() as mask))) if not _is_read(mask, target):
            hint = f"Use to_char(x, 'YYYY-MM-DD'), or cast the moment itself: x::{target.sql}."
        case _:
            return
    raise NotSupported(f"a cast to {target.sql} of a text in this form is not supported over protected rows", hint=hint)


def _origin(expression: Expression) -> Expression:
    """What a text was made of: casts from text to text and limits of its length do not change its form."""
    while isinstance(expression, Apply) and expression.name in ("cast", "short", "left", "listed", "within"):
        if expression.arguments[0].type.kind != "text":
            break
        expression = expression.arguments[0]
    return expression


def _is_read(mask: str, target: Type) -> bool:
    """Return whether to_char with this mask makes a text that is read as a date."""
    sample = "2021-11-12 13:14:15.123456"
    parts = {
        "YYYY": sample[:4],
        "MM": "11",
        "DD": "12",
        "HH24": "13",
        "MI": "14",
        "SS": "15",
        "MS": "123",
        "US": "123456",
    }
    made = re.sub("FM(?=MM|DD)|YYYY|MM|DD|HH24|MI|SS|MS|US", lambda field: parts.get(field[0], ""), mask)
    return re.fullmatch(PATTERNS[target.kind], made.replace('"', ""), re.ASCII) is not None


def texts_read(expression: Expression) -> Iterator[Type]:
    """The types that texts are read as, whose form depends on the row: texts of other forms are NULL there."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Apply):
            waiting += part.arguments
            if part.name == "read" and part.type.is_time and not _has_one_form(_origin(part.arguments[0])):
                yield part.type


def _has_one_form(text: Expression) -> bool:
    """Return whether all texts are of a form that is read: those of others were refused."""
    match text:
        case Apply(name="cast") | Apply(name="to_char", arguments=(_, Constant())):
            return True
        case _:
            return _are_all_read(text.domain)


def _are_all_read(texts: Domain) -> bool:
    """Return whether the texts are listed, and each is of a form that is read as a date."""
    listed = texts.items if isinstance(texts, Values) else (None,)
    return all(isinstance(text, str) and re.fullmatch(PATTERNS["date"], text, re.ASCII) for text in listed)


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
