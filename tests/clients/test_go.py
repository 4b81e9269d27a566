"""Go: lib/pq and pgx, both through database/sql."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.installed import program
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients
SOURCE = Path(__file__).parent / "go" / "main.go"
LIBRARIES = Path("/usr/share/gocode")
"""Where Debian's golang-github-lib-pq-dev and golang-github-jackc-pgx-v4-dev put their sources."""

Got = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def got(proxy: Noisegate, tmp_path_factory: pytest.TempPathFactory) -> Got:
    """All that both drivers got, in one run."""
    go = program("go")
    if not all((LIBRARIES / "src/github.com" / name).exists() for name in ("lib/pq", "jackc/pgx")):
        pytest.skip("lib/pq and pgx are not here: install golang-github-lib-pq-dev and golang-github-jackc-pgx-v4-dev")
    folder = tmp_path_factory.mktemp("go")
    places = {"GO111MODULE": "off", "GOPATH": str(LIBRARIES), "GOCACHE": str(folder / "cache"), "HOME": str(folder)}
    built = folder / "client"
    making = subprocess.run(
        [go, "build", "-o", str(built), str(SOURCE)],
        env=os.environ | places, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert making.returncode == 0, making.stderr
    asked = [str(built), proxy.dsn(), CITIES, AMOUNTS.format("$1"), ROWS]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: Got = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("driver", ["postgres", "pgx"])
def test_a_go_driver_gets_the_answers(got: Got, driver: str, cities: dict[str | None, int]) -> None:
    found = got[driver]
    check_cities([(city or None, int(count)) for city, count in found["Plain"]], cities)
    check_amounts([(status, int(count), average, total) for status, count, average, total in found["Parameters"]])
    assert found["Prepared"] == found["Plain"]
    assert found["Page"] == found["Plain"][1:3]
    assert found["Types"] == ["TEXT", "INT8"]


@pytest.mark.parametrize("driver", ["postgres", "pgx"])
def test_a_go_driver_sees_refusals_by_their_sqlstate(got: Got, driver: str) -> None:
    assert (got[driver]["Refused"], got[driver]["Aborted"]) == ("42501", "25P02")
