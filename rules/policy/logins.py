"""The rules file's part on logins: passwords as verifiers, until when, from where, with which certificate."""

import re
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_network
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

VERIFIER = re.compile(r"SCRAM-SHA-256\$[1-9]\d{3,6}:[A-Za-z0-9+/]+=*\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=")
MOST_VERIFIERS = 2  # of one account: the old password and the new one
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "second", "seconds"), 1),
    **dict.fromkeys(("min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def parse_duration(value: object) -> object:
    """Durations are written as people say them; 0 stands for none."""
    if value == 0 or isinstance(value, timedelta):
        return value or timedelta(0)
    match = DURATION.fullmatch(str(value).strip())
    if match is None or match[2] not in SECONDS:
        raise ValueError('write a duration as a number and a unit: "1 day", "30 min", "100 ms"')
    return timedelta(seconds=float(match[1]) * SECONDS[match[2]])


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]


def _network(text: str) -> str:
    try:
        return str(ip_network(text.strip()))
    except ValueError:
        raise ValueError(f'"{text}" is not a network: write 10.1.0.0/16, or one address as 10.1.2.3') from None


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _check_verifiers(texts: tuple[str, ...]) -> tuple[str, ...]:
    """All are verifiers, and share a salt: it is shown before the client says which password it has."""
    if not 1 <= len(texts) <= MOST_VERIFIERS:
        raise ValueError("takes one verifier, or two while a password is being changed")
    if any(VERIFIER.fullmatch(text) is None for text in texts):
        raise ValueError('takes a SCRAM-SHA-256 verifier, as "noisegate password" makes it')
    if not share_salt(texts):
        raise ValueError('two verifiers must share their salt: make the second with "noisegate password --beside"')
    return texts


def share_salt(verifiers: tuple[str, ...]) -> bool:
    """Return whether one exchange can check all of these: their iterations and salts are the same."""
    return len({text.split("$")[1] for text in verifiers}) <= 1


def _moment(value: object) -> object:
    """A date stands for its first moment, as in PostgreSQL."""
    if not isinstance(value, date | str):  # a datetime is a date
        raise ValueError("must be a date or a time, as 2027-01-31 or 2027-01-31 18:00+01:00")
    return value


def _in_zone(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


Moment = Annotated[datetime, BeforeValidator(_moment), AfterValidator(_in_zone)]
Network = Annotated[str, AfterValidator(_network)]
Verifiers = Annotated[tuple[str, ...], BeforeValidator(_one_or_more), AfterValidator(_check_verifiers)]


class LoginRules(Model):
    """The logins of one analyst or operator."""

    password: Verifiers | None = None  # SCRAM-SHA-256 verifiers as PostgreSQL stores them, never the password itself
    valid_until: Moment | None = None  # from then on nobody logs in with this name
    addresses: Annotated[tuple[Network, ...], Field(min_length=1)] | None = None  # None: from everywhere
    certificate: Annotated[str, Field(min_length=1)] | None = None  # its common name, or one of its other names
    login: Literal["password", "certificate", "both"] | None = None

    @model_validator(mode="after")
    def _asks_for_what_it_knows(self) -> Self:
        if self.login in ("certificate", "both") and self.certificate is None:
            raise ValueError(f"login: {self.login} needs certificate, the name in the client's certificate")
        if self.login == "password" and self.certificate is not None:
            raise ValueError("login: password uses no certificate: remove certificate, or write login: both")
        if not self.needs_password and self.password is not None:
            raise ValueError("login: certificate uses no password: write login: both, or remove one of the two")
        return self

    @property
    def needs_password(self) -> bool:
        """Return whether the login asks for a password, alone or together with a certificate."""
        return self.certificate is None if self.login is None else self.login != "certificate"


class AuthQuery(Model):
    """Verifiers that a database keeps, asked for by name."""

    query: str  # of one parameter, $1: returns the name and its verifier
    database: str | None = None  # a libpq connection string; None: the database of the rules
    fresh_for: Duration = timedelta(seconds=10)
    timeout: Duration = timedelta(seconds=5)

    @model_validator(mode="after")
    def _asks_by_name(self) -> Self:
        if "$1" not in self.query:
            raise ValueError("query must have $1 in the place of the name")
        if not self.timeout:
            raise ValueError("timeout must be greater than 0")
        return self


class Logins(Model):
    """The places of verifiers that are not in the rules file."""

    file: str | None = None  # lines of "name" "verifier"; relative to the rules file
    auth_query: AuthQuery | None = None

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.file is None and self.auth_query is None:
            raise ValueError("name a file, an auth_query, or both")
        return self
