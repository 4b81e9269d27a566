"""Findings about rules: how much each matters, where it stands in the file, and what would be right."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
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


def nearest(word: str, names: list[str]) -> str:
    close = get_close_matches(word, names, n=1)
    return f'did you mean "{close[0]}"?' if close else ""


def error(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.ERROR, path, message, hint)


def warning(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.WARNING, path, message, hint)


def note(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.NOTE, path, message, hint)
