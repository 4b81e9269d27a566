"""A rules file that is not saved yet: what `noisegate check` says of it, what its bounds cost, how it differs.

Pages leave out connection strings, verifiers, and queries for them, on however many lines.
"""

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from markupsafe import Markup

from proxy.console.web.pictures import Line, Point, lines, log_axis
from proxy.execute.notices import short_number
from proxy.load_config import ConfigurationError, read_lock
from proxy.recent_values import RecentValues
from rules.catalog import Catalog, Table
from rules.planner.check_rules import check_all
from rules.planner.expected_error import NoisePoint, noise_of_count, noise_of_sum
from rules.policy.finding import Finding, Severity, by_severity, error
from rules.policy.freeze import hide_unseen
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.policy.rules_yaml import RulesError, Source
from rules.refusal import Refusal

ROWS: Final = ""  # stands for the rows of a table where others have a column
_CONTEXT: Final = 2  # lines of a diff around a change
_POINTS: Final[RecentValues[tuple[object, ...], tuple[NoisePoint, ...]]] = RecentValues(16 * 1024 * 1024)
_POINTS_BYTES: Final = 2048


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding with its line in the draft."""

    finding: Finding
    line: int

    @property
    def is_error(self) -> bool:
        return self.finding.severity is Severity.ERROR


@dataclass(frozen=True, slots=True)
class Draft:
    """A text, the policy that it is, and what is to be said of it."""

    text: str
    policy: Policy | None
    remarks: tuple[Remark, ...]

    @property
    def can_be_saved(self) -> bool:
        return self.policy is not None and not any(remark.is_error for remark in self.remarks)

    def refused(self, path: str, refusal: Refusal) -> "Draft":
        """With a field that cannot be written at all, this is the file without the form."""
        wrong = Remark(error(path, refusal.message, refusal.hint), 1)
        return Draft(self.text, self.policy, (wrong, *self.remarks))

    def about(self, table: str) -> list[Remark]:
        """Return what is said of one table, and the errors of the others."""
        own = f"tables.{table}"
        return [remark for remark in self.remarks if remark.is_error or f"{remark.finding.path}.".startswith(f"{own}.")]


def draft_of(text: str, rules: Path, catalog: Catalog) -> Draft:
    """Read and check a text as `noisegate check` does."""
    try:
        policy = load_policy(text, str(rules), os.environ)
    except RulesError as wrong:
        remarks = tuple(
            Remark(error(problem.path, problem.message, problem.hint), problem.line) for problem in wrong.problems
        )
        return Draft(text, None, remarks)
    try:
        seen = read_lock(rules)
    except ConfigurationError as unreadable:
        return Draft(text, None, (Remark(error("database", str(unreadable)), 1),))
    shown = policy if seen is None else hide_unseen(policy, catalog, seen)
    source = Source(text, str(rules), os.environ)
    findings = by_severity(check_all(shown, catalog))
    return Draft(text, policy, tuple(Remark(finding, source.line_of(finding.path)) for finding in findings))


def wrong_fields(remarks: Sequence[Remark], table: str) -> Iterator[str]:
    """The names of the fields that errors are about."""
    own = f"tables.{table}."
    for remark in remarks:
        if remark.is_error and remark.finding.path.startswith(own):
            rest = remark.finding.path.removeprefix(own)
            if not rest.startswith("columns."):
                yield rest.partition(".")[0]
                continue
            column, _, key = rest.removeprefix("columns.").partition(".")
            yield from (f"{name}:{column}" for name in ([key] if key else ("lower", "upper", "values")))


def noise_of(draft: Draft, catalog: Catalog, table: str, shown: Table) -> dict[str, tuple[str, Markup]]:
    """For each column that has bounds, and for the rows, what the bound costs: in words, and as a picture."""
    policy = draft.policy
    if policy is None or table not in policy.tables or policy.tables[table].public:
        return {}
    noise = {}
    for column in (ROWS, *(column.name for column in shown.columns)):
        points = _points(policy, catalog, table, column)
        if points:
            noise[column] = _words(points, policy, column), _picture(points, column)
    return noise


def _points(policy: Policy, catalog: Catalog, table: str, column: str) -> tuple[NoisePoint, ...]:
    rules = policy.tables[table].model_dump_json()
    key = (id(catalog), table, column, rules, policy.defaults.epsilon, policy.group_size, policy.noise, policy.unit)
    known = _POINTS.find(key)
    if known is None:
        cache_key = policy, catalog, table
        known = noise_of_sum(*cache_key, column) if column else noise_of_count(*cache_key)
        _POINTS.keep(key, known, _POINTS_BYTES)
    return known


def _words(points: Sequence[NoisePoint], policy: Policy, column: str) -> str:
    own = next(point for point in points if point.is_own)
    epsilon, budget = policy.defaults.epsilon, policy.budget
    period = "in all" if budget.per == "ever" else f"a {budget.per}"
    what = f"A sum of {column}" if column else "A count of rows"
    error_words = f"±{short_number(float(own.error))} in 95% of answers at ε {epsilon:f}"
    return f"{what}: {error_words}. The budget buys {int(budget.epsilon // epsilon):,} such answers {period}."


def _picture(points: Sequence[NoisePoint], column: str) -> Markup:
    own = next(point for point in points if point.is_own)
    drawn = [Point(float(point.bound), float(point.error)) for point in points if point.bound > 0 and point.error > 0]
    here = Point(float(own.bound), float(own.error))
    unit = "larger of the bounds" if column else "rows_per_unit"
    title = f"Noise by {unit}{f' of {column}' if column else ''}: ±{short_number(float(own.error))} at {own.bound:f}"
    x, y = log_axis([point.x for point in drawn]), log_axis([point.y for point in drawn])
    return lines(title, [Line(drawn)], x, y, here if own.bound > 0 else None, unit)


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: str  # a class of the stylesheet
    text: str


def diff_of(before: str, after: str) -> list[DiffLine]:
    """The changed lines with some around them; what is secret in them is not shown."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    secrets = find_secret_lines(before), find_secret_lines(after)
    if secrets[0] is None or secrets[1] is None:
        return [DiffLine("place", "(not shown: one of the two is not YAML, so its secrets cannot be found and hidden)")]
    hidden = {**secrets[0], **secrets[1]}
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    return [
        DiffLine(kinds.get(line[:1], "same"), without_secrets(f"{line[:1]}{hidden.get(line[1:], line[1:])}"))
        for line in list(lines)[2:]
    ]


