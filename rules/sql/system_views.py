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


BUDGET: Final = SystemView(
    "budget",
    "your remaining budget: a statement is answered if it fits all of these accounts; reading this is free",
    (
        SystemViewColumn("account", "text", "yours; role: that of your role; shared: that of all analysts together"),
        SystemViewColumn("epsilon", "numeric", "the budget of a period"),
        SystemViewColumn("epsilon_spent", "numeric", "by the tighter of basic and zCDP composition, rounded up"),
        SystemViewColumn("epsilon_left", "numeric", "epsilon - epsilon_spent"),
        SystemViewColumn("epsilon_grantable", "numeric", "the largest charge of one more statement that fits"),
        SystemViewColumn(
            "delta", "numeric", "delta of a period; half of it is reserved for the composition of many answers"
        ),
        SystemViewColumn("delta_spent", "numeric", "delta charged for groups that were found in the data"),
        SystemViewColumn("delta_left", "numeric", "delta left for groups that are found in the data"),
        SystemViewColumn("period", "text", "how often the budget renews: ever (never), day, week or month"),
        SystemViewColumn("period_start", "timestamp with time zone", "start of the current period"),
        SystemViewColumn("period_end", "timestamp with time zone", "end of the current period, when the budget renews"),
        SystemViewColumn(
            "epsilon_ever", "numeric", "the sum over all periods, of charges or, with Gaussian noise, by zCDP"
        ),
    ),
)

LEDGER: Final = SystemView(
    "ledger",
    "your newest 1,000 charges; reading this is free",
    (
        SystemViewColumn(
            "time", "timestamp with time zone", "time of the charge, which precedes the query of the database"
        ),
        SystemViewColumn("state", "text", "settled; failed: in the database; charged: cancelled or still running"),
        SystemViewColumn("epsilon", "numeric", "epsilon charged to you; NULL for Gaussian noise, which has only a rho"),
        SystemViewColumn("epsilon_shared", "numeric", "part of epsilon charged to the shared account too"),
        SystemViewColumn("delta", "numeric", "delta charged to you for groups that were found in the data"),
        SystemViewColumn("rho", "numeric", "rho charged to you, in zCDP"),
        SystemViewColumn("fresh", "integer", "number of fresh draws of noise"),
        SystemViewColumn("seen", "integer", "number of stored answers of others, first seen in this period"),
        SystemViewColumn("tables", "text[]", "tables that the statement reads"),
        SystemViewColumn("period", "text", "period of the charge"),
        SystemViewColumn("session", "text", "session that sent the statement"),
        SystemViewColumn("fingerprint", "text", "equal for equal statements, whatever their spelling"),
    ),
)

COLUMNS: Final = SystemView(
    "columns",
    "supported uses of each column that you can see; reading this is free",
    (
        SystemViewColumn("table_schema", "text", "of the table"),
        SystemViewColumn("table_name", "text", "of the table"),
        SystemViewColumn("column_name", "text", "of the column"),
        SystemViewColumn("data_type", "text", "in the database"),
        SystemViewColumn("is_public", "boolean", "whether the table has no protected rows: it is answered exactly"),
        SystemViewColumn("is_unit", "boolean", "whether it is the unit column: count(DISTINCT it) counts units"),
        SystemViewColumn(
            "can_be_summed", "boolean", "as it is; otherwise write least(greatest(x, low), high) around it"
        ),
        SystemViewColumn("lower", "text", "smaller values are clamped to this; as groups they are not counted"),
        SystemViewColumn("upper", "text", "larger values are clamped to this; as groups they are not counted"),
        SystemViewColumn("known_values", "text[]", "the values that can be groups; others are not counted there"),
        SystemViewColumn("known_from", "text", "source: rules, or catalog (a type or constraint)"),
        SystemViewColumn(
            "groups", "text", "known: all are shown; found: the large ones, for delta; null: no groups by it"
        ),
        SystemViewColumn("rows_per_unit", "integer", "rows of a unit that count; null: chosen for each query"),
        SystemViewColumn("rows_from", "text", "source: rules, catalog (a unique key), or choice"),
    ),
)

LAST: Final = SystemView(
    "last",
    "what is told of this session's last private answer: a row for each column with noise; reading this is free",
    (
        SystemViewColumn("column_name", "text", "as it was shown; below the outermost SELECT as it was written"),
        SystemViewColumn("margin_least", "numeric", "noise moves the best of its groups no further than this"),
        SystemViewColumn("margin", "numeric", "and the worst of them no further than this; null: not known"),
        SystemViewColumn("margin_in", "text", "value: in the column's own unit; rows in rank: of a quantile"),
        SystemViewColumn("confidence", "numeric", "in this share of answers; what bounds cut is in no margin"),
        SystemViewColumn("time", "timestamp with time zone", "when it was answered"),
        SystemViewColumn("epsilon", "numeric", "what the statement cost you; NULL for Gaussian noise"),
        SystemViewColumn("delta", "numeric", "what it cost you, for groups that were found in the data"),
        SystemViewColumn("rho", "numeric", "what it cost you as zCDP counts"),
        SystemViewColumn("epsilon_left", "numeric", "on the account that ends first, yours or the shared one"),
        SystemViewColumn("groups_left_out", "text", "which groups are not shown, by the rules alone"),
        SystemViewColumn("cut", "text", "what of a unit does not count, by whose number; with noisegate.cut, how much"),
    ),
)

SETTINGS: Final = SystemView(
    "settings",
    "what you may SET, as it is in this session, and its limits; reading this is free",
    (
        SystemViewColumn("name", "text", "of the setting, as SET and RESET take it"),
        SystemViewColumn("setting", "text", "its value in this session"),
        SystemViewColumn("default_value", "text", "where it is not SET; null: by the rules of each table, or none"),
        SystemViewColumn("least", "text", "that it takes"),
        SystemViewColumn("most", "text", "that it takes"),
        SystemViewColumn("takes", "text", "other values"),
        SystemViewColumn("meaning", "text", "what it changes"),
    ),
)

REQUEST: Final = "request"  # the function of the schema that asks for more budget
REQUESTS: Final = SystemView(
    "requests",
    "your requests for more budget, by noisegate.request(5, 'why'); reading this is free",
    (
        SystemViewColumn("request", "bigint", "its number, by which your DBA finds it"),
        SystemViewColumn("time", "timestamp with time zone", "of the request"),
        SystemViewColumn("epsilon", "numeric", "that you asked for"),
        SystemViewColumn("reason", "text", "that you gave"),
        SystemViewColumn("state", "text", "open, granted, refused, or lapsed: its period is over"),
        SystemViewColumn("granted", "numeric", "epsilon that you may spend more in that period"),
        SystemViewColumn("answer", "text", "what your DBA says to it"),
        SystemViewColumn("period", "text", "for which it is"),
    ),
)

VIRTUAL: Final = {each.name: each for each in (BUDGET, LEDGER, COLUMNS, LAST, SETTINGS, REQUESTS)}


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
