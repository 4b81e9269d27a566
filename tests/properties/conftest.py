"""The laboratories: databases with the tables of tests/support/lab.py, emptied before every example."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.properties import wide_rows
from tests.properties.added import Worst, worst_rows
from tests.properties.marks import SCHEMA
from tests.properties.planning import PINNED, Lab
from tests.support import lab as tables
from tests.support.catalogs import catalog_of

MakeLab = Callable[[str], Lab]


@pytest.fixture(scope="session")
def lab(labs: tuple[Lab, ...]) -> Lab:
    return labs[0]


@pytest.fixture(scope="session")
def labs(real_cluster: Cluster) -> Iterator[tuple[Lab, ...]]:
    """One for each schema, and a last one with a character(n)."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(_lab(real_cluster, number)) for number in range(len(tables.VARIANTS) + 1))


@contextmanager
def _lab(cluster: Cluster, number: int) -> Iterator[Lab]:
    name = f"lab{number}"
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(cluster.dsn(name), autocommit=True) as connection:
        connection.execute(tables.SCHEMA)
        connection.execute(tables.known_to(connection, (*tables.VARIANTS, tables.PADDED)[number].changes))
        connection.execute(PINNED)
        yield Lab(connection, catalog_of(cluster.dsn(name)))


@pytest.fixture(scope="session")
def every_type(real_cluster: Cluster) -> Iterator[Worst]:
    """The table of tests/properties/added.py."""
    with worst_rows(real_cluster, "every_type") as rows:
        yield rows


@pytest.fixture(scope="session")
def marks(real_cluster: Cluster) -> Iterator[Lab]:
    """The table of tests/properties/marks.py."""
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE marks")
    with psycopg.connect(real_cluster.dsn("marks"), autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute(PINNED)
        yield Lab(connection, catalog_of(real_cluster.dsn("marks")))


@pytest.fixture
def make_lab(real_cluster: Cluster) -> Iterator[MakeLab]:
    """Databases of one test's own, by their schema."""
    names = [f"own{number}" for number in range(3)]
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner, ExitStack() as stack:

        def make(schema: str) -> Lab:
            name = names.pop()
            owner.execute(f"CREATE DATABASE {name}")
            stack.callback(owner.execute, f"DROP DATABASE {name} WITH (FORCE)")
            connection = stack.enter_context(psycopg.connect(real_cluster.dsn(name), autocommit=True))
            connection.execute(schema)
            connection.execute(PINNED)
            return Lab(connection, catalog_of(real_cluster.dsn(name)))

        yield make


@pytest.fixture(scope="session")
def worlds(real_cluster: Cluster) -> Iterator[dict[str, Lab]]:
    """The wide world for each type of unit."""
    with ExitStack() as stack:
        made = {}
        for number, unit in enumerate(wide_rows.UNITS):
            name = f"wide{number}"
            with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            connection = stack.enter_context(psycopg.connect(real_cluster.dsn(name), autocommit=True))
            connection.execute(wide_rows.schema(unit, number))
            connection.execute(PINNED)
            made[unit] = Lab(connection, catalog_of(real_cluster.dsn(name)))
        yield made
