"""How much code a reader has to know who follows one fresh statement through the running proxy."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.test_demo import Demo
from tests.support.entered import entered, environment

JOIN = (
    "SELECT c.city, o.status, count(*), sum(o.amount) FROM customers AS c JOIN orders AS o ON o.customer_id = c.id "
    "GROUP BY 1, 2"
)
UNITS = "SELECT count(DISTINCT customer_id) FROM orders"

pytestmark = pytest.mark.extended


@pytest.fixture
def demo() -> Iterator[tuple[Demo, Path]]:
    """A demo whose processes note what they enter."""
    with tempfile.TemporaryDirectory(prefix="noisegate-demo-") as home:
        Path(home).chmod(0o755)  # PostgreSQL runs as another user where the proxy runs as root
        place = Path(home) / "entered"
        place.mkdir()
        running = Demo(Path(home), environment(place))
        try:
            running.wait()
            yield running, place
        finally:
            os.killpg(running.process.pid, signal.SIGINT)
            running.process.wait(30)


def test_a_fresh_statement_enters_no_more_files_and_functions_than_it_did(demo: tuple[Demo, Path]) -> None:
    """The numbers go down with each piece of code that becomes simpler; the goal is 110 files and 1,100 functions."""
    running, place = demo
    with running.connect() as connection:
        connection.execute("SELECT 1")
        for sql, most_files, most_functions in ((JOIN, 220, 2_300), (UNITS, 210, 1_850)):
            entered(place)

            assert connection.execute(sql).fetchall()

            functions = entered(place)
            files = {file for file, _ in functions}
            print(f"{len(files)} files and {len(functions)} functions")
            assert len(functions) > 500, "it was followed through the proxy and its worker"
            assert (len(files) <= most_files, len(functions) <= most_functions) == (True, True), sql
