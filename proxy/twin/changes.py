"""From one visible catalog to another: the statements that turn the living twin into what it should be.

Names and OIDs stay wherever PostgreSQL can alter what is there; only what it cannot alter is made anew. A twin that is
born is a change from nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from proxy.twin import ddl
from proxy.twin.ddl import (
    create_routines,
    drop_routines,
    drop_tables,
    empty_table,
    find_changed,
    list_routines,
    rests_on,
)
from proxy.twin.schema import is_view
from proxy.twin.steps import Step, literal, qualified, quoted
from rules.catalog import Catalog, Column, EnumType, ForeignKey, Table, TableName


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Steps in their order, and the tables whose rows and rights have to be given again."""

    steps: tuple[Step, ...]
    touched: frozenset[TableName]


def empty(catalog: Catalog) -> Catalog:
    """Return what a new database holds."""
    return Catalog(catalog.database, catalog.version, "", "UTF8", (), schemas=(("public", "standard public schema"),))


def find_changes(old: Catalog, new: Catalog) -> SchemaChange:
    """Return what to do, in an order in which every statement finds what it needs."""
    remade_types = _remade_types(old, new)
    before, after = {table.name: table for table in old.tables}, {table.name: table for table in new.tables}
    dropped_types = tuple(_drop_types(old, new, remade_types))
    routines = find_changed(old, new, types_change=bool(dropped_types))
    kept = {
        name
        for name in before
        if name in after
        and _can_alter(before[name], after[name], remade_types)
        and not rests_on(before[name], routines)
        and not rests_on(after[name], routines)
    }
    touched = {name for name in after if name not in kept or _must_empty(before[name], after[name])}
    links = _Links(before, after, kept)
    steps = (
        *_create_schemas(old, new),
        *links.drop(),
        *_drop_constraints(before, after, kept),
        *drop_tables(table for name, table in before.items() if name not in kept),
        *drop_routines(old, routines),
        *dropped_types,
        *(ddl.create_collation(collation) for collation in new.collations if collation not in old.collations),
        *_create_types(old, new, remade_types),
        *create_routines(new, routines),
        *(step for name in sorted(touched & kept) for step in empty_table(after[name])),
        *(step for name in sorted(kept) for step in _alter_table(before[name], after[name])),
        *(step for table in new.tables if table.name not in kept for step in ddl.create_table(table)),
        *_add_constraints(before, after, kept),
        *links.add(),
        *_drop_schemas(old, new),
        *_set_search_path(old, new),
        *_set_time_zone(old, new),
    )
    if old == new:
        return SchemaChange((), frozenset())
    return SchemaChange((*steps, *list_routines(new)), frozenset(touched))


def _remade_types(old: Catalog, new: Catalog) -> frozenset[TableName]:
    """Types that are not what they were and cannot be altered into it; whatever uses them is made anew."""
    enums, domains = {enum.name: enum for enum in new.enums}, {domain.name: domain for domain in new.domains}
    remade = {enum.name for enum in old.enums if enum.name in enums and not _grows(enum, enums[enum.name])}
    remade |= {domain.name for domain in old.domains if domain.name in domains and domain != domains[domain.name]}
    for domain in old.domains:  # in the order in which they rest on each other
        if TableName(domain.type.schema, domain.type.name) in remade and domain.name in domains:
            remade.add(domain.name)
    return frozenset(remade)


def _grows(old: EnumType, new: EnumType) -> bool:
    """Return whether an enum has all its labels still, in their order."""
    return tuple(label for label in new.labels if label in old.labels) == old.labels


def _can_alter(old: Table, new: Table, remade: frozenset[TableName]) -> bool:
    """Return whether a table can stay: its remaining columns are what they were, and new ones come at the end."""
    names = {column.name for column in old.columns}
    staying = [column for column in new.columns if column.name in names]
    if new.columns[: len(staying)] != tuple(staying) or old.partition_key != new.partition_key or old.kind != new.kind:
        return False
    gone = names - {column.name for column in new.columns}
    fixed = is_view(old) or old.partition_key is not None or any(column.generated for column in old.columns)
    if fixed and (gone or len(staying) < len(new.columns)):
        return False
    order = [column.name for column in old.columns if column.name not in gone]
    alike = all(_is_alike(old.find_column(column.name), column, remade) for column in staying)
    return alike and [column.name for column in staying] == order


def _is_alike(old: Column | None, new: Column, remade: frozenset[TableName]) -> bool:
    if old is None or TableName(new.type.schema, new.type.name) in remade:
        return False
    same_default = not new.generated or old.default == new.default
    labels_aside = replace(old.type, labels=()) == replace(new.type, labels=())
    return labels_aside and same_default and _nature(old) == _nature(new)


def _nature(column: Column) -> tuple[object, ...]:
    return column.identity, column.generated, column.collation


def _must_empty(old: Table, new: Table) -> bool:
    """Rows of before may not fit the new columns, keys and checks."""
    facts = ([(column.name, column.not_null) for column in table.columns] for table in (old, new))
    return len({str(fact) for fact in facts}) > 1 or ddl.constraints(old) != ddl.constraints(new)


def _create_schemas(old: Catalog, new: Catalog) -> Iterator[Step]:
    before = dict(old.schemas)
    for name, comment in new.schemas:
        if name not in before:
            yield Step(f"CREATE SCHEMA {quoted(name)}")
        if comment != before.get(name):
            yield ddl.comment_on_schema(name, comment)
        yield Step(f"GRANT USAGE ON SCHEMA {quoted(name)} TO PUBLIC")


