"""One proxy before the server of this run, with its ledger in a database of that server too."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.support.running import Noisegate, noisegate


@pytest.fixture(scope="module")
def ledger(shop: RealDatabase) -> str:
    """An empty database, as the role that owns the server."""
    with shop.connect() as connection:
        connection.execute("CREATE DATABASE ledger_of_versions")
        user = connection.info.user
    return f"postgresql://{user}@/ledger_of_versions?host={shop.cluster.directory}"


@pytest.fixture(scope="module")
def served(shop: RealDatabase, ledger: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    directory: Path = tmp_path_factory.mktemp("versions")
    with noisegate(directory, shop.reader_dsn, rules=RULES, ledger=ledger) as running:
        yield running


@pytest.fixture(scope="module")
def analyst(served: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(served.dsn(), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def real(shop: RealDatabase) -> Iterator[psycopg.Connection]:
    """The database itself, for what is true."""
    with shop.connect() as connection:
        yield connection
