"""Whether the rows of a table can be read, as the catalog tells."""

from collections.abc import Iterator

from rules.catalog import Catalog, Table
from rules.policy.exposure import TRUSTED
from rules.policy.finding import Finding, error, note, warning
from rules.policy.model import ColumnRules, TableRules


def check_reading(path: str, table: Table, rules: TableRules) -> Iterator[Finding]:
    """Reading a row must not fail: that it did would tell of it, exactly and for nothing."""
    if table.foreign and rules.foreign is None:
        words = "rows of it are on another server, where reading may fail, and a failure would reveal a row"
        yield error(path, words, TRUSTED)
    elif table.foreign:
        words = (
            "foreign: trusted: should a row on the other server not be readable, a statement over it fails after its "
            "charge, which tells exactly whether it met that row; it is then the analyst's last"
        )
        yield warning(path, words)
    elif rules.foreign is not None:
        yield warning(f"{path}.foreign", "none of its rows are on another server, so this has no effect")
    for column in table.columns:
        if column.unreadable and not rules.columns.get(column.name, ColumnRules()).hidden:
            words = f'"{column.name}" {column.unreadable}'
            yield warning(path, f"{words}: it does not exist for analysts", column.made_readable)
        elif column.type.casts and not rules.hides(column):
            by = ", ".join(column.type.casts)
            words = f'"{column.name}" has a type that functions of the database cast or order ({by})'
            yield note(
                path, f"{words}: no statement calls them, so it can be counted and tested for NULL, nothing else"
            )


def check_copied(path: str, table: Table, rules: TableRules) -> Iterator[Finding]:
    """Analysts query a copy of a public table. What the twin has no type or collation for is plain text there."""
    for column in table.columns:
        is_foreign = column.type.extension is not None and column.type.base != "enum"
        if (is_foreign or not column.deterministic) and not rules.hides(column):
            kind = column.type.sql if is_foreign else "text of a nondeterministic collation"
            words = f'"{column.name}" is {kind}: analysts query a copy that has it as plain text'
            advice = "hide it, or have analysts compare and group by lower() of it"
            yield warning(path, f"{words}, of which only identical ones are equal", advice)


def check_indexes(path: str, table: Table, catalog: Catalog) -> Iterator[Finding]:
    """Rows that are read while a unique index becomes valid may be planned as if they had its key.

    An index that was made by another version of its collation may miss rows, and hold no key that it is said to hold.
    """
    for name in table.outdated:
        words = f'its index "{name}" was made by another version of its collation: it may miss rows, and proves no key'
        advice = "REINDEX it, then ALTER DATABASE (or COLLATION) … REFRESH VERSION, as PostgreSQL's warning says"
        yield warning(path, words, advice)
    for part in catalog.tables:
        if part.unfinished and (part == table or table in catalog.ancestors_of(part)):
            whose = "its unique index" if part == table else f"of {part.name}, whose rows are in it, the unique index"
            advice = "wait until CREATE INDEX CONCURRENTLY has ended, or drop what it has left behind"
            for name in part.unfinished:
                words = f'{whose} "{name}" is not valid: until it is, what reads protected rows with it is refused'
                yield warning(path, words, advice)


def check_standby(path: str, table: Table, catalog: Catalog) -> Iterator[Finding]:
    """A standby has no rows of UNLOGGED tables, and PostgreSQL refuses to read them there."""
    for part in catalog.tables:
        if part.missing and (part == table or table in catalog.ancestors_of(part)):
            whose = "it" if part == table else f"{part.name}, whose rows are in it,"
            words = f"{whose} is UNLOGGED, and this server is a standby: what reads it is refused"
            yield warning(path, words, "on the primary, ALTER TABLE … SET LOGGED; or let database name the primary")


def check_overrides(catalog: Catalog) -> Iterator[Finding]:
    """By PostgreSQL's own casts, operators and functions a statement of ours means what it does and fails on no row."""
    for name in catalog.overrides:
        words = f"{name} is not PostgreSQL's own, and may stand in for its own: it could fail on a row, and reveal it"
        is_cast = name.startswith("the cast")
        advice = (
            "drop it, or make it again WITH INOUT AS ASSIGNMENT"
            if is_cast
            else "drop it, move it elsewhere, or restore what it replaced"
        )
        yield error("database", words, advice)
