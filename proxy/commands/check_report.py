"""Report of `noisegate check`: findings with their lines, what can be asked with what error; as text or JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from rules.accounting.bets import MOST_PROTECTING, whose, wins_words
from rules.accounting.budgets import budgets_of
from rules.planner.expected_error import ExpectedError, TableUse
from rules.policy.finding import Finding, Severity, in_lines, listed
from rules.policy.model import Policy
from rules.policy.rules_yaml import Source
from rules.policy.units import unit_line_of


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
        """Whose protection, errors line by line, warnings and notes of one kind together, then the consequences."""
        yield unit_line_of(self.policy)
        for finding in self.findings:
            if finding.severity is Severity.ERROR:
                yield f"{self._place(finding)}: {finding}"
        for finding, line in (*in_lines(self.findings, Severity.WARNING), *in_lines(self.findings, Severity.NOTE)):
            yield f"{self._place(finding)}: {line}"
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
            "unit": unit_line_of(self.policy).removeprefix("unit: "),
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

    def _place(self, finding: Finding) -> str:
        return f"{self.file}:{self.source.line_of(finding.path)}"

    def _statements(self) -> Iterator[tuple[str, int]]:
        """Yield how many statements at the default ε a budget buys, by basic composition: zCDP may grant more."""
        default, budget = self.policy.defaults.epsilon, self.policy.budget
        yield "all together", int(budget.epsilon // default)
        for name, analyst in self.policy.analysts.items():
            yield name, int(min(budget.epsilon, analyst.epsilon or budget.epsilon) // default)

    def _bets(self) -> str:
        """What all answers of a period tell of one person, by account."""
        budgets, per = budgets_of(self.policy), self.policy.budget.per
        limits = {"all together": budgets.dataset} | {name: budgets.limit_of(name) for name in self.policy.analysts}
        answers = "all answers" if per == "ever" else f"all answers of a {per}"
        wins = ", ".join(f"{name} {wins_words(limit)}" for name, limit in limits.items())
        lost = any(limit.epsilon > MOST_PROTECTING for limit in limits.values())
        protects = f" Above ε {MOST_PROTECTING} a budget no longer protects against that bet." if lost else ""
        bet = f"A bet on one {whose(self.policy)}'s presence after {answers} wins at most"
        return f"{bet} so many of 100 times, where a coin wins 50: {wins}.{protects}"

    def _consequences(self) -> Iterator[str]:
        default, per = self.policy.defaults.epsilon, self.policy.budget.per
        bought = ", ".join(f"{name} {number:,}" for name, number in self._statements())
        period = "in all" if per == "ever" else f"a {per}"
        more = ", more where zCDP grants them" if self.policy.budget.delta else ""
        yield f"The budget pays for this many new statements at ε {default:f} {period}{more}: {bought}."
        yield self._bets()
        yield "Supported queries, and how far noise moves 95% of their answers:"
        if public := [str(use.table.name) for use in self.uses if use.public]:
            yield f"  exact: {', '.join(public)}"
        tables: dict[tuple[str, ...], list[str]] = {}
        for use in self.uses:
            if not use.public:
                sizes = (line for question in use.questions for line in _sizes(question))
                lines = (*map(_line, use.questions), *sizes, *(f"not: {column}" for column in use.not_covered))
                tables.setdefault(lines, []).append(str(use.table.name))
        for lines, names in tables.items():
            yield f"  {listed(names)}"
            yield from (f"    {line}" for line in lines)
        yield "  Averages, quantiles and shares: noisegate.margin(…) around one shows its error with the answer."


def _line(question: ExpectedError) -> str:
    most = "at most " if question.at_most else ""
    errors = ", ".join(f"±{_rounded(error)} at ε {epsilon:f}" for epsilon, error in question.errors.items())
    return f"{question.words}: {most}{errors}" if errors else f"{question.words}: the error depends on the data"


def _sizes(question: ExpectedError) -> Iterator[str]:
    """Say what a group needs to be shown: with fewer its number could be noise alone."""
    if question.sizes:
        most = "at most " if question.at_most else ""
        needs = (f"{most}about {_rounded(size.number)} {size.what} at ε {at:f}" for at, size in question.sizes.items())
        yield f"a group by {question.by} needs {', '.join(needs)} to be shown"


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
                "shown_from": {f"{epsilon:f}": float(size.number) for epsilon, size in question.sizes.items()},
            }
            for question in use.questions
        ],
        "not_covered": list(use.not_covered),
    }


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number > 1)}"
