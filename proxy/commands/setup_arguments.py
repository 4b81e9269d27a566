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
        help="set up a proxy for a database: a folder with all that it needs",
        description="Ask a few questions and write a folder: rules, the SQL of the proxy's role, passwords, a "
        "certificate, lock file and ledger. No row is read. A question answered by an option is not asked.",
    )
    parser.add_argument("database", metavar="DSN", help="how you reach the database, as its owner or a superuser")
    parser.add_argument("--folder", type=Path, default=Path("noisegate"), help="a new folder (default: noisegate)")
    parser.add_argument("--unit", metavar="TABLE", help="the table with one row for each individual to protect")
    parser.add_argument("--analyst", metavar="NAME", help="the first analyst")
    parser.add_argument("--role", default=READER, help=f"the proxy's role in the database (default: {READER})")
    parser.add_argument(
        "--grant", action=argparse.BooleanOptionalAction, help="make that role now, over this connection"
    )
    parser.add_argument(
        "--bi-tools",
        action=argparse.BooleanOptionalAction,
        help="BI tools will connect: previews show columns, no rows",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing, and accept the proposals")
    parser.set_defaults(
        run=lambda options: setup_commands.init(
            setup_commands.Wishes(
                options.database,
                options.folder,
                options.role,
                options.unit,
                options.analyst,
                options.grant,
                options.bi_tools,
                options.yes,
            )
        )
    )
