"""Count the product's files and functions that one statement enters, in the proxy and its workers.

Each Python process that starts in `environment(place)` notes the functions that it enters. Asked by a signal it writes
them to its file in `place`, and begins anew. All code is counted that is called by itself: generators and lambdas too.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_PACKAGES: Final = (f"{_ROOT}/proxy/", f"{_ROOT}/rules/")
_PLACE: Final = "PYTHON_ENTERED"  # workers keep variables of Python's
_BEGINS: Final = "from tests.support.entered import begin\n\nbegin()\n"
_END: Final = b".\n"
_SECONDS: Final = 30.0

Functions = frozenset[tuple[str, str]]  # the file, from the root of the repository, and the qualified name


def environment(place: Path) -> dict[str, str]:
    """The environment in which processes take note."""
    (place / "sitecustomize.py").write_text(_BEGINS)
    return {**os.environ, "PYTHONPATH": f"{place}:{_ROOT}", _PLACE: str(place)}


def begin() -> None:
    """Take note of all that this process enters from now on."""
    found = set[CodeType]()
    # It is open from the start: later on a worker may open nothing.
    file = os.open(Path(os.environ[_PLACE]) / f"{os.getpid()}.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code)

    def write(*_: object) -> None:
        ours = [code for code in tuple(found) if code.co_filename.startswith(_PACKAGES)]
        found.clear()
        lines = (f"{Path(code.co_filename).relative_to(_ROOT)}\t{code.co_qualname}\n" for code in ours)
        os.write(file, "".join(lines).encode() + _END)

    signal.signal(signal.SIGUSR2, write)
    threading.setprofile(note)
    sys.setprofile(note)


def entered(place: Path) -> Functions:
    """What was entered since this was asked for before."""
    files = {path: path.stat().st_size for path in place.glob("[0-9]*.txt")}
    functions = set[tuple[str, str]]()
    for path, size in files.items():
        try:
            os.kill(int(path.stem), signal.SIGUSR2)
        except ProcessLookupError:
            continue
        deadline = time.monotonic() + _SECONDS
        while not (written := path.read_bytes()[size:]).endswith(_END):
            assert time.monotonic() < deadline, f"process {path.stem} does not tell what it has entered"
            time.sleep(0.02)
        for line in written.removesuffix(_END).decode().splitlines():
            file, _, name = line.partition("\t")
            functions.add((file, name))
    return frozenset(functions)
