"""The laboratory: one database with the tables of tests/lab.py, emptied before every example."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from proxy.engine.catalog import read_catalog
from proxy.twin.embedded import Cluster
from rules.catalog import Catalog
from tests import lab as tables
from tests.properties.planning import PINNED, Lab


@pytest.fixture(scope="session")
def lab(real_cluster: Cluster) -> Iterator[Lab]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE lab")
    with psycopg.connect(real_cluster.dsn("lab"), autocommit=True) as connection:
        connection.execute(tables.SCHEMA)
        connection.execute(PINNED)
        yield Lab(connection, asyncio.run(_catalog(real_cluster.dsn("lab"))))


async def _catalog(dsn: str) -> Catalog:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("SET search_path = ''")
        return await read_catalog(connection)
