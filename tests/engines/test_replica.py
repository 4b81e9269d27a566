"""A hot standby as the real database: it is read in place of its primary, and has the ledger of its primary."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster, server_binaries
from tests.conftest import SERVER, make_shop
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.support.running import noisegate, start

pytestmark = pytest.mark.long

SETTINGS: dict[str, str | int] = {
    "wal_level": "replica",
    "max_wal_senders": 4,
    "hot_standby": "on",
    "max_standby_streaming_delay": 0,  # a conflict cancels at once
}
VISITS = """
CREATE TABLE visits (id integer PRIMARY KEY, customer_id integer NOT NULL);
INSERT INTO visits SELECT i, 1 + i % 400 FROM generate_series(1, 400000) AS i;
GRANT SELECT ON visits TO noisegate_reader
"""
DRAFTS = """
CREATE UNLOGGED TABLE drafts (id integer PRIMARY KEY, customer_id integer NOT NULL);
CREATE UNLOGGED TABLE notices (id integer PRIMARY KEY, words text);
INSERT INTO notices VALUES (1, 'closed on Monday');
GRANT SELECT ON drafts, notices TO noisegate_reader
"""
PUBLIC = "  products: public\n"
RULES = shop_data.RULES.replace(PUBLIC, f"{PUBLIC}  visits: {{unit: customer_id, rows_per_unit: 3}}\n")
WITH_DRAFTS = shop_data.RULES.replace(PUBLIC, f"{PUBLIC}  drafts: {{unit: customer_id}}\n  notices: public\n")
SLOW = "SELECT count(*) FROM visits AS v WHERE EXISTS (SELECT FROM visits AS w WHERE w.customer_id = v.customer_id{})"


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
        copy = [str(program), "-D", str(home / "data"), "-R", "--checkpoint=fast", "-d", primary.dsn()]
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


def test_a_statement_that_recovery_cancels_is_charged_and_stops_nobody(
    primary: Cluster, standby: Cluster, tmp_path: Path
) -> None:
    with _connect(primary.dsn("shop")) as owner:
        owner.execute(VISITS)
        _wait_for_replay(owner, standby)
        dsn = standby.dsn("shop", shop_data.READER)
        with noisegate(tmp_path, dsn, rules=RULES) as proxy, _connect(proxy.dsn()) as session:
            session.execute("SET noisegate.reuse = off")
            for number in range(20):
                with ThreadPoolExecutor(1) as thread:
                    asked = thread.submit(_outcome, session, SLOW.format(f" AND v.id > {number}"))
                    owner.execute("DELETE FROM visits WHERE mod(id, 100) = %s", (number,))
                    owner.execute("VACUUM visits")
                    outcome = asked.result()
                if outcome is not None:
                    break
            after = session.execute("SELECT count(*) FROM customers").fetchone()

    assert outcome == "58000"
    assert [event["sqlstate"] for event in proxy.events("unfinished")] == ["40001"]
    assert proxy.events("fault") == []
    assert after is not None


def test_unlogged_tables_are_warned_of_and_refused_for_nothing(
    primary: Cluster, standby: Cluster, tmp_path: Path
) -> None:
    with _connect(primary.dsn("shop")) as owner:
        owner.execute(DRAFTS)
        _wait_for_replay(owner, standby)
    catalogs = [catalog_of(place.dsn("shop")) for place in (primary, standby)]

    with (
        noisegate(tmp_path, standby.dsn("shop", shop_data.READER), rules=WITH_DRAFTS) as proxy,
        _connect(proxy.dsn()) as session,
    ):
        outcomes = [_outcome(session, f"SELECT count(*) FROM {name}") for name in ("drafts", "notices", "products")]
        spent = session.execute("SELECT epsilon_spent FROM noisegate.budget WHERE account = 'yours'").fetchone()

    missing = [[str(table.name) for table in catalog.tables if table.missing] for catalog in catalogs]
    assert missing == [[], ["drafts", "notices"]]
    assert sum("is UNLOGGED, and this server is a standby" in line for line in proxy.lines) == 2
    assert (outcomes, spent) == (["0A000", "42501", None], (0,))


def _outcome(session: psycopg.Connection, sql: str) -> str | None:
    try:
        session.execute(sql.encode()).fetchall()
    except psycopg.Error as error:
        return error.sqlstate
    return None


def _wait_for_replay(owner: psycopg.Connection, standby: Cluster) -> None:
    (flushed,) = owner.execute("SELECT pg_current_wal_flush_lsn()").fetchone() or (None,)
    with _connect(standby.dsn("shop")) as replayed:
        for _ in range(600):
            if replayed.execute("SELECT pg_last_wal_replay_lsn() >= %s", (flushed,)).fetchone() == (True,):
                return
            time.sleep(0.05)


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, autocommit=True)
