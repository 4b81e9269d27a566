"""What a DBA does: check and draft rules, make a verifier, make and read the ledger, and serve."""

import asyncio
import os
import secrets
import sys
from collections.abc import Coroutine, Sequence
from getpass import getpass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TypeVar

import uvloop

from proxy.app import App
from proxy.certificate import write_certificate
from proxy.engine.engine import EngineError, EngineTooOld
from proxy.engine.postgres import PostgresEngine
from proxy.given import Failed, make_ledger, open_ledger, read_rules
from proxy.log import start_logging
from proxy.query.clock import system_clock
from proxy.settings import Settings
from proxy.twin.twin import version_for
from proxy.wire.scram import Verifier
from rules.catalog import Catalog
from rules.ledger.book import budgets_of
from rules.ledger.store import Balance
from rules.policy.check import Severity
from rules.policy.model import table_name
from rules.policy.suggest import suggest_rules
from rules.policy.yaml_source import Source
from rules.rewrite.check_views import check_all

__all__ = ["Failed", "certificate", "check", "init_ledger", "password", "serve", "show_ledger", "suggest", "version"]

Result = TypeVar("Result")


def version() -> str:
    return version_of("noisegate")


def serve(settings: Settings) -> int:
    """Run the proxy until it is told to stop."""
    start_logging()
    return _run(App(settings).run())


def check(rules: Path) -> int:
    """Print what the rules mean for this database; 1 if they cannot hold."""
    policy = read_rules(rules)
    catalog, risks = _run(_look_at(policy.database))
    findings = check_all(policy, catalog)
    source = Source(rules.read_text(encoding="utf-8"), str(rules), os.environ)
    for finding in findings:
        _say(f"{rules}:{source.line_of(finding.path)}: {finding}")
    about = f"{rules}:{source.line_of('database')}: "
    for line in (*(f"warning: database: {risk}" for risk in risks), *_shown_version(catalog)):
        _say(f"{about}{line}")
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    _say(f"{rules}: " + (f"{errors} error{'s' * (errors > 1)}: the proxy would not start" if errors else "fine"))
    return 1 if errors else 0


def _shown_version(catalog: Catalog) -> list[str]:
    real, shown = catalog.version // 10_000, version_for(catalog.version)
    note = f"note: database: it is PostgreSQL {real}, and clients talk to its twin, which is {shown}"
    return [note] if shown != real else []


def suggest(unit: str, database: str | None) -> int:
    """Print a draft of a rules file."""
    dsn = database or os.environ.get("NOISEGATE_DATABASE")
    if not dsn:
        raise Failed("say which database: --database, or the variable NOISEGATE_DATABASE")
    catalog, _ = _run(_look_at(dsn))
    try:
        _say(suggest_rules(catalog, table_name(unit)).rstrip("\n"))
    except ValueError as error:
        raise Failed(str(error)) from None
    return 0


def password() -> int:
    """Print the verifier of a password."""
    if sys.stdin.isatty():
        given = getpass("Password: ")
        if given != getpass("Again: "):
            raise Failed("the two are not the same")
    else:
        given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise Failed("an empty password is none")
    try:
        _say(str(Verifier.of_password(given, secrets.token_bytes(16))))
    except ValueError as error:
        raise Failed(str(error)) from None
    return 0


def certificate(folder: Path, names: Sequence[str]) -> int:
    """Write a certificate and its key."""
    try:
        made = write_certificate(folder, names)
    except (OSError, ValueError) as error:
        raise Failed(f"the certificate cannot be made: {error}") from None
    for path in made:
        _say(str(path))
    return 0


def init_ledger(settings: Settings) -> int:
    """Make an empty ledger, bound to the database."""
    catalog, _ = _run(_look_at(read_rules(settings.rules).database))
    make_ledger(settings, catalog)
    _say("made the ledger: nothing is spent yet")
    return 0


def show_ledger(settings: Settings) -> int:
    """Print what is spent and what may be, for each analyst and for all together."""
    policy = read_rules(settings.rules)
    budgets = budgets_of(policy)

    async def read() -> list[tuple[str, Balance]]:
        catalog, _ = await _look_at(policy.database)
        ledger = await open_ledger(settings, catalog)
        try:
            pairs = [(name, await ledger.balances(name, budgets, system_clock())) for name in sorted(policy.analysts)]
        finally:
            await ledger.close()
        return [*((name, own) for name, (own, _) in pairs), ("all together", pairs[0][1][1])]

    balances = _run(read())
    _say(f"{'ε':20}{'spent':>12}{'left':>12}{'budget':>12}{'ever spent':>12}   {budgets.phrase.strip()}".rstrip())
    for name, balance in balances:
        numbers = (balance.spent, balance.left, balance.limit, balance.lifetime)
        _say(f"{name:20}" + "".join(f"{number:>12.4g}" for number in numbers))
    return 0


async def _look_at(database: str) -> tuple[Catalog, list[str]]:
    """The catalog, and what is risky about the role that we log in with."""
    engine = PostgresEngine(database)
    try:
        return await engine.catalog(), await engine.risks()
    except EngineTooOld as error:
        raise Failed(str(error)) from None
    except EngineError as error:
        raise Failed("the database cannot be reached; psql with the same connection string tells why") from error
    finally:
        await engine.close()


def _run(work: Coroutine[None, None, Result]) -> Result:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
