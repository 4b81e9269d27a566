"""The simplest commands, and the arguments and the look at the database that all others share."""

import argparse
import asyncio
import os
import secrets
import sys
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from getpass import getpass
from math import inf
from pathlib import Path
from typing import TypeVar

import uvloop

from proxy.app import App
from proxy.engines.engine import EngineError, EngineTooOld, tables_to_read
from proxy.engines.engines import real_database
from proxy.execute.clock import clock_warning, find_ahead, find_differing, system_clock
from proxy.load_config import ConfigurationError, check_engine_settings, ledger_place
from proxy.load_logins import line_of
from proxy.log import start_logging
from proxy.process_isolation import seal
from proxy.server.tls import write_certificate
from proxy.settings import Settings
from proxy.wire.scram import USUAL_ITERATIONS, Verifier
from rules.catalog import Catalog, TableName
from rules.policy.model import Policy

Result = TypeVar("Result")
Names = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns
EPSILON_MOST = Decimal(1000)
DELTA_MOST = Decimal("0.001")
PORT_MOST = 65_535


class Unreachable(ConfigurationError):
    """The database does not let us in, or cannot be read."""

    exit_code = 4


def serve(settings: Settings) -> int:
    """Run the proxy until a signal stops it."""
    start_logging()
    seal()
    return run(App(settings).run())


def password(beside: str | None = None, name: str | None = None) -> int:
    """Print the verifier of a password: with the salt of another one, or as a line of the file of verifiers."""
    try:
        other = None if beside is None else Verifier.parse(beside)
    except ValueError as error:
        raise ConfigurationError(f"--beside: {error}") from None
    if sys.stdin.isatty():
        typed_password = getpass("Password: ")
        if typed_password != getpass("Again: "):
            raise ConfigurationError("the two passwords differ")
    else:
        typed_password = sys.stdin.readline().rstrip("\n")
    if not typed_password:
        raise ConfigurationError("the password must not be empty")
    try:
        salt = secrets.token_bytes(16) if other is None else other.salt
        iterations = USUAL_ITERATIONS if other is None else other.iterations
        verifier = Verifier.of_password(typed_password, salt, iterations)
        say(str(verifier) if name is None else line_of(name, verifier))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return 0


def certificate(folder: Path, names: Sequence[str]) -> int:
    """Write a certificate and its key."""
    try:
        made = write_certificate(folder, names)
    except FileExistsError:
        words = f"{folder / 'server.key'} already exists, and is kept: remove it first, or name another folder"
        raise ConfigurationError(words) from None
    except OSError as error:
        raise ConfigurationError(f"the certificate cannot be written: {folder}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"the certificate cannot be made: {error}") from None
    for path in made:
        say(str(path))
    return 0


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the database, without a row."""

    catalog: Catalog
    risks: list[str]  # of the role that we log in with, of clocks, and of time zones that rules need
    missing: Mapping[TableName, str]  # tables that it cannot read, and the SQL that would let it


async def look_at(database: str, policy: Policy | None = None) -> Look:
    """Look at the catalog, and at the role that we log in with."""
    try:
        engine = real_database(database).open_engine()
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    try:
        if policy is None:
            return Look(await engine.catalog(), [], {})
        catalog, named = await engine.catalog(), tables_to_read(policy)
        await check_engine_settings(policy, engine)
        risks = await engine.risks(named) + clock_warning(await find_ahead(engine))
        risks += await find_differing(engine, policy, catalog, system_clock())
        return Look(catalog, risks, await engine.missing_rights(named))
    except EngineTooOld as error:
        raise ConfigurationError(str(error)) from None
    except EngineError as error:
        raise Unreachable(str(error) or f"the catalog cannot be read: {error.cause.advice}") from error
    finally:
        await engine.close()


def run(work: Coroutine[None, None, Result]) -> Result:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rules", type=Path, metavar="RULES", help="the rules file, YAML")


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """Add the options that `settings_of` reads."""
    parser.add_argument(
        "--ledger",
        metavar="PLACE",
        default=os.environ.get("NOISEGATE_LEDGER"),
        help="a file, or postgresql://… to be shared by several proxies (default: the variable NOISEGATE_LEDGER, or a "
        "file next to the rules that ends in .ledger)",
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


def port_of(text: str) -> int:
    """Read a port; 0 is any that is free."""
    if not (text.isdecimal() and int(text) <= PORT_MOST):
        raise argparse.ArgumentTypeError(f'"{text}" is not a port, a number from 0 to {PORT_MOST}')
    return int(text)


def count_of(text: str) -> int:
    """Read how many there may be: at least one."""
    if not (text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of 1 or more')
    return int(text)


def seconds_of(text: str) -> float:
    """Read a time-out."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < inf:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of seconds')
    return seconds


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
