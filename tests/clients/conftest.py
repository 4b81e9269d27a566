"""One running proxy for all clients of a worker, and what is true in the database behind it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.twin.embedded import BINARIES, wheel_tree
from tests.clients.questions import RULES
from tests.conftest import RealDatabase
from tests.running import Noisegate, noisegate

PSQLS = {f"psql {version}": str(wheel_tree(version) / "bin" / "psql") for version in BINARIES}
if found := shutil.which("psql"):
    PSQLS["psql of the system"] = found


@pytest.fixture(scope="session")
def proxy(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    """A proxy in front of the shop, in a process of its own."""
    directory: Path = tmp_path_factory.mktemp("proxy")
    with noisegate(directory, shop.reader_dsn, rules=RULES) as running:
        yield running


@pytest.fixture(scope="session")
def cities(shop: RealDatabase) -> dict[str | None, int]:
    """How many customers each city really has."""
    with shop.connect() as connection:
        return dict(connection.execute("SELECT city, count(*) FROM customers GROUP BY city").fetchall())
