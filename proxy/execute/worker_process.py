"""A worker as the proxy sees it: a process that answers one question at a time, or is killed."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

from proxy.execute.pipe import LENGTH, MOST_ANSWER_BYTES
from proxy.plain_data import Malformed
from proxy.process_isolation import bare_environment

Answer = TypeVar("Answer")

_STDIN: Final = 0


class WorkerDied(Exception):
    """A worker ended before it had answered."""


class _Asked(NamedTuple):
    """A question that waits for its answer: how that is read, who gets it, and when it is too late."""

    read: Callable[[bytes], Any]
    answered: asyncio.Future[Any]
    deadline: asyncio.TimerHandle


class Worker(asyncio.SubprocessProtocol):
    """One worker process and its pipes. Make it with `start`.

    What comes is read as it comes, so that whoever asked is woken once, and may leave before.
    """

    def __init__(self) -> None:
        self._held = bytearray()  # of an answer that is not there in full
        self._asked: _Asked | None = None
        self._is_cut_off = False
        self._exited = asyncio.Event()

    @classmethod
    async def start(cls, *command: str) -> "Worker":
        _, worker = await asyncio.get_running_loop().subprocess_exec(
            cls,
            *(command or (sys.executable, "-m", "proxy.execute.worker")),
            stderr=None,  # ours
            start_new_session=True,  # a Ctrl-C is the proxy's to handle
            # ours has passwords of the real database and the ledger; and Landlock holds one thread
            env={**bare_environment("PYTHON", "VIRTUAL_ENV"), "OPENBLAS_NUM_THREADS": "1"},
        )
        return worker

    @property
    def process_id(self) -> int:
        return self._transport.get_pid()

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return not self._is_cut_off and self._transport.get_returncode() is None

    def ask(self, question: bytes, read: Callable[[bytes], Answer], seconds: float) -> asyncio.Future[Answer]:
        """The answer, read, as soon as it is there in full. It fails with what `read` raises, which is Malformed and
        nothing else, with WorkerDied and with TimeoutError; except for TooDeep, the worker is of no use then."""
        assert self._asked is None, "one question at a time"
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer] = loop.create_future()
        self._asked = _Asked(read, answered, loop.call_later(seconds, self._fail, TimeoutError()))
        if self._stdin.is_closing():
            self._fail(WorkerDied())
        else:
            self._stdin.write(LENGTH.pack(len(question)) + question)
        return answered

    def kill(self) -> None:
        """End it, whatever it is doing, and hear no more of it: what it has started may still hold its pipes."""
        self._is_cut_off = True
        if not self._stdin.is_closing():
            self._stdin.abort()
        self._transport.close()

    async def gone(self) -> None:
        """Wait for the end of one that was killed."""
        await self._exited.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)  # uvloop's is of no class of asyncio's

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._asked is None:  # it was too late, or nobody had asked
            self.kill()
            return
        self._held += data
        if len(self._held) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._held)
            if size > MOST_ANSWER_BYTES or len(self._held) > LENGTH.size + size:
                self._fail(Malformed("too long"))
            elif len(self._held) == LENGTH.size + size:
                self._answer(self._asked, bytes(self._held[LENGTH.size :]))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._is_cut_off = True
        self._fail(WorkerDied())

    def process_exited(self) -> None:
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._exited.set()

    @property
    def _stdin(self) -> asyncio.WriteTransport:
        return cast(asyncio.WriteTransport, self._transport.get_pipe_transport(_STDIN))

    def _answer(self, asked: _Asked, answer: bytes) -> None:
        self._held.clear()
        try:
            read = asked.read(answer)
        except Malformed as malformed:
            self._fail(malformed)
            return
        self._end_of(asked)
        if not asked.answered.cancelled():
            asked.answered.set_result(read)

    def _fail(self, error: Exception) -> None:
        asked = self._asked
        if asked is not None:
            self._end_of(asked)
            if not asked.answered.cancelled():
                asked.answered.set_exception(error)

    def _end_of(self, asked: _Asked) -> None:
        asked.deadline.cancel()
        self._asked = None
