"""A planner process that a text took over can open, connect to and start nothing, and plans all the same."""

import os
import socket
import subprocess
import sys
from ast import literal_eval
from collections.abc import AsyncIterator, Iterator
from errno import EACCES, EPERM
from pathlib import Path

import psycopg
import pytest

from proxy.execute.pipe import BEGUN, PLANNED, QUESTIONS, READ, Begin, Read
from proxy.execute.worker_pool import PlannerPool
from proxy.execute.worker_process import Worker
from proxy.process_wall import WITHOUT_SECCOMP, find_wall
from proxy.twin.embedded import Cluster
from rules.frozen import replace
from rules.planner.plan import Request
from rules.refusal import Mismatch, Refusal
from rules.sql.read import read
from tests.conftest import RealDatabase
from tests.execute.crossing import Rules, answer, answers, request
from tests.planner import tpch
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.support.running import run_here, start

if not find_wall().seccomp:
    pytest.skip("the kernel says that it has no seccomp for this machine", allow_module_level=True)

# The worker itself, in which a text that begins with # is run instead of read, as a defect of a parser would have it.
TAKEN_OVER = """
import ctypes, os, socket, sys
from proxy import process_wall
from proxy.execute import worker
from rules.refusal import Refusal

libc, honest = ctypes.CDLL(None, use_errno=True), worker.read
ledger, port, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def tried(attempt):
    ctypes.set_errno(0)
    try:
        result = attempt()
    except OSError as error:
        return error.errno
    return ctypes.get_errno() if result == -1 else f"done: {result!r}"

def read(text):
    if text.startswith("#"):
        raise Refusal(repr(eval(text[1:], globals())))
    return honest(text)

worker.read = read
"""
RUN = "worker.main()"
UNWALLED = "worker.raise_wall = lambda: process_wall.NO_WALL\n"

READS_LEDGER = "open(ledger, 'rb').read(6)"
CONNECTS = "socket.create_connection(('127.0.0.1', int(port)))"
FORKS = "os.fork() or os._exit(0)"
ATTEMPTS = {
    "reads the ledger": READS_LEDGER,
    "connects": CONNECTS,
    "forks": FORKS,
    "opens the ledger by libc": "libc.open(ledger.encode(), os.O_RDWR)",
    "opens it by openat2": "libc.syscall(437, -100, ledger.encode(), bytes(24), 24)",
    "opens it by a number of the x32 machine": "libc.syscall(0x40000000 | 2, ledger.encode(), 0)",
    "makes a file": "open(ledger + '.new', 'w')",
    "removes the ledger": "os.unlink(ledger)",
    "renames the ledger": "os.rename(ledger, ledger + '.old')",
    "truncates the ledger": "libc.truncate(ledger.encode(), 0)",
    "lists a folder": "os.listdir('/')",
    "looks whether a file exists": "os.stat(ledger)",
    "reads the memory of its parent by a file": "open(f'/proc/{parent}/mem', 'rb')",
    "reads the memory of its parent": "libc.process_vm_readv(parent, None, 0, None, 0, 0)",
    "traces its parent": "libc.ptrace(0x4206, parent, 0, 0)",
    "reads what others log": "os.read(2, 1)",
    "maps an open file": "libc.mmap(None, 4096, 1, 1, 2, 0)",
    "signals": "os.kill(parent, 0)",
    "execs": "os.execv('/bin/true', ['true'])",
    "spawns": "os.posix_spawn('/bin/true', ['true'], {})",
    "clones": "libc.syscall(435, bytes(88), 88)",
    "makes a socket": "socket.socket(socket.AF_UNIX)",
    "makes a pair of sockets": "socket.socketpair()",
    "makes a pipe": "os.pipe()",
    "makes a file without a name": "os.memfd_create('x')",
    "asks by a ring": "libc.syscall(425, 1, bytes(120))",
    "takes a file of another process": "libc.syscall(438, 0, 1, 0)",
    "becomes root": "libc.setuid(0)",
    "lifts its limits": "libc.setrlimit(7, bytes(16))",
    "lets others trace it": "libc.prctl(4, 1, 0, 0, 0)",
}


