"""Real PostgreSQL for all tests: one cluster a worker, which plays the real database with the shop in it."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings

from proxy.twin.embedded import Cluster
from tests.server.stage import stage, twin_cluster  # noqa: F401 - fixtures
from tests.support import shop as shop_data
from tests.support.listed_sql import all_listed, all_sent_are_listed


def use_memory_for_files(place: Path = Path("/dev/shm")) -> None:
    """Put temporary files in memory, where a cluster of a thousand files is made and removed in a fraction of the time.

    Not where TMPDIR says otherwise, room is short, or no program may run from there.
    """
    if "TMPDIR" in os.environ or not os.access(place, os.W_OK):
        return
    found = os.statvfs(place)
    if found.f_bavail * found.f_frsize >= ROOM_FOR_FILES and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(place)
        tempfile.tempdir = None  # to be asked for again


ROOM_FOR_FILES = 6 * 2**30
use_memory_for_files()

# How long an example takes depends on what else the machine does. The same tree draws the same examples, so that a test
# which turns red does so by what was changed; NOISEGATE_EXPLORE draws others each time, to find what is still hidden.
settings.register_profile("patient", deadline=None, derandomize="NOISEGATE_EXPLORE" not in os.environ)
settings.register_profile("quick", settings.get_profile("patient"), max_examples=25)  # for `make unit`
settings.load_profile("patient")

# The programs of another PostgreSQL than 18, to be the real database; `python -m tests.versions` gives each its turn.
SERVER = Path(os.environ["NOISEGATE_SERVER"]) if "NOISEGATE_SERVER" in os.environ else None

# What starts a PostgreSQL: these fixtures, and tests of these folders in ways of their own.
_DATABASES = frozenset(("real_cluster", "twin_cluster", "cluster_home"))
_WITH_DATABASES = frozenset(
    ("browser", "cases", "clients", "console", "end_to_end", "engines", "ledger", "replay", "soak", "superset", "twin")
)
# What takes most of the time is for CI and `make test-all`: whole folders, but for some files that try every part once.
_EXTENDED = frozenset(
    ("cases", "clients", "console", "end_to_end", "privacy", "samples", "soak", "twin", "versions", "test_any_order.py")
)
_SMOKE = frozenset(("test_attacks.py", "test_demo.py", "test_explain.py", "test_settings.py", "test_walls.py"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread whose tests all belong to tiers that are not run: reading them takes half of `make unit`."""
    if collection_path.suffix != ".py":
        return None
    left_out = set(re.findall(r"not (\w+)", config.option.markexpr)) if " or " not in config.option.markexpr else set()
    with_database = "database" in left_out and collection_path.parent.name in _WITH_DATABASES
    return with_database or ("extended" in left_out and _is_extended(collection_path)) or None


def _is_extended(file: Path) -> bool:
    return file.name not in _SMOKE and not _EXTENDED.isdisjoint((file.parent.name, file.name))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tiers: `make unit` runs what needs no database, the default run all but what is extended."""
    for item in items:
        folder = item.path.parent.name
        fixtures = item.fixturenames if isinstance(item, pytest.Function) else ()
        if folder in _WITH_DATABASES or not _DATABASES.isdisjoint(fixtures):
            item.add_marker("database")
        if folder == "browser":
            item.add_marker("browser")
        if _is_extended(item.path):
            item.add_marker("extended")


@dataclass(frozen=True)
class RealDatabase:
    """A database of the cluster that plays the real one."""

    cluster: Cluster
    name: str = "shop"

    @property
    def dsn(self) -> str:
        """As its owner, a superuser."""
        return self.cluster.dsn(self.name)

    @property
    def reader_dsn(self) -> str:
        """As the role that the proxy uses: it may read the shop's tables and nothing else."""
        return self.cluster.dsn(self.name, shop_data.READER)

    def connect(self) -> psycopg.Connection:
        """A connection of the owner, each statement its own transaction."""
        return psycopg.connect(self.dsn, autocommit=True)


@pytest.fixture(scope="session", autouse=True)
def every_function_of_a_statement_is_listed() -> Iterator[None]:
    """Whatever a test has the kernel write, drawn or by hand."""
    with all_listed():
        yield


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[Cluster]:
    """An empty PostgreSQL without any database of ours; tests may create some with names of their own."""
    cluster = Cluster.start(binaries=SERVER, settings={"max_connections": 100})
    with all_sent_are_listed(cluster):
        yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def shop(real_cluster: Cluster) -> RealDatabase:
    """The database of tests/support/shop.py. Nobody changes it: a test that must makes its own with `make_shop`."""
    return make_shop(real_cluster, "shop")


def make_shop(cluster: Cluster, name: str) -> RealDatabase:
    """The shop in a new database."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    database = RealDatabase(cluster, name)
    with database.connect() as connection:
        for part in (shop_data.SCHEMA, shop_data.DATA, shop_data.GRANTS):
            connection.execute(part)
    return database


@pytest.fixture
def rules_path(tmp_path: Path) -> Path:
    """The shop's rules as a file."""
    return shop_data.rules_file(tmp_path)


@pytest.fixture
def cluster_home() -> Iterator[Path]:
    """A place for a cluster's data that another user of the machine can reach (pytest's own places are closed)."""
    home = Path(tempfile.mkdtemp(prefix="noisegate-test-"))
    yield home
    shutil.rmtree(home, ignore_errors=True)
