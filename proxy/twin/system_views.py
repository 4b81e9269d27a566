"""The virtual relations on the twin: views that tools can see and describe, and that nobody can read."""

from collections.abc import Iterator

from proxy.twin.sql_text import Step, literal, quoted
from rules.sql.system_views import VIRTUAL, SystemView


def create_virtual() -> Iterator[Step]:
    """All of them, each with what it says of itself."""
    for virtual in VIRTUAL.values():
        yield from _create(virtual)


def _create(virtual: SystemView) -> Iterator[Step]:
    columns = ", ".join(f"NULL::{column.type} AS {quoted(column.name)}" for column in virtual.columns)
    yield Step(f"CREATE VIEW {virtual.qualified} AS SELECT {columns} WHERE false")
    yield Step(f"GRANT REFERENCES ON {virtual.qualified} TO PUBLIC")
    yield Step(f"COMMENT ON VIEW {virtual.qualified} IS {literal(virtual.comment)}")
    for column in virtual.columns:
        yield Step(f"COMMENT ON COLUMN {virtual.qualified}.{quoted(column.name)} IS {literal(column.comment)}")
