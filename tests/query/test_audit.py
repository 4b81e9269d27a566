"""The log tells who, how much and how it ended, and nothing of what was asked or answered."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from rules.refusal import Refusal
from tests.query.desk import Desk
from tests.query.plans import UNITS, block_of


def events(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [
        {key: value for key, value in json.loads(record.message).items() if key not in ("time", "level")}
        for record in caplog.records
        if record.name == "noisegate"
    ]


async def test_answers_failures_and_refusals_are_events(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "noisegate")
    await desk.ask(block_of(UNITS))
    await desk.ask(block_of(UNITS))
    for block in (
        block_of(UNITS, sql="SELECT 'Berlin', 'secret of a row'", canonical="wrong"),
        block_of(replace(UNITS, epsilon=Decimal(5000))),
    ):
        with pytest.raises(Refusal):
            await desk.ask(block)

    assert events(caplog) == [
        {"event": "answered", "analyst": "ada", "epsilon": 1.0, "rho": 0.5, "fresh": 1, "reused": 0},
        {"event": "answered", "analyst": "ada", "epsilon": 0.0, "rho": 0.0, "fresh": 0, "reused": 1},
        {"event": "fault", "analyst": "ada", "charge": 3, "kind": "MalformedRows"},
        {"event": "refused", "analyst": "ada", "kind": "InnerFailure", "sqlstate": "58000"},
        {"event": "refused", "analyst": "ada", "kind": "BudgetSpent", "sqlstate": "53400"},
    ]
    assert not any(word in caplog.text for word in ("secret", "Berlin", "city", "SELECT"))
