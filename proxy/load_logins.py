"""Load the logins from the rules and the file of verifiers, and again when that file has changed.

The file has lines of "name" "verifier", as pgbouncer's userlist.txt, and may say until when one is valid.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from proxy.load_config import ConfigurationError
from proxy.server.accounts import Account, Accounts, AuthQuery, DatedVerifier
from proxy.settings import ServerSettings
from proxy.wire.scram import Verifier
from rules.policy.logins import MOST_VERIFIERS, LoginRules, share_salt
from rules.policy.model import Policy

LOOK_SECONDS: Final = 1.0  # between two looks at the file

Verifiers = Mapping[str, tuple[DatedVerifier, ...]]

_FIELD: Final = re.compile(r'\s*"((?:[^"]|"")*)"')
_COMMENT: Final = (";", "#")


class VerifiersError(ValueError):
    """A file that cannot be used: the line, and what is wrong there."""

    def __init__(self, file: str, line: int, words: str) -> None:
        super().__init__(f"{file}:{line}: {words}")
        self.line = line


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


def find_oddities(policy: Policy, rules: Path, accounts: Accounts, unset: Collection[str] = ()) -> list[str]:
    """Return what a DBA should know of logins that work as they were written; passwords of `unset` are not here."""
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
            name
            for name, account in accounts.accounts.items()
            if account.needs_password and not account.verifiers and name not in unset
        )
        oddities += [f"{name} has no password yet, and cannot log in" for name in lacking]
    return [*oddities, *_expired(accounts)]


def _expired(accounts: Accounts) -> Iterator[str]:
    """Names that cannot log in any more, and passwords that have expired while another one is valid."""
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
    """Return the path of the file of verifiers; a relative path starts at the rules file's folder."""
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
        raise ConfigurationError(
            'logins.auth_query.database: this is not a connection string, as "host=db user=noisegate_logins"'
        ) from None
    fresh, timeout = rules.fresh_for.total_seconds(), rules.timeout.total_seconds()
    return AuthQuery(rules.query, dsn, names, fresh_seconds=fresh, timeout_seconds=timeout)


def read_verifiers(text: str, file: str) -> Mapping[str, tuple[DatedVerifier, ...]]:
    """The verifiers of each name; raises VerifiersError. A name may stand twice while its password is being changed.

    Example:
        >>> read_verifiers('"ada" "rosebud"', "verifiers.txt")
        Traceback (most recent call last):
        ...
        proxy.load_logins.VerifiersError: verifiers.txt:1: not a SCRAM-SHA-256 verifier
    """
    dated_verifierses: dict[str, tuple[DatedVerifier, ...]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith(_COMMENT):
            continue
        try:
            name, dated = _entry(line)
            dated_verifierses[name] = _together(name, (*dated_verifierses.get(name, ()), dated))
        except ValueError as error:
            raise VerifiersError(file, number, str(error)) from None
    return dated_verifierses


def line_of(name: str, verifier: Verifier, until: datetime | None = None) -> str:
    """An entry of the file, with the end of its validity if it has one."""
    quoted = name.replace('"', '""')
    end = "" if until is None else f' "{until.astimezone(UTC):%Y-%m-%d %H:%M:%S}+00:00"'
    return f'"{quoted}" "{verifier}"{end}'


def without_name(text: str, name: str) -> str:
    """The file without the entries of a name; comments and all other lines stay."""
    return "".join(line for line in text.splitlines(keepends=True) if _named(line) != name)


def _named(line: str) -> str | None:
    is_entry = bool(line.strip()) and not line.lstrip().startswith(_COMMENT)
    return _entry(line)[0] if is_entry else None


def _entry(line: str) -> tuple[str, DatedVerifier]:
    fields, at = [], 0
    while (field := _FIELD.match(line, at)) is not None:
        fields.append(field[1].replace('""', '"'))
        at = field.end()
    if line[at:].strip() or len(fields) not in (2, 3) or not fields[0]:
        raise ValueError('a line has "name" "verifier", and "2027-01-31" if it is valid until then')
    return fields[0], DatedVerifier(Verifier.parse(fields[1]), _moment(fields[2]) if fields[2:] else None)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is no date or time, as 2027-01-31 or 2027-01-31 18:00+01:00') from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _together(name: str, verifiers: tuple[DatedVerifier, ...]) -> tuple[DatedVerifier, ...]:
    if len(verifiers) > MOST_VERIFIERS:
        raise ValueError(f'"{name}" has more than {MOST_VERIFIERS} verifiers')
    if not share_salt(tuple(str(verifier.verifier) for verifier in verifiers)):
        raise ValueError(
            f'the verifiers of "{name}" must share their salt: make the second with "noisegate password --beside"'
        )
    return verifiers