Place = tuple[str, str, str]  # the ledger, a port that somebody listens to, and our process


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    ledger = tmp_path / "rules.ledger"
    ledger.write_bytes(b"SQLite format 3\0")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(ledger), str(server.getsockname()[1]), str(os.getpid())


async def run_in_worker(code: str, place: Place, *, before: str = "") -> object:
    """The value of an expression in a worker that a text has taken over."""
    worker = await Worker.start(sys.executable, "-c", TAKEN_OVER + before + RUN, *place)
    try:
        await worker.ask(QUESTIONS.encode(Begin()), BEGUN.decode, 60)
        found = await worker.ask(QUESTIONS.encode(Read(f"#{code}")), READ.decode, 60)
    finally:
        worker.kill()
        await worker.gone()
    assert isinstance(found, Refusal)
    value: object = literal_eval(found.message)
    return value


@pytest.mark.slow
async def test_a_worker_that_a_text_took_over_reaches_nothing(place: Place) -> None:
    attempts = ", ".join(f"{name!r}: tried(lambda: {attempt})" for name, attempt in ATTEMPTS.items())

    found = await run_in_worker(f"{{{attempts}}}", place)

    assert found == dict.fromkeys(ATTEMPTS, EPERM)


@pytest.mark.slow
async def test_it_holds_no_files_but_its_pipes_and_the_log(place: Place) -> None:
    found = await run_in_worker("[number for number in range(4, 1024) if tried(lambda: os.close(number)) != 9]", place)

    assert found == []  # 0 is the questions' pipe, 1 and 2 are the log, and 3 is the answers'


@pytest.mark.extended
@pytest.mark.parametrize("attempt", [READS_LEDGER, CONNECTS, FORKS])
async def test_a_worker_without_the_wall_would_succeed(attempt: str, place: Place) -> None:
    found = await run_in_worker(f"tried(lambda: {attempt})", place, before=UNWALLED)

    assert str(found).startswith("done: ")


@pytest.mark.slow
@pytest.mark.skipif(not find_wall().landlock, reason="the kernel says that it has no Landlock")
def test_landlock_alone_keeps_files_away() -> None:
    assert outcome("open('/etc/passwd')") == 0
    assert outcome("open('/etc/passwd')", "_refuse_files") == EACCES
    assert outcome("open('/tmp/noisegate-new', 'w')", "_refuse_files") == EACCES


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the tests do not run as root")
def test_a_worker_of_root_becomes_one_of_nobody(tmp_path: Path) -> None:
    secret = tmp_path / "rules.ledger"
    secret.touch(mode=0o600)

    assert outcome(f"open({str(secret)!r})") == 0
    assert outcome(f"open({str(secret)!r})", "_become_nobody") == EACCES
    assert outcome("os.setuid(0)", "_become_nobody") == EPERM


def outcome(attempt: str, *walls: str) -> int:
    """The error of an attempt in a process with these walls alone, or 0."""
    script = f"""
import os, sys
from proxy import process_wall
for name in {{"_become_nobody", "_refuse_files", "_refuse_calls"}} - {{*{walls}}}:
    setattr(process_wall, name, lambda: False)
process_wall.raise_wall()
try:
    {attempt}
except OSError as error:
    sys.exit(error.errno)
"""
    return subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode


@pytest.fixture(scope="module")
def small(shop: RealDatabase) -> Rules:
    return shop_data.policy(), catalog_of(shop.dsn)


@pytest.fixture(scope="module")
def customers(real_cluster: Cluster) -> Rules:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE walled")
    with psycopg.connect(real_cluster.dsn("walled"), autocommit=True) as connection:
        connection.execute(tpch.SCHEMA)
    return tpch.policy(), catalog_of(real_cluster.dsn("walled"))


@pytest.fixture(scope="module")
async def pool() -> AsyncIterator[PlannerPool]:
    pool = await PlannerPool.start(size=1, seconds=60)
    yield pool
    await pool.close()


