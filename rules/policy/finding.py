"""Findings about rules: how much each matters, where it stands in the file, and what would be right."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from rules.frozen import frozen

_MANY_ALIKE: Final = 4  # warnings, of which one line tells
_MOST_LISTED: Final = 8


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@frozen
class Finding:
    severity: Severity
    path: str  # in the rules file: tables.orders.unit
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.path}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first."""
    return tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity)))


def in_lines(findings: Iterable[Finding], severity: Severity) -> Iterator[tuple[Finding, str]]:
    """Yield the lines that tell of findings, each with the first of them: notes of one kind, and many warnings, have
    one together."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.severity is severity:
            kinds.setdefault((finding.message, finding.hint), []).append(finding)
    for alike in kinds.values():
        if severity is not Severity.NOTE and len(alike) < _MANY_ALIKE:
            yield from ((finding, str(finding)) for finding in alike)
        else:
            # tables.customers.columns.name is customers.name
            paths = listed([finding.path.removeprefix("tables.").replace(".columns.", ".") for finding in alike])
            hint = f" ({alike[0].hint})" if alike[0].hint else ""
            yield alike[0], f"{severity}: {paths}: {alike[0].message}{hint}"


def listed(names: Sequence[str]) -> str:
    """Return names, but not a hundred of them.

    Example:
        >>> listed(["a", "b"]), listed([*"abcdefghijkl"])
        ('a, b', 'a, b, c, d, e, f, g, h and 4 others')
    """
    if len(names) <= _MOST_LISTED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_LISTED])} and {len(names) - _MOST_LISTED} others"


def nearest(word: str, names: list[str]) -> str:
    close = get_close_matches(word, names, n=1)
    return f'did you mean "{close[0]}"?' if close else ""


def error(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.ERROR, path, message, hint)


def warning(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.WARNING, path, message, hint)


def note(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.NOTE, path, message, hint)
