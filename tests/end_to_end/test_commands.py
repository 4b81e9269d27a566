"""The command line as a DBA meets it: help, bad input, the ledger, reload, and a database that is away."""

import fcntl
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import termios
from pathlib import Path
from typing import IO

import psycopg
import pytest
from psycopg import pq

from proxy.load_logins import read_verifiers
from proxy.twin.embedded import OWNER, Cluster
from proxy.wire.scram import Verifier
from tests.conftest import RealDatabase
from tests.server.relay import eventually
from tests.support import shop as shop_data
from tests.support.running import command, noisegate, start

COMMANDS = ("demo", "serve", "check", "suggest", "password", "ledger")


def test_help_names_every_command_and_each_has_help_of_its_own() -> None:
    whole = command("--help")

    assert whole.returncode == 0
    for name in COMMANDS:
        assert name in whole.stdout
        own = command(name, "--help")
        assert own.returncode == 0
        assert own.stdout.startswith(f"usage: noisegate {name}")


def test_a_wrong_command_line_ends_with_2() -> None:
    assert command("sevre").returncode == 2
    assert command().returncode == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("user add rules.yaml ''", "the name must not be empty"),
        ("user expire rules.yaml ada --at soon", '"soon" is not a time, such as 2027-01-31'),
        ("user rotate rules.yaml ada --grace -1", '"-1" is not a number of days, such as 7'),
        ("ledger show rules.yaml --since yesterday", '"yesterday" is not a time'),
        ("ledger show rules.yaml --last=-1", '"-1" is not a number, such as 20'),
        ("serve rules.yaml --port 99999", '"99999" is not a port, a number from 0 to 65535'),
        ("serve rules.yaml --max-connections -1", '"-1" is not a whole number of 1 or more'),
        ("serve rules.yaml --statement-timeout nan", '"nan" is not a number of seconds'),
        ("suggest customers --database 'dbnam=shop'", 'invalid connection option "dbnam"'),
        ("init shop", "as host=db dbname=shop user=noisegate_reader, or postgresql://"),
        ("serve rules.yaml --ledger mysql://db/ledger", "neither a file nor a connection URI, as postgresql://"),
        ("serve rules.yaml --ledger 'host=db dbname=ledger'", "neither a file nor a connection URI, as postgresql://"),
        ("ledger show rules.yaml --ledger 'postgresql://a b/x'", "is not a connection URI, as postgresql://"),
        ("ledger init rules.yaml --ledger postgresql://db:port/x", "is not a connection URI, as postgresql://"),
        ("serve rules.yaml --ledger postgresql:///noisegate:secret@db/x", "is not a connection URI, as postgresql://"),
        ("serve rules.yaml --ledger postgresql://noisegate:/sec#ret@db/x", "is not a connection URI, as postgresql://"),
        *(
            (f"serve rules.yaml --ledger {mistyped}", "neither a file nor a connection URI, as postgresql://")
            for mistyped in (
                "postgresql:/noisegate:secret@db/x",
                "postgresql//noisegate:secret@db/x",
                "postgresql//db/x?password=secret",
                "postgresql+ssl://noisegate:secret@db/x",
            )
        ),
        ("serve rules.yaml --console-edit-rules", "options of the web console do nothing without --console-port"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said(line: str, words: str) -> None:
    done = command(*shlex.split(line))

    assert done.returncode in (1, 2)
    assert words in done.stderr and "Traceback" not in done.stderr and "secret" not in done.stderr
    assert command("--version").stdout.startswith("noisegate ")


def test_a_password_becomes_a_verifier_that_the_rules_take() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proxy", "password"], input="open sesame\n", capture_output=True, text=True, check=True
    )

    verifier = Verifier.parse(done.stdout.strip())
    assert str(Verifier.of_password("open sesame", verifier.salt, verifier.iterations)) == str(verifier)


