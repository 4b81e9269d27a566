"""One running proxy for all clients of a worker, and what is true in the database behind it."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from proxy.twin.embedded import BINARIES, wheel_tree
from tests.clients.questions import AMOUNTS, CITIES, ROWS, RULES
from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import Noisegate, noisegate

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


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Node's clients installed in it."""
    npm = shutil.which("npm")
    if shutil.which("node") is None or npm is None:
        pytest.skip("Node is not here: node and npm are not on the PATH")
    folder = tmp_path_factory.mktemp("node") / "client"
    shutil.copytree(Path(__file__).parent / "node", folder)
    install = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error"]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if installed.returncode != 0:
        pytest.skip("Node's clients cannot be installed: npm reaches no registry")
    return folder


@contextmanager
def locked(database: RealDatabase, table: str, seconds: float) -> Iterator[None]:
    """Hold a table for so many seconds, in which nobody reads it."""
    is_held = Event()

    def hold() -> None:
        with database.connect() as owner, owner.transaction():
            owner.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            is_held.set()
            owner.execute("SELECT pg_sleep(%s)", [seconds])

    holder = Thread(target=hold)
    holder.start()
    assert is_held.wait(20)
    yield
    holder.join()


def ask_by_node(script: str, folder: Path, proxy: Noisegate) -> dict[str, object]:
    """All that a script of tests/clients/node got, in one run."""
    asked = json.dumps([CITIES, AMOUNTS.format("$1"), ROWS])
    access = {"PGPORT": str(proxy.port), "PGDATABASE": proxy.database, "PGPASSWORD": shop_data.PASSWORDS["ada"]}
    done = subprocess.run(
        ["node", script, asked], cwd=folder, env=os.environ | access, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer
