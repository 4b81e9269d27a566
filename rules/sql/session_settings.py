"""Our own settings, as an analyst SETs them: text from the session, checked strictly, within what the rules allow."""

import re
from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, Literal

from rules.frozen import frozen
from rules.refusal import BadSetting, UnknownSetting

MarkKind = Literal["off", "on", "cell"]
EmptyGroups = Literal["hide", "show"]
PreviewKind = Literal["refuse", "empty", "synthetic", "synopsis"]

PREFIX: Final = "noisegate."
_NAMES: Final = (
    *("epsilon", "rows_per_unit", "groups_per_unit", "sum_per_unit"),
    *("within", "cut", "other", "mark", "empty_groups", "confidence", "reuse", "notices", "progress", "previews"),
    "delta",
)
SETTINGS: Final = tuple(PREFIX + name for name in _NAMES)
LEAST_EPSILON: Final = Decimal("1e-6")  # a smaller one asks for nothing but noise, at scales that overflow
MOST_ROWS: Final = 1_000_000
CONFIDENCE: Final = Decimal("0.95")  # of error bars, unless another is asked for
LEAST_CONFIDENCE: Final = Decimal("0.5")
MOST_CONFIDENCE: Final = Decimal("0.999")  # `noise.replicates` has points for that
_MOST_WITHIN: Final = 10**100  # beyond any answer; its square is still a float
PROGRESS_SECONDS: Final = 5  # between NOTICEs that a statement still runs, unless the session says how many
MOST_PROGRESS_SECONDS: Final = 3600

