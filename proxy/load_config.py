"""Load the configuration and check it: rules, certificate, addresses, ledger."""

import errno
import hmac
import os
import re
import resource
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from proxy.causes import ledger_cause
from proxy.engines.engine import WatchedEngine
from proxy.engines.engines import real_database
from proxy.ledger.group_commit import Home
from proxy.ledger.integrity import Anchor
from proxy.ledger.ledger import Ledger
from proxy.ledger.postgres import LedgerDatabase
from proxy.ledger.sqlite import LedgerFile
from proxy.server.server_context import is_loopback
from proxy.server.tls import Tls
from proxy.settings import ServerSettings, Settings
from rules.accounting.store import LedgerError
from rules.catalog import Catalog
from rules.policy.finding import Finding, Severity
from rules.policy.freeze import Seen, from_text
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.policy.rules_yaml import RulesError
from rules.synopses.check import check_whole

_PORT_CAUSES = {
    errno.EADDRINUSE: "another program listens there; stop it, or choose another port",
    errno.EACCES: "ports below 1024 need a privilege; choose another port",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
}
_HOMES: dict[str, Callable[[str, str, Anchor], Home]] = {"postgresql": LedgerDatabase, "postgres": LedgerDatabase}
_AS_URI = ", as postgresql://user@db.example.org/ledger (a space in it is written as %20)"
_CONNECTION = re.compile(r"\s*(host|hostaddr|port|dbname|user|service)\s*=|.*(:.*@|password\s*=)", re.DOTALL)
_OWN_FILES = 200  # ledger, database, workers, log and twins


class ConfigurationError(Exception):
    """The configuration cannot be used; the text says why, in the DBA's words."""

    exit_code = 1