def test_a_second_password_shares_the_salt_of_the_first_and_becomes_a_line_of_the_file() -> None:
    first = Verifier.of_password("old", bytes(range(20)), 5000)
    line = [sys.executable, "-m", "proxy", "password", "--beside", str(first), "--user", 'a"da']
    done = subprocess.run(line, input="new\n", capture_output=True, text=True, check=True)

    ((name, (dated,)),) = read_verifiers(done.stdout, "f").items()

    assert name == 'a"da'
    assert dated.verifier == Verifier.of_password("new", first.salt, first.iterations)
    assert "--beside: not a SCRAM-SHA-256 verifier" in command("password", "--beside", "rosebud").stderr


def test_rules_with_a_mistake_say_file_line_key_and_what_would_be_right(shop: RealDatabase, tmp_path: Path) -> None:
    text = shop_data.RULES.replace("rows_per_unit: 40", "row_per_unit: 40")
    rules = shop_data.rules_file(tmp_path, text)
    line = 1 + text.partition("row_per_unit")[0].count("\n")

    for name in ("serve", "check"):
        done = command(name, str(rules), database=shop.reader_dsn)
        assert done.returncode == 1
        assert f"{rules}:{line}: tables.orders.row_per_unit: unknown key" in done.stderr
        assert 'did you mean "rows_per_unit"?' in done.stderr
        assert "Traceback" not in done.stderr


def test_rules_that_do_not_fit_the_database_do_not_start(shop: RealDatabase, tmp_path: Path) -> None:
    rules = shop_data.rules_file(tmp_path, shop_data.RULES.replace("      amount:", "      amonut:"))

    checked = command("check", str(rules), database=shop.reader_dsn)
    assert checked.returncode == 1
    assert "tables.orders.columns.amonut" in checked.stdout
    assert command("serve", str(rules), "--port", "0", database=shop.reader_dsn).returncode == 1


def test_check_explains_rules_that_fit(shop: RealDatabase, rules_path: Path) -> None:
    done = command("check", str(rules_path), database=shop.reader_dsn)

    assert done.returncode == 0
    assert f"{rules_path}: fine, with " in done.stdout.splitlines()[-1]


def test_check_warns_of_a_role_that_may_too_much(shop: RealDatabase, rules_path: Path) -> None:
    done = command("check", str(rules_path), database=shop.dsn)

    assert "superuser" in done.stdout
    assert "noisegate grants --role noisegate_reader prints the SQL" in done.stdout


def test_commands_that_let_nobody_in_need_no_verifier(shop: RealDatabase, tmp_path: Path) -> None:
    text = re.sub(r'(ada:\n    password: )"[^"]*"', r"\1${ADA_UNSET}", shop_data.RULES)
    rules = str(shop_data.rules_file(tmp_path, text))

    for line in ("lock", "grants", "ledger init", "ledger show", "check"):
        done = command(*line.split(), rules, database=shop.reader_dsn)
        assert done.returncode == 0, done.stderr
    assert "analysts.ada.password: the variable ADA_UNSET is not set here; noisegate serve needs it" in done.stdout
    refused = command("serve", rules, "--port", "0", database=shop.reader_dsn)
    assert (refused.returncode, "the variable ADA_UNSET is not set" in refused.stderr) == (1, True)


def test_suggest_drafts_rules_that_can_be_loaded(shop: RealDatabase) -> None:
    done = command("suggest", "customers", database=shop.reader_dsn)

    assert done.returncode == 0
    assert "unit: customers.id" in done.stdout
    verifier = str(Verifier.of_password("x", bytes(16)))
    policy = shop_data.policy(shop.reader_dsn, done.stdout.replace("${ADA_VERIFIER}", verifier))
    assert policy.unit == "customers.id"


def test_the_ledger_is_made_once_and_never_over_another(shop: RealDatabase, rules_path: Path) -> None:
    first = command("ledger", "init", str(rules_path), database=shop.reader_dsn)
    second = command("ledger", "init", str(rules_path), database=shop.reader_dsn)

    assert (first.returncode, second.returncode) == (0, 1)
    assert "already exists" in second.stderr
    shown = command("ledger", "show", str(rules_path), database=shop.reader_dsn)
    assert shown.returncode == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["ε", "ada", "bob", "all"]


