"""What the proxy is given, read and held against what it must be: rules, certificate, addresses, ledger."""

import hmac
import os
import secrets
import sys
from pathlib import Path

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from proxy.server.house import is_loopback
from proxy.server.tls import Tls
from proxy.settings import ServerSettings, Settings
from proxy.stores.ledger import Ledger
from proxy.stores.postgres import PostgresLedger
from proxy.stores.sqlite import SqliteLedger
from proxy.wire.scram import Accounts, Verifier
from rules.catalog import Catalog
from rules.ledger.store import LedgerError
from rules.policy.check import Finding, Severity
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.policy.yaml_source import RulesError
from rules.rewrite.check_views import check_all


class Failed(Exception):
    """What was asked for cannot be done; the text says why, in the DBA's words."""


def read_rules(path: Path) -> Policy:
    """The rules file, or everything that is wrong with it."""
    try:
        policy = load_policy(path.read_text(encoding="utf-8"), str(path), os.environ)
        conninfo_to_dict(policy.database)
    except RulesError as error:
        raise Failed(f"the rules have mistakes\n{error}") from None
    except ProgrammingError:
        raise Failed(f"{path}: database: this is no libpq connection string") from None
    except UnicodeDecodeError:
        raise Failed(f"{path} is not UTF-8") from None
    except OSError as error:
        raise Failed(f"the rules cannot be read: {path}: {error.strerror}") from None
    return policy


def check_rules(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """What is to be said of rules that fit this database; Failed if they do not."""
    findings = check_all(policy, catalog)
    errors = [str(finding) for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise Failed("\n".join(["the rules do not fit the database", *errors]))
    return findings


def accounts_of(policy: Policy, secret: bytes) -> Accounts:
    """Who may log in."""
    try:
        verifiers = {name: Verifier.parse(analyst.password) for name, analyst in policy.analysts.items()}
    except ValueError as error:
        raise Failed(f"analysts: password: {error}") from None
    return Accounts(verifiers, secret)


def secret_of(settings: ServerSettings) -> bytes:
    """What the salts of strangers are made from: the same after a restart, or theirs alone would be others then.

    It must be nothing that a password goes into, since salts are shown to anybody. Without a key for TLS, with which
    clients come from this machine alone, it is new at each start.
    """
    if settings.private_key is None:
        return secrets.token_bytes(32)
    return hmac.digest(settings.private_key.read_bytes(), b"salts of strangers", "sha256")


def read_tls(settings: ServerSettings) -> Tls | None:
    """The certificate, if there is one. Without one nobody else's machine may be listened to."""
    if settings.certificate is None or settings.private_key is None:
        if settings.certificate or settings.private_key:
            raise Failed("--tls-certificate and --tls-key belong together")
        if settings.plaintext_from != "anywhere" and not _is_local(settings.host):
            raise Failed(f"clients of other machines need TLS on {settings.host}: give --tls-certificate and --tls-key")
        return None
    try:
        return Tls.load(settings.certificate, settings.private_key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise Failed(f"the certificate cannot be used: {error}") from None


def database_of(policy: Policy) -> str:
    """The database's name as the connection string has it, for those who come before it has been seen."""
    parameters = conninfo_to_dict(policy.database)
    return str(parameters.get("dbname") or os.environ.get("PGDATABASE") or parameters.get("user") or "postgres")


def ledger_identity(catalog: Catalog) -> str:
    """What binds a ledger to its database: a copy of the database has a life, and a budget, of its own."""
    return f"{catalog.system_identifier}/{catalog.database}"


async def open_ledger(settings: Settings, catalog: Catalog) -> Ledger:
    """The ledger of this database, checked from its first entry to its last."""
    identity, place = ledger_identity(catalog), settings.ledger
    try:
        if isinstance(place, str):
            return await PostgresLedger.open(place, identity, anchor=settings.anchor)
        return await SqliteLedger.open(place, identity, anchor=settings.anchor)
    except LedgerError as error:
        raise Failed(f"{error}. {error.hint}".rstrip(". ")) from None


def make_ledger(settings: Settings, catalog: Catalog) -> None:
    """An empty ledger for this database, where none is yet."""
    identity, place = ledger_identity(catalog), settings.ledger
    try:
        if isinstance(place, str):
            PostgresLedger.create(place, identity, anchor=settings.anchor)
        else:
            SqliteLedger.create(place, identity, anchor=settings.anchor)
    except LedgerError as error:
        raise Failed(str(error)) from None


def tell(text: str) -> None:
    """Say something to the DBA who is at the terminal, besides the events in the log."""
    sys.stderr.write(f"noisegate: {text}\n")


def _is_local(host: str) -> bool:
    return host == "localhost" or is_loopback(host)
