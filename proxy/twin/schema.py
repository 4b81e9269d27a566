"""The real schema as analysts see it: the catalog without all that the rules do not name.

Hidden columns, and every key, link, check and index that involves one, do not exist. Types that the twin cannot have
are text. A routine that is immutable and reads nothing keeps its body and can be used over answers: it runs with the
rights of its caller, so it can do nothing there that the caller could not write himself. Of all others tools see the
name and the types, and nobody may call them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from proxy.twin.steps import find_qualified
from rules.catalog import Catalog, Collation, Column, DomainType, Routine, Table, TableName
from rules.policy.model import Policy
from rules.twin_types import TEXT, is_on_twin, usable_types

NEXT_VALUE = re.compile(r"nextval\('((?:[^']|'')+)'::regclass\)")

_READS: Final = re.compile(
    r"\b(from|table|into|insert|update|delete|merge|truncate|copy|call|do)\b|;\s*(?!end\s*$)\S", re.IGNORECASE
)

_READS_NOTHING: Final = re.compile(r"\bextract\s*\(\s*\w+\s+from\b|\bis\s+(not\s+)?distinct\s+from\b", re.IGNORECASE)


def visible(catalog: Catalog, policy: Policy) -> Catalog:
    """The part of a catalog that the twin is built from."""
    usable = usable_types(catalog)
    tables = tuple(
        _shown(table, policy, usable) for table in catalog.tables if policy.find_table(table.name) is not None
    )
    tables = tuple(_linked(table, {table.name: table for table in tables}) for table in tables)
    used = _used_types(tables, {domain.name: domain for domain in catalog.domains})
    collations = _collations(catalog, tables)
    shown = Catalog(
        catalog.database,
        catalog.version,
        catalog.system_identifier,
        catalog.encoding,
        tables,
        enums=tuple(enum for enum in catalog.enums if enum.name in used),
        domains=_in_order(domain for domain in catalog.domains if domain.name in used),
        collations=collations,
    )
    schemas = {"public", *_schemas(shown)}
    return replace(
        shown,
        schemas=tuple(schema for schema in catalog.schemas if schema[0] in schemas),
        routines=tuple(shown_routine(routine) for routine in catalog.routines if routine.name.schema in schemas),
        search_path=tuple(name for name in catalog.search_path if name in {*schemas, "$user", "pg_catalog"}),
        session_time_zone=catalog.session_time_zone,
    )


def is_view(table: Table) -> bool:
    """Return whether a table is a view, or a materialized one."""
    return table.kind in ("view", "materialized view")


def shown_routine(routine: Routine) -> Routine:
    """The routine without its body, unless that computes from its arguments alone.

    What reads a table has one of a few words in its text. Who has one for another reason is listed.
    """
    reads = _READS.search(_READS_NOTHING.sub("", routine.body))
    return Routine(routine.name, routine.kind, routine.arguments, routine.result) if reads else routine


def sequence_of(column: Column) -> TableName | None:
    """The sequence of a serial column."""
    match = NEXT_VALUE.fullmatch(column.default or "")
    return find_qualified(match[1].replace("''", "'")) if match else None


def _shown(table: Table, policy: Policy, usable: frozenset[TableName]) -> Table:
    """A table with its open columns and what is between them."""
    rules = policy.find_table(table.name)
    assert rules is not None
    columns = tuple(
        column if is_on_twin(column.type, usable) else replace(column, type=TEXT, default=None, generated="")
        for column in table.columns
        if not rules.hides(column)
    )
    names = {column.name for column in columns}
    indexes = tuple(index for index in table.indexes if names.issuperset(index.columns))
    indexed = {index.name for index in indexes if not index.has_literals}
    partitioned = table.kind == "partitioned" and not rules.public  # the rows of a public one have to lie somewhere
    return replace(
        table,
        kind=table.kind if partitioned or is_view(table) else "table",
        columns=columns,
        keys=tuple(
            key
            for key in table.keys
            if names.issuperset(key.columns) and (key.constraint or key.name in indexed) and not table.has_children
        ),
        foreign_keys=tuple(key for key in table.foreign_keys if names.issuperset(key.columns)),
        checks=tuple(check for check in table.checks if check.proves and names.issuperset(check.columns)),
        definition=None,
        partition_key=table.partition_key if partitioned else None,
        fingerprint="",
        indexes=tuple(index for index in indexes if index.name in indexed),
        parents=(),
        sources=(),
    )


def _linked(table: Table, shown: Mapping[TableName, Table]) -> Table:
    """Only links to what is shown too."""

    def leads_somewhere(target: TableName, columns: tuple[str, ...]) -> bool:
        return target in shown and all(shown[target].find_column(column) for column in columns)

    kept = (key for key in table.foreign_keys if leads_somewhere(key.target, key.target_columns))
    return replace(table, foreign_keys=tuple(kept))


def _used_types(tables: Iterable[Table], domains: Mapping[TableName, DomainType]) -> frozenset[TableName]:
    used: set[TableName] = set()
    waiting = [column.type for table in tables for column in table.columns]
    while waiting:
        kind = waiting.pop()
        name = TableName(kind.schema, kind.name)
        if name not in used:
            used.add(name)
            if name in domains:
                waiting.append(domains[name].type)
    return frozenset(used)


def _collations(catalog: Catalog, tables: Iterable[Table]) -> tuple[Collation, ...]:
    """PostgreSQL's own by name, whatever the server was built with; those of the schema where a column uses them."""
    used = {find_qualified(column.collation) for table in tables for column in table.columns if column.collation}
    return tuple(
        collation for collation in catalog.collations if collation.name.schema == "pg_catalog" or collation.name in used
    )


def _in_order(domains: Iterable[DomainType]) -> tuple[DomainType, ...]:
    """A domain over another one comes after it."""
    waiting = {domain.name: domain for domain in domains}
    ordered: list[DomainType] = []
    while waiting:
        ready = [
            domain_type
            for domain_type in waiting.values()
            if TableName(domain_type.type.schema, domain_type.type.name) not in waiting
        ]
        ordered += ready
        waiting = {name: domain_type for name, domain_type in waiting.items() if domain_type not in ready}
    return tuple(ordered)


def _schemas(shown: Catalog) -> Iterable[str]:
    for objects in (shown.tables, shown.enums, shown.domains, shown.collations):
        yield from (object_.name.schema for object_ in objects)
    for table in shown.tables:
        yield from (sequence.schema for column in table.columns if (sequence := sequence_of(column)))
