"""Report of `noisegate check`: findings with their lines, what can be asked with what error; as text or JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final

from rules.planner.expected_error import ExpectedError, TableUse
from rules.policy.finding import Finding, Severity
from rules.policy.model import Policy
from rules.policy.yaml_source import Source

_MANY_ALIKE: Final = 4  # warnings, of which one line tells
_MOST_LISTED: Final = 8


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All that was found out about a rules file."""

    file: Path
    source: Source
    policy: Policy
    findings: Sequence[Finding]
    uses: Sequence[TableUse]
    epsilons: Sequence[Decimal]

    def count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    def as_text(self) -> Iterator[str]:
        """Errors line by line, then warnings and notes of one kind together, then the consequences."""
        for finding in self.findings:
            if finding.severity is Severity.ERROR:
                yield f"{self._place(finding)}: {finding}"
        for severity in (Severity.WARNING, Severity.NOTE):
            for alike in self._alike(severity):
                if severity is Severity.WARNING and len(alike) < _MANY_ALIKE:
                    yield from (f"{self._place(finding)}: {finding}" for finding in alike)
                else:
                    hint = f" ({alike[0].hint})" if alike[0].hint else ""
                    paths = _listed([_short(finding.path) for finding in alike])
                    yield f"{self._place(alike[0])}: {severity}: {paths}: {alike[0].message}{hint}"
        if self.uses:
            yield ""
            yield from self._consequences()
            yield ""
        yield f"{self.file}: {self.verdict}"

    @property
    def verdict(self) -> str:
        errors, warnings = self.count(Severity.ERROR), self.count(Severity.WARNING)
        if errors:
            return f"{_plural(errors, 'error')}: the proxy would not start"
        return "fine" + (f", with {_plural(warnings, 'warning')}" if warnings else "")

    def as_json(self) -> str:
        """The same for programs: the errors by ε."""
        tree = {
            "file": str(self.file),
            "verdict": self.verdict,
            "findings": [
                {
                    "severity": str(finding.severity),
                    "line": self.source.line_of(finding.path),
                    "path": finding.path,
                    "message": finding.message,
                    "hint": finding.hint,
                }
                for finding in self.findings
            ],
            "statements": dict(self._statements()),
            "tables": [_table(use) for use in self.uses],
        }
        return json.dumps(tree, ensure_ascii=False, indent=2)

    def _alike(self, severity: Severity) -> Iterable[Sequence[Finding]]:
        kinds: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            if finding.severity is severity:
                kinds.setdefault((finding.message, finding.hint), []).append(finding)
        return kinds.values()

    def _place(self, finding: Finding) -> str:
        return f"{self.file}:{self.source.line_of(finding.path)}"

    def _statements(self) -> Iterator[tuple[str, int]]:
        """Yield how many statements at the default ε a budget buys, by basic composition: zCDP may grant more."""
        default, budget = self.policy.defaults.epsilon, self.policy.budget
        yield "all together", int(budget.epsilon // default)
        for name, analyst in self.policy.analysts.items():
            yield name, int(min(budget.epsilon, analyst.epsilon or budget.epsilon) // default)

    def _consequences(self) -> Iterator[str]:
        default, per = self.policy.defaults.epsilon, self.policy.budget.per
        bought = ", ".join(f"{name} {number:,}" for name, number in self._statements())
        period = "in all" if per == "ever" else f"a {per}"
        more = ", more where zCDP grants them" if self.policy.budget.delta else ""
        yield f"Supported queries. New statements at ε {default:f} {period}{more}: {bought}. Noise in 95% of answers:"
        if public := [str(use.table.name) for use in self.uses if use.public]:
            yield f"  exact: {', '.join(public)}"
        tables: dict[tuple[str, ...], list[str]] = {}
        for use in self.uses:
            if not use.public:
                lines = (*map(_line, use.questions), *(f"not: {column}" for column in use.not_covered))
                tables.setdefault(lines, []).append(str(use.table.name))
        for lines, names in tables.items():
            yield f"  {_listed(names)}"
            yield from (f"    {line}" for line in lines)
        yield "  Averages, quantiles and shares: noisegate.margin(…) around one shows its error with the answer."


def _listed(names: Sequence[str]) -> str:
    """Return names, but not a hundred of them: --json has all.

    Example:
        >>> _listed(["a", "b"]), _listed([*"abcdefghijkl"])
        ('a, b', 'a, b, c, d, e, f, g, h and 4 others')
    """
    if len(names) <= _MOST_LISTED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_LISTED])} and {len(names) - _MOST_LISTED} others"


def _line(question: ExpectedError) -> str:
    most = "at most " if question.at_most else ""
    errors = ", ".join(f"±{_rounded(error)} at ε {epsilon:f}" for epsilon, error in question.errors.items())
    return f"{question.words}: {most}{errors}" if errors else f"{question.words}: the error depends on the data"


def _rounded(error: Fraction) -> str:
    """Two digits, rounded up: 359,488 is 360,000.

    Example:
        >>> [_rounded(Fraction(number)) for number in ("359488", "3595", "30", "0.0312", "0")]
        ['360,000', '3,600', '30', '0.032', '0']
    """
    if not error:
        return "0"
    place = 0
    while error >= 100:
        error, place = error / 10, place + 1
    while error < 10:
        error, place = error * 10, place - 1
    digits = -(-error.numerator // error.denominator)
    return f"{digits * 10**place:,}" if place >= 0 else f"{(Decimal(digits).scaleb(place)).normalize():f}"


def _table(use: TableUse) -> dict[str, object]:
    return {
        "table": str(use.table.name),
        "public": use.public,
        "questions": [
            {
                "words": question.words,
                "sql": question.sql,
                "error_at_95%": {f"{epsilon:f}": float(error) for epsilon, error in question.errors.items()},
                "at_most": question.at_most,
            }
            for question in use.questions
        ],
        "not_covered": list(use.not_covered),
    }


def _short(path: str) -> str:
    """tables.customers.columns.name is customers.name."""
    return path.removeprefix("tables.").replace(".columns.", ".")


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number > 1)}"
