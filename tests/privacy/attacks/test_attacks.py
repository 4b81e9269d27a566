"""A stranger bets on the presence of one person, by the attacks that the literature tries on noised answers.

What is won is held against (e^ε + δ)/(1 + e^ε), with the ε and δ that the ledger has of the attack. Each attack wins
on exact answers, or it would show nothing.
"""

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median, variance

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase
from tests.privacy.attacks.worlds import (
    OTHERS,
    RULES,
    SCHEMA,
    WORLDS,
    Answers,
    Ask,
    Attack,
    Guesses,
    Outcome,
    measured,
    moved,
    without_noise,
)
from tests.support import shop
from tests.support.running import noisegate

TIMES = 3
TIMING = "timing of plans"
ALL = range(1, WORLDS + 1)
_NEW = count(1)  # numbers that make a question one that nobody has asked before


@dataclass(frozen=True)
class Person:
    age: int
    wealth: int


TARGET = Person(77, 1000)


def known(world: int) -> list[Person]:
    """The people whom the stranger knows to be there."""
    return [Person((world * 31 + n * 17) % 70, (world * 7 + n * 13) % 40) for n in range(1, OTHERS + 1)]


@dataclass(frozen=True)
class Question:
    """An aggregate, what a person adds to it, and how far one person can move it by the rules."""

    sql: str
    adds: Callable[[Person], int]
    reach: int = 1
    where: str = "true"


def by_likelihood(questions: Sequence[Question], epsilon: str) -> Callable[[Ask], Guesses]:
    """Which world is likelier, of that with the person and that without, by the law of the noise."""

    def guess(ask: Ask) -> Guesses:
        evidence = dict.fromkeys(ALL, 0.0)
        for question in questions:
            answers = ask(_by_world(question.sql, question.where), epsilon)
            for world in ALL:
                without, scale = sum(map(question.adds, known(world))), question.reach / float(epsilon)
                answer, moved = float(answers.get(world, 0)), question.adds(TARGET)
                evidence[world] += (abs(answer - without) - abs(answer - without - moved)) / scale
        return _likelier(evidence)

    return guess


def _by_world(aggregate: str, where: str) -> str:
    """Computed with, so that it is shown as it was released, below zero too."""
    return f"SELECT world, {aggregate} * 1 AS n FROM people WHERE {where} GROUP BY world"


def _likelier(evidence: dict[int, float]) -> Guesses:
    coin = random.Random(1)
    return {world: of > 0 or (of == 0 and coin.random() < 0.5) for world, of in evidence.items()}


DIFFERENCES = (
    Question("count(*)", lambda _: 1),
    Question("count(*)", lambda person: int(person.age != 77), where="age <> 77"),
    Question("count(*)", lambda person: int(person.age >= 70), where="age >= 70"),
    Question("sum(wealth)", lambda person: person.wealth, reach=1000),
    Question("sum(age)", lambda person: person.age, reach=100),
)
OUTLIER = Question("sum(wealth)", lambda person: person.wealth * (person.age >= 60), reach=1000, where="age >= 60")
TEXTS = (
    "SELECT world, count(*) * 1 AS n FROM people WHERE id > -{0} GROUP BY world",
    "SELECT world, 1 * count(*) FROM people WHERE -{0} < id GROUP BY 1",
    "SELECT p.world, count(*) * 1 FROM people AS p WHERE p.id > -{0} GROUP BY p.world",
    "SELECT world, count(id) * 1 FROM people WHERE NOT id <= -{0} GROUP BY world",
    "SELECT world, n * 1 FROM (SELECT world, count(*) AS n FROM people WHERE id > -{0} GROUP BY world) AS t",
    "WITH t AS (SELECT * FROM people WHERE id > -{0}) SELECT world, count(*) * 1 FROM t GROUP BY world",
    "SELECT world, count(1) * 1 FROM people WHERE id > -{0} AND true GROUP BY world ORDER BY world",
    "SELECT world, count(*) * 1 FROM public.people WHERE id > -{0} AND 1 = 1 GROUP BY world HAVING true",
    "SELECT DISTINCT world, count(*) * 1 FROM people WHERE id > CAST('-{0}' AS integer) GROUP BY world",
    "SELECT world, count(*) FILTER (WHERE true) * 1 FROM people WHERE (id) > (-{0}) GROUP BY (world)",
)


def averaged(ask: Ask) -> Guesses:
    """By the mean of all different numbers that were told."""
    number = next(_NEW)
    told: dict[int, set[float]] = {world: set() for world in ALL}
    for text in TEXTS:
        for world, answer in ask(text.format(number), "0.1", reuse=True).items():
            told[world].add(float(answer))
    return _likelier({world: sum(numbers) / len(numbers) - OTHERS - 0.5 for world, numbers in told.items()})


def by_variance(ask: Ask) -> Guesses:
    """By how much the answers to one question, asked again and again, differ."""
    asked = [ask(_by_world("count(*)", "wealth > 500"), "0.1") for _ in range(10)]
    spread = {world: variance(float(answers.get(world, 0)) for answers in asked) for world in ALL}
    middle = median(spread.values())
    return {world: of > middle for world, of in spread.items()}


