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
        VirtualColumn("epsilon_ever", "numeric", "the sum of all charges of all periods"),
    ),
)

VIRTUAL: Final = {each.name: each for each in (BUDGET,)}


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
