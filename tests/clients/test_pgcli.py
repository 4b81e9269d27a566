"""pgcli: three connections, all of the catalog at start, and what people type."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.installed import module
from tests.clients.questions import CITIES, ROWS
from tests.support import shop
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients


def test_a_session_as_it_is_typed(proxy: Noisegate, tmp_path: Path) -> None:
    module("pgcli")
    typed = f"{CITIES};\n\\d orders\n{ROWS};\nSELECT 7 * 6 AS answer;\n\\dt\n\\q\n"
    access = {"PGPASSWORD": shop.PASSWORDS["ada"], "HOME": str(tmp_path), "PAGER": "cat", "PGSSLMODE": "require"}
    line = [sys.executable, "-m", "pgcli.main", "-h", "127.0.0.1", "-p", str(proxy.port), "-u", "ada", "-d", "shop"]
    done = subprocess.run(
        line, input=typed, env=os.environ | access, capture_output=True, text=True, timeout=120, check=False
    )
    said = done.stdout
    assert "Berlin" in said, said + done.stderr
    assert "orders_pkey" in said
    assert "LIMIT and OFFSET would select" in said
    assert "42" in said.split("answer")[-1]
    assert "order_items" in said.split("\\dt")[-1]
