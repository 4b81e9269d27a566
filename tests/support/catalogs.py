"""The catalog of a database, as the proxy reads it."""

import asyncio

import psycopg

from proxy.engines.postgres.catalog import read_catalog
from rules.catalog import Catalog


def catalog_of(dsn: str) -> Catalog:
    return asyncio.run(_read(dsn))


async def _read(dsn: str) -> Catalog:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("SET search_path = ''")
        return await read_catalog(connection)
