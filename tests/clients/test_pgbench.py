"""pgbench, in all its modes: the most that one client can pipeline."""

import subprocess
from pathlib import Path

import pytest

from proxy.twin.embedded import server_binaries
from tests.clients.questions import CITIES
from tests.support.running import Noisegate


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench_mixes_private_and_other_statements(proxy: Noisegate, tmp_path: Path, mode: str) -> None:
    script = tmp_path / "mixed.sql"
    script.write_text(f"\\set id random(1, 30)\nSELECT name FROM products WHERE id = :id;\n{CITIES};\n")
    pgbench = [str(server_binaries(18) / "pgbench"), "-n", "-M", mode, "-c", "4", "-t", "25", "-f", str(script)]

    done = subprocess.run([*pgbench, proxy.dsn(sslmode="disable")], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 100/100" in done.stdout
    assert "number of failed transactions: 0" in done.stdout
