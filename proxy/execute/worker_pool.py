"""The workers that read and plan: killed at their deadline or when they die, and started anew.

A reading depends on the text alone, so it is remembered: a text that was seen before needs no worker to be read.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from proxy.execute.load_limits import FairSemaphore
from proxy.execute.pipe import BEGUN, LOADED, PLANNED, QUESTIONS, READ, Begin, Load, Question, Read, fits
from proxy.execute.worker_process import Worker, WorkerDied
from proxy.log import event, warn
from proxy.metrics import WORKERS_ENDED
from proxy.plain_data import Codec, Malformed, TooDeep
from proxy.process_wall import NO_WALL
from proxy.recent_values import RecentValues
from rules.catalog import Catalog
from rules.planner.plan import NeedsInner, Plan, Request
from rules.policy.model import Policy
from rules.refusal import Mismatch, Refusal, TooComplex, Unavailable
from rules.sql.limits import check_size, check_text
from rules.sql.statement import Reading

Answer = TypeVar("Answer")

REMEMBERED = 8 * 1024 * 1024  # bytes of texts and readings, as they are piped
START_SECONDS = 30
_SIMPLER = "Rewrite the statement in simpler SQL."


@dataclass(slots=True, eq=False)
class _Place:
    """Room for one worker. None: it is to be started."""

    worker: Worker | None = None
    generation: int = 0  # of the rules that it was told
    asking: asyncio.Future[Any] | None = None  # asyncio itself holds tasks by weak references

    @property
    def is_alive(self) -> bool:
        return self.worker is not None and self.worker.is_alive


class PlannerPool:
    """A few workers, which analysts have in turn. Make it with `start`."""

    def __init__(self, size: int, seconds: float) -> None:
        self._seconds = seconds
        self._turns = FairSemaphore(size, most=max(1, size - 1))
        self._places = tuple(_Place() for _ in range(size))
        self._idle = list(self._places)  # as many as there are places in `_turns`
        self._rules: bytes | None = None  # as each worker is told them
        self._generation = 0
        self._is_closed = False
        self.wall = NO_WALL  # of the worker that was started last
        self._readings: RecentValues[str, Reading] = RecentValues(REMEMBERED)

    @classmethod
    async def start(cls, *, size: int = 2, seconds: float = 5.0) -> "PlannerPool":
        """Start the workers, so that the first statement need not wait for them."""
        pool = cls(size, seconds)
        async with asyncio.TaskGroup() as group:
            for place in pool._places:
                group.create_task(pool._start(place))
        return pool

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Those that run now, or have ended and are not replaced yet."""
        return tuple(place.worker for place in self._places if place.worker is not None)

    @property
    def processes(self) -> tuple[int, ...]:
        return tuple(worker.process_id for worker in self.workers)

    async def load(self, policy: Policy, catalog: Catalog) -> None:
        """Plan by these rules from now on. Each worker is told before its next request.

        A hostile text may take over a worker, so it gets nothing that would let it in anywhere.
        """
        self._rules = QUESTIONS.encode(Load(policy.without_secrets(), catalog))
        self._generation += 1

    async def read(self, text: str, analyst: str) -> Reading:
        """Return what PostgreSQL's grammar says of a text."""
        known = self._readings.find(text)
        if known is not None:
            return known
        check_text(text)
        reading, size = await self._in_turn(analyst, Read(text), READ)
        if isinstance(reading, Refusal):
            raise reading
        self._readings.keep(text, reading, size)
        return reading

    async def plan(self, request: Request, analyst: str) -> tuple[Plan | NeedsInner, int]:
        """The plan of one private statement, or a refusal; and how many bytes that took in the pipe."""
        check_size(request.text)
        plan, size = await self._in_turn(analyst, request, PLANNED)
        if isinstance(plan, Refusal):
            raise plan
        return plan, size

    @property
    def alive(self) -> int:
        """Workers that run."""
        return sum(place.is_alive for place in self._places)

    @property
    def busy(self) -> int:
        """Those that read or plan now."""
        return self._turns.taken_now

    @property
    def waiting(self) -> int:
        """Texts that wait for one."""
        return self._turns.waiting

    async def close(self) -> None:
        """End all workers; what still waits for one gets none."""
        self._is_closed = True
        for worker in self.workers:
            worker.kill()
            await worker.gone()
        for place in self._places:
            place.worker = None

    async def _in_turn(self, analyst: str, question: Question, answers: Codec[Answer]) -> tuple[Answer, int]:
        """Who leaves meanwhile leaves the worker to its end, and the turn with it: a new one takes longer to start."""
        try:
            data = QUESTIONS.encode(question)
        except Malformed:  # nested too deeply
            raise TooComplex("the statement is too complex", hint=_SIMPLER) from None
        await self._turns.take(analyst)
        place, read = self._pick(), partial(_read, question, answers)
        asking: asyncio.Future[tuple[Answer, int]]
        if place.worker is not None and place.worker.is_alive and place.generation == self._generation:
            asking = place.worker.ask(data, read, self._seconds)
        else:
            asking = asyncio.create_task(self._ask_anew(place, data, read))
        place.asking = asking
        asking.add_done_callback(partial(self._settle, place, analyst))
        try:
            answer, size = await asyncio.shield(asking)
        except TimeoutError:
            raise TooComplex("planning the statement takes too long", hint=_SIMPLER) from None
        except (WorkerDied, TooDeep):
            raise TooComplex("the statement is too complex", hint=_SIMPLER) from None
        except Malformed:  # a defect, or a worker that a text has taken over
            raise Mismatch("this statement cannot be planned", hint=_SIMPLER) from None
        return answer, len(data) + size

    def _pick(self) -> _Place:
        """The one that answered last, which has the text that it read, and what it made for others like it. One that is
        to be started only where there is no other: who kills workers pays for it with his own time."""
        self._idle.sort(key=lambda place: place.worker is not None)
        return self._idle.pop()

    def _settle(self, place: _Place, analyst: str, asked: asyncio.Future[Any]) -> None:
        """A worker that did not answer in time or in full is of no use any more."""
        error = asyncio.CancelledError() if asked.cancelled() else asked.exception()
        if type(error) is Malformed:
            warn("worker_answer_malformed")
        if error is not None and not isinstance(error, TooDeep):  # the answer of one that is too deep was read
            self._end(place)
        place.asking = None
        self._idle.append(place)
        self._turns.give_back(analyst)

    async def _ask_anew(
        self, place: _Place, question: bytes, read: Callable[[bytes], tuple[Answer, int]]
    ) -> tuple[Answer, int]:
        """Ask one that has to be started, or to be told the rules."""
        if place.worker is not None and not place.worker.is_alive:  # it died at rest: no fault of this statement
            self._end(place)
        worker = place.worker or await self._start(place)
        await self._tell_rules(place, worker)
        return await worker.ask(question, read, self._seconds)

    async def _tell_rules(self, place: _Place, worker: Worker) -> None:
        """A worker knows the rules of one generation; new ones may come while it is told."""
        rules, generation = self._rules, self._generation
        if rules is None or place.generation == generation:
            return
        try:
            await worker.ask(rules, LOADED.decode, START_SECONDS)
        except (WorkerDied, Malformed, TimeoutError):
            raise Unavailable("the planner cannot load the rules") from None
        place.generation = generation

    async def _start(self, place: _Place) -> Worker:
        """Start a worker, and wait until it has loaded its modules: a question has less time than that may take.

        There may be no memory, process or file for it, which is no fault of the statement, or of its session.
        """
        if self._is_closed:
            raise Unavailable("the planner has ended")
        try:
            place.worker, place.generation = await Worker.start(), 0
            if self._is_closed:  # meanwhile
                place.worker.kill()
            self.wall = await place.worker.ask(QUESTIONS.encode(Begin()), BEGUN.decode, START_SECONDS)
        except (OSError, WorkerDied, Malformed) as error:  # a TimeoutError is an OSError
            warn("worker_not_started", kind=type(error).__name__)
            raise Unavailable("the planner cannot be started") from None
        return place.worker

    def _end(self, place: _Place) -> None:
        if place.worker is not None:
            WORKERS_ENDED.inc()
            event("worker_ended")
            place.worker.kill()
            place.worker = None


def _read(question: Question, answers: Codec[Answer], data: bytes) -> tuple[Answer, int]:
    """What a worker has answered, and how long that was. Raises Malformed."""
    answer = answers.decode(data)
    if not fits(question, answer):
        raise Malformed("an answer to something else")
    return answer, len(data)
