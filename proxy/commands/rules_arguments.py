"""The options of the commands about rules files: check, suggest, lock, grants, schema."""

import argparse
import os
from decimal import Decimal
from pathlib import Path

from proxy.commands import rules_file as commands
from proxy.commands.arguments import Names, add_rules, delta_of, epsilon_of
from proxy.commands.private_look import Wanted, suggest_privately
from proxy.load_config import ledger_place


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add them to the command line."""
    for add in (_add_check, _add_suggest, _add_lock, _add_grants, _add_schema):
        add(names)


def _add_check(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "check",
        help="check the rules against the database, and explain them",
        description="Verify a rules file against the real catalog and say what follows from it. No row is read.",
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
        help="where bounds: auto are kept (default: as for serve); without such columns it is not read",
    )
    parser.set_defaults(
        run=lambda options: commands.check(
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
        description="Print a first rules file, made from the catalog alone, and no row is read; or with --epsilon also "
        "from a private look at the rows, whose cost is charged to the ledger before.",
    )
    _add_look(parser)
    parser.add_argument(
        "unit", metavar="TABLE", nargs="?", help="the table with one row for each individual to protect"
    )
    parser.add_argument(
        "--diff",
        type=Path,
        metavar="RULES",
        help="instead: what this rules file needs since the schema changed, by its lock file",
    )
    parser.add_argument(
        "--database", metavar="DSN", help="a libpq connection string (default: the variable NOISEGATE_DATABASE)"
    )

    def run(options: argparse.Namespace) -> int:
        if options.diff is not None and options.unit is None:
            return commands.suggest_diff(options.diff)
        if options.unit is None or options.diff is not None:
            parser.error("name a TABLE, or --diff RULES")
        database = commands.database_given(options.database)
        if options.epsilon is None:
            return commands.suggest(options.unit, database)
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
        help="what the look is charged to; a file is made where there is none (default: the variable NOISEGATE_LEDGER, "
        "or rules.ledger, which serves a draft that you save as rules.yaml)",
    )
    parser.add_argument("--anchor", type=Path, metavar="FILE", help="a second file that records the end of the ledger")


def _add_lock(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "lock",
        help="record the schema that the rules are for: what appears later is hidden",
        description="Write a lock file beside the rules, with the columns, types and views that there are now. What "
        "appears later is hidden from analysts, told by check, log and console, until you run this again.",
    )
    add_rules(parser)
    parser.add_argument(
        "--force", action="store_true", help="write it even if the proxy would not start with it and these rules"
    )
    parser.set_defaults(run=lambda options: commands.lock(options.rules, is_forced=options.force))


def _add_grants(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "grants",
        help="print the SQL of the role that the proxy needs",
        description="Print the SQL of a role that may read the tables of the rules and do nothing else.",
    )
    add_rules(parser)
    parser.add_argument("--role", help="its name (default: that of the connection string, or noisegate_reader)")
    parser.set_defaults(run=lambda options: commands.grants(options.rules, options.role))


def _add_schema(names: "Names[argparse.ArgumentParser]") -> None:
    parser = names.add_parser(
        "schema",
        help="print the JSON Schema of rules files, for editors",
        description="Print the JSON Schema of rules files. Saved as rules.schema.json beside a file whose first line "
        "names it, as drafts do, it lets editors complete keys and mark mistakes.",
    )
    parser.set_defaults(run=lambda options: commands.schema())
