"""A worker: reads and plans statements in a process of its own, which may be killed.

Both SQL parsers can be driven to death by a hostile text, or worse be made to serve it, so they never run in the proxy.
`pipe` says what crosses, over the pipes that the parent made; nobody else can write to them. Before the first question
the process gives up files, sockets and processes; `load_late_files` has read what it would open later.
"""

import encodings
import os
import resource
import sys
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import BinaryIO, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from proxy.execute.pipe import BEGUN, LENGTH, LOADED, PLANNED, QUESTIONS, READ, Begin, Load, Question, Read
from proxy.garbage import look_seldom
from proxy.log import start_logging, warn
from proxy.plain_data import Codec, Malformed
from proxy.process_isolation import expendable
from proxy.process_wall import Wall, raise_wall
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.refusal import Mismatch, Refusal, TooComplex
from rules.replay import DraftingKernel, Kernel
from rules.sql.read import read
from rules.values.value import find_zone

Answer = TypeVar("Answer")

MEMORY_BYTES = 2 * 1024**3
NEW_OBJECTS = 100_000  # between two looks: a plan makes thousands
DEEPEST = 20_000  # calls within calls: what `rules.sql.limits` lets through needs some thousands


class _State:
    """The walls around this process, and the rules that plans are made by."""

    def __init__(self, wall: Wall) -> None:
        self.wall = wall

    rules: tuple[Policy, Catalog, Kernel] | None = None


def main() -> None:
    """Answer requests until the pipe ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    expendable(os.getpid())
    sys.setrecursionlimit(DEEPEST)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing but answers may reach the pipe
    start_logging()
    zones = load_late_files()
    state = _State(raise_wall())
    look_seldom(NEW_OBJECTS)
    while (head := requests.read(LENGTH.size)) and len(head) == LENGTH.size:
        (size,) = LENGTH.unpack(head)
        try:
            question = QUESTIONS.decode(requests.read(size))
        except Malformed:
            warn("question_malformed")
            return
        _reply(answers, _answer(state, question))
    del zones  # held until here


def load_late_files() -> Collection[ZoneInfo | None]:
    """Read all that a statement may need of the disk. Time zones are found as long as the result is held."""
    for module in iter_modules(encodings.__path__):
        with suppress(ImportError):  # of other systems
            import_module(f"encodings.{module.name}")
    read("SELECT 1")
    return [find_zone(name) for name in available_timezones()]


def _answer(state: _State, question: Question) -> bytes:
    match question:
        case Begin():
            return BEGUN.encode(state.wall)
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
