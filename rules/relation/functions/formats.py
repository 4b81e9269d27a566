"""to_timestamp and to_date of a constant text by a constant format, as tools write the bounds of a time filter."""

import re

from rules.refusal import NotSupported
from rules.relation.expression import Constant, Literal, Operand
from rules.relation.functions.coerce import literal, unreadable
from rules.relation.functions.guard import Setting
from rules.relation.types import DATE, TIMESTAMPTZ, Type
from rules.relation.value import find_value

_FIELD = re.compile(r'YYYY|MM|DD|HH24|MI|SS|MS|US|"[^"\\]*"|[^A-Za-z0-9"\\]', re.IGNORECASE)
_DIGITS = {"YYYY": 4, "MM": 2, "DD": 2, "HH24": 2, "MI": 2, "SS": 2, "MS": 3, "US": 6}
_EXAMPLE = "to_timestamp('2025-01-31 13:45:00', 'YYYY-MM-DD HH24:MI:SS')"


def to_timestamp(operands: tuple[Operand, ...], setting: Setting) -> Constant:
    """to_timestamp(text, format): a moment of the session's time zone."""
    found = _fields(operands)
    clock = f"{found.get('HH24', '00')}:{found.get('MI', '00')}:{found.get('SS', '00')}"
    fraction = found.get("US") or found.get("MS") or "0"
    return _known(f"{_day(found)} {clock}.{fraction}", TIMESTAMPTZ, setting)


def to_date(operands: tuple[Operand, ...], setting: Setting) -> Constant:
    """to_date(text, format)."""
    return _known(_day(_fields(operands)), DATE, setting)


def _known(text: str, given: Type, setting: Setting) -> Constant:
    if find_value(text, given, setting.time_zone) is None:
        raise unreadable(text, given)
    return literal(text, given, setting)


def _day(found: dict[str, str]) -> str:
    return f"{found['YYYY']}-{found.get('MM', '01')}-{found.get('DD', '01')}"


def _fields(operands: tuple[Operand, ...]) -> dict[str, str]:
    """The digits of each field. PostgreSQL forgives much where text and format differ; here they have to agree."""
    given, pattern = map(_constant, operands)
    parts = _FIELD.findall(pattern)
    names = [part.upper() for part in parts if part.upper() in _DIGITS]
    if "".join(parts) != pattern or "YYYY" not in names or len(set(names)) < len(names):
        raise NotSupported(f"the format '{pattern[:60]}' is not read here", hint=f"Write it as {_EXAMPLE}.")
    read = re.fullmatch("".join(map(_read, parts)), given)
    if read is None:
        shown = f"'{given[:60]}' is not written as the format '{pattern[:60]}' says"
        raise NotSupported(shown, hint=f"Write it as {_EXAMPLE}.")
    return dict(zip(names, read.groups(), strict=True))


def _read(part: str) -> str:
    digits = _DIGITS.get(part.upper())
    return re.escape(part.strip('"')) if digits is None else f"([0-9]{{{digits}}})"


def _constant(operand: Operand) -> str:
    text = operand.text if isinstance(operand, Literal | Constant) else None
    if text is None:
        raise NotSupported("only constants are read by a format over protected rows", hint=f"Write {_EXAMPLE}.")
    return text
