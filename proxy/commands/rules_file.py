"""Draft, check and lock a rules file, make the role that it needs, and report the findings as text or JSON."""

import argparse
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final

from proxy.commands.basic import Look, Names, add_rules, delta_of, epsilon_of, look_at, run, say
from proxy.commands.private_look import Wanted, suggest_privately
from proxy.engines.engine import Readable
from proxy.engines.engines import find_excess, real_database
from proxy.execute.clock import system_clock
from proxy.ledger.periods import begun as find_begun
from proxy.load_config import ConfigurationError, ledger_home, ledger_place, lock_of, read_lock, read_rules
from proxy.load_logins import find_oddities, load_accounts
from proxy.policy_in_force import Freeze, as_words, put_bounds, read_kept
from proxy.process_wall import WITHOUT_SECCOMP, find_wall
from proxy.settings import Settings
from proxy.twin.server_programs import collation_notes, version_for
from rules.accounting.bets import MOST_PROTECTING, whose, wins_words
from rules.accounting.budgets import budgets_of
from rules.accounting.store import KeptBounds, LedgerError
from rules.catalog import Catalog, TableName
from rules.planner.expected_error import ExpectedError, TableUse, expected_errors
from rules.policy.finding import Finding, Severity, by_severity, error, in_lines, listed, note, warning
from rules.policy.freeze import Seen, as_text, changes_between, find_unseen, see
from rules.policy.json_schema import rules_schema
from rules.policy.model import Policy, table_name
from rules.policy.rules_yaml import Source, dotted
from rules.policy.suggest import suggest_changes, suggest_rules
from rules.policy.units import unit_line_of
from rules.synopses.check import check_whole, hide_since

READER: Final = "noisegate_reader"
PUBLIC_READER: Final = "noisegate_public_reader"


