"""Clients that ask without end and note what they were answered."""

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psycopg

from tests.soak.world import World

QUESTIONS = (
    "SELECT count(*) FROM customers",
    "SELECT city, count(*) FROM customers GROUP BY city",
    "SELECT status, count(*), sum(amount) FROM orders GROUP BY status",
    "SELECT avg(amount) FROM orders WHERE amount > 10",
)


@dataclass
class Client(threading.Thread):
    """One analyst's tool, which connects again whenever its connection is lost."""

    world: World
    seed: int
    is_over: threading.Event
    fresh: int = 0  # answers that had to be charged
    refused: int = 0  # for want of budget
    unexpected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        random = Random(self.seed)
        while not self.is_over.wait(0.05):
            with suppress(psycopg.OperationalError, IndexError):
                place = random.randrange(len(self.world.proxies))
                with self.world.connect(place) as connection:
                    self._ask(connection, random)

    def _ask(self, connection: psycopg.Connection, random: Random) -> None:
        connection.execute("SET noisegate.reuse = off; SET noisegate.epsilon = 0.01; SET statement_timeout = '10s'")
        while not self.is_over.wait(random.uniform(0, 0.05)):
            try:
                connection.execute(random.choice(QUESTIONS)).fetchall()
                self.fresh += 1
            except psycopg.errors.ConfigurationLimitExceeded:
                self.refused += 1
            except psycopg.OperationalError:
                if connection.broken:
                    return
            except psycopg.Error as error:
                self.unexpected.append(f"{error.sqlstate} {error}")
