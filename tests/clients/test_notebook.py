"""`%load_ext noisegate` in a real Jupyter kernel: cost, margins and bars under a cell, and frames with margins."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.clients.conftest import locked
from tests.clients.installed import module
from tests.clients.questions import CITIES
from tests.conftest import RealDatabase
from tests.support.markdown import ROOT
from tests.support.running import Noisegate

pytestmark = pytest.mark.clients

Run = Callable[[str], str]
SECONDS = 60


@pytest.fixture(scope="module")
def run(proxy: Noisegate) -> Iterator[Run]:
    """Run a cell: all that it shows, as HTML or text. An error of the cell fails the test."""
    manager = module("jupyter_client.manager")
    module("ipykernel"), module("pandas")
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    kernel, client = manager.start_new_kernel(kernel_name="python3", env=os.environ | {"PYTHONPATH": paths})

    def cell(source: str) -> str:
        shown: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] in ("display_data", "execute_result", "update_display_data"):
                shown.append(content["data"].get("text/html") or content["data"]["text/plain"])
            elif message["msg_type"] == "stream":
                shown.append(content["text"])
            elif message["msg_type"] == "error":
                raise AssertionError("\n".join(content["traceback"]))

        client.execute_interactive(source, timeout=SECONDS, output_hook=hear)
        return "\n".join(shown)

    cell("%load_ext noisegate")
    cell(f"%noisegate {proxy.dsn()}")
    yield cell
    client.stop_channels()
    kernel.shutdown_kernel(now=True)


def test_an_answer_has_cost_margins_and_bars_below_it(run: Run) -> None:
    shown = run(f"%%noisegate cities\n{CITIES}")

    assert "<td>Berlin</td>" in shown and "± " in shown
    assert shown.count("<rect") >= 4 and shown.count("<path") >= 4
    assert " spent, " in shown and " left" in shown


def test_a_frame_has_margins_as_columns_and_its_cost(run: Run) -> None:
    run(f"%%noisegate cities\n{CITIES}")

    assert run("list(cities.noisegate.with_margins().columns)") == "['city', 'count', 'count_margin']"
    assert float(run("print(cities.noisegate.with_margins()['count_margin'].iloc[0])")) < 10
    assert run("cities.noisegate.margins.index.tolist()") == "['count']"
    assert float(run("print(cities.noisegate.cost)")) >= 0
    assert 0 < float(run("print(cities.noisegate.left)")) <= 1000
    assert "<svg" in run("cities.noisegate")
    assert run("cities.head(2).noisegate.told.is_private") == "True"


def test_an_exact_answer_has_no_margins(run: Run) -> None:
    shown = run("%%noisegate shown\nSELECT name, price FROM products ORDER BY price DESC LIMIT 3")
    assert "±" not in shown and "<svg" not in shown
    assert run("(shown.noisegate.cost, len(shown.noisegate.margins), len(shown))") == "(None, 0, 3)"


def test_a_refusal_is_its_words_and_its_hint_without_a_traceback(run: Run) -> None:
    shown = run("%%noisegate\nSELECT * FROM customers LIMIT 3")
    assert "LIMIT and OFFSET would select single rows of a protected table" in shown
    assert "Select an aggregate" in shown and "Traceback" not in shown


def test_what_comes_from_the_database_is_escaped(run: Run) -> None:
    shown = run("%%noisegate\nSELECT '<script>alert(1)</script>' AS \"<b>x</b>\"")
    assert "<script>" not in shown and "<b>x" not in shown
    assert "&lt;script&gt;" in shown


def test_a_line_alone_shows_what_is_left(run: Run) -> None:
    assert "<td>yours</td>" in run("%noisegate")


def test_a_long_statement_is_said_to_run_and_nothing_of_that_stays(run: Run, shop: RealDatabase) -> None:
    with locked(shop, "customers", 6):
        shown = run("%%noisegate slow\nSELECT count(*) FROM customers WHERE id > 3")

    assert "still running after 5 s (300 s at most): SELECT count(*) FROM customers WHERE id &gt; 3" in shown
    assert run("[each for each in slow.noisegate.told.notices if 'still' in each]") == "[]"


def test_any_other_frame_has_nothing(run: Run) -> None:
    assert run("import pandas; pandas.DataFrame({'n': [1]}).noisegate.cost is None") == "True"
