"""A hot standby as the real database: it is read in place of its primary, and has the ledger of its primary."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster, server_binaries
from tests.conftest import SERVER, make_shop
from tests.support import shop as shop_data
from tests.support.running import noisegate, start

pytestmark = pytest.mark.long

SETTINGS: dict[str, str | int] = {"wal_level": "replica", "max_wal_senders": 4, "hot_standby": "on"}


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    cluster = Cluster.start(binaries=SERVER, settings=SETTINGS)
    make_shop(cluster, "shop")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def standby(primary: Cluster) -> Iterator[Cluster]:
    """A standby that streams from the primary."""
    owner = (primary.directory / "data").stat()
    with tempfile.TemporaryDirectory(prefix="noisegate-standby-") as folder:
        home = Path(folder)
        os.chown(home, owner.st_uid, owner.st_gid)
        program = (SERVER or server_binaries(18)) / "pg_basebackup"
        copy = [str(program), "-D", str(home / "data"), "-R", "-d", primary.dsn()]
        subprocess.run(copy, check=True, user=owner.st_uid, group=owner.st_gid, extra_groups=[])
        cluster = Cluster.start(home, binaries=SERVER, settings=SETTINGS)
        yield cluster
        cluster.stop()


def test_a_standby_is_answered_from_and_charged_to_the_ledger_of_its_primary(
    primary: Cluster, standby: Cluster, tmp_path: Path
) -> None:
    with noisegate(tmp_path, standby.dsn("shop", shop_data.READER)) as proxy, _connect(proxy.dsn()) as session:
        cities = session.execute("SELECT city, count(*) FROM customers GROUP BY city ORDER BY city").fetchall()
        orders = session.execute("SELECT count(*) FROM orders").fetchone()
    assert [row[0] for row in cities] == ["Berlin", "Graz", "Lyon", "Porto", None]
    assert orders is not None

    after = start(tmp_path / "rules.yaml", primary.dsn("shop", shop_data.READER))
    try:
        after.wait_for("ready")
        with _connect(after.dsn(sslmode="disable")) as session:
            spent = session.execute("SELECT epsilon_spent FROM noisegate.budget WHERE account = 'yours'").fetchone()
            again = session.execute("SELECT count(*) FROM orders").fetchone()
    finally:
        after.stop()
    assert spent == (2,)
    assert again == orders  # served again


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, autocommit=True)
