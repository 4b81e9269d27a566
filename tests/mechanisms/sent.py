"""Rows as the database sends them."""

from collections.abc import Iterable, Sequence


def sent(rows: Iterable[Sequence[object]], codec: str = "utf-8") -> list[tuple[bytes | None, ...]]:
    """Every value as bytes; None is NULL."""
    return [tuple(None if cell is None else str(cell).encode(codec) for cell in row) for row in rows]