# Forty characters are enough: exact arithmetic with tens of thousands of digits would keep others waiting.
_NUMBER: Final = re.compile(r"(?=.{1,40}\Z)\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE: Final = re.compile(r"[0-9]{1,7}")
_AUTO: Final = re.compile(r"auto(?:\s+up\s+to\s+(?P<ceiling>\S+))?")
_SWITCHES: Final = {
    **dict.fromkeys(("on", "true", "yes", "t", "y", "1"), True),
    **dict.fromkeys(("off", "false", "no", "f", "n", "0"), False),
}
_MARKS: Final[dict[str, MarkKind]] = {
    **{text: "on" if switch else "off" for text, switch in _SWITCHES.items()},
    "cell": "cell",
}
_EMPTY_GROUPS: Final[dict[str, EmptyGroups]] = {"hide": "hide", "show": "show"}

_PREVIEWS: Final[dict[str, PreviewKind]] = {
    "refuse": "refuse", "empty": "empty", "synthetic": "synthetic", "synopsis": "synopsis",
}  # fmt: skip


@frozen
class SettingLimits:
    """The limits that the rules set for one statement."""

    epsilon: Decimal  # unless the session asks for another
    max_epsilon: Decimal
    delta: Decimal
    min_epsilon: Decimal = LEAST_EPSILON
    group_size: int = 1  # units that are protected together
    previews: PreviewKind = "refuse"
    hides_few: bool = False  # whether no number is shown about few units
    empty_groups: EmptyGroups = "hide"  # of groups whose numbers could be noise alone


@frozen
class Within:
    """The most that noise may move an answer: by so much, or by this share of it."""

    amount: Fraction
    is_relative: bool
    text: str  # as it was SET


@frozen
class AnalystSettings:
    """The settings that a session asks for."""

    epsilon: Decimal
    rows_per_unit: int | None = None
    groups_per_unit: int | None = None
    rows_auto: bool | None = None  # whether the rows that count are chosen privately; None: as the rules say
    sums_auto: bool | None = None  # whether the bounds of sums are
    cut: bool = False  # whether a lower bound of what is cut is bought
    other: bool = False  # whether values that are not as the rules declare make a group too
    confidence: Decimal = CONFIDENCE  # of error bars
    reuse: bool = True
    notices: bool = True
    progress: int | None = None  # seconds between NOTICEs that a statement still runs; None: there are none
    within: Within | None = None  # how far noise may move an answer, in place of epsilon
    mark: MarkKind = "off"  # of numbers that noise could have made
    empty_groups: EmptyGroups = "hide"  # of groups whose numbers could be noise alone
    previews: PreviewKind = "refuse"  # what rows of protected tables with a LIMIT get
    delta: Decimal = Decimal(0)  # of a statement whose groups are found in the data; 0: none is answered


def read_settings(values: Mapping[str, str | None], limits: SettingLimits) -> AnalystSettings:
    """The settings that are in force, by their full names; what was never SET is missing, NULL or empty.

    Example:
        >>> rules = SettingLimits(epsilon=Decimal("0.1"), max_epsilon=Decimal(1), delta=Decimal(0))
        >>> read_settings({"noisegate.epsilon": "0.5"}, rules).epsilon
        Decimal('0.5')
    """
    rows, rows_auto = _rows(values.get("noisegate.rows_per_unit"))
    return AnalystSettings(
        epsilon=_epsilon(values.get("noisegate.epsilon") or "", limits),
        rows_per_unit=rows,
        groups_per_unit=_whole(values.get("noisegate.groups_per_unit"), "noisegate.groups_per_unit"),
        rows_auto=rows_auto,
        sums_auto=_sums(values.get("noisegate.sum_per_unit")),
        confidence=_confidence(values.get("noisegate.confidence") or ""),
        cut=_cut(values, limits),
        other=_switch("noisegate.other", values, unless="off"),
        reuse=_switch("noisegate.reuse", values),
        notices=_switch("noisegate.notices", values),
        progress=_progress(values.get("noisegate.progress") or ""),
        within=_within(values.get("noisegate.within") or ""),
        mark=_mark(values.get("noisegate.mark") or ""),
        empty_groups=_empty_groups(values.get("noisegate.empty_groups") or "", limits),
        previews=_previews(values.get("noisegate.previews") or "", limits),
        delta=_delta(values.get("noisegate.delta") or "", limits),
    )


def is_ours(name: str) -> bool:
    """Return whether a setting is one of ours, or would be; PostgreSQL looks settings up in any case."""
    return name.lower().startswith(PREFIX)


def check_setting(name: str, value: str | None, limits: SettingLimits) -> None:
    """Refuse a setting that there is not, and a value that no statement could be answered with, when it is SET.

    A value of None is not known yet: it is checked when it is used.
    """
    check_setting_name(name)
    read_settings({name.lower(): value}, limits)


def check_setting_name(name: str) -> None:
    """Refuse a setting of ours that there is not."""
    known = name.lower()
    if known not in SETTINGS:
        close = get_close_matches(known.removeprefix(PREFIX), _NAMES, n=1)  # the prefix alone would be near to each
        hint = f'Did you mean "{PREFIX}{close[0]}"?' if close else f"The settings are {', '.join(SETTINGS)}."
        raise UnknownSetting(f'unrecognized configuration parameter "{name}"', hint=hint)


def _epsilon(text: str, limits: SettingLimits) -> Decimal:
    """An exact decimal between the least and the rules' most: no NaN, no infinity, nothing below zero."""
    if not text.strip():
        return limits.epsilon
    written, least = _NUMBER.fullmatch(text.strip()), max(LEAST_EPSILON, limits.min_epsilon)
    if written is None or not least <= (epsilon := Decimal(text.strip())) <= limits.max_epsilon:
        hint = f"SET noisegate.epsilon = {limits.max_epsilon:f} gives the least noise that the rules file allows."
        if written is not None and Decimal(text.strip()) < least:
            hint = f"SET noisegate.epsilon = {least:f} gives the smallest charge that the rules file allows."
        raise BadSetting(f"noisegate.epsilon must be a number from {least:f} to {limits.max_epsilon:f}", hint=hint)
    return epsilon


def _delta(text: str, limits: SettingLimits) -> Decimal:
    """Less than the rules say, or 0 for a tool that is not to look for groups in the data."""
    if not text.strip():
        return limits.delta
    written = _NUMBER.fullmatch(text.strip())
    if written is None or not 0 <= (delta := Decimal(text.strip())) <= limits.delta:
        hint = "SET noisegate.delta = 0 refuses statements that find groups in the data, at no charge."
        raise BadSetting(f"noisegate.delta must be a number from 0 to {limits.delta.normalize()}", hint=hint)
    return delta


def _cut(values: Mapping[str, str | None], limits: SettingLimits) -> bool:
    """The report is about those units alone that have most rows, of whom there may be few."""
    wanted = _switch("noisegate.cut", values, unless="off")
    if wanted and limits.hides_few:
        hint = "RESET noisegate.cut. EXPLAIN shows how many rows of a unit count."
        raise BadSetting("noisegate.cut is off where the rules file has min_units", hint=hint)
    return wanted


def _rows(text: str | None) -> tuple[int | None, bool | None]:
    """ "40", "auto" or "auto up to 40": how many rows of a unit count at most, and whether fewer may be chosen."""
    match = _AUTO.fullmatch((text or "").strip().lower())
    number = _whole(match["ceiling"] if match else text, "noisegate.rows_per_unit", ", auto, or auto up to 40")
    return number, True if match else None if number is None else False


def _sums(text: str | None) -> bool | None:
    known = {"": None, "auto": True, "off": False}
    word = (text or "").strip().lower()
    if word not in known:
        hint = "RESET noisegate.sum_per_unit restores the value of the rules file."
        raise BadSetting("noisegate.sum_per_unit must be auto or off", hint=hint)
    return known[word]


def _confidence(text: str) -> Decimal:
    """The share of answers that error bars hold."""
    if not text.strip():
        return CONFIDENCE
    written = _NUMBER.fullmatch(text.strip())
    if written is None or not LEAST_CONFIDENCE <= (level := Decimal(text.strip())) <= MOST_CONFIDENCE:
        raise BadSetting(
            f"noisegate.confidence must be a number from {LEAST_CONFIDENCE} to {MOST_CONFIDENCE}",
            hint="SET noisegate.confidence = 0.9 gives error bars that hold for nine of ten answers.",
        )
    return level


def _within(text: str) -> Within | None:
    """ "5%" of the answer, or 50 in its own unit."""
    width = text.strip()
    if width.lower() in ("", "off"):
        return None
    number = width.removesuffix("%").rstrip()
    is_relative, written = width.endswith("%"), _NUMBER.fullmatch(number)
    if (
        written is None
        or not 0 < (amount := Fraction(Decimal(number))) <= _MOST_WITHIN
        or (is_relative and amount >= 100)
    ):
        raise BadSetting(
            "noisegate.within takes a number above 0 (1e100 at most), or a share of the answer below 100%",
            hint="SET noisegate.within = '5%' asks for answers that noise moves by at most a twentieth.",
        )
    return Within(amount / 100 if is_relative else amount, is_relative, width)


def _progress(text: str) -> int | None:
    """On, off, or after how many seconds a NOTICE says again that the statement runs: 1 is a second, not a switch."""
    written = text.strip().lower() or "on"
    if _WHOLE.fullmatch(written) is None and written in _SWITCHES:
        return PROGRESS_SECONDS if _SWITCHES[written] else None
    if _WHOLE.fullmatch(written) is None or int(written) > MOST_PROGRESS_SECONDS:
        raise BadSetting(
            f"noisegate.progress takes on, off, or whole seconds, {MOST_PROGRESS_SECONDS} at most",
            hint="SET noisegate.progress = 30 says after each half minute that a statement still runs.",
        )
    return int(written) or None


def _mark(text: str) -> MarkKind:
    word = text.strip().lower() or "off"
    if word in _MARKS:
        return _MARKS[word]
    hint = "RESET noisegate.mark turns it off."
    if word == "rows":
        hint = "noisegate.empty_groups = hide leaves out groups that are only noise."
    raise BadSetting("noisegate.mark takes off, on or cell", hint=hint)


def _empty_groups(text: str, limits: SettingLimits) -> EmptyGroups:
    word = text.strip().lower()
    if not word:
        return limits.empty_groups
    if word in _EMPTY_GROUPS:
        return _EMPTY_GROUPS[word]
    hint = "RESET noisegate.empty_groups restores the value of the rules file."
    raise BadSetting("noisegate.empty_groups takes hide or show", hint=hint)


def _previews(text: str, limits: SettingLimits) -> PreviewKind:
    """None of them gives out a row, so that each analyst may say which."""
    word = text.strip().lower()
    if not word:
        return limits.previews
    if word in _PREVIEWS:
        return _PREVIEWS[word]
    hint = "RESET noisegate.previews restores the value of the rules file."
    raise BadSetting("noisegate.previews takes refuse, empty, synthetic or synopsis", hint=hint)


def _whole(written: str | None, name: str, more: str = "") -> int | None:
    text = (written or "").strip()
    if not text:
        return None
    if _WHOLE.fullmatch(text) is None or not 1 <= int(text) <= MOST_ROWS:
        raise BadSetting(
            f"{name} must be an integer from 1 to {MOST_ROWS}{more}",
            hint=f"RESET {name} restores the value of the rules file.",
        )
    return int(text)


def _switch(name: str, values: Mapping[str, str | None], *, unless: str = "on") -> bool:
    text = (values.get(name) or "").strip().lower() or unless
    if text not in _SWITCHES:
        raise BadSetting(f"{name} must be on or off", hint=f"RESET {name} turns it {unless} again.")
    return _SWITCHES[text]
