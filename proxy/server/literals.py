"""Values as texts of PostgreSQL: arrays for a Bind, literals where no parameter can stand.

`standard_conforming_strings` is on wherever these are used: what turns it off is refused.
"""

import re
from collections.abc import Iterable
from typing import Final

_ESCAPED: Final = re.compile(r'(["\\])')


def text_array(values: Iterable[str | None]) -> str:
    """A text[] as its input function reads it.

    Example:
        >>> text_array(["a", None, 'b"c', ""])
        '{"a",NULL,"b\\\\"c",""}'
    """
    items = ("NULL" if value is None else f'"{_ESCAPED.sub(_BACKSLASHED, value)}"' for value in values)
    return f"{{{','.join(items)}}}"


def literal(value: str | None) -> str:
    """A string constant, or NULL.

    Example:
        >>> literal("it's")
        "'it''s'"
    """
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def typed_literal(value: str | None, type_name: str) -> str:
    """A constant of a type, in brackets so that it may stand anywhere."""
    return f"({literal(value)}::{type_name})"


def quoted_name(*parts: str) -> str:
    """A qualified name, every part in quotes.

    Example:
        >>> quoted_name("shop", 'a"b')
        '"shop"."a""b"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


_BACKSLASHED: Final = r"\\\1"
