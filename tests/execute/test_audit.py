"""The log tells who, how much and how it ended, and nothing of what was asked or answered."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from rules.refusal import Refusal
from tests.execute.desk import Desk
from tests.execute.plans import UNITS, block_of

ADA = {"analyst": "ada", "statement": None}  # a plan written by hand has no text
DATA_EXCEPTION = {"reason": "data_exception", "sqlstate": "22P02"}


def events(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [
        {key: value for key, value in json.loads(record.message).items() if key not in ("time", "level")}
        for record in caplog.records
        if record.name == "noisegate"
    ]


async def test_answers_and_failures_are_events_with_their_cause(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "noisegate")
    broken = "SELECT city, email::int8 FROM public.customers WHERE id = 7"
    await desk.ask(block_of(UNITS))
    await desk.ask(block_of(UNITS))
    for analyst, block in (
        ("ada", block_of(UNITS, sql=broken, canonical="wrong")),
        ("bob", block_of(replace(UNITS, epsilon=Decimal(5000)))),
    ):
        with pytest.raises(Refusal):
            await desk.ask(block, analyst=analyst)

    assert events(caplog) == [
        {"event": "answered", **ADA, "epsilon": 1.0, "rho": 0.5, "fresh": 1, "reused": 0},
        {"event": "answered", **ADA, "epsilon": 0.0, "rho": 0.0, "fresh": 0, "reused": 1},
        {"event": "fault", **ADA, "charge": 3, "kind": "22", **DATA_EXCEPTION, "inner_sql": broken},
    ]
    others = [record.message for record in caplog.records if '"event": "fault"' not in record.message]
    assert not any(word in message for message in others for word in ("customers", "Berlin", "city", "SELECT"))
    assert "@example.org" not in caplog.text  # of a fault it is told what was run, and nothing of what came back