def check(
    rules: Path,
    *,
    as_json: bool = False,
    is_strict: bool = False,
    epsilons: Sequence[Decimal] = (),
    ledger: Path | str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> int:
    """Print what the rules mean for this database; 1 if they cannot hold, 3 if `is_strict` and something is odd."""
    policy = read_rules(rules, environment)
    # An error at a price that no statement can pay would be of no use
    most = policy.defaults.max_epsilon
    if epsilons and max(epsilons) > most:
        raise ConfigurationError(
            f"--epsilon {max(epsilons):f} is above defaults.max_epsilon, {most:f}: no statement can spend it"
        )
    look = run(look_at(policy.database, policy))
    seen = read_lock(rules)
    place = rules.with_suffix(".ledger") if ledger is None else ledger
    bounds = run(read_kept(Settings(rules, place), look.catalog)) if policy.auto_columns else []
    looks = list(_looks(rules, policy, bounds))
    policy = put_bounds(policy, look.catalog, bounds)
    shown = policy if seen is None else hide_since(policy, look.catalog, seen)
    source = Source(rules.read_text(encoding="utf-8"), str(rules), environment)
    ours = [*_findings(rules, policy, look, seen, source), *_public_reader(shown, look.catalog), *looks]
    ours += _begun_period(policy, Settings(rules, place))
    paths = {finding.path for finding in ours if finding.path != "database"}  # what is hidden, and why
    meant = check_whole(shown, look.catalog)
    kept = (finding for finding in meant if finding.severity is not Severity.NOTE or finding.path not in paths)
    later = () if shown is policy else _once_locked(policy, look.catalog, meant)
    findings = by_severity(sorted([*ours, *kept, *later], key=lambda finding: source.line_of(finding.path)))
    can_start = not any(finding.severity is Severity.ERROR for finding in findings)
    epsilons_shown = tuple(sorted({*(epsilons or (policy.defaults.epsilon, policy.defaults.max_epsilon))}))
    uses = tuple(expected_errors(shown, look.catalog, epsilons_shown)) if can_start else ()
    useless = [finding for use in uses for finding in use.findings(shown)]
    findings = by_severity(sorted([*findings, *useless], key=lambda finding: source.line_of(finding.path)))
    report = CheckReport(rules, source, policy, findings, uses, epsilons_shown)
    for line in (report.as_json(),) if as_json else report.as_text():
        say(line)
    return 1 if not can_start else 3 if is_strict and report.count(Severity.WARNING) else 0


def _looks(rules: Path, policy: Policy, kept: Sequence[KeptBounds]) -> Iterator[Finding]:
    """Yield what private looks have found of columns that say bounds: auto."""
    known = {(table_name(bounds.table), bounds.column): bounds for bounds in kept}
    for text, of in policy.tables.items():
        for name in (name for name, column in of.columns.items() if column.bounds is not None):
            bounds, path = known.get((table_name(text), name)), dotted(("tables", text, "columns", name, "bounds"))
            if bounds is None:
                yield error(
                    path, "auto: no bounds are known yet", f"run noisegate bounds {rules}, which charges the ledger"
                )
            else:
                yield note(path, f"auto: {as_words(bounds)}")


def _begun_period(policy: Policy, settings: Settings) -> Iterator[Finding]:
    """Yield what the running period begins with where the ledger has charges under another `per`."""
    if isinstance(settings.ledger, Path) and not settings.ledger.exists():
        return
    with suppress(LedgerError), ledger_home(settings, "").snapshot() as connection:
        begun = find_begun(connection, system_clock(), budgets_of(policy))
        if begun is not None:
            yield note("budget.per", begun.words)


def _findings(rules: Path, policy: Policy, look: Look, seen: Seen | None, source: Source) -> Iterator[Finding]:
    """Yield findings about the database, our role in it and the lock file."""
    yield from map(_unreadable, look.missing.items())
    yield from (warning("database", risk) for risk in look.risks)
    yield from _about_twin(look.catalog)
    if not find_wall().seccomp:
        yield note("database", WITHOUT_SECCOMP)
    accounts = load_accounts(policy, rules, secrets.token_bytes(32))
    unset = {str(path[1]) for path in source.unset if len(path) > 1}
    yield from (warning("logins", words) for words in find_oddities(policy, rules, accounts, unset))
    for problem in source.problems:  # a policy that was read has no others
        yield note(problem.path, f"{problem.message} here; noisegate serve needs it")
    if seen is None:
        words = f"there is no {lock_of(rules).name}: the next start will show columns that were added since"
        yield warning("database", words, f"noisegate lock {rules} records the current schema")
    else:
        yield from (
            unseen.finding(lock_of(rules).name, str(rules)) for unseen in find_unseen(policy, look.catalog, seen)
        )
        yield from Freeze(rules, seen).resting(policy, look.catalog)


def _public_reader(shown: Policy, catalog: Catalog) -> Iterator[Finding]:
    """Yield rights of the login for large public tables beyond reading these: then it is not used."""
    if shown.public_reader is not None:
        for reason in run(find_excess(shown.public_reader, shown, catalog)):
            yield warning("public_reader", f"it is not used: {reason}", "noisegate grants prints the SQL of its role")


def _once_locked(policy: Policy, catalog: Catalog, now: Sequence[Finding]) -> Iterator[Finding]:
    """Yield what is no error only because what is new is hidden."""
    known = {(finding.path, finding.message) for finding in now if finding.severity is Severity.ERROR}
    for finding in check_whole(policy, catalog):
        if finding.severity is Severity.ERROR and (finding.path, finding.message) not in known:
            yield warning(finding.path, f"an error once the schema is locked again: {finding.message}", finding.hint)


def _unreadable(missing: tuple[TableName, str]) -> Finding:
    return error(dotted(("tables", str(missing[0]))), "the proxy's role cannot read it", missing[1])


def lock(rules: Path, *, is_forced: bool = False) -> int:
    """Write down the schema that the rules are for, and say what is new in it; rules that do not fit it are refused."""
    policy = read_rules(rules)
    catalog = run(look_at(policy.database)).catalog
    before, now, path = read_lock(rules), see(policy, catalog), lock_of(rules)
    errors = [finding for finding in check_whole(policy, catalog) if finding.severity is Severity.ERROR]
    if errors and not is_forced:
        lines = map(str, (f"{path} is not written: the proxy would not start with it", *errors))
        raise ConfigurationError("\n".join((*lines, "correct the rules, or write it anyway with --force")))
    try:
        path.write_text(as_text(now), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from None
    changes = () if before is None else tuple(changes_between(before, now))
    for line in changes:
        say(line)
    columns = sum(len(table.columns) for table in now.tables.values())
    words = "nothing is new" if before is not None and not changes else f"{len(now.tables)} tables, {columns} columns"
    say(f"{path}: {words}. A running proxy takes it by SIGHUP, or RELOAD in the console")
    return 0


def _about_twin(catalog: Catalog) -> Iterator[Finding]:
    real, shown = catalog.version // 10_000, version_for(catalog.version)
    if shown != real:
        yield note(
            "database", f"the database is PostgreSQL {real}; its twin, which clients talk to, is PostgreSQL {shown}"
        )
    yield from (note("database", words) for words in collation_notes(catalog, shown))


def suggest_diff(rules: Path) -> int:
    """Print what a rules file needs since the schema changed."""
    policy = read_rules(rules)
    say(suggest_changes(policy, run(look_at(policy.database)).catalog, read_lock(rules)).rstrip("\n"))
    return 0


def database_given(database: str | None) -> str:
    """The connection string of the command line, or that of the environment."""
    dsn = database or os.environ.get("NOISEGATE_DATABASE")
    if not dsn:
        raise ConfigurationError("name the database: --database, or the variable NOISEGATE_DATABASE")
    return dsn


def suggest(unit: str, database: str) -> int:
    """Print a draft of a rules file."""
    catalog = run(look_at(database)).catalog
    try:
        say(suggest_rules(catalog, table_name(unit)).rstrip("\n"))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return 0


def schema() -> int:
    """Print the JSON Schema of rules files."""
    say(json.dumps(rules_schema(), ensure_ascii=False, indent=2))
    return 0


def grants(rules: Path, role: str | None) -> int:
    """Print the SQL of the role that the proxy needs."""
    policy = read_rules(rules)
    database = real_database(policy.database)
    say(database.role_grants(policy, database.name, role or database.user or READER).rstrip("\n"))
    if policy.public_reader is not None:
        catalog, seen = run(look_at(policy.database)).catalog, read_lock(rules)
        shown = policy if seen is None else hide_since(policy, catalog, seen)
        reader = real_database(policy.public_reader)
        sql = reader.public_grants(Readable.of(shown, catalog), catalog, reader.user or PUBLIC_READER)
        say(sql.rstrip("\n"))
    return 0


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add them to the command line."""
    for add in (_add_check, _add_suggest, _add_lock, _add_grants, _add_schema):
        add(names)


def _add_check(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "check",
        help="check the rules against the database, and explain them",
        description="Check a rules file against the real catalog and explain its consequences. No row is read.",
    )
    add_rules(parser)
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument("--strict", action="store_true", help="exit with status 3 if there are warnings, for use in CI")
    parser.add_argument(
        "--epsilon",
        type=epsilon_of,
        action="append",
        default=[],
        metavar="E",
        help="report errors at this ε; may be repeated (default: the rules' default and most)",
    )
    parser.add_argument(
        "--ledger",
        metavar="PLACE",
        default=os.environ.get("NOISEGATE_LEDGER"),
        help="the ledger with the ranges of bounds: auto, read only if the rules have these (default: as for serve)",
    )
    parser.set_defaults(
        run=lambda options: check(
            options.rules,
            as_json=options.json,
            is_strict=options.strict,
            epsilons=options.epsilon,
            ledger=ledger_place(options.ledger),
        )
    )


def _add_suggest(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "suggest",
        help="draft rules from the database's catalog",
        description="Print a first rules file. It is made from the catalog alone, and no row is read. With --epsilon "
        "it also takes a private look at the rows, which is charged to the ledger first.",
    )
    _add_look(parser)
    parser.add_argument(
        "unit", metavar="TABLE", nargs="?", help="the table with one row for each individual to protect"
    )
    parser.add_argument(
        "--diff",
        type=Path,
        metavar="RULES",
        help="print only the changes that this rules file needs since its lock file was written",
    )
    parser.add_argument(
        "--database", metavar="DSN", help="a libpq connection string (default: the variable NOISEGATE_DATABASE)"
    )

    def run(options: argparse.Namespace) -> int:
        if options.diff is not None and options.unit is None:
            return suggest_diff(options.diff)
        if options.unit is None or options.diff is not None:
            parser.error("name a TABLE, or --diff RULES")
        database = database_given(options.database)
        if options.epsilon is None:
            return suggest(options.unit, database)
        place = ledger_place(options.ledger) or Path("rules.ledger")
        wanted = Wanted(options.unit, database, options.epsilon, options.delta, place, options.anchor)
        return suggest_privately(wanted)

    parser.set_defaults(run=run)


def _add_look(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--epsilon",
        type=epsilon_of,
        metavar="E",
        help="look at ranges and at rows of units, for this ε in total",
    )
    parser.add_argument(
        "--delta",
        type=delta_of,
        default=Decimal(0),
        metavar="D",
        help="find frequent texts too, for this δ in total",
    )
    parser.add_argument(
        "--ledger",
        metavar="PLACE",
        default=os.environ.get("NOISEGATE_LEDGER", "rules.ledger"),
        help="the ledger that is charged for the look; a missing file is made (default: the variable "
        "NOISEGATE_LEDGER, or rules.ledger, for a draft that you save as rules.yaml)",
    )
    parser.add_argument("--anchor", type=Path, metavar="FILE", help="a second file that records the end of the ledger")


def _add_lock(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "lock",
        help="record the schema that the rules are for: later columns and tables are hidden",
        description="Write a lock file next to the rules, with the present columns, types and views. Later ones are "
        "hidden from analysts, and reported by check, log and console, until you run this again.",
    )
    add_rules(parser)
    parser.add_argument(
        "--force", action="store_true", help="write it even if the proxy would not start with it and these rules"
    )
    parser.set_defaults(run=lambda options: lock(options.rules, is_forced=options.force))


def _add_grants(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "grants",
        help="print the SQL of the role that the proxy needs",
        description="Print the SQL of a role that may read the tables of the rules and do nothing else.",
    )
    add_rules(parser)
    parser.add_argument("--role", help="its name (default: that of the connection string, or noisegate_reader)")
    parser.set_defaults(run=lambda options: grants(options.rules, options.role))


def _add_schema(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "schema",
        help="print the JSON Schema of rules files, for editors",
        description="Print the JSON Schema of rules files. Save it as rules.schema.json next to the rules file, whose "
        "head names it, as in drafts: editors then complete keys and mark mistakes.",
    )
    parser.set_defaults(run=lambda options: schema())


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
        """Return how much all answers of a period can reveal about one person, by account."""
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
