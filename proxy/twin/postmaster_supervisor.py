"""A small process that owns one embedded postmaster, and takes it along when its parent is gone.

It reads one line of JSON from standard input, starts PostgreSQL, and waits for the end of that input. The end comes
when the parent closes the pipe or dies in any way, `kill -9` included: then PostgreSQL is stopped and, where asked,
its directory removed. When PostgreSQL ends by itself, so does the keeper.
"""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from proxy.process_isolation import bare_environment, expendable, seal

GRACE_SECONDS = 10
SET_PARENT_DEATH_SIGNAL = 1  # prctl(2), PR_SET_PDEATHSIG


def main() -> int:
    """Run until standard input ends."""
    seal()
    task = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle
    postmaster = _start(task["command"], task["uid"], task["log"], task["memory_limit_bytes"])
    expendable(postmaster.pid)
    sys.stdout.write(f"{postmaster.pid}\n")
    sys.stdout.flush()
    threading.Thread(target=_stop_with_input, args=(postmaster,), daemon=True).start()
    status = postmaster.wait()
    if task["remove"] is not None:
        shutil.rmtree(task["remove"], ignore_errors=True)
    return 0 if status == 0 else 1


def _start(command: list[str], uid: int | None, log: str, memory_limit_bytes: int | None) -> subprocess.Popen[bytes]:
    if memory_limit_bytes is not None:  # of address space, for the postmaster and each backend
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit_bytes, memory_limit_bytes))
    with Path(log).open("ab") as output:
        return subprocess.Popen(
            command,
            env=bare_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - the keeper has one thread at this time
        )


def _end_with_parent() -> None:
    """Stop PostgreSQL at once when the keeper is killed and can stop nothing any more. Linux alone knows of it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGQUIT, 0, 0, 0)


def _stop_with_input(postmaster: subprocess.Popen[bytes]) -> None:
    sys.stdin.read()
    _stop(postmaster)


def _stop(postmaster: subprocess.Popen[bytes]) -> None:
    """Fast shutdown first, which ends sessions; immediate if that takes too long."""
    for sent, seconds in ((signal.SIGINT, GRACE_SECONDS), (signal.SIGQUIT, GRACE_SECONDS), (signal.SIGKILL, None)):
        if postmaster.poll() is None:
            os.kill(postmaster.pid, sent)
            try:
                postmaster.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
        return


if __name__ == "__main__":
    sys.exit(main())
