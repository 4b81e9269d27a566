"""Our own settings, as an analyst SETs them: text from the session, checked strictly, within what the rules allow."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

from rules.refusal import BadSetting, UnknownSetting

PREFIX: Final = "noisegate."
SETTINGS: Final = tuple(
    PREFIX + name
    for name in ("epsilon", "rows_per_unit", "groups_per_unit", "sum_per_unit", "confidence", "reuse", "notices")
)
LEAST_EPSILON: Final = Decimal("1e-6")  # a smaller one asks for nothing but noise, at scales that overflow
MOST_ROWS: Final = 1_000_000
CONFIDENCE: Final = Decimal("0.95")  # of error bars, unless another is asked for
LEAST_CONFIDENCE: Final = Decimal("0.5")
MOST_CONFIDENCE: Final = Decimal("0.999")  # `noise.replicates` has points for that

# Forty characters are enough: exact arithmetic with tens of thousands of digits would keep others waiting.
_NUMBER: Final = re.compile(r"(?=.{1,40}\Z)\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE: Final = re.compile(r"[0-9]{1,7}")
_AUTO: Final = re.compile(r"auto(?:\s+up\s+to\s+(?P<ceiling>\S+))?")
_SWITCHES: Final = {
    **dict.fromkeys(("on", "true", "yes", "t", "y", "1"), True),
    **dict.fromkeys(("off", "false", "no", "f", "n", "0"), False),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the rules say of one statement."""

    epsilon: Decimal  # unless the session asks for another
    max_epsilon: Decimal
    delta: Decimal
    min_epsilon: Decimal = LEAST_EPSILON


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session asks for."""

    epsilon: Decimal
    rows_per_unit: int | None = None
    groups_per_unit: int | None = None
    rows_auto: bool | None = None  # whether the rows that count are chosen privately; None: as the rules say
    sums_auto: bool | None = None  # whether the bounds of sums are
    confidence: Decimal = CONFIDENCE  # of error bars
    reuse: bool = True
    notices: bool = True


def read_settings(values: Mapping[str, str | None], limits: Limits) -> Settings:
    """The settings that are in force, by their full names; what was never SET is missing, NULL or empty.

    Example:
        >>> rules = Limits(epsilon=Decimal("0.1"), max_epsilon=Decimal(1), delta=Decimal(0))
        >>> read_settings({"noisegate.epsilon": "0.5"}, rules).epsilon
        Decimal('0.5')
    """
    rows, rows_auto = _rows(values.get("noisegate.rows_per_unit"))
    return Settings(
        epsilon=_epsilon(values.get("noisegate.epsilon") or "", limits),
        rows_per_unit=rows,
        groups_per_unit=_whole(values.get("noisegate.groups_per_unit"), "noisegate.groups_per_unit"),
        rows_auto=rows_auto,
        sums_auto=_sums(values.get("noisegate.sum_per_unit")),
        confidence=_confidence(values.get("noisegate.confidence") or ""),
        reuse=_switch("noisegate.reuse", values),
        notices=_switch("noisegate.notices", values),
    )


def is_ours(name: str) -> bool:
    """Whether a setting is one of ours, or would be; PostgreSQL looks settings up in any case."""
    return name.lower().startswith(PREFIX)


def check_setting(name: str, value: str | None, limits: Limits) -> None:
    """Refuse a setting that there is not, and a value that no statement could be answered with, when it is SET.

    A value of None is not known yet: it is checked when it is used.
    """
    known = name.lower()
    if known not in SETTINGS:
        close = get_close_matches(known, SETTINGS, n=1)
        hint = f'Did you mean "{close[0]}"?' if close else f"There are {', '.join(SETTINGS)}."
        raise UnknownSetting(f'unrecognized configuration parameter "{name}"', hint=hint)
    read_settings({known: value}, limits)


def _epsilon(text: str, limits: Limits) -> Decimal:
    """An exact decimal between the least and the rules' most: no NaN, no infinity, nothing below zero."""
    if not text.strip():
        return limits.epsilon
    written, least = _NUMBER.fullmatch(text.strip()), max(LEAST_EPSILON, limits.min_epsilon)
    if written is None or not least <= (epsilon := Decimal(text.strip())) <= limits.max_epsilon:
        hint = f"SET noisegate.epsilon = {limits.max_epsilon:f} asks for the least noise that the rules allow."
        if written is not None and Decimal(text.strip()) < least:
            hint = f"SET noisegate.epsilon = {least:f} asks for the smallest charge that the rules allow."
        raise BadSetting(f"noisegate.epsilon takes a number from {least:f} to {limits.max_epsilon:f}", hint=hint)
    return epsilon


def _rows(text: str | None) -> tuple[int | None, bool | None]:
    """ "40", "auto" or "auto up to 40": how many rows of a unit count at most, and whether fewer may be chosen."""
    found = _AUTO.fullmatch((text or "").strip().lower())
    number = _whole(found["ceiling"] if found else text, "noisegate.rows_per_unit", ", auto, or auto up to 40")
    return number, True if found else None if number is None else False


def _sums(text: str | None) -> bool | None:
    known = {"": None, "auto": True, "off": False}
    given = (text or "").strip().lower()
    if given not in known:
        hint = "RESET noisegate.sum_per_unit goes back to the rules."
        raise BadSetting("noisegate.sum_per_unit takes auto or off", hint=hint)
    return known[given]


def _confidence(text: str) -> Decimal:
    """The share of answers that error bars hold."""
    if not text.strip():
        return CONFIDENCE
    written = _NUMBER.fullmatch(text.strip())
    if written is None or not LEAST_CONFIDENCE <= (level := Decimal(text.strip())) <= MOST_CONFIDENCE:
        raise BadSetting(
            f"noisegate.confidence takes a number from {LEAST_CONFIDENCE} to {MOST_CONFIDENCE}",
            hint="SET noisegate.confidence = 0.9 asks for bars that hold nine of ten answers.",
        )
    return level


def _whole(given: str | None, name: str, more: str = "") -> int | None:
    text = (given or "").strip()
    if not text:
        return None
    if _WHOLE.fullmatch(text) is None or not 1 <= int(text) <= MOST_ROWS:
        raise BadSetting(
            f"{name} takes a whole number from 1 to {MOST_ROWS}{more}", hint=f"RESET {name} goes back to the rules."
        )
    return int(text)


def _switch(name: str, values: Mapping[str, str | None]) -> bool:
    text = (values.get(name) or "").strip().lower() or "on"
    if text not in _SWITCHES:
        raise BadSetting(f"{name} takes on or off", hint=f"RESET {name} turns it on again.")
    return _SWITCHES[text]
