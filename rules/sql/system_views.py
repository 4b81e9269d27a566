"""The relations that only the proxy can answer: noisegate.budget and its like, as tools see them on the twin.

Nobody can read them there. A statement that names one gets the rows with it, as text: what PostgreSQL's input of a
composite type reads. The comments are what `\\d+` shows, so they say what a column means.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rules.frozen import frozen
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

SCHEMA: Final = "noisegate"
BARS: Final = ("margin", "low", "high")  # its functions of an aggregate's error
_ESCAPED: Final = re.compile(r'(["\\])')

Cell = str | None


@frozen
class SystemViewColumn:
    name: str
    type: str
    comment: str


@frozen
class SystemView:
    """One of them."""

    name: str
    comment: str
    columns: tuple[SystemViewColumn, ...]

    @property
    def qualified(self) -> str:
        return f"{SCHEMA}.{self.name}"


@frozen
class _Setting:
    name: str
    meaning: str
    default: str | None = None
    least: str | None = None
    most: str | None = None
    takes: str | None = None


def _view(name: str, comment: str, columns: str) -> SystemView:
    """Make a view of a table in text: a line for each column, with its name, type and comment."""
    cells = (line.split("|") for line in columns.strip().splitlines())
    return SystemView(name, comment, tuple(SystemViewColumn(*map(str.strip, row)) for row in cells))


BUDGET: Final = _view(
    "budget",
    "your remaining budget: a statement is answered if it fits all of these accounts; reading this is free",
    """
    account           | text                     | yours; role: that of your role; shared: that of all analysts together
    epsilon           | numeric                  | the budget of a period
    epsilon_spent     | numeric                  | by the tighter of basic and zCDP composition, rounded up
    epsilon_left      | numeric                  | epsilon - epsilon_spent
    epsilon_grantable | numeric                  | the largest charge of one more statement that fits
    delta | numeric | delta of a period; half of it is reserved for the composition of many answers
    delta_spent       | numeric                  | delta charged for groups that were found in the data
    delta_left        | numeric                  | delta left for groups that are found in the data
    period            | text                     | how often the budget renews: ever (never), day, week or month
    period_start      | timestamp with time zone | start of the current period
    period_end        | timestamp with time zone | end of the current period, when the budget renews
    epsilon_ever      | numeric                  | the sum over all periods, of charges or, with Gaussian noise, by zCDP
    """,
)

LEDGER: Final = _view(
    "ledger",
    "your newest 1,000 charges; reading this is free",
    """
    time           | timestamp with time zone | time of the charge, which precedes the query of the database
    state          | text                     | settled; failed: in the database; charged: cancelled or still running
    epsilon        | numeric                  | epsilon charged to you; NULL for Gaussian noise, which has only a rho
    epsilon_shared | numeric                  | part of epsilon charged to the shared account too
    delta          | numeric                  | delta charged to you for groups that were found in the data
    rho            | numeric                  | rho charged to you, in zCDP
    fresh          | integer                  | number of fresh draws of noise
    seen           | integer                  | number of stored answers of others, first seen in this period
    tables         | text[]                   | tables that the statement reads
    period         | text                     | period of the charge
    session        | text                     | session that sent the statement
    fingerprint    | text                     | equal for equal statements, whatever their spelling
    """,
)

COLUMNS: Final = _view(
    "columns",
    "supported uses of each column that you can see; reading this is free",
    """
    table_schema  | text    | of the table
    table_name    | text    | of the table
    column_name   | text    | of the column
    data_type     | text    | in the database
    is_public     | boolean | whether the table has no protected rows: it is answered exactly
    is_unit       | boolean | whether it is the unit column: count(DISTINCT it) counts units
    can_be_summed | boolean | as it is; otherwise write least(greatest(x, low), high) around it
    lower         | text    | smaller values are clamped to this; as groups they are not counted
    upper         | text    | larger values are clamped to this; as groups they are not counted
    known_values  | text[]  | the values that can be groups; others are not counted there
    known_from    | text    | source: rules, or catalog (a type or constraint)
    groups        | text    | known: all are shown; found: the large ones, for delta; null: no groups by it
    rows_per_unit | integer | rows of a unit that count; null: chosen for each query
    rows_from     | text    | source: rules, catalog (a unique key), or choice
    """,
)

LAST: Final = _view(
    "last",
    "this session's last private answer: a row for each column with noise; reading this is free",
    """
    column_name     | text                     | as it was shown; below the outermost SELECT as it was written
    margin_least    | numeric                  | noise moves the best of its groups no further than this
    margin          | numeric                  | and the worst of them no further than this; null: not known
    margin_in       | text                     | value: in the column's own unit; rows in rank: of a quantile
    confidence      | numeric                  | in this share of answers; what bounds cut is in no margin
    noise           | text                     | its word for the shown groups: none, low, medium, high, too high
    advice          | text                     | of the column in which noise matters most: what makes it matter less
    time            | timestamp with time zone | when it was answered
    epsilon         | numeric                  | what the statement cost you; NULL for Gaussian noise
    delta           | numeric                  | what it cost you, for groups that were found in the data
    rho             | numeric                  | what it cost you as zCDP counts
    epsilon_left    | numeric                  | on the account that ends first, yours or the shared one
    groups_left_out | text                     | which groups are not shown, by the rules alone
    cut | text | what of a unit does not count, by whose number; with noisegate.cut, how much
    """,
)

SETTINGS: Final = _view(
    "settings",
    "your settings: their values in this session, and their limits; reading this is free",
    """
    name          | text | of the setting, as SET and RESET take it
    setting       | text | its value in this session
    default_value | text | where it is not SET; null: by the rules of each table, or none
    least         | text | that it takes
    most          | text | that it takes
    takes         | text | other values
    meaning       | text | what it changes
    """,
)

REQUEST: Final = "request"  # the function of the schema that asks for more budget
REQUESTS: Final = _view(
    "requests",
    "your requests for more budget, by noisegate.request(5, 'why'); reading this is free",
    """
    request | bigint                   | its number, by which your DBA finds it
    time    | timestamp with time zone | of the request
    epsilon | numeric                  | that you asked for
    reason  | text                     | that you gave
    state   | text                     | open, granted, refused, or lapsed: its period is over
    granted | numeric                  | epsilon that you may spend more in that period
    answer  | text                     | what your DBA says to it
    period  | text                     | for which it is
    """,
)

VIRTUAL: Final = {system_view.name: system_view for system_view in (BUDGET, LEDGER, COLUMNS, LAST, SETTINGS, REQUESTS)}


def find_virtual(schema: str, name: str) -> SystemView | None:
    return VIRTUAL.get(name) if schema == SCHEMA else None


def row_text(cells: Sequence[Cell]) -> str:
    """One row as the text of a composite value.

    Example:
        >>> row_text(["a", None, 'b"c'])
        '("a",,"b\\\\"c")'
    """
    return f"({','.join('' if cell is None else _quoted(cell) for cell in cells)})"


def array_text(items: Iterable[str]) -> str:
    """A text[] without NULLs, as a cell."""
    return f"{{{','.join(map(_quoted, items))}}}"


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_BACKSLASHED, text)}"'


_BACKSLASHED: Final = r"\\\1"


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
        takes="off, on or cell",
    )
    yield _Setting(
        PREFIX + "empty_groups",
        "hide leaves out the listed groups whose numbers could be noise alone",
        limits.empty_groups,
        takes="hide or show",
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
