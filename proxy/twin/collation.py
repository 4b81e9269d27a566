"""How the twin sorts texts: as the real database does where its server can, and by code point elsewhere."""

import locale
from collections.abc import Iterator
from typing import Final

from proxy.twin.sql_text import literal
from rules.catalog import Catalog, DatabaseLocale

_BY_CODE_POINT: Final = ("C", "POSIX")
_UTF8: Final = ".UTF-8"  # of the twin, whatever the real database's encoding is
_BUILTIN_SINCE: Final = 18  # the first of the wheel's servers that has the provider


def create_options(given: DatabaseLocale, twin_version: int) -> str:
    """What CREATE DATABASE has to be told for it; "" where the twin sorts by code point."""
    match given.provider:
        case "b" if twin_version >= _BUILTIN_SINCE:
            return f" LOCALE_PROVIDER builtin BUILTIN_LOCALE {literal(given.locale)} LC_COLLATE 'C' LC_CTYPE 'C'"
        case "c":
            collate, ctype = _found(given.collate), _found(given.ctype)
            if collate and ctype:
                return f" LC_COLLATE {literal(collate)} LC_CTYPE {literal(ctype)}"
    return ""


def collation_notes(catalog: Catalog, twin_version: int) -> Iterator[str]:
    """What the DBA should know of it."""
    given = catalog.locale
    name = given.collate if given.provider == "c" else given.locale
    if name in _BY_CODE_POINT or create_options(given, twin_version):
        return
    why = f"its server has no locale {name} here" if given.provider == "c" else "its server is built without ICU"
    yield (
        f"it sorts texts by {name}, and the twin, which sorts answers, by code point: {why}. "
        "Where an order or a comparison of texts around an aggregate matters, it may differ"
    )


def _found(name: str) -> str | None:
    """The name by which this machine has a locale in UTF8."""
    if name in _BY_CODE_POINT:
        return "C"
    before = locale.setlocale(locale.LC_COLLATE)
    try:
        found = name.partition(".")[0] + _UTF8 + "".join(name.partition("@")[1:])
        locale.setlocale(locale.LC_COLLATE, found)
    except locale.Error:
        return None
    finally:
        locale.setlocale(locale.LC_COLLATE, before)
    return found
