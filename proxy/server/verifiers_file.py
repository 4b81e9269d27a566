"""The file of verifiers: lines of "name" "verifier", as pgbouncer's userlist.txt, and until when one is valid."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from proxy.server.accounts import DatedVerifier
from proxy.wire.scram import Verifier
from rules.policy.logins import MOST_VERIFIERS, share_salt

_FIELD: Final = re.compile(r'\s*"((?:[^"]|"")*)"')
_COMMENT: Final = (";", "#")


class VerifiersError(ValueError):
    """A file that cannot be used: the line, and what is wrong there."""

    def __init__(self, file: str, line: int, words: str) -> None:
        super().__init__(f"{file}:{line}: {words}")
        self.line = line


def read_verifiers(text: str, file: str) -> Mapping[str, tuple[DatedVerifier, ...]]:
    """The verifiers of each name; raises VerifiersError. A name may stand twice while its password is being changed.

    Example:
        >>> read_verifiers('"ada" "rosebud"', "verifiers.txt")
        Traceback (most recent call last):
        ...
        proxy.server.verifiers_file.VerifiersError: verifiers.txt:1: not a SCRAM-SHA-256 verifier
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
