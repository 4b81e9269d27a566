"""Metrics and health of a running proxy, as Prometheus and a supervisor ask for them."""

import json
import re
import resource
import socket
import sqlite3
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.console.vitals import _CHECK_SECONDS as CHECK_SECONDS
from proxy.metrics import REGISTRY
from tests.conftest import RealDatabase
from tests.ledger.frozen import line_to
from tests.support.running import Noisegate, command, noisegate, start
from tests.support.shop import READER

PORT = ("--metrics-port", "0")
COUNT = "SELECT count(*) FROM customers WHERE city = 'Berlin'"
ROOT = Path(__file__).parents[2]
VITALS = (ROOT / "proxy" / "console" / "vitals.py").read_text()
ADA = (("analyst", "ada"),)
Labels = tuple[tuple[str, str], ...]


def get(running: Noisegate, path: str, method: str = "GET") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", int(str(running.wait_for("operator_port")["port"])), timeout=30)
    connection.request(method, path)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


def samples(text: str) -> dict[tuple[str, Labels], float]:
    """Every number, by name and labels, as Prometheus' own parser reads it; nothing may come twice."""
    found: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def test_what_happened_and_how_it_is_can_be_scraped(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn, arguments=PORT) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            for sql in ("SELECT 1", COUNT, COUNT):
                session.execute(sql.encode())
            for sql in ("SELECT * FROM customers WHERE city = 'Berlin'", "DELETE FROM customers"):
                with pytest.raises(psycopg.Error):
                    session.execute(sql.encode())
            status, text = get(running, "/metrics")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(running.dsn(password="wrong"))
        later = samples(get(running, "/metrics")[1])

    found = samples(text)
    assert status == 200
    assert found["noisegate_statement_seconds_count", (("path", "relayed"),)] >= 1
    assert found["noisegate_statement_seconds_count", (("path", "private"),)] == 2
    for stage in ("open", "charge", "database", "settle"):
        assert found["noisegate_stage_seconds_count", (("stage", stage),)] == 1
    assert found["noisegate_answers_total", (("source", "drawn"),)] == 1
    assert found["noisegate_answers_total", (("source", "served_again"),)] == 1
    assert found["noisegate_refusals_total", (("kind", "NotAllowed"), ("sqlstate", "42501"))] == 1
    assert found["noisegate_refusals_total", (("kind", "ReadOnly"), ("sqlstate", "25006"))] == 1
    assert found["noisegate_forbidden_total", ()] == 1
    spent, left, limit = (
        found[f"noisegate_epsilon_{each}", (("analyst", "ada"),)] for each in ("spent", "left", "limit")
    )
    assert 0 < spent == found["noisegate_shared_epsilon_spent", ()]
    assert spent + left == pytest.approx(limit)
    assert found["noisegate_epsilon_spent", (("analyst", "bob"),)] == 0
    assert found["noisegate_sessions", (("analyst", "ada"),)] == 1
    for name in ("noisegate_ledger_up", "noisegate_connections"):
        assert found[name, ()] == 1
    assert found["noisegate_twin_up", (("twin", "shared"),)] == 1
    assert found["noisegate_workers", ()] == 2
    assert found["noisegate_ledger_commit_seconds_count", ()] > 0
    assert later["noisegate_logins_refused_total", (("sqlstate", "28P01"),)] == 1
    assert not any(word in text for word in ("Berlin", "customers", "SELECT"))


def test_health_tells_a_process_that_runs_from_one_that_can_answer(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn, arguments=PORT) as running:
        assert get(running, "/healthz") == (200, "ok\n")
        status, text = get(running, "/readyz")
        assert (status, json.loads(text)) == (
            200,
            {"ready": True, "database": "ok", "ledger": "ok", "twin": "ok", "clients": "ok"},
        )
        running.rules.with_suffix(".ledger").unlink()
        status, text = get(running, "/readyz")
        assert status == 503
        assert json.loads(text)["ledger"] in ("ENOENT", "missing")
        gone = samples(get(running, "/metrics")[1])
        assert gone["noisegate_ledger_up", ()] == 0
        assert not any(name.startswith("noisegate_epsilon") for name, _ in gone)
        assert get(running, "/healthz")[0] == 200

        assert get(running, "/")[0] == 404
        assert get(running, "/healthz", "POST")[0] == 405
        assert get(running, "/healthz", "HEAD") == (200, "")
        with socket.create_connection(("127.0.0.1", int(str(running.events("operator_port")[0]["port"])))) as odd:
            odd.sendall(b"nonsense\r\n\r\n")
            assert odd.recv(100).startswith(b"HTTP/1.1 400 ")


