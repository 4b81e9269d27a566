"""The rows of noisegate.settings: what a session may SET, what it has SET, and within which limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rules.sql.session_settings import (
    CONFIDENCE,
    LEAST_CONFIDENCE,
    MOST_CONFIDENCE,
    MOST_PROGRESS_SECONDS,
    MOST_ROWS,
    PREFIX,
    PROGRESS_SECONDS,
    SettingLimits,
)
from rules.sql.system_views import row_text


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    meaning: str
    default: str | None = None
    least: str | None = None
    most: str | None = None
    takes: str | None = None


def setting_rows(values: Mapping[str, str | None], limits: SettingLimits) -> tuple[str, ...]:
    """One row for each setting; `values` are those of the session, by full name."""

    def row(setting: _Setting) -> str:
        value = (values.get(setting.name) or "").strip()
        return row_text(
            (
                setting.name,
                value or setting.default,
                setting.default,
                setting.least,
                setting.most,
                setting.takes,
                setting.meaning,
            )
        )

    return tuple(map(row, (*_settings_of_noise(limits), *_settings_of_answers(limits))))


def _settings_of_noise(limits: SettingLimits) -> Iterator[_Setting]:
    """Yield what decides how much noise an answer gets."""
    epsilon = (f"{decimal:f}" for decimal in (limits.epsilon, limits.min_epsilon, limits.max_epsilon))
    yield _Setting(PREFIX + "epsilon", "what a statement costs; more has less noise", *epsilon)
    yield _Setting(
        PREFIX + "rows_per_unit",
        "how many rows of a unit count; it can only lower the rules' bound",
        *(None, "1", str(MOST_ROWS), "auto, or auto up to 40: chosen privately"),
    )
    yield _Setting(
        PREFIX + "groups_per_unit",
        "in how many groups a unit counts where units are counted or groups are found",
        *(None, "1", str(MOST_ROWS)),
    )
    yield _Setting(
        PREFIX + "sum_per_unit", "whether the bound on a unit's sums is chosen privately", takes="auto or off"
    )
    yield _Setting(
        PREFIX + "within",
        "how far noise may move an answer, at the confidence below: the least epsilon that does it is spent",
        "off",
        takes="a number above 0, or a share of the answer as 5%",
    )


def _settings_of_answers(limits: SettingLimits) -> Iterator[_Setting]:
    """Yield what decides which groups and numbers are shown, and what is said of them."""
    on, off = ((default, None, None, "on or off") for default in ("on", "off"))
    yield _Setting(PREFIX + "cut", "whether a lower bound of the rows that are cut is bought", *off)
    yield _Setting(PREFIX + "other", "whether values that the rules do not declare make a group too", *off)
    yield _Setting(
        PREFIX + "mark",
        "numbers that noise could have made are NULL (on: by the level of the whole answer, cell: of each number)",
        "off",
        takes="off, on, cell, or rows: rows of such numbers alone are left out",
    )
    levels = map(str, (CONFIDENCE, LEAST_CONFIDENCE, MOST_CONFIDENCE))
    yield _Setting(PREFIX + "confidence", "the share of answers that margins and error bars hold", *levels)
    yield _Setting(PREFIX + "reuse", "off draws, and charges, a fresh answer", *on)
    yield _Setting(PREFIX + "notices", "whether answers come with NOTICEs", *on)
    yield _Setting(
        PREFIX + "progress",
        "after how many seconds a NOTICE says again that a statement still runs",
        *("on", "1", str(MOST_PROGRESS_SECONDS)),
        takes=f"on ({PROGRESS_SECONDS} seconds), off, or seconds",
    )
    yield _Setting(
        PREFIX + "previews",
        "what SELECT … LIMIT of rows of protected tables gets: a refusal, no rows, or made-up ones",
        limits.previews,
        takes="refuse, empty, synthetic or synopsis",
    )
    most = str(limits.delta.normalize())
    yield _Setting(PREFIX + "delta", "what a statement costs to find groups in the data; 0: refused", most, "0", most)
