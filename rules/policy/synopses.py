"""The rules file's part on synopses: which columns of which tables, in how many bins, at which price, for whom."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from rules.policy.amounts import Epsilon
from rules.policy.logins import Model

GRAINS: Final = ("year", "quarter", "month", "week", "day")
_LISTED: Final = re.compile(
    r"(?:count\(\s*(?P<child>[^()]+?)\s*\)|(?P<column>[^\s()]+))(?:\s+by\s+(?P<by>[a-z]+|[1-9][0-9]{0,3}))?"
)
_WORDS: Final = (
    'write a column as "city", "amount by 20", "joined_on by year", "customers.city" or "count(orders) by 10"'
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A column of a synopsis as it is written: of the table itself, of one that it refers to, or a number of rows."""

    text: str
    table: str  # as the rules name it; "" for the table itself
    column: str  # "" where rows of another table are counted
    counts: str = ""  # that table, as the rules name it
    by: str = ""  # a grain, or a number of bins

    @property
    def bins(self) -> int | None:
        return int(self.by) if self.by.isdigit() else None

    @property
    def grain(self) -> str:
        return "" if self.by.isdigit() else self.by


def read_listed(text: str) -> Listed:
    """A column of a synopsis; raises ValueError.

    Example:
        >>> read_listed("customers.joined_on by year")
        Listed(text='customers.joined_on by year', table='customers', column='joined_on', counts='', by='year')
        >>> read_listed("count(orders) by 10").counts
        'orders'
    """
    found = _LISTED.fullmatch(" ".join(text.split()))
    if found is None:
        raise ValueError(_WORDS)
    by = found["by"] or ""
    if by and not by.isdigit() and by not in GRAINS:
        raise ValueError(f'"by {by}" is none of: by {", by ".join(GRAINS)}, or by a number of bins')
    if found["child"] is not None:
        return Listed(text, "", "", found["child"].strip(), by)
    table, _, column = found["column"].rpartition(".")
    return Listed(text, table, column, "", by)


class SynopsisRules(Model):
    """A schema of synthetic rows, made from noised counts."""

    epsilon: Epsilon
    refresh: Literal["never", "day", "week", "month"] = "never"
    analysts: tuple[str, ...] | None = None  # who may read it, and is charged; everybody if not given
    tables: Annotated[dict[str, Annotated[tuple[str, ...], Field(min_length=1)]], Field(min_length=1)]

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for columns in self.tables.values():
            texts = [read_listed(text).text for text in columns]
            if len(set(texts)) < len(texts):
                raise ValueError("a column is listed twice")
        return self

    @property
    def listed(self) -> Mapping[str, tuple[Listed, ...]]:
        """The columns of each table."""
        return {table: tuple(map(read_listed, columns)) for table, columns in self.tables.items()}

    def readers(self, analysts: Mapping[str, object]) -> tuple[str, ...]:
        """Who of these analysts may read it."""
        return tuple(name for name in analysts if self.analysts is None or name in self.analysts)


def account_name(synopsis: str) -> str:
    """On whose account a synopsis is made, beside the budget of all. No analyst has such a name.

    Example:
        >>> account_name("explore")
        'synopsis explore'
    """
    return f"synopsis {synopsis}"
