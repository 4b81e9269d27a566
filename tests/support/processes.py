"""Processes that may be killed at any moment, forked from one that has imported what they need."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

Sender = Connection

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.ledger.test_sqlite", "tests.execute.test_killed"])


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that sends messages."""

    process: ForkServerProcess
    receiver: Connection

    def messages(self) -> Iterator[Any]:
        """All that it sends until its end; a message that its death cut off is none."""
        with suppress(EOFError, OSError):
            while True:
                yield self.receiver.recv()

    def kill_after(self, milliseconds: int) -> list[Any]:
        """Send it kill -9 so long after its first message, and return all messages."""
        sent = [self.receiver.recv()]
        time.sleep(milliseconds / 1000)
        self.process.kill()
        sent += self.messages()
        self.process.join()
        return sent

    def exitcode(self) -> int | None:
        self.process.join()
        return self.process.exitcode


def start(work: Callable[..., None], *arguments: object) -> Worker:
    """Run `work(sender, …)` in a process of its own."""
    receiver, sender = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=work, args=(sender, *arguments))
    process.start()
    sender.close()
    return Worker(process, receiver)
