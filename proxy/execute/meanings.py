"""What answers over some tables mean: a digest that stays as long as the rules and the schema of these tables do.

Releases are kept under it. It covers the tables that a block reads, and those to which their foreign keys and units
lead: rows that are joined with such a parent are the same rows. A table that is added to the rules, or a change of one
that a block has nothing to do with, leaves what was answered, and paid, as it is.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from rules.catalog import Catalog, Table
from rules.policy.model import Policy, table_name


class Meanings:
    """The digests of one generation of rules."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self._common = repr((policy.model_dump_json(include={"unit", "group_size", "groups_limit"}), _types(catalog)))
        named = {table_name(text): rules for text, rules in policy.tables.items()}
        found = [(table, named[table.name]) for table in catalog.tables if table.name in named]
        self._tables = {
            str(table.name): repr((rules.model_dump_json(exclude={"because"}), _without_upkeep(table)))
            for table, rules in found
        }
        self._above = {
            str(table.name): [
                *(str(key.target) for key in table.foreign_keys),
                *((str(step.target),) if rules.unit and (step := rules.unit_step()).target else ()),
            ]
            for table, rules in found
        }
        self._known: dict[tuple[str, ...], str] = {}

    def of(self, tables: Sequence[str]) -> str:
        """What answers over these tables mean."""
        wanted = tuple(tables)
        known = self._known.get(wanted)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[wanted] = self._digest(wanted)
        return known

    def _digest(self, tables: Sequence[str]) -> str:
        waiting, reached = [*tables], set[str]()
        while waiting:
            name = waiting.pop()
            if name in self._tables and name not in reached:
                reached.add(name)
                waiting += self._above[name]
        words = (self._common, *(self._tables[name] for name in sorted(reached)))
        return hashlib.sha256("\n".join(words).encode()).hexdigest()


_MOST_KNOWN = 1000  # combinations of tables


def _types(catalog: Catalog) -> tuple[object, ...]:
    enums = tuple(replace(enum, comment=None) for enum in catalog.enums)
    return catalog.database, enums, tuple(replace(domain, comment=None, default=None) for domain in catalog.domains)


def _without_upkeep(table: Table) -> Table:
    """A table without what a DBA changes of it at any time and no answer follows from, as an index or a comment."""
    columns = tuple(replace(column, comment=None, default=None) for column in table.columns)
    return replace(table, columns=columns, comment=None, indexes=(), fingerprint="", distribution=None)