def by_thresholds(ask: Ask) -> Guesses:
    """By how many of three thresholds a world passes: as many people as are known, and one and two more."""
    number = next(_NEW)
    sql = "SELECT world, 1 FROM people WHERE id > -{} GROUP BY world HAVING count(*) >= {}"
    passed: list[Answers] = [ask(sql.format(number, OTHERS + more), "1", reuse=True) for more in range(3)]
    return {world: sum(world in shown for shown in passed) >= 2 for world in ALL}


def by_a_name(ask: Ask) -> Guesses:
    """By whether a group is shown in which only the person can be."""
    shown = ask("SELECT badge, count(*) FROM people GROUP BY badge", "1")
    return {world: world in shown for world in ALL}


def by_a_group(ask: Ask) -> Guesses:
    """By whether a group is shown that is as large as its threshold if the person is there."""
    shown = ask("SELECT label, count(*) FROM people GROUP BY label", "1")
    return {world: world in shown and shown[world] > OTHERS for world in ALL}


def by_the_largest(ask: Ask) -> Guesses:
    """By the largest value, which is far beyond all others if the person is there."""
    answers = ask("SELECT world, max(age) FROM people WHERE world <= 1000 GROUP BY world", "1")
    return {world: answers[world] >= 73 for world in ALL[:1000]}


Timed = list[tuple[float, bool]]  # how long something took, and whether the person was there


def times_of_plans(owner: psycopg.Connection, session: psycopg.Connection) -> Timed:
    """How long EXPLAIN takes. Each world has its own statistics of tables, which a planner could look at."""
    coin, timed = random.Random(2), Timed()
    for number in range(1400):
        here = coin.random() < 0.5
        moved(owner, is_there=here)
        start = time.perf_counter()
        session.execute(f"EXPLAIN SELECT count(*), sum(paid) FROM visits WHERE paid <> {number + 60}".encode())
        timed.append((time.perf_counter() - start, here))
    return timed


def by_time(timed: Timed) -> Outcome:
    """By a limit that is learned from 400 worlds of which the stranger knows the truth."""
    learned, others = timed[:400], timed[400:]

    def share(worlds: Timed, limit: float, *, slower: bool) -> float:
        return sum((took > limit) == (here is slower) for took, here in worlds) / len(worlds)

    rules = [(limit, slower) for limit, _ in learned for slower in (True, False)]
    limit, slower = max(rules, key=lambda rule: share(learned, rule[0], slower=rule[1]))
    return Outcome(share(others, limit, slower=slower), len(others), 0, 0)


ATTACKS = {
    "variance of repeated filters": Attack(by_variance, wins_exactly=0.5),
    "outlier with a filter of few": Attack(by_likelihood((OUTLIER,), "1")),
    "the largest value": Attack(by_the_largest),
    "five differencing queries": Attack(by_likelihood(DIFFERENCES, "0.2")),
    "averaging over equivalent texts": Attack(averaged),
    "thresholds around one person": Attack(by_thresholds),
    "a group of one person": Attack(by_a_name),
    "a group at its threshold": Attack(by_a_group),
}


@pytest.fixture(scope="module")
def worlds(real_cluster: Cluster) -> RealDatabase:
    database = RealDatabase(real_cluster, "worlds")
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE worlds")
    with database.connect() as connection:
        connection.execute(f"DO $$ BEGIN CREATE ROLE {shop.READER} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        connection.execute(SCHEMA)
    return database


@pytest.fixture(scope="module")
def session(worlds: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    with (
        noisegate(tmp_path_factory.mktemp("worlds"), worlds.reader_dsn, rules=RULES, name="worlds") as running,
        psycopg.connect(running.dsn("ada"), autocommit=True) as connection,
    ):
        yield connection


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
def test_a_stranger_wins_no_more_bets_than_what_was_charged_allows(
    worlds: RealDatabase, session: psycopg.Connection, name: str
) -> None:
    attack = ATTACKS[name]
    with worlds.connect() as owner:
        assert without_noise(attack, owner) == pytest.approx(attack.wins_exactly, abs=0.02)

    outcome = measured(attack, session, TIMES)

    _tell(name, outcome)
    assert outcome.won <= outcome.most + outcome.slack


@pytest.mark.long
def test_the_time_of_plans_tells_nothing_of_rows(worlds: RealDatabase, session: psycopg.Connection) -> None:
    with worlds.connect() as owner:
        timed = times_of_plans(owner, session)
    outcome = by_time(timed)

    _tell(TIMING, outcome)
    assert by_time([(took + here, here) for took, here in timed]).won > 0.9  # of plans that take a second longer
    assert outcome.won <= outcome.most + outcome.slack


def test_the_page_has_a_line_for_each_attack() -> None:
    text = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text()
    (table,) = re.findall(r"\| attack \|.*?\n\n", text, re.DOTALL)

    assert re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:] == [*ATTACKS, TIMING]


def _tell(name: str, outcome: Outcome) -> None:
    """For docs/privacy.md, with pytest -s."""
    print(f"{name}: ε {outcome.epsilon:.3g}, δ {outcome.delta:.1g}, {outcome.won:.1%}, at most {outcome.most:.1%}")
