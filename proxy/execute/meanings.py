"""What answers over some tables mean: a digest that stays as long as the rules and the schema of these tables do.

Releases are kept under it. It covers the tables that a block reads, and those to which their foreign keys and units
lead: rows that are joined with such a parent are the same rows. Of enums and domains it covers those whose names stand
in these tables or in the block, as it writes a label. A table that is added to the rules, or a change of one that a
block has nothing to do with, leaves what was answered, and paid, as it is.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rules.catalog import Catalog, DomainType, EnumType, Table, TableName
from rules.policy.model import Policy, table_name


class Meanings:
    """The digests of one generation of rules."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        self._common = repr((policy.model_dump_json(include={"unit", "group_size", "groups_limit"}), catalog.database))
        self._types = [(made.name.name, _spellings(made.name), repr(made)) for made in _types(catalog)]
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
        self._known: dict[tuple[str, ...], tuple[str, frozenset[str]]] = {}

    def of(self, tables: Sequence[str], canonical: str) -> str:
        """What answers over these tables mean, in a block that is written like this."""
        wanted = tuple(tables)
        known = self._known.get(wanted)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[wanted] = self._digest(wanted)
        digest, types = known
        written = [made for _, names, made in self._types if made not in types and any(n in canonical for n in names)]
        return _sha256((digest, *written)) if written else digest

    def _digest(self, tables: Sequence[str]) -> tuple[str, frozenset[str]]:
        """Of these tables, and the types whose names stand in them."""
        waiting, reached = [*tables], set[str]()
        while waiting:
            name = waiting.pop()
            if name in self._tables and name not in reached:
                reached.add(name)
                waiting += self._above[name]
        words = [self._tables[name] for name in sorted(reached)]
        columns = "\n".join(words)
        types = [made for name, _, made in self._types if repr(name) in columns]
        return _sha256((self._common, *words, *types)), frozenset(types)


_MOST_KNOWN = 1000  # combinations of tables


def _sha256(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _types(catalog: Catalog) -> tuple[EnumType | DomainType, ...]:
    enums = tuple(replace(enum, comment=None) for enum in catalog.enums)
    return (*enums, *(replace(domain, comment=None, default=None) for domain in catalog.domains))


def _spellings(name: TableName) -> tuple[str, ...]:
    """A type's name as SQL writes it, with its schema, which no column has."""
    schema, plain = (part.replace('"', '""') for part in (name.schema, name.name))
    return f"{schema}.{plain}", f'{schema}."{plain}"', f'"{schema}".{plain}', f'"{schema}"."{plain}"'


def _without_upkeep(table: Table) -> Table:
    """A table without what a DBA changes of it at any time and no answer follows from, as an index or a comment."""
    columns = tuple(replace(column, comment=None, default=None) for column in table.columns)
    return replace(table, columns=columns, comment=None, indexes=(), fingerprint="", distribution=None)
