"""A worker: reads and plans statements in a process of its own, which may be killed.

Both SQL parsers can be driven to death by a hostile text, or worse be made to serve it, so they never run in the proxy.
`pipe` says what crosses, over the pipes that the parent made; nobody else can write to them.
"""

import os
import resource
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from proxy.execute.pipe import LENGTH, LOADED, PLANNED, QUESTIONS, READ, Load, Question, Read
from proxy.garbage import look_seldom
from proxy.log import start_logging, warn
from proxy.plain_data import Codec
from proxy.plain_shapes import Malformed
from proxy.process_isolation import expendable
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.refusal import Mismatch, Refusal, TooComplex
from rules.replay import DraftingKernel, Kernel
from rules.sql.read import read

Answer = TypeVar("Answer")

MEMORY_BYTES = 2 * 1024**3
NEW_OBJECTS = 100_000  # between two looks: a plan makes thousands
DEEPEST = 20_000  # calls within calls: what `rules.sql.limits` lets through needs some thousands


class _State:
    """The rules that plans are made by."""

    rules: tuple[Policy, Catalog, Kernel] | None = None


def main() -> None:
    """Answer requests until the pipe ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    expendable(os.getpid())
    sys.setrecursionlimit(DEEPEST)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing but answers may reach the pipe
    start_logging()
    look_seldom(NEW_OBJECTS)
    state = _State()
    while (head := requests.read(LENGTH.size)) and len(head) == LENGTH.size:
        (size,) = LENGTH.unpack(head)
        try:
            question = QUESTIONS.decode(requests.read(size))
        except Malformed:
            warn("question_malformed")
            return
        _reply(answers, _answer(state, question))


def _answer(state: _State, question: Question) -> bytes:
    match question:
        case Load(policy, catalog):
            state.rules = policy, catalog, DraftingKernel(Ground(policy, catalog))
            look_seldom(NEW_OBJECTS)
            return LOADED.encode(None)
        case Read(text):
            return _told(READ, lambda: read(text))
        case Request() as request:
            return _told(PLANNED, lambda: _plan(state, request))


def _told(codec: Codec[Answer | Refusal], find: Callable[[], Answer]) -> bytes:
    """An answer or a refusal; what cannot cross the pipe is a defect too."""
    try:
        return codec.encode(find())
    except Refusal as refusal:
        return codec.encode(refusal)
    except (RecursionError, MemoryError):
        return codec.encode(TooComplex("the statement is too complex"))
    except Exception as error:  # noqa: BLE001  (a defect of ours must not end in a text that quotes the statement)
        place = traceback.extract_tb(error.__traceback__)[-1]
        warn("planner_defect", kind=type(error).__name__, place=f"{Path(place.filename).name}:{place.lineno}")
        return codec.encode(Mismatch("this statement cannot be planned", hint="Rewrite the statement in simpler SQL."))


def _plan(state: _State, request: Request) -> Plan | NeedsInner:
    assert state.rules is not None, "rules are loaded before anything is planned"
    return plan(request, *state.rules)


def _reply(answers: BinaryIO, data: bytes) -> None:
    answers.write(LENGTH.pack(len(data)) + data)
    answers.flush()


if __name__ == "__main__":
    main()
