"""One run: load, actions at random, and at the end the invariants.

* Nobody has spent more than the budget.
* No answer was given without its charge.
* Every proxy gives the same released numbers for the same question.
* After each action all proxies answer again by themselves.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psycopg

from tests.soak.actions import ACTIONS
from tests.soak.load import QUESTIONS, Client
from tests.soak.world import BUDGET, World, world

_CLIENTS = 4


@dataclass
class Report:
    """What happened."""

    actions: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)  # seconds until all proxies answered, by action
    answers: int = 0
    charges: int = 0
    spent: dict[str, float] = field(default_factory=dict)
    refused: int = 0

    def lines(self) -> Iterator[str]:
        for name, count in sorted(self.actions.items()):
            yield f"{name:<16}{count:>5} times, answered again within {self.slowest[name]:.1f} s"
        yield f"{self.answers} fresh answers of {self.charges} charges"
        yield ", ".join(f"{name} spent {spent:.3f} of {BUDGET}" for name, spent in self.spent.items())
        yield f"{self.refused} statements refused for want of budget"


def soak(
    directory: Path,
    *,
    seconds: float,
    proxies: int,
    shared_ledger: bool,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run for so long; an AssertionError says which invariant did not hold."""
    random, report, is_over = Random(seed), Report(), threading.Event()
    with world(directory, proxies, shared_ledger=shared_ledger) as made:
        crowd = [Client(made, random.randrange(2**32), is_over) for _ in range(_CLIENTS)]
        for client in crowd:
            client.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            action = random.choice(ACTIONS)
            action(made, random)
            say(f"{action.__name__} …")
            took = made.recover()
            report.actions[action.__name__] += 1
            report.slowest[action.__name__] = max(took, report.slowest.get(action.__name__, 0))
        is_over.set()
        for client in crowd:
            client.join(30)
        _check(made, crowd, report)
    return report


def _check(made: World, crowd: list[Client], report: Report) -> None:
    report.answers, report.refused = sum(client.fresh for client in crowd), sum(client.refused for client in crowd)
    report.spent, report.charges = made.spent()
    unexpected = [words for client in crowd for words in client.unexpected]
    assert not unexpected, unexpected[:5]
    assert max(report.spent.values()) <= BUDGET, report.spent
    assert report.answers <= report.charges, f"{report.answers} answers, {report.charges} charges"
    for question in QUESTIONS:
        answers = {_answer(made, place, question) for place in range(len(made.proxies))}
        assert len(answers) == 1, f"{question}: {answers}"


def _answer(made: World, place: int, question: str) -> str:
    """Ask for what was released; a refusal for want of budget is an answer too."""
    with made.connect(place) as connection:
        connection.execute("SET noisegate.epsilon = 0.01")
        try:
            return str(sorted(connection.execute(question).fetchall(), key=str))
        except psycopg.errors.ConfigurationLimitExceeded as error:
            return str(error.sqlstate)
