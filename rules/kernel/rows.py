"""Local rows, as the bounded statements read them: a unit, and expressions over one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rules.values.expression import Expression


@dataclass(frozen=True, slots=True)
class Item:
    """One column to be read: an expression, and SQL of the kernel's own around its text, which stands for {0}."""

    alias: str
    expression: Expression
    wrap: str = "{0}"


class Rows(Protocol):
    """Local rows: those of one unit follow from that unit's rows and public data alone, in every plan."""

    @property
    def proved_one(self) -> bool:
        """Whether each unit has at most one row, by a key that PostgreSQL enforces."""
        ...

    @property
    def has_identity(self) -> bool:
        """Whether rows know their unit. Those of a table without a key do not: each is a unit, and `u` is missing."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether the rows may be read twice in a statement and be the same: functions of extensions may not be."""
        ...

    def is_stored(self, expression: Expression) -> bool:
        """Whether it is a table's own column, of which PostgreSQL itself enforces the precision of the type."""
        ...

    def select(self, items: Sequence[Item]) -> str:
        """SELECT <unit> AS u, <wrapped expression> AS <alias>, … FROM …: one row for each row."""
        ...

    def candidates(self) -> str | None:
        """SELECT <unit> AS u FROM <a superset of the rows>, which is cheaper to read; None where there is none."""
        ...