_KEYS: Final = frozenset({"database", "public_reader", "password", "query"})
_SECRET: Final = re.compile(
    r"((?:\b|[\"'])(?:database|public_reader|password|query)[\"']?\s*:\s*)\S.*|(SCRAM-SHA-256\$)[^\s\"']+"
    r"|(password\s*=\s*)\S.*|(\w+://)\S+",
    re.IGNORECASE,
)  # in comments too, of which YAML says nothing
_NOT_SHOWN: Final = "(not shown)"


def without_secrets(line: str) -> str:
    """A line without the secrets that the line itself shows.

    Example:
        >>> without_secrets("  database: postgresql://noisegate:secret@db/shop  # the shop")
        '  database: (not shown)'
    """
    return _SECRET.sub(lambda match: f"{next(filter(None, match.groups()))}{_NOT_SHOWN}", line)


def find_secret_lines(text: str) -> Mapping[str, str] | None:
    """Each line that has a part of a secret, and what stands there instead; nothing where the text is not YAML.

    Example:
        >>> find_secret_lines("database: >-\\n  host=db\\n  password='a b'\\nunit: customers.id")
        {'database: >-': 'database: (not shown)', '  host=db': '(not shown)', "  password='a b'": '(not shown)'}
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    lines, shown = text.splitlines(), dict[str, str]()
    for node in () if root is None else _secrets(root):
        start, end = node.start_mark, node.end_mark
        after = end.line + (end.column > 0)
        for number in range(start.line, min(max(after, start.line + 1), len(lines))):
            before = lines[number][: start.column] if number == start.line else ""
            shown[lines[number]] = f"{before}{_NOT_SHOWN}"
    return shown


def _secrets(root: yaml.Node) -> Iterator[yaml.Node]:
    """The values of the keys above; one that an alias names stands where its anchor is."""
    seen, waiting = set[int](), [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value.lower() in _KEYS:
                    yield value
                waiting.extend((key, value))