def test_two_proxies_share_one_ledger_in_a_database(shop: RealDatabase, real_cluster: Cluster, tmp_path: Path) -> None:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE shared_ledger")
    ledger = f"postgresql://{OWNER}@/shared_ledger?host={real_cluster.directory}"
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    rules = shop_data.RULES.replace("budget: {epsilon: 1000,", "budget: {epsilon: 1,")

    with noisegate(first, shop.reader_dsn, rules=rules, ledger=ledger) as one:
        with psycopg.connect(one.dsn(), autocommit=True) as session:
            assert session.execute("SELECT count(*) FROM customers").fetchone() is not None
        other = start(shop_data.rules_file(second, rules), shop.reader_dsn, arguments=("--ledger", ledger))
        try:
            other.wait_for("ready")
            with psycopg.connect(other.dsn(sslmode="disable"), autocommit=True) as session:
                assert session.execute("SELECT count(*) FROM customers").fetchone() is not None  # served again
                with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
                    session.execute("SELECT count(*) FROM orders")
        finally:
            other.stop()


def test_without_a_ledger_the_proxy_does_not_start_and_says_how_to_make_one(
    shop: RealDatabase, rules_path: Path
) -> None:
    done = command("serve", str(rules_path), "--port", "0", database=shop.reader_dsn)

    assert done.returncode == 1
    assert "noisegate ledger init" in done.stderr
    assert "listening" not in done.stderr


def test_other_machines_are_not_listened_to_without_tls(shop: RealDatabase, rules_path: Path) -> None:
    done = command("serve", str(rules_path), "--host", "0.0.0.0", "--port", "0", database=shop.reader_dsn)

    assert done.returncode == 1
    assert "TLS" in done.stderr


def test_a_port_that_is_taken_is_told(shop: RealDatabase, rules_path: Path) -> None:
    assert command("ledger", "init", str(rules_path), database=shop.reader_dsn).returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = command("serve", str(rules_path), "--port", port, database=shop.reader_dsn)
        demo = command("demo", "--port", port)

    assert (demo.returncode, demo.stdout) == (1, "")
    assert done.returncode == 1
    assert f"cannot listen on port {port}: another program listens there" in done.stderr


def test_a_database_that_is_away_at_start_is_waited_for(shop: RealDatabase, rules_path: Path) -> None:
    assert command("ledger", "init", str(rules_path), database=shop.reader_dsn).returncode == 0
    nowhere = f"host=127.0.0.1 port={_free_port()} dbname=shop user=nobody"
    waiting = start(rules_path, nowhere)
    try:
        waiting.wait_for("database_away")
        with pytest.raises(psycopg.OperationalError, match="the proxy is starting"):
            psycopg.connect(waiting.dsn(sslmode="disable", password="nobody-asks"))
        assert pq.PGconn.ping(waiting.dsn(sslmode="disable").encode()) == pq.Ping.REJECT
    finally:
        assert waiting.stop() == 0
    assert any("Connection refused" in line for line in waiting.lines)


