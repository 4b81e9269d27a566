"""Databases for ledgers: a few that are emptied and used again, since each has three hundred files."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.ledger.charges import create_database


@pytest.fixture(scope="session")
def unused_databases() -> list[str]:
    """Where each database of `empty_database` goes when its test is over."""
    return []


@pytest.fixture
def empty_database(real_cluster: Cluster, unused_databases: list[str]) -> Iterator[Callable[[], str]]:
    """Give a database without a ledger, another one at each call."""
    taken: list[str] = []

    def take() -> str:
        taken.append(unused_databases.pop() if unused_databases else create_database(real_cluster))
        return taken[-1]

    yield take
    for dsn in taken:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute("DROP SCHEMA IF EXISTS noisegate_ledger CASCADE")
    unused_databases += taken
