"""The arguments of `noisegate synopsis make`, `report` and `export`."""

import argparse
from collections.abc import Callable
from pathlib import Path

from proxy.commands import synopsis as synopsis_commands
from proxy.settings import Settings

Names = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns
Add = Callable[[argparse.ArgumentParser], None]


def add_to(
    names: "Names[argparse.ArgumentParser]",
    add_rules: Add,
    add_place: Add,
    settings: Callable[[argparse.Namespace], Settings],
) -> None:
    """Add them to the command line."""
    about = "synopses and cubes: make them now, see how good they are, write rows out"
    actions = names.add_parser("synopsis", help=about).add_subparsers(title="actions", metavar="ACTION", required=True)
    make = actions.add_parser(
        "make",
        help="measure a synopsis or a cube now, and charge it",
        description="Charge the budget of all analysts, then count, add noise and keep the counts in the ledger. A "
        "running proxy serves from them within some seconds, and charges each reader before.",
    )
    report = actions.add_parser(
        "report",
        help="how far each pair of columns may be from the data",
        description="Fit the rows of the newest release again, and tell from noised counts alone how far each pair of "
        "columns may be from the data. Costs nothing.",
    )
    export = actions.add_parser(
        "export",
        help="write the rows into a folder, as CSV or Parquet",
        description="Write one file a table, and synopsis.json: what was measured, with which noise, and how good "
        "the rows are. They are the very rows that the proxy shows. Costs nothing.",
    )
    for action in (make, report, export):
        add_rules(action)
        action.add_argument("name", metavar="NAME", help="of the synopsis")
        add_place(action)
    _add_files(export)
    make.set_defaults(run=lambda arguments: synopsis_commands.make(settings(arguments), arguments.name))
    report.set_defaults(run=lambda arguments: synopsis_commands.report(settings(arguments), arguments.name))
    export.set_defaults(
        run=lambda arguments: synopsis_commands.export(
            settings(arguments), arguments.name, arguments.folder, as_parquet=arguments.format == "parquet"
        )
    )


def _add_files(export: argparse.ArgumentParser) -> None:
    formats = ("csv", "parquet")
    export.add_argument(
        "--format", choices=formats, default="csv", help="of the files (default: csv); parquet is an extra"
    )
    export.add_argument("folder", type=Path, metavar="FOLDER", help="where the files go; it must not exist")
