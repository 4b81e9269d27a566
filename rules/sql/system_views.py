"""The relations that only the proxy can answer: noisegate.budget and its like, as tools see them on the twin.

Nobody can read them there. A statement that names one gets the rows with it, as text: what PostgreSQL's input of a
composite type reads. The comments are what `\\d+` shows, so they say what a column means.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

SCHEMA: Final = "noisegate"
_ESCAPED: Final = re.compile(r'(["\\])')

Cell = str | None


@dataclass(frozen=True, slots=True)
class SystemViewColumn:
    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True)
class SystemView:
    """One of them."""

    name: str
    comment: str
    columns: tuple[SystemViewColumn, ...]

    @property
    def qualified(self) -> str:
        return f"{SCHEMA}.{self.name}"


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
    "what is told of this session's last private answer: a row for each column with noise; reading this is free",
    """
    column_name     | text                     | as it was shown; below the outermost SELECT as it was written
    margin_least    | numeric                  | noise moves the best of its groups no further than this
    margin          | numeric                  | and the worst of them no further than this; null: not known
    margin_in       | text                     | value: in the column's own unit; rows in rank: of a quantile
    confidence      | numeric                  | in this share of answers; what bounds cut is in no margin
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
    "what you may SET, as it is in this session, and its limits; reading this is free",
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
