"""A worker: reads and plans statements in a process of its own, which may be killed.

Both SQL parsers can be driven to death by a hostile text, so they never run in the proxy. Requests and answers are
pickles with a length in front, over the pipes that the parent made; nobody else can write to them.
"""

import os
import pickle
import resource
import struct
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from proxy.expendable import expendable
from proxy.log import start_logging, warn
from rules.catalog import Catalog
from rules.policy.model import Policy
from rules.refusal import Mismatch, Refusal, TooComplex
from rules.rewrite.pipeline import plan
from rules.rewrite.plan import Request
from rules.sql.read import read

MEMORY_BYTES = 2 * 1024**3
DEEPEST = 20_000  # calls within calls: what `rules.sql.limits` lets through needs some thousands
LENGTH = struct.Struct("!I")


class _State:
    """The rules that plans are made by."""

    rules: tuple[Policy, Catalog] | None = None


def main() -> None:
    """Answer requests until the pipe ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    expendable(os.getpid())
    sys.setrecursionlimit(DEEPEST)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing but answers may reach the pipe
    start_logging()
    state = _State()
    while (head := requests.read(LENGTH.size)) and len(head) == LENGTH.size:
        (size,) = LENGTH.unpack(head)
        _reply(answers, _answer(state, *pickle.loads(requests.read(size))))  # noqa: S301


def _answer(state: _State, kind: str, argument: object) -> object:
    handlers: dict[str, Callable[[], object]] = {
        "load": lambda: _load(state, argument),
        "read": lambda: read(str(argument)),
        "plan": lambda: _plan(state, argument),
    }
    try:
        return handlers[kind]()
    except Refusal as refusal:
        return refusal
    except (RecursionError, MemoryError):
        return TooComplex("the statement is too complex")
    except Exception as error:  # noqa: BLE001  (a defect of ours must not end in a text that quotes the statement)
        place = traceback.extract_tb(error.__traceback__)[-1]
        warn("planner_defect", kind=type(error).__name__, place=f"{Path(place.filename).name}:{place.lineno}")
        return Mismatch("this statement cannot be planned", hint="Write it in simpler SQL.")


def _load(state: _State, argument: object) -> None:
    assert isinstance(argument, tuple)
    state.rules = argument


def _plan(state: _State, argument: object) -> object:
    assert isinstance(argument, Request)
    assert state.rules is not None, "rules are loaded before anything is planned"
    return plan(argument, *state.rules)


def _reply(answers: BinaryIO, value: object) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    answers.write(LENGTH.pack(len(data)) + data)
    answers.flush()


if __name__ == "__main__":
    main()
