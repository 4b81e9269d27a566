"""The ledger's database freezes under a running proxy."""

import time
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.ledger.charges import create_database
from tests.ledger.frozen import line_to
from tests.support.running import noisegate

COUNT = "SELECT count(*) FROM customers"


def test_a_frozen_ledger_holds_neither_statements_nor_the_end_of_the_proxy(tmp_path: Path, shop: RealDatabase) -> None:
    name = dict(part.split("=") for part in create_database(shop.cluster).split())["dbname"]
    with line_to(shop.cluster) as line:
        ledger = f"postgresql://noisegate_owner@127.0.0.1:{line.port}/{name}"
        with noisegate(tmp_path, shop.reader_dsn, ledger=ledger) as proxy:
            with psycopg.connect(proxy.dsn(), autocommit=True) as ada:
                ada.execute("SET noisegate.reuse = off")
                assert ada.execute(COUNT).fetchone() is not None
                ada.execute("SET statement_timeout = '2s'")

                line.freeze()
                began = time.monotonic()
                with pytest.raises(psycopg.errors.QueryCanceled):
                    ada.execute(COUNT)
                assert time.monotonic() - began < 4
                assert ada.execute("SELECT 1").fetchone() == (1,)

                line.thaw()
                ada.execute("SET statement_timeout = 0")
                assert ada.execute(COUNT).fetchone() is not None
                line.freeze()
            began = time.monotonic()
            assert proxy.stop() == 0
            assert time.monotonic() - began < 20
