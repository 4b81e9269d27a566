"""Names and values as SQL, and one step of a change: a statement, and what to do when it cannot be done."""

import re
from dataclasses import dataclass

from rules.catalog import TableName

NAME = r'("(?:[^"]|"")+"|[^".]+)'
QUALIFIED = re.compile(rf"{NAME}\.{NAME}")


@dataclass(frozen=True, slots=True)
class Step:
    """One statement. Where the twin cannot have it, `otherwise` takes its place; None: then the whole change fails."""

    sql: str
    otherwise: str | None = None


def optional(sql: str) -> Step:
    """Return what is left out where the twin lacks something: a function of an extension, an operator, a type."""
    return Step(sql, "")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def qualified(name: TableName) -> str:
    return f"{quoted(name.schema)}.{quoted(name.name)}"


def literal(text: str | None) -> str:
    if text is None:
        return "NULL"
    body = text.replace("'", "''")
    return "E'" + body.replace("\\", "\\\\") + "'" if "\\" in body else f"'{body}'"


def find_qualified(text: str) -> TableName | None:
    """The two names of what PostgreSQL printed as schema.name."""
    match = QUALIFIED.fullmatch(text)
    return TableName(_plain(match[1]), _plain(match[2])) if match else None


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
