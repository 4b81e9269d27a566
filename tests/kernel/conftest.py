"""A database with one table of facts."""

from collections.abc import Iterator

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.kernel.facts import SCHEMA
from tests.kernel.world import World, make_world
from tests.properties.added import Worst, worst_rows
from tests.properties.planning import PINNED


@pytest.fixture(scope="session")
def connection(real_cluster: Cluster) -> Iterator[psycopg.Connection]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE kernel")
    with psycopg.connect(real_cluster.dsn("kernel"), autocommit=True) as found:
        found.execute(SCHEMA)
        found.execute(PINNED)
        yield found


@pytest.fixture(scope="session")
def every_type(real_cluster: Cluster) -> Iterator[Worst]:
    """The table of tests/properties/added.py."""
    with worst_rows(real_cluster, "every_type_of_the_kernel") as rows:
        yield rows


@pytest.fixture(scope="session")
def world(real_cluster: Cluster) -> Iterator[World]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE kernel_world")
    with psycopg.connect(real_cluster.dsn("kernel_world"), autocommit=True) as found:
        yield make_world(real_cluster, found, "kernel_world")
