"""Views on the twin: the names and columns of the real ones, over a table of ours that tools do not list.

The real text is not here, so a view names nothing that is hidden and runs nothing of the real one. Rows are in that
table if the view is public; for all others the right to read the view is missing, as it is for tables.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

from proxy.twin.sql_text import Step, qualified, quoted
from rules.catalog import Table, TableName

_KINDS: Final = {"view": "VIEW", "materialized view": "MATERIALIZED VIEW"}
_SYSTEM: Final = "SET LOCAL allow_system_table_mods = {}"  # pg_catalog is where no tool looks for tables


def is_view(table: Table) -> bool:
    """Whether a table is a view, or a materialized one."""
    return table.kind in _KINDS


def kind_of(table: Table) -> str:
    """What SQL calls it, in COMMENT ON and DROP."""
    return _KINDS.get(table.kind, "TABLE")


def rows_of(table: Table) -> TableName:
    """Where the rows of a table lie: in itself, or for a view in the table below it."""
    if not is_view(table):
        return table.name
    digest = hashlib.sha256(f"{table.name.schema}\0{table.name.name}".encode()).hexdigest()
    return TableName("pg_catalog", f"noisegate_rows_{digest[:32]}")


def create_view(table: Table, columns: str) -> Iterator[Step]:
    """A view over an empty table with these columns."""
    below = qualified(rows_of(table))
    shown = ", ".join(quoted(column.name) for column in table.columns)
    yield Step(_SYSTEM.format("on"))
    yield Step(f"CREATE TABLE {below} ({columns})")
    yield Step(f"REVOKE ALL ON {below} FROM PUBLIC")
    yield Step(_SYSTEM.format("off"))
    yield Step(f"CREATE {kind_of(table)} {qualified(table.name)} AS SELECT {shown} FROM {below}")


def drop_tables(tables: Iterable[Table]) -> Iterator[Step]:
    """Tables and views, each with what rests on it."""
    gone = sorted(tables, key=lambda table: table.name)
    for kind in (*_KINDS.values(), "TABLE"):
        names = [qualified(table.name) for table in gone if kind_of(table) == kind]
        names += [qualified(rows_of(table)) for table in gone if kind == "TABLE" and is_view(table)]
        if names:
            yield Step(f"DROP {kind} {', '.join(names)} CASCADE")


def empty_table(table: Table) -> Iterator[Step]:
    """Remove its rows."""
    yield Step(f"DELETE FROM {qualified(rows_of(table))}")
    yield from show_rows(table)


def show_rows(table: Table) -> Iterator[Step]:
    """Let a materialized view show what is in the table below it."""
    if table.kind == "materialized view":
        yield Step(f"REFRESH MATERIALIZED VIEW {qualified(table.name)}")
