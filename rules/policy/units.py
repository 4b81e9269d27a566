"""Whose protection: the tables that may hold the individuals, and how the rows of other tables lead to one of them."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from rules.catalog import Catalog, ForeignKey, Table, TableName
from rules.frozen import frozen
from rules.policy.column_kind import words_of
from rules.policy.exposure import keys_with_partitions
from rules.policy.model import Policy
from rules.values.types import equality_of_key

_PEOPLE: Final = (
    *("customer", "patient", "member", "user", "person", "people", "client", "subscriber", "student", "consumer"),
    *("citizen", "resident", "guest", "passenger", "visitor", "borrower", "tenant", "policyholder", "cardholder"),
    *("participant", "respondent", "donor", "individual", "pupil", "buyer", "shopper", "player", "cust"),
    *("salesperson", "saleperson", "employee", "staff", "account", "worker", "teacher", "doctor", "physician"),
    *("driver", "agent", "contact", "household"),
)
"""Names of tables of people: customers and other subjects first, then staff."""

_NOT_NOUNS: Final = frozenset(("tbl", "table", "master", "data", "info", "record", "list", "profile", "base"))


@frozen
class Way:
    """The way in which the rows of a table name their unit, and why."""

    unit: str
    why: str
    is_unit: bool = False


@frozen
class Candidate:
    """A table whose rows may be the units, and how many other tables would belong to these."""

    table: TableName
    followers: int
    is_likely: bool  # by its name

    def __str__(self) -> str:
        return f"{self.table} ({_belonging(self.followers)} to it)"


def unit_line(unit: str, protected: int) -> str:
    """The sentence about whose protection this is, of `protected` tables, that of the units among them.

    Example:
        >>> print(unit_line("customer.customer_id", 4))
        unit: customer.customer_id: each row of customer is one protected individual; 3 tables belong to it
    """
    if unit == "row":
        return "unit: row: each row of a protected table is one protected individual, even if a person has several rows"
    table = unit.rpartition(".")[0]
    return f"unit: {unit}: each row of {table} is one protected individual; {_belonging(protected - 1)} to it"


def unit_line_of(policy: Policy) -> str:
    return unit_line(policy.unit, sum(not (rules.public or rules.view) for rules in policy.tables.values()))


def _belonging(tables: int) -> str:
    return {0: "no other table belongs", 1: "1 table belongs"}.get(tables, f"{tables} tables belong")


def find_candidates(catalog: Catalog) -> list[Candidate]:
    """The tables that can have units, the likeliest first: by the words for people, then by what belongs to them.

    Where some are called like people, these alone.
    """
    leading = _leading(catalog)
    ranks = {table.name: _rank(table.name) for table in catalog.tables if single_key(table) is not None}
    likely = {name for name, rank in ranks.items() if rank < len(_PEOPLE)}
    candidates = [Candidate(name, len(_follow(leading, name)), name in likely) for name in likely or ranks]
    return sorted(candidates, key=lambda each: (ranks[each.table], -each.followers, each.table))


def _rank(name: TableName) -> int:
    """The place of a table's noun among the words for people: crm.tbl_web_users are users, user_roles are roles."""
    words = list(words_of(name.name))
    while len(words) > 1 and words[-1] in _NOT_NOUNS:
        words.pop()
    noun = next((noun for noun in ("".join(words[-2:]), words[-1]) if noun in _PEOPLE), None) if words else ""
    if noun is None:  # no space between words: dimcustomer
        noun = next((word for word in _PEOPLE if len(word) > 4 and words[-1].endswith(word)), "")
    return _PEOPLE.index(noun) if noun else len(_PEOPLE)


def single_key(table: Table) -> str | None:
    """Return the column that is the primary key of a table of rows by itself."""
    primary = next((key for key in table.keys if key.primary and len(key.columns) == 1), None)
    return primary.columns[0] if primary is not None and table.kind in ("table", "partitioned") else None


def find_ways(catalog: Catalog, unit_table: TableName, key: str) -> Mapping[TableName, Way]:
    """Return how each table that leads to the units by foreign keys names them, the shortest way first.

    A column stands alone where it refers to the unit's own, under the same equality.
    """
    followed = _follow(_leading(catalog), unit_table)
    ways = {unit_table: Way(key, "the units: one row for each", is_unit=True)}
    for table, to in followed.values():
        (column,), (other,) = to.columns, to.target_columns
        is_unit = (to.target, other) == (unit_table, key) and equality_of_key(to, table, catalog) == "same"
        ways[table.name] = Way(
            column if is_unit else f"{column} -> {to.target}.{other}", _why(table, to, unit_table, catalog)
        )
    return ways


_Leading = Mapping[TableName, Sequence[tuple[Table, ForeignKey]]]  # by target


def _leading(catalog: Catalog) -> _Leading:
    """The tables with a foreign key of one column to each table, and the first of these keys."""
    leading: dict[TableName, list[tuple[Table, ForeignKey]]] = {}
    for table in catalog.tables:
        if table.kind in ("table", "partitioned") and not table.parents:
            for key in keys_with_partitions(table, catalog):
                if len(key.columns) == 1 and key.proves and equality_of_key(key, table, catalog) != "none":
                    leading.setdefault(key.target, []).append((table, key))
    return leading


def _follow(leading: _Leading, unit_table: TableName) -> Mapping[TableName, tuple[Table, ForeignKey]]:
    """The tables that lead to this one, the nearest first, and by which key."""
    followed: dict[TableName, tuple[Table, ForeignKey]] = {}
    waiting = deque([unit_table])
    while waiting:
        for table, key in leading.get(waiting.popleft(), ()):
            if table.name != unit_table and table.name not in followed:
                followed[table.name] = table, key
                waiting.append(table.name)
    return followed


def _why(table: Table, key: ForeignKey, unit_table: TableName, catalog: Catalog) -> str:
    whose = " of all its partitions" if key not in table.foreign_keys else ""
    why = f"by the foreign key{whose} {key.columns[0]} to {key.target}"
    units = {unit_table} if key.target == unit_table else set()
    others = {
        partition.columns[0]
        for partition in keys_with_partitions(table, catalog)
        if partition.target in units and partition.columns != key.columns
    }
    more = f"; {', '.join(sorted(others))} LEADS TO UNITS TOO: only the one of {key.columns[0]} is protected by a row"
    return why + (more if others else "")
