"""Every refusal is in the log: who, which statement, what for, and nothing of its text."""

import gc
import json

import pytest

from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync
from rules.refusal import Refusal
from rules.sql.read import read
from tests.server.stage import Stage

STATEMENTS = {
    "SELECT note FROM orders WHERE note = 'Secretive'": ("refused", "NotAllowed", "42501", None),
    "INSERT INTO orders (note) VALUES ('Secretive')": ("forbidden", "ReadOnly", "25006", "INSERT"),
    "DROP TABLE orders": ("forbidden", "ReadOnly", "25006", "DROP TABLE"),
    "SELECT pg_read_file('/etc/Secretive')": ("forbidden", "NotAllowed", "42501", "pg_read_file"),
    "SELECT lo_import('/etc/Secretive')": ("forbidden", "NotAllowed", "42501", "lo_import"),
    "COPY orders TO PROGRAM 'Secretive'": ("forbidden", "NotAllowed", "42501", "COPY PROGRAM"),
    "SET ROLE postgres": ("forbidden", "NotAllowed", "42501", "SET role"),
    "SET noisegate.epsilon = 'Secretive'": ("refused", "BadSetting", "22023", None),
}

UNKNOWN = b"SELECT count(*) FROM orders WHERE id > $1"  # what it is to be compared with


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", "noisegate")
    return caplog


def refusals(log: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    lines = [json.loads(record.message) for record in log.records if record.name == "noisegate"]
    return [line for line in lines if line["event"] in ("refused", "forbidden")]


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
async def test_each_refusal_is_one_line_without_a_literal(
    stage: Stage, log: pytest.LogCaptureFixture, extended: bool
) -> None:
    client = await stage.client()
    for sql in map(str.encode, STATEMENTS):
        await client.ask(*((Parse(b"", sql), Bind(b"", b""), Execute(b""), Sync()) if extended else (Query(sql),)))

    said = refusals(log)
    assert [(line["event"], line["kind"], line["sqlstate"], line.get("command")) for line in said] == [
        *STATEMENTS.values()
    ]
    assert [line["statement"] for line in said] == [read(sql).statements[0].fingerprint for sql in STATEMENTS]
    assert {line["analyst"] for line in said} == {"ada"}
    assert not any(secret in log.text for secret in ("Secretive", "orders", "etc"))


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
async def test_a_refusal_keeps_nothing_of_its_statement(stage: Stage, extended: bool) -> None:
    client = await stage.client()
    await client.ask(Query(b"SET DateStyle = DMY"))
    gc.collect()
    gc.disable()
    try:
        for sql in (b"SELECT note FROM orders", b"SET noisegate.epsilon = 'x'", b"EXPLAIN (GENERIC_PLAN) " + UNKNOWN):
            for _ in range(3):
                await client.ask(*((Parse(b"", sql), Bind(b"", b""), Sync()) if extended else (Query(sql),)))
        kept = [error for error in gc.get_objects() if isinstance(error, Refusal) and error.__traceback__ is not None]
    finally:
        gc.enable()

    assert kept == []
