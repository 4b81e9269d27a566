"""Node's pg: parameters without types, cursors with row limits, a pool."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import shop
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.running import Noisegate

HERE = Path(__file__).parent / "node"
Got = dict[str, object]


@pytest.fixture(scope="module")
def got(proxy: Noisegate, tmp_path_factory: pytest.TempPathFactory) -> Got:
    """All that the client got, in one run."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node is not here: node and npm are not on the PATH")
    folder = tmp_path_factory.mktemp("node") / "client"
    shutil.copytree(HERE, folder)
    install = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error"]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if installed.returncode != 0:
        pytest.skip("pg cannot be installed: npm reaches no registry")
    asked = json.dumps([CITIES, AMOUNTS.format("$1"), ROWS])
    access = {"PGPORT": str(proxy.port), "PGDATABASE": proxy.database, "PGPASSWORD": shop.PASSWORDS["ada"]}
    done = subprocess.run(
        [node, "client.js", asked],
        cwd=folder,
        env=os.environ | access,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: Got = json.loads(done.stdout)
    return answer


def pairs(rows: object) -> list[tuple[str | None, int]]:
    assert isinstance(rows, list)
    return [(city, int(count)) for city, count in rows]


def test_answers_by_the_simple_protocol(got: Got, cities: dict[str | None, int]) -> None:
    check_cities(pairs(got["simple"]), cities)


def test_answers_with_parameters(got: Got) -> None:
    rows = got["parameters"]
    assert isinstance(rows, list)
    check_amounts([(status, int(count), average, total) for status, count, average, total in rows])


def test_prepared_statements_and_pools_get_the_same_answer(got: Got) -> None:
    assert isinstance(got["prepared"], list)
    assert isinstance(got["pool"], list)
    assert all(rows == got["simple"] for rows in [*got["prepared"], *got["pool"]])
    assert got["binary"] == 1


def test_cursors_read_in_pieces(got: Got) -> None:
    assert got["cursor"] == got["simple"]


def test_refusals_have_their_sqlstate_everywhere(got: Got) -> None:
    assert (got["refused"], got["refusedPrepared"], got["refusedInTransaction"]) == ("42501", "42501", "42501")
    assert got["aborted"] == "25P02"
