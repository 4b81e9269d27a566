"""The output of `noisegate shadow`: a migration report, grouped by kind of refusal, without constants."""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from proxy.commands.basic import Names, add_ledger, add_rules, look_at, run, say, settings_of
from proxy.commands.tool_log import Findings, most_frequent, shadow
from proxy.load_config import ConfigurationError, read_rules
from proxy.policy_in_force import read_kept
from proxy.settings import Settings
from rules.policy.model import Policy

_SHOWN: Final = 3  # shapes of one kind
_WIDE: Final = 160  # characters of a shape


def report(settings: Settings, statements: str, *, as_json: bool) -> int:
    """Print what would become of the statements of a file, or of standard input."""
    policy = read_rules(settings.rules)
    try:
        text = sys.stdin.read() if statements == "-" else Path(statements).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"the statements cannot be read: {statements}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"the statements cannot be read: {statements} is not UTF-8") from None
    catalog = run(look_at(policy.database)).catalog
    kept = run(read_kept(settings, catalog)) if policy.auto_columns else []
    findings = run(shadow(settings.rules, catalog, text, kept))
    say(as_document(findings) if as_json else as_text(findings, policy))
    return 0


def as_text(findings: Findings, policy: Policy) -> str:
    """For a terminal."""
    refused = sum(shapes.total() for shapes in findings.refused.values())
    price = f"ε {findings.epsilon.normalize():f} if each is asked once; the budget has {policy.budget.epsilon:f}"
    lines = [
        f"{findings.statements:,} statements, {findings.different:,} different; none was run",
        f"{findings.private:>8,}  answered with noise, for {price}",
        f"{findings.exact:>8,}  answered exactly, at no cost",
        f"{findings.session:>8,}  of the session: SET, BEGIN, FETCH and the like",
        f"{refused:>8,}  refused",
    ]
    for kind, shapes in most_frequent(findings.refused):
        lines += ["", f"{shapes.total():>8,}  {kind.sqlstate}  {kind.message}"]
        lines += [f"{'':10}{line}" for line in kind.hint.splitlines()]
        for shown, count in shapes.most_common(_SHOWN):
            cut = f"{shown[:_WIDE]}…" if len(shown) > _WIDE else shown
            lines.append(f"{count:>14,}×  {cut}")
        if len(shapes) > _SHOWN:
            lines.append(f"{'':16}and {len(shapes) - _SHOWN} more")
    return "\n".join(lines)


def as_document(findings: Findings) -> str:
    """For programs, with all shapes."""
    refused = [
        {
            "sqlstate": kind.sqlstate,
            "message": kind.message,
            "hint": kind.hint,
            "statements": shapes.total(),
            "shapes": dict(shapes.most_common()),
        }
        for kind, shapes in most_frequent(findings.refused)
    ]
    document = {
        "statements": findings.statements,
        "different": findings.different,
        "with_noise": findings.private,
        "epsilon": f"{findings.epsilon:f}",
        "exact": findings.exact,
        "session": findings.session,
        "refused": refused,
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it to the command line."""
    parser = names.add_parser(
        "shadow",
        help="report which statements of a tool would be refused, and why; none is run",
        description="Explain each statement of a file by these rules and print a report: how many are answered, at "
        "what cost, and which are refused, by kind, with hints and without constants. Statements end with a semicolon "
        "at the end of a line; parameters ($1) stand for constants, as in pg_stat_statements.",
    )
    add_rules(parser)
    parser.add_argument("statements", metavar="FILE", help="the statements, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    add_ledger(parser)
    parser.set_defaults(run=lambda options: report(settings_of(options), options.statements, as_json=options.json))