def test_health_does_not_wait_for_a_database_that_does_not_answer(shop: RealDatabase, tmp_path: Path) -> None:
    """Those who ask wait some seconds: longer than it takes to say so, and shorter than to give up on a connection."""
    with line_to(shop.cluster) as line:
        away = f"host=127.0.0.1 port={line.port} dbname={shop.name} user={READER}"
        with noisegate(tmp_path, away, arguments=PORT) as running:
            assert get(running, "/readyz")[0] == 200
            time.sleep(CHECK_SECONDS)  # or it would say what it knows
            line.freeze()
            for _ in range(2):
                began = time.monotonic()
                status, text = get(running, "/readyz")
                assert time.monotonic() - began < 5
                assert (status, json.loads(text)["database"]) == (503, "no_answer")

            line.thaw()
            deadline = time.monotonic() + 30
            while get(running, "/readyz")[0] != 200:
                assert time.monotonic() < deadline
                time.sleep(0.5)


def test_before_the_database_has_been_seen_the_proxy_is_not_ready(shop: RealDatabase, rules_path: Path) -> None:
    assert command("ledger", "init", str(rules_path), database=shop.reader_dsn).returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"host=127.0.0.1 port={free.getsockname()[1]} dbname=shop user=nobody"
    waiting = start(rules_path, nowhere, arguments=PORT)
    try:
        assert waiting.wait_for("database_away")["reason"] == "connection_refused"
        assert get(waiting, "/readyz") == (503, '{"ready": false, "database": "not_seen_yet"}\n')
        assert get(waiting, "/healthz")[0] == 200
        assert ("process_start_time_seconds", ()) in samples(get(waiting, "/metrics")[1])
    finally:
        waiting.stop()


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    """Names in docker/grafana.json are those of the registry and of the gauges."""
    parts = re.findall(r"noisegate_[a-z_]+", (ROOT / "docker" / "grafana.json").read_text())
    counted = {family.name for family in REGISTRY.collect()}
    gauges = {f"noisegate_{name}" for name in re.findall(r'_(?:gauge|labelled)\(\s*"(\w+)"', VITALS)}
    gauges |= {f"noisegate_{whose}epsilon_{what}" for whose in ("", "shared_") for what in ("spent", "left", "limit")}

    assert {re.sub("_(total|bucket|sum|count)$", "", name) for name in parts} <= counted | gauges


def test_a_ledger_that_cannot_be_written_makes_the_proxy_unready_until_it_can(
    shop: RealDatabase, tmp_path: Path
) -> None:
    """As on a full disk: no file of the proxy's may grow. Reading goes on: another reader keeps the files there."""
    with (
        noisegate(tmp_path, shop.reader_dsn, arguments=PORT) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
        ExitStack() as stack,
    ):
        session.execute(COUNT)
        assert get(running, "/readyz")[0] == 200
        reader = stack.enter_context(closing(sqlite3.connect(running.rules.with_suffix(".ledger"))))
        assert reader.execute("SELECT count(*) > 0 FROM entries").fetchone() == (1,)
        _, most = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (0, most))
        length = running.ledger_length()
        with pytest.raises(psycopg.errors.CannotConnectNow) as refused:
            session.execute(COUNT.replace("Berlin", "Lyon"))
        assert "ask your DBA: the log has the reason" in str(refused.value.diag.message_hint)
        for _ in range(3):
            status, text = get(running, "/readyz")
            assert (status, json.loads(text)["ledger"][:6]) == (503, "SQLITE")
            assert samples(get(running, "/metrics")[1]).get(("noisegate_ledger_up", ())) == 0

        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (most, most))
        deadline = time.monotonic() + 3 * CHECK_SECONDS
        while get(running, "/readyz")[0] != 200:  # nobody is charged meanwhile
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert running.ledger_length() == length
        session.execute(COUNT.replace("Berlin", "Lyon"))
        assert running.ledger_length() > length
        assert samples(get(running, "/metrics")[1])["noisegate_ledger_up", ()] == 1
