"""Primary keys of synthetic tables: made up, never taken from data."""

from typing import Literal

from rules.catalog import Table
from rules.synthesis.model import KeyPart
from rules.values.types import type_of

_KINDS: dict[str, Literal["number", "text", "uuid"]] = {
    "integer": "number", "numeric": "number", "text": "text", "uuid": "uuid",
}  # fmt: skip


def keys_of(table: Table, link: str | None) -> tuple[KeyPart, ...]:
    """The parts of a primary key that can be made up; nothing where it refers to what is not there."""
    primary = next((key for key in table.keys if key.primary), None)
    if primary is None:
        return ()
    if len(primary.columns) == 1 and primary.columns[0] != link:
        return _alone(table, primary.columns[0])
    if link not in primary.columns or len(primary.columns) > 2:
        return ()
    return (
        tuple(part for name in primary.columns for part in _beside(table, name, link))
        if _is_made(table, primary.columns, link)
        else ()
    )


def _alone(table: Table, name: str) -> tuple[KeyPart, ...]:
    kind = _kind(table, name)
    return () if kind is None or _refers(table, name) else (KeyPart(name, kind),)


def _is_made(table: Table, names: tuple[str, ...], link: str | None) -> bool:
    return all(name == link or (_kind(table, name) == "number" and not _refers(table, name)) for name in names)


def _beside(table: Table, name: str, link: str | None) -> tuple[KeyPart, ...]:
    return (KeyPart(name, "parent" if name == link else "place"),)


def _refers(table: Table, name: str) -> bool:
    return any(name in key.columns for key in table.foreign_keys)


def _kind(table: Table, name: str) -> Literal["number", "text", "uuid"] | None:
    column = table.find_column(name)
    return None if column is None or column.generated else _KINDS.get(type_of(column).kind)
