"""What the time of an answer tells about one person, by a classifier, under each setting of `pad_to`.

python -m tests.bench.timing
python -m tests.bench.timing --times 200

The statement is slow for the rows of one person only, and is asked for one who is there and for one who is not. A
threshold is chosen on half of the times and tried on the other half. Its accuracy says what one statement tells: 50%
is nothing, and the bits are those of a channel that is wrong as often.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from math import log2
from pathlib import Path
from random import Random
from statistics import median

import psycopg

from proxy.twin.embedded import Cluster
from tests.conftest import make_shop
from tests.support import shop
from tests.support.running import noisegate

SETTINGS = ("off", "20 ms", "100 ms", "500 ms", "full")
LIMIT_MS = 4000  # the longest time of a statement, which is when `full` answers
_STEPS = 60  # of work over 65,536 characters, for the rows of one person
_THERE, _AWAY = "customer7@example.org", "nobody@example.org"
_RULES = shop.RULES.replace("      email: hidden\n", "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.timing", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=60, help="that each question is asked (default: 60)")
    given = parser.parse_args()
    print("| `pad_to` | there | not there | accuracy | bits |\n|---|---|---|---|---|")
    cluster = Cluster.start()
    try:
        database = make_shop(cluster, "shop").reader_dsn
        for setting in SETTINGS:
            print(_line(setting, *_times(database, setting, given.times)), flush=True)
    finally:
        cluster.stop()


def _times(database: str, setting: str, times: int) -> tuple[list[float], list[float]]:
    """Ask for both, by turns: how long each answer took, in milliseconds."""
    rules = _RULES if setting == "off" else f"pad_to: {setting}\n{_RULES}"
    found: dict[str, list[float]] = {_THERE: [], _AWAY: []}
    with (
        tempfile.TemporaryDirectory() as folder,
        noisegate(Path(folder), database, rules=rules) as running,
        psycopg.connect(running.dsn(sslmode="disable"), autocommit=True) as session,
    ):
        session.execute(f"SET statement_timeout = {LIMIT_MS}; SET noisegate.reuse = off; SET noisegate.epsilon = 0.01")
        for number in range(times + 1):
            for email, took in found.items():
                began = time.perf_counter()
                session.execute(_slow_for(email, number)).fetchall()
                took.append((time.perf_counter() - began) * 1000)
    return found[_THERE][1:], found[_AWAY][1:]


def _slow_for(email: str, number: int) -> str:
    work = " + ".join(f"length(replace(lpad(email, 60000, 'abc'), 'a', '{step}'))" for step in range(_STEPS))
    slow = f"CASE WHEN email = '{email}' THEN {work} ELSE 1 END > 0"
    return f"SELECT count(*) FROM customers WHERE id > -{number} AND {slow}"


def _line(setting: str, there: Sequence[float], away: Sequence[float]) -> str:
    accuracy = _accuracy(there, away)
    return (
        f"| {setting} | {median(there):.0f} ms | {median(away):.0f} ms | {accuracy:.0%} | {_bits(1 - accuracy):.2f} |"
    )


def _accuracy(there: Sequence[float], away: Sequence[float]) -> float:
    """Of the threshold that does best on half of the times, on the other half."""
    labelled = [(took, True) for took in there] + [(took, False) for took in away]
    Random(0).shuffle(labelled)
    half = len(labelled) // 2
    learned, tried = labelled[:half], labelled[half:]
    _, threshold = max((_right(learned, at), at) for at, _ in learned)
    return max(_right(tried, threshold), 0.5)


def _right(labelled: Sequence[tuple[float, bool]], threshold: float) -> float:
    return sum((took >= threshold) == is_there for took, is_there in labelled) / len(labelled)


def _bits(wrong: float) -> float:
    """The capacity of a symmetric channel."""
    return 1.0 if wrong == 0 else 1 + wrong * log2(wrong) + (1 - wrong) * log2(1 - wrong)


if __name__ == "__main__":
    main()
