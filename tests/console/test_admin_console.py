"""The console as operators use it: by psql and drivers, in the simple and the extended protocol."""

import os
import pty
import select
import signal
import subprocess
import threading
import time
from pathlib import Path

import psycopg
import pytest

from proxy.console.language import HELP, SHOWN, Command, SyntaxProblem, commands_of, completions
from tests.conftest import RealDatabase
from tests.server.relay import eventually
from tests.support import shop as shop_data
from tests.support.running import noisegate

PASSWORD = "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ==$\
Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="
ROOT = f'{shop_data.RULES.rstrip()}\noperators: {{root: {{password: "{PASSWORD}"}}}}\n'
COUNT = b"SELECT count(*) FROM customers WHERE city = 'Berlin'"
OTHER = b"SELECT count(*) FROM orders"
Rows = list[tuple[str, ...]]


def test_commands_are_told_apart_whatever_their_case() -> None:
    assert commands_of('show sessions;KILL analyst "Ada B";; -- nothing\n forgive ada') == [
        Command("SHOW", ("SESSIONS",)),
        Command("KILL", ("ANALYST", "Ada B")),
        Command("FORGIVE", ("ada",)),
    ]
    assert commands_of(" ; ") == []
    for text, position in (("SHOW pools", 1), ("RELOAD; KILL ada", 9), ("SELECT 1", 1), ("SHOW POOL, 'x'", 10)):
        with pytest.raises(SyntaxProblem) as refused:
            commands_of(text)
        assert refused.value.position == position
    completion = (
        "SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings  "
        "WHERE pg_catalog.lower(name) LIKE pg_catalog.lower('{}%')\nLIMIT 1000"
    )
    assert commands_of(completion.format("Po")) == [Command("COMPLETE", ("Po",))]
    assert completions("Po") == [("pool",)] and len(completions("")) == len(SHOWN)
    assert commands_of("help; show help") == [Command("SHOW", ("HELP",))] * 2
    for amount in ("-5", "0", "0.000", "much", "1234567"):
        with pytest.raises(SyntaxProblem, match="takes a number above 0"):
            commands_of(f"GRANT EPSILON {amount} TO bob")
    for setting in ("SET extra_float_digits = 3", "set x to 'a;b', \"c;d\"", "SET\nTIME ZONE 'UTC'"):
        assert commands_of(f"{setting}; SHOW POOL") == [Command("SET"), Command("SHOW", ("POOL",))]
    for text in ("SET x = 'no end", "SETTLE x"):
        with pytest.raises(SyntaxProblem):
            commands_of(text)
    for text, _ in HELP:
        assert commands_of(text.partition(";")[0].replace(" id", " 7").replace(" n ", " 0.5 "))


