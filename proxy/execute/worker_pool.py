"""The workers that read and plan: killed at their deadline or when they die, and started anew.

A reading depends on the text alone, so it is remembered: a text that was seen before needs no worker to be read.
"""

import asyncio
import sys
from typing import Any, TypeVar

from proxy.execute.load_limits import FairSemaphore
from proxy.execute.pipe import LENGTH, LOADED, MOST_ANSWER_BYTES, PLANNED, QUESTIONS, READ, Load, Question, Read, fits
from proxy.log import event, warn
from proxy.metrics import WORKERS_ENDED
from proxy.plain_data import Codec
from proxy.plain_shapes import Malformed, TooDeep
from proxy.process_isolation import bare_environment
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


class WorkerDied(Exception):
    """A worker ended in the middle of a request."""


class Worker:
    """One worker process and its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> "Worker":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "proxy.execute.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is the proxy's to handle
            env=bare_environment("PYTHON", "VIRTUAL_ENV"),  # ours has passwords of the real database and the ledger
            limit=2**26,
        )
        return cls(process)

    async def ask(self, question: bytes, answers: Codec[Answer]) -> tuple[Answer, int]:
        """One question, one answer, and how long that was; a refusal is an answer too. Raises Malformed."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(LENGTH.pack(len(question)) + question)
            await stdin.drain()
            (size,) = LENGTH.unpack(await stdout.readexactly(LENGTH.size))
            if size > MOST_ANSWER_BYTES:
                raise Malformed("too long")
            return answers.decode(await stdout.readexactly(size)), size
        except (asyncio.IncompleteReadError, ConnectionError, RuntimeError) as error:
            raise WorkerDied from error  # RuntimeError is uvloop's word for a pipe that it has closed

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def kill(self) -> None:
        """End it, whatever it is doing."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class PlannerPool:
    """A few workers, which analysts have in turn. Make it with `start`."""

    def __init__(self, size: int, seconds: float) -> None:
        self._seconds = seconds
        self._turns = FairSemaphore(size, most=max(1, size - 1))
        self._idle: list[Worker | None] = [None] * size  # one for each place in `_turns`; None: to be started
        self._workers: set[Worker] = set()
        self._rules: bytes | None = None  # as each worker is told them
        self._loaded: dict[Worker, int] = {}
        self._generation = 0
        self._asking: set[asyncio.Task[Any]] = set()  # asyncio itself holds tasks by weak references
        self._readings: RecentValues[str, Reading] = RecentValues(REMEMBERED)

    @classmethod
    async def start(cls, *, size: int = 2, seconds: float = 5.0) -> "PlannerPool":
        """Start the workers, so that the first statement need not wait for them."""
        pool = cls(size, seconds)
        async with asyncio.TaskGroup() as group:
            for _ in range(size):
                group.create_task(pool._renew())
        return pool

    @property
    def processes(self) -> tuple[int, ...]:
        """The workers that run now."""
        return tuple(worker.process_id for worker in self._workers)

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
        return sum(worker.is_alive for worker in self._workers)

    @property
    def busy(self) -> int:
        """Those that read or plan now."""
        return self._turns.taken_now

    @property
    def waiting(self) -> int:
        """Texts that wait for one."""
        return self._turns.waiting

    async def close(self) -> None:
        """End all workers."""
        for worker in tuple(self._workers):
            await worker.kill()
        self._workers.clear()

    async def _in_turn(self, analyst: str, question: Question, answers: Codec[Answer]) -> tuple[Answer, int]:
        """Who leaves meanwhile leaves the worker to its end, and the turn with it: a new one takes longer to start."""
        has_begun = False

        async def asked() -> tuple[Answer, int]:
            nonlocal has_begun
            async with self._turns.taken(analyst):
                has_begun = True
                return await self._ask(question, answers)

        asking = asyncio.create_task(asked())
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            if not has_begun:
                asking.cancel()
            raise

    async def _ask(self, question: Question, answers: Codec[Answer]) -> tuple[Answer, int]:
        """One question to a free worker. One that did not answer in time or in full is of no use any more."""
        try:
            data = QUESTIONS.encode(question)
        except Malformed:  # nested too deeply
            raise TooComplex("the statement is too complex", hint=_SIMPLER) from None
        worker, answered = self._pick(), False
        try:
            if worker is not None and not worker.is_alive:  # it died at rest: no fault of this statement
                await self._end(worker)
                worker = None
            async with asyncio.timeout(self._seconds if worker is not None else START_SECONDS):
                worker = worker or await self._fresh()
                await self._tell_rules(worker)
            async with asyncio.timeout(self._seconds):
                answer, size = await worker.ask(data, answers)
            if not fits(question, answer, size):
                raise Malformed("an answer to something else")
            answered = True
        except TimeoutError:
            raise TooComplex("planning the statement takes too long", hint=_SIMPLER) from None
        except WorkerDied:
            raise TooComplex("the statement is too complex", hint=_SIMPLER) from None
        except TooDeep:  # its answer was read to the end
            answered = True
            raise TooComplex("the statement is too complex", hint=_SIMPLER) from None
        except Malformed:  # a defect, or a worker that a text has taken over
            warn("worker_answer_malformed")
            raise Mismatch("this statement cannot be planned", hint=_SIMPLER) from None
        finally:
            self._idle.append(worker if answered else None)
            if not answered:
                await self._end(worker)
        return answer, len(data) + size

    def _pick(self) -> Worker | None:
        """The one that answered last, which has the text that it read, and what it made for others like it. One that is
        to be started only where there is no other: who kills workers pays for it with his own time."""
        self._idle.sort(key=lambda worker: worker is not None)
        return self._idle.pop()

    async def _tell_rules(self, worker: Worker) -> None:
        """A worker knows the rules of one generation; new ones may come while it is told."""
        rules, generation = self._rules, self._generation
        if rules is None or self._loaded.get(worker) == generation:
            return
        try:
            await worker.ask(rules, LOADED)
        except (WorkerDied, Malformed):
            raise Unavailable("the planner cannot load the rules") from None
        self._loaded[worker] = generation

    async def _renew(self) -> None:
        """Start one worker in the place of an empty one."""
        self._idle.remove(None)
        self._idle.append(await self._fresh())

    async def _fresh(self) -> Worker:
        """Start a worker, and wait until it has loaded its modules: a question has less time than that may take."""
        worker = await Worker.start()
        self._workers.add(worker)
        try:
            await worker.ask(QUESTIONS.encode(Read("SELECT 1")), READ)
        except BaseException:
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: Worker | None) -> None:
        WORKERS_ENDED.inc()
        event("worker_ended")
        if worker is not None:
            self._workers.discard(worker)
            self._loaded.pop(worker, None)
            await worker.kill()
