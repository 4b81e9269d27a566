"""Engines by the scheme of their connection strings."""

from collections.abc import Callable
from typing import Final

from proxy.engines.engine import Database, Readable
from proxy.engines.postgres.database import PostgresDatabase
from rules.catalog import Catalog
from rules.policy.model import Policy

_ENGINES: Final[dict[str, Callable[[str], Database]]] = {
    "postgresql": PostgresDatabase,
    "postgres": PostgresDatabase,
}


def real_database(dsn: str) -> Database:
    """The database of a connection string; ValueError where it is none. Words of libpq have no scheme.

    Example:
        >>> real_database("host=db dbname=shop").name
        'shop'
        >>> real_database("postgresql://noisegate@db/shop").user
        'noisegate'
    """
    return _ENGINES.get(dsn.partition("://")[0], PostgresDatabase)(dsn)


async def find_excess(dsn: str, policy: Policy, catalog: Catalog) -> list[str]:
    """Return the rights of this login beyond reading the public tables of these rules, or why they cannot be read."""
    reader = real_database(dsn).open_public_reader()
    try:
        await reader.bind(catalog.system_identifier)
        return await reader.find_excess(Readable.of(policy, catalog))
    finally:
        await reader.close()
