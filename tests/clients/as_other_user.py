"""Servers that refuse to run as root run as somebody else, in a folder of his own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = "nobody"


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that the other user may write to."""
    made = Path(tempfile.mkdtemp(prefix="noisegate-client-"))
    if user := _other():
        shutil.chown(made, user)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def give(path: Path) -> None:
    """Let the other user own a file."""
    if user := _other():
        shutil.chown(path, user)


def run(*line: str) -> None:
    """Run a command to its end."""
    done = subprocess.run(
        line, user=_uid(), group=_gid(), env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def start(*line: str) -> subprocess.Popen[bytes]:
    """Start a server, and do not wait."""
    return subprocess.Popen(
        line, user=_uid(), group=_gid(), extra_groups=[] if _other() else None, env=_environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _environment() -> dict[str, str]:
    """Ours, with a home that has no certificates of somebody else's."""
    return os.environ | {"HOME": "/nonexistent"}


def _other() -> str | None:
    return NOBODY if os.geteuid() == 0 else None


def _uid() -> int | None:
    return pwd.getpwnam(NOBODY).pw_uid if _other() else None


def _gid() -> int | None:
    return pwd.getpwnam(NOBODY).pw_gid if _other() else None