def _set_search_path(old: Catalog, new: Catalog) -> Iterator[Step]:
    """For sessions to come, as in the real database."""
    if new.search_path != old.search_path:
        path = (
            f"SET search_path = {', '.join(map(quoted, new.search_path))}" if new.search_path else "RESET search_path"
        )
        yield Step(f"ALTER DATABASE {quoted(new.database)} {path}")


def _set_time_zone(old: Catalog, new: Catalog) -> Iterator[Step]:
    """For sessions to come, as in the real database, if the twin has this zone; else they begin with UTC."""
    if new.session_time_zone != old.session_time_zone:
        altered, zone = f"ALTER DATABASE {quoted(new.database)}", new.session_time_zone
        kept = f"{altered} RESET TimeZone"
        yield Step(kept if zone is None else f"{altered} SET TimeZone = {literal(zone)}", otherwise=kept)


def _drop_schemas(old: Catalog, new: Catalog) -> Iterator[Step]:
    """With their collations and sequences, which is all that is left in them."""
    remaining = {name for name, _ in new.schemas}
    yield from (Step(f"DROP SCHEMA {quoted(name)} CASCADE") for name, _ in old.schemas if name not in remaining)


@dataclass(frozen=True)
class _Links:
    """Foreign keys. One stays only if both of its tables do, and the keys that it may rest on."""

    before: dict[TableName, Table]
    after: dict[TableName, Table]
    kept: set[TableName]

    def drop(self) -> Iterator[Step]:
        for name in sorted(self.before):
            for key in self.before[name].foreign_keys:
                if not self._stays(name, key):
                    yield ddl.drop_constraint(self.before[name], key.name)

    def add(self) -> Iterator[Step]:
        for name, table in self.after.items():
            for key in table.foreign_keys:
                if name not in self.before or key not in self.before[name].foreign_keys or not self._stays(name, key):
                    yield ddl.add_foreign_key(name, key)

    def _stays(self, name: TableName, key: ForeignKey) -> bool:
        if not {name, key.target} <= self.kept or key not in self.after[name].foreign_keys:
            return False
        before, after = self.before[key.target], self.after[key.target]
        return (before.keys, before.indexes) == (after.keys, after.indexes)


def _drop_constraints(
    before: dict[TableName, Table], after: dict[TableName, Table], kept: set[TableName]
) -> Iterator[Step]:
    for name in sorted(kept):
        wanted = ddl.constraints(after[name])
        for constraint, step in ddl.constraints(before[name]).items():
            if wanted.get(constraint) != step:
                yield ddl.drop_constraint(before[name], constraint)


def _add_constraints(
    before: dict[TableName, Table], after: dict[TableName, Table], kept: set[TableName]
) -> Iterator[Step]:
    for name, table in after.items():
        present = ddl.constraints(before[name]) if name in kept else {}
        yield from (step for constraint, step in ddl.constraints(table).items() if present.get(constraint) != step)


def _drop_types(old: Catalog, new: Catalog, remade: frozenset[TableName]) -> Iterator[Step]:
    remaining = ({enum.name for enum in new.enums} | {domain.name for domain in new.domains}) - remade
    for domain in reversed(old.domains):
        if domain.name not in remaining:
            yield Step(f"DROP DOMAIN {qualified(domain.name)}")
    for enum in old.enums:
        if enum.name not in remaining:
            yield Step(f"DROP TYPE {qualified(enum.name)}")


def _create_types(old: Catalog, new: Catalog, remade: frozenset[TableName]) -> Iterator[Step]:
    enums = {enum.name: enum for enum in old.enums if enum.name not in remade}
    domains = {domain.name for domain in old.domains} - remade
    for enum in new.enums:
        if enum.name in enums:
            yield from _add_labels(enums[enum.name], enum)
        else:
            yield from ddl.create_enum(enum)
    for domain in new.domains:
        if domain.name not in domains:
            yield from ddl.create_domain(domain)


def _add_labels(old: EnumType, new: EnumType) -> Iterator[Step]:
    previous: str | None = None
    for label in new.labels:
        if label not in old.labels:
            first = next(iter(old.labels), None)
            place = f" AFTER {literal(previous)}" if previous else f" BEFORE {literal(first)}" if first else ""
            yield Step(f"ALTER TYPE {qualified(new.name)} ADD VALUE {literal(label)}{place}")
        previous = label
    if new.comment != old.comment:
        yield Step(f"COMMENT ON TYPE {qualified(new.name)} IS {literal(new.comment)}")


def _alter_table(old: Table, new: Table) -> Iterator[Step]:
    alter = f"ALTER TABLE {qualified(new.name)}"
    for column in old.columns:
        if new.find_column(column.name) is None:
            yield Step(f"{alter} DROP COLUMN {quoted(column.name)} CASCADE")
    for column in new.columns:
        before = old.find_column(column.name)
        if before is None:
            yield Step(f"{alter} ADD COLUMN {ddl.column_definition(column, plain=False)}")
            yield from ddl.set_default(new.name, column)
        else:
            yield from _alter_column(alter, new.name, before, column)
    yield from ddl.set_comments(new, old)


def _alter_column(alter: str, table: TableName, old: Column, new: Column) -> Iterator[Step]:
    if old.not_null != new.not_null:
        yield Step(f"{alter} ALTER {quoted(new.name)} {'SET' if new.not_null else 'DROP'} NOT NULL")
    if old.default != new.default and not new.generated:
        if new.default is None:
            yield Step(f"{alter} ALTER {quoted(new.name)} DROP DEFAULT")
        else:
            yield from ddl.set_default(table, new)
