"""pgjdbc: everything through the extended protocol, fetch sizes, and the metadata that Java's BI tools read."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import shop
from tests.clients.questions import AMOUNTS, CITIES, ROWS, check_amounts, check_cities
from tests.running import Noisegate

SOURCE = Path(__file__).parent / "java" / "Client.java"
JARS = [Path("/usr/share/java/postgresql.jar")]
"""Where Debian's libpostgresql-jdbc-java puts the driver; the variable PGJDBC_JAR names another place."""


@pytest.fixture(scope="module")
def got(proxy: Noisegate) -> dict[str, str]:
    """All that the client got, in one run."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not here: no java on the PATH")
    places = [Path(os.environ["PGJDBC_JAR"])] if "PGJDBC_JAR" in os.environ else JARS
    jar = next((place for place in places if place.exists()), None)
    if jar is None:
        pytest.skip("pgjdbc is not here: install libpostgresql-jdbc-java, or set PGJDBC_JAR")
    url = f"jdbc:postgresql://127.0.0.1:{proxy.port}/{proxy.database}"
    done = subprocess.run(
        [java, "-cp", str(jar), str(SOURCE), url, CITIES, AMOUNTS.format("?"), ROWS],
        env=os.environ | {"PGPASSWORD": shop.PASSWORDS["ada"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


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
