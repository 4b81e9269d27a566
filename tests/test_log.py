"""What the log can say, and what it cannot."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.execute.audit import BudgetAlerts
from proxy.log import COMMAND, NAMED, alarm, event, warn
from rules.accounting.accountant import Totals
from rules.accounting.store import Balance, Receipt

UNSPENT = Balance(Decimal(0), Decimal(10), Decimal(0))
RECEIPT = Receipt(1, Totals(), UNSPENT, UNSPENT)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    logger = logging.getLogger("noisegate")
    before, level = logger.propagate, logger.level
    logger.propagate = True
    caplog.set_level(logging.INFO, logger="noisegate")
    yield caplog
    logger.propagate = before
    logger.setLevel(level)


def test_an_event_is_one_line_of_json(lines: pytest.LogCaptureFixture) -> None:
    event("client_logged_in", analyst="ada", peer="127.0.0.1:4711", waiting=3)

    (line,) = lines.messages
    said = json.loads(line)
    assert said | {"time": ""} == {
        "time": "",
        "level": "info",
        "event": "client_logged_in",
        "analyst": "ada",
        "peer": "127.0.0.1:4711",
        "waiting": 3,
    }


def test_the_driver_writes_no_line_of_its_own() -> None:
    """It warns of what we say ourselves, in lines that are no JSON, and may quote a server."""
    warned = "logging.getLogger('psycopg').warning('query cancellation failed: …')"
    program = f"import logging, proxy.log as log; log.start_logging(); {warned}; log.warn('client_failed')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["client_failed"]


def test_a_warning_says_so(lines: pytest.LogCaptureFixture) -> None:
    warn("database_away", seconds=1.5)

    assert json.loads(lines.messages[0])["level"] == "warning"


def test_a_budget_of_a_role_is_told_by_the_name_of_the_role(lines: pytest.LogCaptureFixture) -> None:
    half = Balance(Decimal(5), Decimal(10), Decimal(5))
    BudgetAlerts().note("ada", replace(RECEIPT, role=half), "research")

    (said,) = map(json.loads, lines.messages)
    assert (said["event"], said["analyst"], said["role"], said["percent"]) == ("budget_used", None, "research", 50)


def test_text_that_is_no_name_is_withheld_even_from_a_field_for_names(lines: pytest.LogCaptureFixture) -> None:
    for text in ("SELECT 1", "O'Brien", "a\nb", "x" * 65, "Grüße"):
        event("odd", analyst=text)

    assert {json.loads(line)["analyst"] for line in lines.messages} == {"(withheld)"}


def test_a_command_may_be_of_several_words_and_holds_no_punctuation(lines: pytest.LogCaptureFixture) -> None:
    for text in ("CREATE TABLE", "pg_read_file", "SET role = 'x'"):
        event("forbidden", command=text)

    assert [json.loads(line)["command"] for line in lines.messages] == ["CREATE TABLE", "pg_read_file", "(withheld)"]


@given(field=st.text(st.characters(categories=["Ll"]), min_size=1).filter(lambda name: name not in NAMED | {COMMAND}))
def test_a_field_that_is_not_for_names_never_holds_a_text(field: str) -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("noisegate")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        event("x", **{f"field_{field}": "Berlin"})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)

    assert "Berlin" not in said[0]


def test_what_a_fault_has_run_is_told_as_an_error(lines: pytest.LogCaptureFixture) -> None:
    alarm("fault", analyst="ada", charge=7, kind="22", inner_sql="SELECT count(*) FROM public.orders")

    said = json.loads(lines.messages[0])
    assert (said["level"], said["inner_sql"]) == ("error", "SELECT count(*) FROM public.orders")
