"""The options of `noisegate init`: each question that it asks, answered beforehand."""

import argparse
from pathlib import Path

from proxy.commands import setup as setup_commands
from proxy.commands.rules_file import READER

Names = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it to the command line."""
    parser = names.add_parser(
        "init",
        help="from a database to a guarded one: a folder with all that the proxy needs",
        description="Ask a few questions and write a folder: rules, the SQL of the proxy's role, passwords, a "
        "certificate, lock file and ledger. No row is read. What you say by an option is not asked.",
    )
    parser.add_argument("database", metavar="DSN", help="how you reach the database, as its owner or a superuser")
    parser.add_argument("--folder", type=Path, default=Path("noisegate"), help="a new folder (default: noisegate)")
    parser.add_argument("--unit", metavar="TABLE", help="the table with one row for each individual to protect")
    parser.add_argument("--analyst", metavar="NAME", help="who may ask first")
    parser.add_argument("--role", default=READER, help=f"the proxy's role in the database (default: {READER})")
    parser.add_argument(
        "--grant", action=argparse.BooleanOptionalAction, help="make that role now, by the connection given"
    )
    parser.add_argument(
        "--bi-tools",
        action=argparse.BooleanOptionalAction,
        help="BI tools will connect: previews show columns, no rows",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing, and take what is proposed")
    parser.set_defaults(
        run=lambda given: setup_commands.init(
            setup_commands.Wishes(
                given.database,
                given.folder,
                given.role,
                given.unit,
                given.analyst,
                given.grant,
                given.bi_tools,
                given.yes,
            )
        )
    )
