"""What befalls a world: each action does harm, and undoes what no process can undo by itself."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import psycopg

from tests.soak.world import World, children, send

Action = Callable[[World, Random], None]


def kill_proxy(world: World, random: Random) -> None:
    """kill -9, and a supervisor that starts it again."""
    place = random.randrange(len(world.proxies))
    world.proxies[place].process.kill()
    world.proxies[place].process.wait()
    world.start_proxy(place)


def stop_proxy(world: World, random: Random) -> None:
    """A restart by a deployment."""
    place = random.randrange(len(world.proxies))
    world.proxies[place].stop()
    world.start_proxy(place)


def freeze_proxy(world: World, random: Random) -> None:
    pid = world.proxies[random.randrange(len(world.proxies))].process.pid
    send(pid, signal.SIGSTOP)
    time.sleep(random.uniform(0.2, 2))
    send(pid, signal.SIGCONT)


def kill_child(world: World, random: Random) -> None:
    """Any process below the proxy: the twin's server and its keeper, a backend, a worker."""
    below = children(world.proxies[random.randrange(len(world.proxies))].process.pid)
    if below:
        send(random.choice(below), random.choice([signal.SIGKILL, signal.SIGSEGV]))


def freeze_child(world: World, random: Random) -> None:
    below = children(world.proxies[random.randrange(len(world.proxies))].process.pid)
    if below:
        pid = random.choice(below)
        send(pid, signal.SIGSTOP)
        time.sleep(random.uniform(0.2, 2))
        send(pid, signal.SIGCONT)


def freeze_line(world: World, random: Random) -> None:
    """The network to the real database, and to a ledger that is one, passes nothing for a while."""
    world.line.freeze()
    time.sleep(random.uniform(0.2, 2))
    world.line.thaw()


def slow_line(world: World, random: Random) -> None:
    """The network to the real database becomes slow for a while, as behind a link that loses packets."""
    world.line.seconds_a_packet = random.uniform(0.05, 0.3)
    time.sleep(random.uniform(0.5, 2))
    world.line.seconds_a_packet = 0


def slow_client(world: World, random: Random) -> None:
    """A tool asks for more rows than it reads, and goes away in the middle of them."""
    with suppress(psycopg.OperationalError, IndexError), world.connect(random.randrange(len(world.proxies))) as client:
        client.pgconn.send_query(b"SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
        time.sleep(random.uniform(0.5, 2))


def fill_disk_of_proxy(world: World, random: Random) -> None:
    """No file of the proxy can grow, its ledger's among them."""
    with _full(world.proxies[random.randrange(len(world.proxies))].process.pid):
        time.sleep(random.uniform(0.2, 2))


def fill_disk_of_database(world: World, random: Random) -> None:
    """No file can grow that one connection of the real database, or of a ledger in it, writes to."""
    with psycopg.connect(world.cluster.dsn(), autocommit=True) as owner:
        rows = owner.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'noisegate'").fetchall()
    if rows:
        (pid,) = random.choice(rows)
        with _full(pid):
            time.sleep(random.uniform(0.2, 2))


@contextmanager
def _full(pid: int) -> Iterator[None]:
    """No file can grow that this process writes to, as if its disk were full."""
    _limit_files(pid, "0:")
    try:
        yield
    finally:
        _limit_files(pid, "unlimited:")


def _limit_files(pid: int, limit: str) -> None:
    try:
        owner = Path(f"/proc/{pid}").stat()
    except FileNotFoundError:  # it is gone
        return
    done = subprocess.run(
        ["prlimit", f"--pid={pid}", f"--fsize={limit}"], user=owner.st_uid, group=owner.st_gid, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0 or not Path(f"/proc/{pid}").exists(), done.stderr


def end_backends(world: World, _: Random) -> None:
    """An operator ends all connections of the real database."""
    with psycopg.connect(world.cluster.dsn(), autocommit=True) as owner:
        owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def crash_database(world: World, _: Random) -> None:
    """A backend of the real database dies: PostgreSQL ends all sessions and recovers."""
    with psycopg.connect(world.cluster.dsn(), autocommit=True) as owner:
        os.kill(owner.info.backend_pid, signal.SIGKILL)


ACTIONS: tuple[Action, ...] = (
    kill_proxy,
    stop_proxy,
    freeze_proxy,
    kill_child,
    freeze_child,
    freeze_line,
    slow_line,
    slow_client,
    fill_disk_of_proxy,
    fill_disk_of_database,
    end_backends,
    crash_database,
)
