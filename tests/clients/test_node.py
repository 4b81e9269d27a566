"""Node's pg: parameters without types, cursors with row limits, a pool."""

from pathlib import Path

import pytest

from tests.clients.conftest import ask_by_node
from tests.clients.questions import check_amounts, check_cities
from tests.support.running import Noisegate

Got = dict[str, object]


@pytest.fixture(scope="module")
def got(proxy: Noisegate, node_folder: Path) -> Got:
    """All that the client got, in one run."""
    return ask_by_node("client.js", node_folder, proxy)


def pairs(rows: object) -> list[tuple[str | None, int]]:
    assert isinstance(rows, list)
    return [(city, int(count)) for city, count in rows]


def test_a_client_that_ends_before_it_has_connected_lives_on(got: Got) -> None:
    assert got["simple"]  # of the same process, asked afterwards


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
