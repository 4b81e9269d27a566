"""The workers that read and plan: killed at their deadline or when they die, and started anew.

A reading depends on the text alone and a plan on its request, so both are remembered; a text that was seen before needs
no worker. How much is remembered is counted in bytes: a short text can have a plan of many groups.
"""

import asyncio
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from typing import Generic, TypeVar

from proxy.log import event
from proxy.query.turns import Turns
from rules.catalog import Catalog
from rules.policy.model import Policy
from rules.refusal import Refusal, TooComplex, Unavailable
from rules.rewrite.plan import First, Plan, Request
from rules.sql.limits import check_size
from rules.sql.statement import Reading

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

LENGTH = struct.Struct("!I")
REMEMBERED = 8 * 1024 * 1024  # bytes of requests and answers, as they are piped, of readings and plans each
START_SECONDS = 30


class Recent(Generic[Key, Value]):
    """The values that were used last, as far as they have room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def find(self, key: Key) -> Value | None:
        known = self._values.get(key)
        if known is None:
            return None
        self._values.move_to_end(key)
        return known[0]

    def keep(self, key: Key, value: Value, size: int) -> None:
        _, before = self._values.pop(key, (None, 0))
        self._values[key] = value, size
        self._room += before - size
        while self._room < 0:
            _, (_, freed) = self._values.popitem(last=False)
            self._room += freed


class WorkerDied(Exception):
    """A worker ended in the middle of a request."""


class Worker:
    """One worker process and its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> "Worker":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "proxy.query.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is the proxy's to handle
            limit=2**26,
        )
        return cls(process)

    async def ask(self, kind: str, argument: object) -> tuple[object, int]:
        """One request, one answer, and how large both were; a refusal is an answer too."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        data = pickle.dumps((kind, argument), pickle.HIGHEST_PROTOCOL)
        try:
            stdin.write(LENGTH.pack(len(data)) + data)
            await stdin.drain()
            (size,) = LENGTH.unpack(await stdout.readexactly(LENGTH.size))
            answer = pickle.loads(await stdout.readexactly(size))  # noqa: S301  (written by our own worker)
        except (asyncio.IncompleteReadError, ConnectionError, RuntimeError) as error:
            raise WorkerDied from error  # RuntimeError is uvloop's word for a pipe that it has closed
        return answer, len(data) + size

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
        self._turns = Turns(size, most=max(1, size - 1))
        self._idle: list[Worker | None] = [None] * size  # one for each place in `_turns`; None: to be started
        self._workers: set[Worker] = set()
        self._rules: tuple[Policy, Catalog] | None = None
        self._loaded: dict[Worker, int] = {}
        self._generation = 0
        self._readings: Recent[str, Reading] = Recent(REMEMBERED)
        self._plans: Recent[tuple[int, Request], Plan | First] = Recent(REMEMBERED)

    @classmethod
    async def start(cls, *, size: int = 2, seconds: float = 5.0) -> "PlannerPool":
        """Start the workers, so that the first statement need not wait for them."""
        pool = cls(size, seconds)
        async with asyncio.TaskGroup() as group:
            for _ in range(size):
                group.create_task(pool._renew())
        return pool

    async def load(self, policy: Policy, catalog: Catalog) -> None:
        """Plan by these rules from now on. Each worker is told before its next request."""
        self._rules = (policy, catalog)
        self._generation += 1

    async def read(self, text: str, analyst: str) -> Reading:
        """What PostgreSQL's grammar says of a text."""
        known = self._readings.find(text)
        if known is not None:
            return known
        check_size(text)
        async with self._turns.taken(analyst):
            reading, size = await self._ask("read", text)
        assert isinstance(reading, Reading)
        self._readings.keep(text, reading, size)
        return reading

    async def plan(self, request: Request, analyst: str) -> Plan | First:
        """The plan of one private statement, or a refusal."""
        key = (self._generation, replace(request, now=""))
        known = self._plans.find(key)
        if known is not None and (isinstance(known, First) or not known.depends_on_time):
            return known
        async with self._turns.taken(analyst):
            plan, size = await self._ask("plan", request)
        assert isinstance(plan, Plan | First)
        self._plans.keep(key, plan, size)
        return plan

    async def close(self) -> None:
        """End all workers."""
        for worker in tuple(self._workers):
            await worker.kill()
        self._workers.clear()

    async def _ask(self, kind: str, argument: object) -> tuple[object, int]:
        """One request to a free worker. One that did not answer in time or in full is of no use any more."""
        worker, answered = self._pick(), False
        try:
            if worker is not None and not worker.is_alive:  # it died at rest: no fault of this statement
                await self._end(worker)
                worker = None
            async with asyncio.timeout(self._seconds if worker is not None else START_SECONDS):
                worker = worker or await self._fresh()
                await self._tell_rules(worker)
            async with asyncio.timeout(self._seconds):
                answer, size = await worker.ask(kind, argument)
            answered = True
        except TimeoutError:
            raise TooComplex("reading the statement takes too long", hint="Write it in simpler SQL.") from None
        except WorkerDied:
            raise TooComplex("the statement is too complex", hint="Write it in simpler SQL.") from None
        finally:
            self._idle.append(worker if answered else None)
            if not answered:
                await self._end(worker)
        if isinstance(answer, Refusal):
            raise answer
        return answer, size

    def _pick(self) -> Worker | None:
        """One that has loaded its modules, if there is any: who kills workers pays for it with his own time."""
        self._idle.sort(key=lambda worker: worker is None)
        return self._idle.pop(0)

    async def _tell_rules(self, worker: Worker) -> None:
        """A worker knows the rules of one generation; new ones may come while it is told."""
        rules, generation = self._rules, self._generation
        if rules is None or self._loaded.get(worker) == generation:
            return
        failure, _ = await worker.ask("load", rules)
        if failure is not None:
            raise Unavailable("the planner cannot load the rules")
        self._loaded[worker] = generation

    async def _renew(self) -> None:
        """Start one worker in the place of an empty one, and wait until it has loaded its modules."""
        self._idle.remove(None)
        worker = await self._fresh()
        await worker.ask("read", "SELECT 1")
        self._idle.append(worker)

    async def _fresh(self) -> Worker:
        worker = await Worker.start()
        self._workers.add(worker)
        return worker

    async def _end(self, worker: Worker | None) -> None:
        event("worker_ended")
        if worker is not None:
            self._workers.discard(worker)
            self._loaded.pop(worker, None)
            await worker.kill()
