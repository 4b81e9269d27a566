"""Load the logins from the rules and the file of verifiers, and again when that file has changed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from proxy.load_config import ConfigurationError
from proxy.server.accounts import Account, Accounts, DatedVerifier
from proxy.server.auth_query import AuthQuery
from proxy.server.verifiers_file import VerifiersError, read_verifiers
from proxy.settings import ServerSettings
from proxy.wire.scram import Verifier
from rules.policy.logins import LoginRules
from rules.policy.model import Policy

LOOK_SECONDS: Final = 1.0  # between two looks at the file

Verifiers = Mapping[str, tuple[DatedVerifier, ...]]


def load_accounts(policy: Policy, rules: Path, secret: bytes) -> Accounts:
    """Everybody who may log in; raises ConfigurationError."""
    filed = read_filed(policy, rules)
    for name in policy.accounts.keys() & filed.keys():
        if policy.accounts[name].password is not None:
            raise ConfigurationError(
                f"{name} has a password in the rules and one in the file of verifiers: remove one of them"
            )
    accounts = {name: _account(name, account, filed.get(name, ())) for name, account in policy.accounts.items()}
    return Accounts(accounts, secret, _auth_query(policy, accounts))


def find_oddities(policy: Policy, rules: Path, accounts: Accounts) -> list[str]:
    """Return what a DBA should know of logins that work as they were written."""
    path = verifiers_path(policy, rules)
    oddities = []
    if path is not None:
        strangers = sorted(read_filed(policy, rules).keys() - policy.accounts.keys())
        oddities += [f'{path}: the rules do not name "{name}"' for name in strangers]
        if path.stat().st_mode & 0o004:
            oddities.append(f"{path}: every user of this machine can read it (chmod o-r)")
        needless = sorted(name for name in read_filed(policy, rules) if not _needs_password(policy, name))
        oddities += [
            f'{path}: "{name}" logs in with a certificate alone; this password is not used' for name in needless
        ]
    if accounts.auth_query is None:
        lacking = sorted(
            name for name, account in accounts.accounts.items() if account.needs_password and not account.verifiers
        )
        oddities += [f"{name} has no password yet, and cannot log in" for name in lacking]
    return [*oddities, *_expired(accounts)]


def _expired(accounts: Accounts) -> Iterator[str]:
    """Whoever cannot log in any more, and passwords that are over while another one is valid."""
    now = accounts.clock()
    for name, account in sorted(accounts.accounts.items()):
        ends = [
            verifier.until for verifier in account.verifiers if verifier.until is not None and verifier.until <= now
        ]
        if account.valid_until is not None and account.valid_until <= now:
            yield f"{name} cannot log in: valid_until was {_utc(account.valid_until)}"
        elif ends and len(ends) == len(account.verifiers):
            yield f"{name} cannot log in: the password expired at {_utc(max(ends))}"
        elif ends:
            yield f"one of two passwords of {name} expired at {_utc(max(ends))}: take it out"


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def read_filed(policy: Policy, rules: Path) -> Verifiers:
    """The verifiers of the file that the rules name; raises ConfigurationError."""
    path = verifiers_path(policy, rules)
    if path is None:
        return {}
    try:
        return read_verifiers(path.read_text(encoding="utf-8"), str(path))
    except VerifiersError as error:
        raise ConfigurationError(str(error)) from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"the verifiers cannot be read: {path}: {error.strerror}") from None


def verifiers_path(policy: Policy, rules: Path) -> Path | None:
    """Return where the file of verifiers stands; a relative name begins beside the rules file."""
    if policy.logins is None or policy.logins.file is None:
        return None
    return rules.parent / policy.logins.file


def check_authorities(policy: Policy, settings: ServerSettings) -> None:
    """Certificates of clients need somebody who signs them."""
    named = sorted(name for name, account in policy.accounts.items() if account.certificate is not None)
    if named and settings.client_authorities is None:
        raise ConfigurationError(f"the certificate of {named[0]} cannot be checked: give --tls-client-ca")


async def follow_file(path: Callable[[], Path | None], reload: Callable[[], Awaitable[None]]) -> None:
    """Call `reload` whenever the file at this path has changed; one that is written in steps may be read twice."""
    known_path, known = path(), _signature(path())
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now_path, now = path(), _signature(path())
        if now_path == known_path and now != known:
            await reload()
        known_path, known = now_path, now


def _signature(path: Path | None) -> tuple[int, ...]:
    """Return what differs when a file was changed or replaced; nothing where there is none."""
    try:
        status = None if path is None else path.stat()
    except OSError:
        return ()
    return () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _account(name: str, rules: LoginRules, filed: tuple[DatedVerifier, ...]) -> Account:
    try:
        own = tuple(DatedVerifier(Verifier.parse(text)) for text in rules.password or ())
    except ValueError as error:
        raise ConfigurationError(f"the password of {name}: {error}") from None
    verifiers = (own or filed) if rules.needs_password else ()
    networks = None if rules.addresses is None else tuple(map(ip_network, rules.addresses))
    return Account(verifiers, rules.needs_password, rules.certificate, rules.valid_until, networks)


def _needs_password(policy: Policy, name: str) -> bool:
    return name not in policy.accounts or policy.accounts[name].needs_password


def _auth_query(policy: Policy, accounts: Mapping[str, Account]) -> AuthQuery | None:
    rules = None if policy.logins is None else policy.logins.auth_query
    if rules is None:
        return None
    names = [name for name, account in accounts.items() if account.needs_password and not account.verifiers]
    dsn = policy.database if rules.database is None else rules.database
    try:
        conninfo_to_dict(dsn)
    except ProgrammingError:
        raise ConfigurationError("logins.auth_query.database: this is not a libpq connection string") from None
    fresh, timeout = rules.fresh_for.total_seconds(), rules.timeout.total_seconds()
    return AuthQuery(rules.query, dsn, names, fresh_seconds=fresh, timeout_seconds=timeout)