def test_sighup_puts_new_rules_in_force_for_sessions_that_run(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running, psycopg.connect(running.dsn(), autocommit=True) as session:
        assert session.execute("SELECT count(name) FROM customers WHERE false").fetchone() is not None

        running.rules.write_text(shop_data.RULES.replace("email: hidden", "email: hidden\n      name: hidden"))
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("rules_loaded")
        assert any("the new rules are in force" in line for line in running.lines)

        with pytest.raises(psycopg.errors.UndefinedColumn):
            session.execute("SELECT count(name) FROM customers")
        assert session.execute("SELECT count(*) FROM customers").fetchone() is not None


def test_a_change_of_the_budgets_period_opens_no_new_budget_and_is_told(shop: RealDatabase, tmp_path: Path) -> None:
    asked = "SELECT count(*) FROM customers"
    with (
        noisegate(tmp_path, shop.reader_dsn) as running,
        psycopg.connect(running.dsn(), autocommit=True) as session,
    ):

        def spent() -> float:
            row = session.execute("SELECT epsilon_spent FROM noisegate.budget WHERE account = 'yours'").fetchone()
            assert row is not None
            return float(row[0])

        session.execute(asked)
        before = spent()
        assert before > 0
        running.rules.write_text(shop_data.RULES.replace("delta: 1e-6}", "delta: 1e-6, per: month}"))
        told = command("check", str(running.rules), database=shop.reader_dsn)
        assert "all analysts together spent in its time under another `per`" in told.stdout
        running.process.send_signal(signal.SIGHUP)
        begun = running.wait_for("period_begun")
        running.wait_for("rules_loaded")

        assert spent() == before == begun["epsilon"]
        session.execute(asked)  # which was paid
        assert spent() == before
    assert any("begins with ε" in line for line in running.lines)


def test_bad_rules_keep_the_old_ones_and_say_so(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        running.rules.write_text(shop_data.RULES.replace("budget:", "bugdet:"))
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("rules_refused")

        with psycopg.connect(running.dsn()) as session:
            assert session.execute("SELECT count(*) FROM customers").fetchone() is not None
    assert any("the old rules stay in force" in line for line in running.lines)


def test_sigterm_lets_a_running_transaction_end(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        with psycopg.connect(running.dsn()) as session:
            session.execute("SELECT 1")
            running.process.send_signal(signal.SIGTERM)
            assert eventually(lambda: _is_closed(running.dsn()), 20)
            assert session.execute("SELECT 2").fetchone() == (2,)
        assert running.process.wait(30) == 0


def _is_closed(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return True
    return False


def test_the_log_has_neither_statements_nor_values_nor_passwords(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as session:
            session.execute("SELECT count(*) FROM customers WHERE city = 'Berlin' AND name <> 'Secretive'")
            for statement in ("SELECT * FROM customers WHERE name = 'Secretive'", "SELECT 'Secretive'::int"):
                with pytest.raises(psycopg.Error):
                    session.execute(statement)
        running.stop()
        log = "\n".join(running.lines)

    assert running.events("answered")
    for secret in ("Secretive", "Berlin", "SELECT", "lovelace", "SCRAM", os.environ.get("PGPASSWORD", "lovelace")):
        assert secret not in log


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_a_reader_that_stops_reading_ends_a_command_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "proxy", "schema"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (done.returncode, done.stderr) == (141, "")


def test_a_command_needs_no_standard_error() -> None:
    line = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "proxy", "schema"]
    done = subprocess.run(line, stdout=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"}, check=True)

    assert json.loads(done.stdout)["title"]


def _bytes_in(pipe: IO[bytes]) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_a_command_that_is_stopped_while_it_writes_loses_nothing() -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb") as writer:
        line = [sys.executable, "-m", "proxy", "schema"]
        with subprocess.Popen(line, stdout=writer, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:
            writer.close()
            assert eventually(lambda: _bytes_in(reader) == 4096, 30)
            process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGCONT)
            document = json.loads(reader.read())

    assert process.returncode == 0
    assert document["title"]


def test_no_error_is_told_at_a_price_that_nobody_can_pay(shop: RealDatabase, rules_path: Path) -> None:
    done = command("check", str(rules_path), "--epsilon", "1000", database=shop.reader_dsn)

    assert done.returncode == 1
    assert "--epsilon 1000 is above defaults.max_epsilon" in done.stderr


def test_warnings_stand_in_the_order_of_the_file(shop: RealDatabase, rules_path: Path) -> None:
    done = command("check", str(rules_path), database=shop.dsn)

    lines = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": warning: " in line]
    assert lines == sorted(lines)
