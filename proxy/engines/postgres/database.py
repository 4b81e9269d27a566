"""A PostgreSQL by its libpq connection string; see `proxy.engines.engine.Database`."""

import os
import re
from collections.abc import Mapping
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proxy.causes import cause_of
from proxy.engines.engine import EngineError, GrantsFailed, Readable
from proxy.engines.postgres import privileges, public_reader
from proxy.engines.postgres.snapshots import PostgresEngine
from rules.catalog import Catalog
from rules.policy.model import Policy

_EXAMPLE: Final = "host=db dbname=shop user=noisegate_reader, or postgresql://noisegate_reader@db/shop"


class PostgresDatabase:
    """See `proxy.engines.engine.Database`."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        try:
            self._parameters = conninfo_to_dict(dsn)
        except psycopg.ProgrammingError as error:
            words = f"this is not a connection string, as {_EXAMPLE}: {_without_secrets(str(error))}"
            raise ValueError(words) from None
        if "://" in dsn and "@" in str(self._parameters.get("host", ""))[1:]:
            raise ValueError("no host has an @ in its name: where a URI has a password with an @, write %40 for it")

    @property
    def name(self) -> str:
        return str(self._parameters.get("dbname") or os.environ.get("PGDATABASE") or self.user or "postgres")

    @property
    def user(self) -> str | None:
        user = self._parameters.get("user")
        return str(user) if user else None

    def open_engine(
        self, *, connections: int = 8, most_cost: float | None = None, settings: Mapping[str, str] | None = None
    ) -> PostgresEngine:
        return PostgresEngine(self._dsn, connections=connections, most_cost=most_cost, settings=settings)

    def open_public_reader(self, *, most_cost: float | None = None) -> public_reader.PublicReader:
        return public_reader.PublicReader(self._dsn, most_cost=most_cost)

    def as_role(self, role: str, password: str) -> str:
        return make_conninfo(self._dsn, user=role, password=password)

    def has_role(self, role: str) -> bool:
        try:
            with psycopg.connect(self._dsn) as connection:
                return connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).rowcount > 0
        except psycopg.Error as error:
            raise EngineError(cause=cause_of(error)) from None

    def role_grants(self, policy: Policy, database: str, role: str, verifier: str = "") -> str:
        return privileges.grants_of(policy, database, role, verifier)

    def public_grants(self, readable: Readable, catalog: Catalog, role: str) -> str:
        return public_reader.public_grants(readable, catalog, role)

    def run_grants(self, sql: str) -> None:
        try:
            with psycopg.connect(self._dsn) as connection:
                connection.execute(sql.encode())
        except psycopg.Error as error:
            raise GrantsFailed(error.diag.message_primary or "", cause=cause_of(error)) from None


def _without_secrets(said: str) -> str:
    """Leave out the piece that libpq quotes as what it cannot read: of a URI it has the password in it.

    Example:
        >>> _without_secrets('invalid percent-encoded token: "s3%zz"')
        'invalid percent-encoded token'
        >>> _without_secrets('invalid connection option "pasword"')
        'invalid connection option "pasword"'
    """
    return re.split(r'(?: after|:) "', said, maxsplit=1)[0].strip()
