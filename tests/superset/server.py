"""A Superset of our own: installed once beside the build, started with an empty SQLite of its own for each run."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.superset.api import PASSWORD, USER
from tests.superset.browser import free_port, wait_for

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build"
METADATA = "superset.db"
START_SECONDS = 90


@contextmanager
def superset(directory: Path) -> Iterator[str]:
    """Run Superset until the block is left; its address."""
    place = installed()
    shutil.copyfile(place / METADATA, directory / METADATA)
    log = (directory / "superset.log").open("w")
    port = free_port()
    process = subprocess.Popen(
        [place / "bin" / "gunicorn", "--threads", "8", "--bind", f"127.0.0.1:{port}", "superset.app:create_app()"],
        env=_environment(directory), stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}/health", START_SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(START_SECONDS)
        log.close()


def installed() -> Path:
    """The environment with Superset and its empty metadata in it, made when it is not there for these requirements."""
    requirements = HERE / "requirements.txt"
    name = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    place = BUILD / f"superset-{name}"
    done = place / "done"
    if not done.exists():
        _run([sys.executable, "-m", "venv", "--clear", place], os.environ)
        _run([place / "bin" / "pip", "install", "-q", "-r", requirements], os.environ)
        for line in (("db", "upgrade"), ("fab", "create-admin", *_admin()), ("init",)):
            _run([place / "bin" / "superset", *line], _environment(place))
        done.touch()
    return place


def _admin() -> tuple[str, ...]:
    login = {"username": USER, "password": PASSWORD, "firstname": "Ada", "lastname": "L", "email": "ada@example.org"}
    return tuple(f"--{name}={value}" for name, value in login.items())


def _environment(directory: Path) -> Mapping[str, str]:
    return os.environ | {
        "SUPERSET_HOME": str(directory),
        "SUPERSET_CONFIG_PATH": str(HERE / "configuration.py"),
        "SUPERSET_SECRET_KEY": "of no worth: the server ends with the tests",
        "SCARF_ANALYTICS": "false",
        "FLASK_APP": "superset",
    }


def _run(line: Sequence[str | Path], environment: Mapping[str, str]) -> None:
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(map(str, line))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
