"""Thousands of worlds in one database, in each of which one person is there or is not, and a stranger who bets on it.

A world is a group of 36 people, whom the stranger knows, and in half of the worlds a 37th, of whom the stranger knows
all but whether they are there. One statement asks about all worlds: each group has noise of its own, and nobody is in
two of them. So what a statement costs is what it costs each world, and it is read in the ledger.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import exp, sqrt
from typing import Protocol

import psycopg

from tests.support import shop

WORLDS = 4_000
OTHERS = 36

SCHEMA = f"""
CREATE TABLE people (
    id integer PRIMARY KEY, world integer NOT NULL, label text NOT NULL, badge text NOT NULL,
    age integer NOT NULL, wealth integer NOT NULL
);
INSERT INTO people SELECT w * 100 + n, w, 'world ' || w, 'nobody', (w * 31 + n * 17) % 70, (w * 7 + n * 13) % 40
FROM generate_series(1, {WORLDS}) AS w, generate_series(1, {OTHERS}) AS n;
INSERT INTO people SELECT w * 100, w, 'world ' || w, 'badge ' || w, 77, 1000
FROM generate_series(1, {WORLDS}) AS w WHERE w * 7919 % 10007 % 2 = 0;
CREATE TABLE visits (person_id integer NOT NULL, paid integer NOT NULL);
CREATE TABLE elsewhere (LIKE visits);
INSERT INTO visits SELECT w * 100 + 1, w % 50 FROM generate_series(1, {WORLDS}) AS w;
GRANT SELECT ON people, visits TO {shop.READER};
"""
RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: people.id
tables:
  people:
    unit: id
    columns:
      world: {{lower: 1, upper: {WORLDS}}}
      age: {{lower: 0, upper: 100}}
      wealth: {{lower: 0, upper: 1000}}
  visits:
    unit: person_id
    rows_per_unit: 5
    columns:
      paid: {{lower: 0, upper: 50}}
budget: {{epsilon: 1000, delta: 1e-6}}
defaults: {{epsilon: 1, max_epsilon: 10, delta: 1e-8}}
analysts:
{shop.RULES[shop.RULES.index("analysts:") :].partition(chr(10))[2]}"""

Answers = Mapping[int, Decimal]  # by world; one that is missing was not shown


class Ask(Protocol):
    """Ask one statement at an ε, of a fresh draw or of what is known."""

    def __call__(self, sql: str, epsilon: str, *, reuse: bool = False) -> Answers: ...


Guesses = Mapping[int, bool]  # by world: whether the person is there


@dataclass(frozen=True)
class Attack:
    """How a stranger asks, and bets that the person is there; `wins_exactly` of bets would be won without noise."""

    guess: Callable[[Ask], Guesses]
    wins_exactly: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """The share of bets that were won, and the most that what was charged allows."""

    won: float
    worlds: int
    epsilon: float
    delta: float

    @property
    def most(self) -> float:
        return (exp(self.epsilon) + self.delta) / (1 + exp(self.epsilon))

    @property
    def slack(self) -> float:
        """By how much a measured share may be off by chance: with one in a million it is more."""
        return 4.9 * sqrt(0.25 / self.worlds)


def moved(owner: psycopg.Connection, *, is_there: bool) -> None:
    """Put the 2,000 visits of one person into the database, or elsewhere: the same work for the server either way."""
    place = "visits" if is_there else "elsewhere"
    owner.execute(
        "BEGIN; DELETE FROM visits WHERE person_id = 1; DELETE FROM elsewhere; "
        f"INSERT INTO {place} SELECT 1, n % 50 FROM generate_series(1, 2000) AS n; COMMIT"
    )
    owner.execute("ANALYZE visits")
    owner.execute("ANALYZE elsewhere")


def is_there(world: int) -> bool:
    return world * 7919 % 10007 % 2 == 0


def share_won(guesses: Guesses) -> float:
    """As if a coin had decided of each world whether the person is there."""
    assert len(guesses) >= 1_000
    here = [guess for world, guess in guesses.items() if is_there(world)]
    gone = [not guess for world, guess in guesses.items() if not is_there(world)]
    return (sum(here) / len(here) + sum(gone) / len(gone)) / 2


def measured(attack: Attack, session: psycopg.Connection, times: int) -> Outcome:
    """Run an attack so often, through a proxy."""

    def ask(sql: str, epsilon: str, *, reuse: bool = False) -> Answers:
        session.execute(f"SET noisegate.epsilon = {epsilon}; SET noisegate.reuse = {'on' if reuse else 'off'}")
        session.execute("SET noisegate.empty_groups = show")  # a number of each world tells more than which are shown
        return _answers(session, sql)

    won, worlds, costs = 0.0, 0, list[tuple[float, float]]()
    for _ in range(times):
        epsilon, delta = _charged(session)
        guesses = attack.guess(ask)
        won, worlds = won + share_won(guesses) / times, worlds + len(guesses)
        after = _charged(session)
        costs.append((after[0] - epsilon, after[1] - delta))
    return Outcome(won, worlds, *max(costs))


def without_noise(attack: Attack, owner: psycopg.Connection) -> float:
    """The share of bets that are won on the answers of the database itself."""
    return share_won(attack.guess(lambda sql, epsilon, reuse=False: _answers(owner, sql)))


def _answers(session: psycopg.Connection, sql: str) -> Answers:
    rows = ((str(row[0]).rpartition(" ")[2], row[1]) for row in session.execute(sql.encode()).fetchall())
    return {int(world): Decimal(str(value)) for world, value in rows if world.isdecimal()}


def _charged(session: psycopg.Connection) -> tuple[float, float]:
    row = session.execute("SELECT coalesce(sum(epsilon), 0), coalesce(sum(delta), 0) FROM noisegate.ledger").fetchone()
    assert row is not None
    return float(row[0]), float(row[1])