def _typed(console: str, keys: bytes, *, until: bytes) -> str:
    """What psql shows at a terminal at which somebody types."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("psql", ["psql", console, "-X"], {**os.environ, "TERM": "dumb", "PAGER": "cat"})
    shown, is_asked, end = b"", False, time.monotonic() + 30
    while until not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 65536)
        if not is_asked and b"=> " in shown:
            os.write(terminal, keys)
            is_asked = True
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)
    return shown.decode()


def test_commands_of_the_console_are_for_operators_alone(shop: RealDatabase, tmp_path: Path) -> None:
    """CVE-2026-6667 of PgBouncer: KILL_CLIENT was for all who may look at the console, not for its admins alone. Here
    nobody may look who is no operator."""
    with noisegate(tmp_path, shop.reader_dsn, rules=ROOT) as running:
        for database in ("noisegate", "pgbouncer", "NOISEGATE"):
            with pytest.raises(psycopg.OperationalError, match="does not exist"):
                psycopg.connect(running.dsn("ada", dbname=database))
        with pytest.raises(psycopg.OperationalError, match="operators connect to"):
            psycopg.connect(running.dsn("ada", user="root"))
        with (
            psycopg.connect(running.dsn("bob"), autocommit=True) as bob,
            psycopg.connect(running.dsn("ada"), autocommit=True) as ada,
        ):
            for command in ("PAUSE", "RESUME", "RELOAD", "KILL ANALYST bob", "FORGIVE ada", "GRANT EPSILON 5 TO ada"):
                with pytest.raises(psycopg.Error):
                    ada.execute(command.encode())
            with pytest.raises(psycopg.Error):
                ada.execute(b"SHOW SESSIONS")
            assert ada.execute(COUNT).fetchone() and bob.execute(b"SELECT 1").fetchone() == (1,)


def test_an_operator_sees_and_steers_a_running_proxy(shop: RealDatabase, tmp_path: Path) -> None:
    with noisegate(tmp_path, shop.reader_dsn, rules=ROOT) as running:
        console = running.dsn("ada", user="root", dbname="noisegate")
        with (
            psycopg.connect(console, autocommit=True) as root,
            psycopg.connect(running.dsn("ada"), autocommit=True) as ada,
            psycopg.connect(running.dsn("bob"), autocommit=True) as bob,
        ):
            ada.execute(COUNT)

            def ask(text: str, *, prepare: bool = False) -> Rows:
                return root.execute(text.encode(), prepare=prepare).fetchall()

            for what, names in SHOWN.items():
                cursor = root.execute(f"SHOW {what}".encode())
                assert tuple(column.name for column in cursor.description or ()) == names
                assert cursor.fetchall() == ask(f"show {what}", prepare=True) or what == "SESSIONS"
            assert root.cursor(binary=True).execute(b"SHOW TWINS").fetchall() == [("shared", "yes", "0")]
            assert {(row[1], row[3]) for row in ask("SHOW SESSIONS")} == {("ada", "idle"), ("bob", "idle")}
            budgets = {row[0]: row for row in ask("SHOW BUDGETS")}
            assert budgets["ada"][2] == budgets["all together"][2] != budgets["bob"][2]

            assert root.execute(b"PAUSE").statusmessage == "PAUSE"
            answers: list[object] = []
            waiting = threading.Thread(target=lambda: answers.append(ada.execute(OTHER).fetchone()))
            waiting.start()
            shown = ("ada", "active", "SELECT count(*) FROM orders")
            assert eventually(lambda: shown in {(row[1], row[3], row[6]) for row in ask("SHOW SESSIONS")}, 30)
            assert not answers and all(row[5] is None or int(row[5]) < 60 for row in ask("SHOW SESSIONS"))
            assert bob.execute(b"SELECT 1").fetchone() == (1,)  # the twin is not paused
            assert ask("SHOW POOL")[0][4] == "yes"
            root.execute(b"RESUME")
            waiting.join(60)
            assert len(answers) == 1

            root.execute(b"KILL ANALYST bob")
            with pytest.raises(psycopg.OperationalError):
                bob.execute(b"SELECT 1")
            for text, error in (
                ("KILL 1", psycopg.errors.UndefinedObject),
                (f"KILL {'9' * 5000}", psycopg.errors.UndefinedObject),
                ("FORGIVE bob", psycopg.errors.ObjectNotInPrerequisiteState),
                ("FORGIVE mallory", psycopg.errors.UndefinedObject),
                ("SELECT 1", psycopg.errors.SyntaxError),
            ):
                for prepare in (False, True):
                    with pytest.raises(error):
                        root.execute(text.encode(), prepare=prepare)
            before = budgets["ada"]
            root.execute(b"GRANT EPSILON 0.25 TO ada")
            after = {row[0]: row for row in ask("SHOW BUDGETS")}
            assert float(after["ada"][1]) == float(before[1]) + 0.25
            assert after["all together"][1] == budgets["all together"][1]
            granted = ada.execute(b"SELECT epsilon FROM noisegate.budget WHERE account = 'yours'").fetchone()
            assert granted is not None and float(granted[0]) == float(after["ada"][1])
            with pytest.raises(psycopg.errors.UndefinedObject):
                root.execute(b"GRANT EPSILON 0.25 TO mallory")
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="all analysts together have 1000"):
                root.execute(b"GRANT EPSILON 1000.5 TO ada")
            root.execute(b"REFRESH TWIN")
            good = running.rules.read_text()
            running.rules.write_text(good.replace("budget:", "bugdet:"))
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="not taken") as refused:
                root.execute(b"RELOAD")
            line = good[: good.index("budget:")].count("\n") + 1
            running.rules.write_text(good.replace("${NOISEGATE_DATABASE}", "hunter2"))
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="standard error") as withheld:
                root.execute(b"RELOAD")
            assert "hunter2" not in str(withheld.value)
            assert f'{running.rules}:{line}: bugdet: unknown key (did you mean "budget"?)' in str(refused.value)
            running.rules.write_text(good)
            root.execute(b"RELOAD")
            with pytest.raises(psycopg.OperationalError, match='operators connect to the database "noisegate" only'):
                psycopg.connect(running.dsn("ada", user="root"))
            with pytest.raises(psycopg.OperationalError, match="does not exist"):
                psycopg.connect(running.dsn("ada", dbname="noisegate"))

        with psycopg.connect(console) as root, root.transaction():  # as drivers begin without being asked
            assert len(root.execute(b"SHOW VERSION").fetchall()) == 1
        assert "in_use" in _typed(console, b"SHOW po\t;\n", until=b"in_use")
        psql = ["psql", console, "-XAtc", "SHOW VERSION; SHOW HELP"]
        done = subprocess.run(psql, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 1 + len(HELP)), done.stderr
        said = {(line["operator"], line["command"]) for line in running.events("console")}
        assert {("root", "KILL ANALYST bob"), ("root", "PAUSE"), ("root", "SHOW VERSION")} <= said


def test_a_reload_goes_on_to_its_end_whoever_leaves(shop: RealDatabase, tmp_path: Path) -> None:
    """In the middle of it the twin has the new rules, and the planner the old ones."""
    with noisegate(tmp_path, shop.reader_dsn, rules=ROOT) as running:
        rules = running.rules.read_text()
        running.rules.write_text(rules.replace("      email: hidden", "      email: hidden\n      name: hidden"))
        root = psycopg.connect(running.dsn("ada", user="root", dbname="noisegate"), autocommit=True)
        root.pgconn.send_query(b"RELOAD")
        assert root.pgconn.flush() == 0
        running.wait_for("console")
        root.close()
        assert eventually(lambda: bool(running.events("rules_loaded")))
        with psycopg.connect(running.dsn(), autocommit=True) as ada, pytest.raises(psycopg.Error, match="name"):
            ada.execute("SELECT count(name) FROM customers")
