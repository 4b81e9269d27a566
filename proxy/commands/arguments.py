"""Arguments that several commands have: the rules file, the ledger's place, amounts and moments."""

import argparse
import os
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

from proxy.load_config import ledger_place
from proxy.settings import Settings

Names = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns
EPSILON_MOST = Decimal(1000)
DELTA_MOST = Decimal("0.001")


def add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rules", type=Path, metavar="RULES", help="the rules file, YAML")


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """Add the options that `settings_of` reads."""
    parser.add_argument(
        "--ledger",
        metavar="PLACE",
        default=os.environ.get("NOISEGATE_LEDGER"),
        help="a file, or postgresql://… to be shared by several proxies (default: the variable NOISEGATE_LEDGER, or a "
        "file beside the rules that ends in .ledger)",
    )
    parser.add_argument(
        "--anchor",
        type=Path,
        metavar="FILE",
        help="a second file, best on another disk, that records the end of the ledger",
    )


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of a command that has the rules and a ledger."""
    place: Path | str | None = ledger_place(options.ledger)
    return Settings(options.rules, place or options.rules.with_suffix(".ledger"), options.anchor)


def epsilon_of(text: str) -> Decimal:
    return _amount(text, EPSILON_MOST)


def delta_of(text: str) -> Decimal:
    return _amount(text, DELTA_MOST)


def moment_of(text: str) -> datetime:
    """Read a date or a moment, in UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a time, such as 2027-01-31 or 2027-01-31T18:00+01:00'
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _amount(text: str, most: Decimal) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number') from None
    if not (amount.is_finite() and 0 < amount <= most):
        raise argparse.ArgumentTypeError(f"must be greater than 0 and at most {most}")
    return amount
