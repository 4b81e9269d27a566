"""postgres.js: everything prepared, the types of arrays at connect, cursors without a Sync."""

from pathlib import Path

import pytest

from tests.clients.conftest import ask_by_node
from tests.clients.questions import check_amounts, check_cities
from tests.clients.test_node import Got, pairs
from tests.support.running import Noisegate


@pytest.fixture(scope="module")
def got(proxy: Noisegate, node_folder: Path) -> Got:
    """All that the client got, in one run."""
    return ask_by_node("postgresjs.js", node_folder, proxy)


def test_answers_plain_prepared_and_by_cursor(got: Got, cities: dict[str | None, int]) -> None:
    check_cities(pairs(got["plain"]), cities)
    assert got["prepared"] == [got["plain"]] * 3
    assert got["cursor"] == got["plain"]


def test_answers_with_parameters_and_several_statements(got: Got) -> None:
    rows = got["parameters"]
    assert isinstance(rows, list)
    check_amounts([(status, int(count), average, total) for status, count, average, total in rows])
    assert got["several"] == 2


def test_a_refusal_inside_a_savepoint_leaves_the_transaction(got: Got) -> None:
    assert got["refused"] == "42501"
    assert isinstance(got["plain"], list)
    assert got["transaction"] == ["42501", len(got["plain"])]
