"""The programs of the twin's server, of the wheel or of a PostgreSQL of the machine, and how it sorts texts."""

import locale
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from proxy.process_isolation import bare_environment
from proxy.twin.embedded import ClusterError, can_run, server_binaries
from proxy.twin.steps import literal
from rules.catalog import Catalog, DatabaseLocale
from rules.frozen import replace

TWIN_VERSIONS: Final = range(16, 19)  # that the twin's walls were tried on
_PROGRAMS: Final = ("postgres", "initdb")
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
_EXAMPLE: Final = "name the bin directory of a server, as /usr/lib/postgresql/18/bin"


@dataclass(frozen=True, slots=True)
class ServerPrograms:
    """The place of the programs, and their major version."""

    directory: Path
    version: int

    @classmethod
    def of_wheel(cls, server_version: int) -> Self:
        """Those that stand for a server of this version."""
        version = version_for(server_version)
        return cls(server_binaries(version), version)

    @classmethod
    def of_machine(cls, directory: Path, server_version: int) -> Self:
        """Those of a directory, if they can stand for a server of this version; raises ClusterError."""
        for name in _PROGRAMS:
            if not os.access(directory / name, os.X_OK):
                raise ClusterError(f"{directory} has no program {name}: {_EXAMPLE}")
        if not can_run(directory):
            raise ClusterError(f"{directory}: the user of the twin cannot run the programs there")
        command = [str(directory / "postgres"), "--version"]
        done = subprocess.run(command, env=bare_environment(), capture_output=True, text=True, check=False)
        match = _VERSION.search(done.stdout)
        if match is None:
            raise ClusterError(f"{directory}/postgres does not say its version: {_EXAMPLE}")
        version = int(match[1])
        if version not in TWIN_VERSIONS:
            served = f"{TWIN_VERSIONS[0]} to {TWIN_VERSIONS[-1]}"
            raise ClusterError(f"{directory} is PostgreSQL {version}, and the twin can be {served}")
        if version < server_version // 10_000:
            words = f"{directory} is PostgreSQL {version}, older than the database, which is {server_version // 10_000}"
            raise ClusterError(f"{words}: it could not show its schema")
        return cls(directory, version)


def version_for(server_version: int) -> int:
    """The wheel's PostgreSQL that stands for this one: never an older one, which could not show its schema."""
    return 16 if server_version < 170000 else 18


_BY_CODE_POINT: Final = ("C", "POSIX")
_UTF8: Final = ".UTF-8"  # of the twin, whatever the real database's encoding is
_BUILTIN_SINCE: Final = 18  # the first of the wheel's servers that has the provider


def create_options(database_locale: DatabaseLocale, twin_version: int) -> str:
    """Return what CREATE DATABASE has to be told for it; "" where the twin sorts by code point."""
    match database_locale.provider:
        case "b" if twin_version >= _BUILTIN_SINCE:
            return (
                f" LOCALE_PROVIDER builtin BUILTIN_LOCALE {literal(database_locale.locale)} LC_COLLATE 'C' LC_CTYPE 'C'"
            )
        case "c":
            collate, ctype = _found(database_locale.collate), _found(database_locale.ctype)
            if collate and ctype:
                return f" LC_COLLATE {literal(collate)} LC_CTYPE {literal(ctype)}"
    return ""


def sorted_as_twin(catalog: Catalog, binaries: Path | None) -> Catalog:
    """The catalog, which says whether the twin of these programs, or of the wheel's, sorts texts as the database does.

    A program of the machine may be older than PostgreSQL's own locales. The database "postgres" is there already.
    """
    given = catalog.locale
    version = version_for(catalog.version) if binaries is None else TWIN_VERSIONS[0]
    is_plain = given.provider == "c" and {given.collate, given.ctype} <= set(_BY_CODE_POINT)
    is_made = catalog.database != "postgres" and bool(create_options(given, version))
    return replace(catalog, locale=replace(given, is_twins=is_plain or is_made))


def collation_notes(catalog: Catalog, twin_version: int) -> Iterator[str]:
    """Yield what the DBA should know of it."""
    database_locale = catalog.locale
    name = database_locale.collate if database_locale.provider == "c" else database_locale.locale
    if name in _BY_CODE_POINT or create_options(database_locale, twin_version):
        return
    why = (
        f"its server has no locale {name} here"
        if database_locale.provider == "c"
        else "its server is built without ICU"
    )
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
        locale_name = name.partition(".")[0] + _UTF8 + "".join(name.partition("@")[1:])
        locale.setlocale(locale.LC_COLLATE, locale_name)
    except locale.Error:
        return None
    finally:
        locale.setlocale(locale.LC_COLLATE, before)
    return locale_name
