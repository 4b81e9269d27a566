"""pgjdbc: everything through the extended protocol, fetch sizes, and the metadata that Java's BI tools read."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from socket import socket

import pytest

from proxy.twin.embedded import Cluster
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.conftest import make_shop
from tests.support import shop
from tests.support.running import Noisegate

DIRECT = f"""
CREATE ROLE ada LOGIN PASSWORD '{shop.PASSWORDS["ada"]}';
ALTER ROLE ada SET default_transaction_read_only = on;
GRANT SELECT (amount) ON orders TO ada;
GRANT DELETE ON orders TO ada;
"""
SOURCES = Path(__file__).parent / "java"
JARS = [Path("/usr/share/java/postgresql.jar")]
"""Where Debian's libpostgresql-jdbc-java puts the driver; the variable PGJDBC_JAR names another place."""


def run(source: str, place: str, *arguments: str) -> dict[str, str]:
    """What a Java program printed."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not here: no java on the PATH")
    places = [Path(os.environ["PGJDBC_JAR"])] if "PGJDBC_JAR" in os.environ else JARS
    jar = next((place for place in places if place.exists()), None)
    if jar is None:
        pytest.skip("pgjdbc is not here: install libpostgresql-jdbc-java, or set PGJDBC_JAR")
    url = f"jdbc:postgresql://127.0.0.1:{place}"
    done = subprocess.run(
        [java, "-cp", str(jar), str(SOURCES / source), url, *arguments],
        env=os.environ | {"PGPASSWORD": shop.PASSWORDS["ada"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def got(proxy: Noisegate) -> dict[str, str]:
    """All that the client got, in one run."""
    return run("Client.java", f"{proxy.port}/{proxy.database}", CITIES, AMOUNTS.format("?"), ROWS)


@pytest.fixture(scope="module")
def batches(proxy: Noisegate) -> dict[str, str]:
    return run("Batches.java", f"{proxy.port}/{proxy.database}", "require")


@pytest.fixture(scope="module")
def direct() -> Iterator[dict[str, str]]:
    """The same batches without a proxy, by somebody who may only read, and not everything."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    cluster = Cluster.start(settings={"max_connections": 20}, tcp_port=port)
    try:
        with make_shop(cluster, "shop").connect() as connection:
            connection.execute(DIRECT)
        yield run("Batches.java", f"{port}/shop", "disable")
    finally:
        cluster.stop()


def fields(text: str) -> list[list[str]]:
    return [row.split("|") for row in text.split(";")]


def test_plain_statements_and_fetch_sizes(got: dict[str, str], cities: dict[str | None, int]) -> None:
    for name in ("plain", "fetched"):
        check_cities([(None if city == "null" else city, int(count)) for city, count in fields(got[name])], cities)


def test_prepared_statements_give_one_answer_in_text_and_binary(got: dict[str, str]) -> None:
    for name in ("prepared1", "prepared2", "prepared3", "prepared4", "simple"):
        check_amounts([(status, int(count), average, total) for status, count, average, total in fields(got[name])])
    assert got["prepared4"] == got["prepared1"]
    assert got["types"] == "int8 numeric"


def test_refusals_have_their_sqlstate(got: dict[str, str]) -> None:
    assert (got["refused"], got["refusedInside"], got["aborted"]) == ("42501", "42501", "25P02")


def test_metadata_is_that_of_postgresql(got: dict[str, str]) -> None:
    assert got["tables"] == "customers;order_items;orders;products"
    assert "city" in got["columns"].split(";")
    assert "email" not in got["columns"].split(";")
    assert got["keys"] == "order_id;product_id"
    assert got["foreign"] == "customers"
    assert "orders_pkey" in got["indexes"].split(";")
    assert "public" in got["schemas"].split(";")
    assert got["valid"] == "true"


def test_batches_end_as_those_of_postgresql(batches: dict[str, str], direct: dict[str, str]) -> None:
    """Counts and errors of SETs, cursors and questions, in every mode of the driver, and what a failure takes back."""
    ours = {name for name in batches if name.endswith((" ours", " badly"))}

    assert {name: text for name, text in batches.items() if name not in ours} == {
        name: text for name, text in direct.items() if name not in ours
    }
    assert {batches[name] for name in ours} == {"0,0", "22023:-3,-3", "22023:0,-3"}
    assert direct["extended writing"] == "25006:-3,-3,-3"
    assert direct["extended cursors"] == "0,0,0"