async def check_planned_alike(pool: PlannerPool, rules: Rules, asked: Request) -> None:
    """A worker behind the wall says the same as the planner does in this process, which may open files."""
    await pool.load(*rules)
    expected = answer(asked, rules)
    try:
        found, _ = await pool.plan(asked, "ada")
    except Refusal as refusal:
        assert isinstance(expected, Refusal)
        assert (str(refusal), refusal.hint, refusal.position) == (str(expected), expected.hint, expected.position)
    else:
        assert found == expected


@pytest.mark.parametrize("question", (*tpch.TPCH, *tpch.EVERYDAY), ids=lambda question: question.name)
async def test_statements_are_planned_behind_the_wall(
    question: tpch.Question, pool: PlannerPool, customers: Rules
) -> None:
    for asked, _ in answers(question.sql, customers):
        await check_planned_alike(pool, customers, asked)


IN_BERLIN = "SELECT date_trunc('month', ordered_at AT TIME ZONE 'Europe/Berlin'), count(*) FROM orders GROUP BY 1"


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "Pacific/Apia", "Europe/London", "No/Such_Zone"])
@pytest.mark.parametrize("encoding", ["UTF8", "EUC_JP", "LATIN2", "WIN874", "UHC", "SHIFT_JIS_2004", "MULE_INTERNAL"])
async def test_zones_and_encodings_are_known_behind_the_wall(
    zone: str, encoding: str, pool: PlannerPool, small: Rules
) -> None:
    policy, catalog = small
    rules = policy, replace(catalog, encoding=encoding)
    for text in (
        IN_BERLIN,
        IN_BERLIN.replace("Europe/Berlin", "US/Pacific"),
        "SELECT date_trunc('day', ordered_at), count(*) FROM orders GROUP BY 1",
        "SELECT count(*) FROM customers WHERE name = 'Łódź'",
        "SELECT upper(city), count(*) FROM customers WHERE city = 'Köln' GROUP BY 1",
        "SELECT noisegate.nothing(age) FROM customers",
    ):
        await check_planned_alike(pool, rules, replace(request(text), time_zone=zone))


@pytest.mark.parametrize("text", ["SELECT (", 'SELECT 1; SELECT count(*) FROM "é"', "/* é", "BEGIN; COMMIT"])
async def test_texts_are_read_behind_the_wall(text: str, pool: PlannerPool) -> None:
    assert await pool.read(text, "ada") == read(text)


@pytest.mark.slow
async def test_a_defect_is_reported_from_behind_the_wall(capfd: pytest.CaptureFixture[str]) -> None:
    worker = await Worker.start()
    found = await worker.ask(QUESTIONS.encode(request("SELECT 1")), PLANNED.decode, 60)  # without rules
    worker.kill()
    await worker.gone()

    assert isinstance(found, Mismatch)
    assert '"event": "planner_defect", "kind": "AssertionError", "place": "worker.py:' in capfd.readouterr().err


@pytest.mark.extended
def test_where_the_system_forbids_walls_it_says_so_and_serves(shop: RealDatabase, tmp_path: Path) -> None:
    rules, program = shop_data.rules_file(tmp_path), "tests.support.without_walls"
    assert run_here("ledger", "init", str(rules), database=shop.reader_dsn) == 0
    environment = os.environ | {"NOISEGATE_DATABASE": shop.reader_dsn}
    checked = subprocess.run(
        [sys.executable, "-m", program, "check", str(rules)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    running = start(rules, shop.reader_dsn, program=(program,))
    try:
        running.wait_for("ready")
        with psycopg.connect(running.dsn(sslmode="disable")) as session:
            assert session.execute("SELECT count(*) FROM customers").fetchone()
    finally:
        running.stop()

    assert f"note: database: {WITHOUT_SECCOMP}" in checked.stdout
    assert any(WITHOUT_SECCOMP in line for line in running.lines)
    (started,) = running.events("planner_started")
    assert (started["seccomp"], started["landlock"]) == (False, False)
