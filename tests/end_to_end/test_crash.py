"""A server of PostgreSQL crashes under a running proxy that gives each analyst a twin."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support.running import noisegate
from tests.support.waiting import SECONDS


def test_a_crash_costs_the_sessions_of_one_analyst_and_they_come_back(tmp_path: Path, shop: RealDatabase) -> None:
    with (
        noisegate(tmp_path, shop.reader_dsn, arguments=("--twins", "per-analyst")) as proxy,
        psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob,
        ThreadPoolExecutor(1) as thread,
    ):
        ada = psycopg.connect(proxy.dsn("ada"), autocommit=True)
        sleeping = thread.submit(ada.execute, "SELECT pg_sleep(20)")
        time.sleep(1)  # an idle session would go on with the next twin
        os.kill(ada.info.backend_pid, signal.SIGSEGV)
        with pytest.raises(psycopg.OperationalError):
            sleeping.result()

        assert bob.execute("SELECT count(*) FROM customers").fetchone() is not None
        with _again(proxy.dsn("ada")) as ada:
            assert ada.execute("SELECT count(*) FROM customers").fetchone() is not None
            assert ada.execute("SELECT rolname FROM pg_roles WHERE rolname = 'bob'").fetchall() == []


@pytest.mark.parametrize("postmaster", [False, True], ids=["a backend", "the postmaster"])
def test_an_idle_session_goes_on_with_the_next_twin(tmp_path: Path, shop: RealDatabase, postmaster: bool) -> None:
    with (
        noisegate(tmp_path, shop.reader_dsn, arguments=("--max-views-per-session", "2")) as proxy,
        psycopg.connect(proxy.dsn("bob"), autocommit=True) as bob,
    ):
        bob.execute("SET work_mem = '7MB'")
        assert bob.execute("SELECT %s::int", [7]).fetchone() == (7,)
        time.sleep(4)  # it is looked at each second
        ada = psycopg.connect(proxy.dsn("ada"), autocommit=True)
        status = Path(f"/proc/{ada.info.backend_pid}/stat").read_text()
        parent = int(status.rpartition(")")[2].split()[1])
        os.kill(parent if postmaster else ada.info.backend_pid, signal.SIGKILL)

        proxy.wait_for("session_moved")
        assert bob.execute("SHOW work_mem").fetchone() == ("7MB",)
        assert bob.execute("SELECT count(*) FROM customers").fetchone() is not None
        ada.close()


def _again(dsn: str) -> psycopg.Connection:
    """As soon as the server has recovered."""
    for _ in range(int(SECONDS)):
        try:
            return psycopg.connect(dsn, autocommit=True)
        except psycopg.OperationalError as error:
            last = error
            time.sleep(1)
    raise last