def read_rules(path: Path, environment: Mapping[str, str] = os.environ, *, needs_verifiers: bool = False) -> Policy:
    """The rules file, or all its mistakes; commands that let people log in need their verifiers."""
    try:
        text = path.read_text(encoding="utf-8")
        policy = load_policy(text, str(path), environment, needs_verifiers=needs_verifiers)
    except RulesError as error:
        raise ConfigurationError(f"the rules file has errors\n{error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"the rules cannot be read: {path}: {error.strerror}") from None
    for key, dsn in (("database", policy.database), ("public_reader", policy.public_reader)):
        try:
            real_database(dsn or "")
        except ValueError as error:
            line = next((number for number, words in enumerate(text.splitlines(), 1) if words.startswith(f"{key}:")), 1)
            raise ConfigurationError(f"the rules file has errors\n{path}:{line}: {key}: {error}") from None
    return policy


def check_rules(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Return what is to be said of rules that fit this database; ConfigurationError if they do not."""
    findings = check_whole(policy, catalog)
    errors = [str(finding) for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise ConfigurationError("\n".join(["the rules do not fit the database", *errors]))
    return findings


def lock_of(rules: Path) -> Path:
    """The lock file next to the rules."""
    return rules.with_suffix(".lock")


def read_lock(rules: Path) -> Seen | None:
    """Return what the rules were written for; None where nobody has locked them."""
    path = lock_of(rules)
    try:
        return from_text(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"the lock file cannot be read: {path}: {error.strerror}") from None
    except ValueError as error:  # a UnicodeDecodeError is one
        raise ConfigurationError(f"{path}: {error}; noisegate lock {rules} writes it again") from None


def secret_of(settings: ServerSettings) -> bytes:
    """Return what the salts of strangers are made from: the same after a restart, or theirs alone would be others then.

    It must be nothing that a password goes into, since salts are shown to anybody. Without a key for TLS, with which
    clients come from this machine alone, it is new at each start.
    """
    if settings.private_key is None:
        return secrets.token_bytes(32)
    return hmac.digest(settings.private_key.read_bytes(), b"salts of strangers", "sha256")


def raise_open_files(settings: ServerSettings) -> None:
    """Let this process have as many open files as its clients may need: two each, and some for itself."""
    needed = 2 * settings.max_connections + settings.max_logins + _OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            most = max(0, (hard - settings.max_logins - _OWN_FILES) // 2)
            raise ConfigurationError(
                f"--max-connections {settings.max_connections} needs {needed} open files, and {hard} are allowed here: "
                f"raise the limit (ulimit -n), or take --max-connections {most}"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def read_tls(settings: ServerSettings) -> Tls | None:
    """The certificate, if there is one. Without one nobody else's machine may be listened to."""
    if settings.certificate is None or settings.private_key is None:
        if settings.client_authorities is not None:
            raise ConfigurationError("--tls-client-ca needs --tls-certificate and --tls-key")
        if settings.certificate or settings.private_key:
            raise ConfigurationError("--tls-certificate and --tls-key must be given together")
        if settings.plaintext_from != "anywhere" and not is_local(settings.host):
            raise ConfigurationError(
                f"clients of other machines need TLS on {settings.host}: give --tls-certificate and --tls-key"
            )
        return None
    try:
        return Tls.load(settings.certificate, settings.private_key, settings.client_authorities)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = f"{settings.certificate} with {settings.private_key}"
        raise ConfigurationError(f"the certificate cannot be used: {files}: {error}") from None


async def check_engine_settings(policy: Policy, engine: WatchedEngine) -> None:
    """The real database must take what the rules pin there: else it would refuse every statement."""
    refused = await engine.find_refused(policy.engine_settings)
    if refused:
        raise ConfigurationError(f"engine_settings: the database does not take this value of {', '.join(refused)}")


def ledger_identity(catalog: Catalog) -> str:
    """Return what binds a ledger to its database: a copy of the database has a life, and a budget, of its own."""
    return f"{catalog.system_identifier}/{catalog.database}"


def ledger_place(text: str | None) -> Path | str | None:
    """Read where a ledger is kept: the URL of a home, or else a file; None where nobody says.

    A mistyped URL is taken for no file, whose name messages would quote with its password.
    """
    if not text:
        return None
    scheme, is_url, _ = text.partition("://")
    if is_url and scheme in _HOMES:
        if not _is_connection(text):
            raise ConfigurationError(f"the place of the ledger is not a connection URI{_AS_URI}")
        return text
    if is_url or _CONNECTION.match(text):
        raise ConfigurationError(f"the place of the ledger is neither a file nor a connection URI{_AS_URI}")
    return Path(text)


def _is_connection(url: str) -> bool:
    """Return whether libpq can read it, and takes no password for the database's name: its words would quote it."""
    try:
        ports = conninfo_to_dict(url).get("port") or ""
    except ProgrammingError:
        return False
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]  # as libpq reads it: no fragment ends it
    return "@" not in path and all(port.isdecimal() for port in str(ports).split(",") if port)


def check_ledger_place(settings: Settings) -> None:
    """Report a missing file before clients are let in; a database may come up later, as the real one may."""
    home = ledger_home(settings, "")  # the identity is that of the real database, which has not been seen yet
    if isinstance(home, LedgerFile):
        with told_to_the_dba():
            home.check_place()


async def open_ledger(settings: Settings, identity: str) -> Ledger:
    """The ledger of the database with this identity, checked from its first entry to its last."""
    with told_to_the_dba():
        return await Ledger.at(ledger_home(settings, identity))


def ledger_home(settings: Settings, identity: str) -> Home:
    """Return where the ledger is kept."""
    place, anchor = settings.ledger, Anchor(settings.anchor)
    if isinstance(place, Path):
        return LedgerFile(place, identity, anchor)
    return _HOMES[place.partition("://")[0]](place, identity, anchor)


@contextmanager
def told_to_the_dba() -> Iterator[None]:
    """End a command with what is wrong with a ledger, and the hint to it."""
    try:
        yield
    except LedgerError as error:
        if error.reason == "out_of_order":  # its words are an analyst's, whatever the cause
            raise ConfigurationError(f"the ledger cannot be used: {ledger_cause(error).advice}") from None
        raise ConfigurationError(f"{error}. {error.hint}".rstrip(". ")) from None


def make_ledger(settings: Settings, catalog: Catalog) -> None:
    """An empty ledger for this database, where none is yet."""
    with told_to_the_dba():
        ledger_home(settings, ledger_identity(catalog)).create()


def cannot_listen(port: int, error: OSError, purpose: str = "") -> ConfigurationError:
    """Explain why a port cannot be had; asyncio's own words are of addresses and sockets."""
    why = _PORT_CAUSES.get(error.errno or 0) or error.strerror or str(error)
    return ConfigurationError(f"cannot listen on port {port}{purpose}: {why}")


def tell(text: str) -> None:
    """Print a line for the DBA at the terminal, in addition to the events in the log."""
    sys.stderr.write(f"noisegate: {text}\n")


def is_local(host: str) -> bool:
    return host == "localhost" or is_loopback(host)
