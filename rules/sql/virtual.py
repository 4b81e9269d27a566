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
class VirtualColumn:
    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True)
class Virtual:
    """One of them."""

    name: str
    comment: str
    columns: tuple[VirtualColumn, ...]

    @property
    def qualified(self) -> str:
        return f"{SCHEMA}.{self.name}"


BUDGET: Final = Virtual(
    "budget",
    "what you may still ask: a statement is answered if it fits both accounts; reading this is free",
    (
        VirtualColumn("account", "text", "yours, or shared: what all analysts together may learn"),
        VirtualColumn("epsilon", "numeric", "the budget of a period"),
        VirtualColumn("epsilon_spent", "numeric", "by the tighter of basic and zCDP composition, rounded up"),
        VirtualColumn("epsilon_left", "numeric", "epsilon - epsilon_spent"),
        VirtualColumn("epsilon_grantable", "numeric", "the most that one more statement may cost and still fit"),
        VirtualColumn("delta", "numeric", "of a period; half of it is kept for the composition of many answers"),
        VirtualColumn("delta_spent", "numeric", "on groups that were found in the data"),
        VirtualColumn("delta_left", "numeric", "for more of them"),
        VirtualColumn("period", "text", "how often the budget is new: ever (never), day, week or month"),
        VirtualColumn("period_start", "timestamp with time zone", "of the running period"),
        VirtualColumn("period_end", "timestamp with time zone", "when the budget is new"),
        VirtualColumn(
            "epsilon_ever", "numeric", "the sum over all periods, of charges or, with Gaussian noise, by zCDP"
        ),
    ),
)

LEDGER: Final = Virtual(
    "ledger",
    "what you have been charged, the newest 1,000 charges; reading this is free",
    (
        VirtualColumn("time", "timestamp with time zone", "when it was charged, before the database was asked"),
        VirtualColumn("state", "text", "settled; failed: in the database; charged: cancelled, or it runs still"),
        VirtualColumn("epsilon", "numeric", "what it cost you; NULL for Gaussian noise, which has a rho alone"),
        VirtualColumn("epsilon_shared", "numeric", "what of it the account that all share has paid too"),
        VirtualColumn("delta", "numeric", "what it cost you, for groups that were found in the data"),
        VirtualColumn("rho", "numeric", "what it cost you as zCDP counts"),
        VirtualColumn("fresh", "integer", "draws of noise for you"),
        VirtualColumn("seen", "integer", "answers to others that you saw for the first time in the period"),
        VirtualColumn("tables", "text[]", "that it reads"),
        VirtualColumn("period", "text", "that it counts in"),
        VirtualColumn("session", "text", "the connection that asked"),
        VirtualColumn("fingerprint", "text", "the same for the same questions, whatever their spelling"),
    ),
)

COLUMNS: Final = Virtual(
    "columns",
    "what may be done with each column that you can see; reading this is free",
    (
        VirtualColumn("table_schema", "text", "of the table"),
        VirtualColumn("table_name", "text", "of the table"),
        VirtualColumn("column_name", "text", "of the column"),
        VirtualColumn("data_type", "text", "in the database"),
        VirtualColumn("is_public", "boolean", "whether the table has no protected rows: it is answered exactly"),
        VirtualColumn("is_unit", "boolean", "whether it says whose row it is: count(DISTINCT it) counts people"),
        VirtualColumn("can_be_summed", "boolean", "as it is; otherwise write least(greatest(x, low), high) around it"),
        VirtualColumn("lower", "text", "what is less counts as this; as a group it is not counted"),
        VirtualColumn("upper", "text", "what is more counts as this; as a group it is not counted"),
        VirtualColumn("known_values", "text[]", "the values that can be groups; others are not counted there"),
        VirtualColumn("known_from", "text", "who says so: rules, or catalog (a type or constraint)"),
        VirtualColumn(
            "groups", "text", "known: all are shown; found: the large ones, for delta; null: no groups by it"
        ),
        VirtualColumn("rows_per_unit", "integer", "rows of a unit that count; null: SET noisegate.rows_per_unit"),
        VirtualColumn("rows_from", "text", "who says so: rules, or catalog (a unique key)"),
    ),
)

VIRTUAL: Final = {each.name: each for each in (BUDGET, LEDGER, COLUMNS)}


def find_virtual(schema: str, name: str) -> Virtual | None:
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
