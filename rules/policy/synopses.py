"""The rules file's part on synopses and cubes: which columns of which tables, at which price, for whom."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from rules.frozen import frozen
from rules.policy.logins import Model
from rules.policy.rule_values import Epsilon

GRAINS: Final = ("year", "quarter", "month", "week", "day")
_LISTED: Final = re.compile(
    r"(?:count\(\s*(?P<child>[^()]+?)\s*\)|(?P<column>[^\s()]+))(?:\s+by\s+(?P<by>[a-z]+|[1-9][0-9]{0,3}))?"
)
_WORDS: Final = (
    'write a column as "city", "amount by 20", "joined_on by year", "customers.city" or "count(orders) by 10"'
)


@frozen
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
    match = _LISTED.fullmatch(" ".join(text.split()))
    if match is None:
        raise ValueError(_WORDS)
    by = match["by"] or ""
    if by and not by.isdigit() and by not in GRAINS:
        raise ValueError(f'"by {by}" must be one of: by {", by ".join(GRAINS)}, or by a number of bins')
    if match["child"] is not None:
        return Listed(text, "", "", match["child"].strip(), by)
    table, _, column = match["column"].rpartition(".")
    return Listed(text, table, column, "", by)


class MadeOnce(Model):
    """Describe what is measured once for a price, and then free for its readers."""

    epsilon: Annotated[Epsilon, Field(ge=Decimal("0.000001"))]
    refresh: Literal["never", "day", "week", "month"] = "never"
    analysts: tuple[str, ...] | None = None  # who may read it, and is charged; everybody if not given

    def readers(self, analysts: Mapping[str, object]) -> tuple[str, ...]:
        """List who of these analysts may read it."""
        return tuple(name for name in analysts if self.analysts is None or name in self.analysts)


_Triple = Annotated[tuple[str, ...], Field(min_length=3, max_length=3)]


class SynopsisRules(MadeOnce):
    """A schema of synthetic rows, made from noised counts."""

    tables: Annotated[dict[str, Annotated[tuple[str, ...], Field(min_length=1)]], Field(min_length=1)]
    marginals: Annotated[dict[str, tuple[_Triple, ...]], Field(default_factory=dict)]  # in addition to all pairs

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for columns in self.tables.values():
            texts = [read_listed(text).text for text in columns]
            if len(set(texts)) < len(texts):
                raise ValueError("a column is listed twice")
        for table, sets in self.marginals.items():
            if table not in self.tables:
                raise ValueError(f"marginals name {table}, which is not listed under tables")
            places = [self.places(table, columns) for columns in sets]
            if len(set(places)) < len(places):
                raise ValueError("a marginal is listed twice")
        return self

    def places(self, table: str, columns: Sequence[str]) -> tuple[int, ...]:
        """Find where the columns of a marginal stand in the list of their table; raises ValueError.

        A column is named as it is listed, with or without its bins.
        """
        known = {name: place for place, text in enumerate(self.tables[table]) for name in (text, text.split(" by ")[0])}
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise ValueError(f"{unknown[0]} in marginals is not listed under tables: {table}")
        found = sorted({known[name] for name in columns})
        if len(found) < len(columns):
            raise ValueError("a marginal has a column twice")
        return tuple(found)

    @property
    def listed(self) -> Mapping[str, tuple[Listed, ...]]:
        """The columns of each table."""
        return {table: tuple(map(read_listed, columns)) for table, columns in self.tables.items()}


class CubeRules(MadeOnce):
    """Noised counts and sums by sets of keys, from which questions about the table itself are answered."""

    cube: Annotated[tuple[str, ...], Field(min_length=1, max_length=12)]
    measures: Annotated[tuple[str, ...], Field(min_length=1, max_length=8)] = ("count",)
    orders: Annotated[tuple[Annotated[int, Field(ge=1, le=4)], ...], Field(min_length=1)] = (1, 2, 3)  # keys of a set
    table: str | None = None  # whose rows are counted; the one that has all keys if not given

    @model_validator(mode="after")
    def _readable(self) -> Self:
        keys = [(listed.table, listed.column) for listed in map(read_key, self.cube)]
        sums = [read_measure(text) for text in self.measures]
        if len(set(keys)) < len(keys):
            raise ValueError("a column is listed twice: coarser steps follow from the finest")
        if len(set(sums)) < len(sums):
            raise ValueError("a measure is listed twice")
        return self

    @property
    def keys(self) -> tuple[Listed, ...]:
        return tuple(map(read_key, self.cube))

    @property
    def sums(self) -> tuple[str, ...]:
        """The columns that are summed; rows are counted in any case, since averages need them."""
        return tuple(name for name in map(read_measure, self.measures) if name)


def read_key(text: str) -> Listed:
    """A key of a cube; raises ValueError.

    Example:
        >>> read_key("ordered_at by day").grain
        'day'
    """
    listed = read_listed(text)
    if listed.counts or listed.bins is not None:
        raise ValueError('write a key as "channel", "ordered_at by day" or "customers.city"')
    return listed


def read_measure(text: str) -> str:
    """The column that a measure of a cube sums, or "" for the number of rows; raises ValueError.

    Example:
        >>> read_measure("sum(amount)"), read_measure("count")
        ('amount', '')
    """
    match = re.fullmatch(r"count(?:\(\*\))?|sum\(\s*(?P<column>[^\s().]+)\s*\)", text.strip())
    if match is None:
        raise ValueError('write a measure as "count" or "sum(amount)"')
    return match["column"] or ""


def _kind_of(written: object) -> str:
    """Find which of the two an entry is, by the key that only a cube has."""
    return (
        "a cube"
        if isinstance(written, CubeRules) or (isinstance(written, dict) and "cube" in written)
        else "rows in a schema"
    )


Synopsis = Annotated[
    Annotated[SynopsisRules, Tag("rows in a schema")] | Annotated[CubeRules, Tag("a cube")], Discriminator(_kind_of)
]


def account_name(synopsis: str) -> str:
    """The account that pays for a synopsis, in addition to the budget of all. No analyst can have this name.

    Example:
        >>> account_name("explore")
        'synopsis explore'
    """
    return f"synopsis {synopsis}"
