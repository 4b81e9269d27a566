"""Values as texts of PostgreSQL: arrays for a Bind, literals where no parameter can stand.

They mean the same whatever `standard_conforming_strings` says.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Final

from proxy.recent_values import RecentValues
from proxy.twin.steps import literal, quoted

Columns = tuple[tuple[str | None, ...], ...]

_MANY, _LARGE = 200, 4_000  # values, and bytes of them, that take a noticeable part of a millisecond
_KNOWN: Final[RecentValues[int, tuple[Columns, tuple[str, ...]]]] = RecentValues(
    16 * 1024 * 1024
)  # by id, which is theirs if kept
_ESCAPED: Final = re.compile(r'(["\\])')


def text_array(values: Iterable[str | None]) -> str:
    """A text[] as its input function reads it.

    Example:
        >>> text_array(["a", None, 'b"c', ""])
        '{"a",NULL,"b\\\\"c",""}'
    """
    return f"{{{_items(values)}}}"


async def text_arrays(columns: Iterable[Sequence[str | None]]) -> tuple[str, ...]:
    """Columns, each as a text[]. Other sessions have their turn between the pieces of long ones."""
    arrays = []
    for column in columns:
        pieces = []
        for start in range(0, len(column), _MANY):
            pieces.append(_items(column[start : start + _MANY]))
            if len(column) > _MANY or len(pieces[-1]) > _LARGE:
                await asyncio.sleep(0)
        arrays.append(f"{{{','.join(pieces)}}}")
    return tuple(arrays)


async def known_arrays(columns: Columns) -> tuple[str, ...]:
    """Columns, each as a text[]; those of an answer that is given again have been written before."""
    known = _KNOWN.find(id(columns))
    if known is not None and known[0] is columns:
        return known[1]
    arrays = await text_arrays(columns)
    _KNOWN.keep(id(columns), (columns, arrays), 1024 + 64 * sum(map(len, columns)) + 2 * sum(map(len, arrays)))
    return arrays


def _items(values: Iterable[str | None]) -> str:
    return ",".join("NULL" if value is None else f'"{_ESCAPED.sub(_BACKSLASHED, value)}"' for value in values)


def typed_literal(value: str | None, type_name: str) -> str:
    """A constant of a type, in brackets so that it may stand anywhere."""
    return f"({literal(value)}::{type_name})"


def quoted_name(*parts: str) -> str:
    """A qualified name, every part in quotes.

    Example:
        >>> quoted_name("shop", 'a"b')
        '"shop"."a""b"'
    """
    return ".".join(map(quoted, parts))


_BACKSLASHED: Final = r"\\\1"
