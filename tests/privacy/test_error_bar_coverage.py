"""How often error bars hold the answer without noise: thousands of answers of a running proxy.

Every group of a statement has draws of its own, so one statement is a sample of as many answers as it has groups.
"""

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from tests.conftest import RealDatabase
from tests.support import shop
from tests.support.running import Noisegate, noisegate

GROUPS = 250
SCHEMA = f"""
CREATE TABLE people (id integer PRIMARY KEY, place integer NOT NULL, points integer NOT NULL, is_new boolean NOT NULL);
INSERT INTO people
SELECT i, 1 + i % {GROUPS}, (i::bigint * 7919 % 10007) * 200 / 10007, i * 31 % 97 < 30
FROM generate_series(0, {GROUPS} * 400 - 1) AS i;
CREATE TABLE visits (id integer PRIMARY KEY, person_id integer NOT NULL REFERENCES people, paid numeric(8,2) NOT NULL);
INSERT INTO visits SELECT i * 3 + n, i, (i * 37 + n * 911) % 5000 / 100.0
FROM generate_series(0, {GROUPS} * 400 - 1) AS i, generate_series(0, 2) AS n;
GRANT SELECT ON people, visits TO {shop.READER};
"""
RULES = f"""\
database: ${{NOISEGATE_DATABASE}}
unit: people.id
tables:
  people:
    unit: id
    columns:
      place: {{lower: 1, upper: {GROUPS}}}
      points: {{lower: 0, upper: 200}}
  visits:
    unit: person_id
    rows_per_unit: 3
    columns:
      paid: {{lower: 0, upper: 50}}
budget: {{epsilon: 1000, delta: 1e-6}}
defaults: {{epsilon: 1, max_epsilon: 10}}
analysts:
{shop.RULES[shop.RULES.index("analysts:") :].partition(chr(10))[2]}"""

PEOPLE = "people"
VISITS = "people JOIN visits ON person_id = people.id"
MEDIAN = "percentile_disc(0.5) WITHIN GROUP (ORDER BY points)"
QUARTILE = "percentile_disc(0.25) WITHIN GROUP (ORDER BY points)"
ASKED = (
    ("counts", PEOPLE, "count(*)", "0.1"),
    ("counts of few", PEOPLE, "count(*) FILTER (WHERE is_new)", "0.1"),
    ("sums", VISITS, "sum(paid)", "0.5"),
    ("averages", PEOPLE, "avg(points)", "0.3"),
    ("averages of several rows of a person", VISITS, "avg(paid)", "0.5"),
    ("shares", PEOPLE, "count(*) FILTER (WHERE is_new) * 100.0 / count(*)", "0.4"),
    ("ratios", VISITS, "sum(paid) / nullif(count(DISTINCT people.id), 0)", "0.5"),
    ("medians", PEOPLE, MEDIAN, "0.1"),
    ("quartiles", PEOPLE, QUARTILE, "0.15"),
)


@pytest.fixture(scope="module")
def measured(real_cluster: Cluster) -> RealDatabase:
    database = RealDatabase(real_cluster, "measured")
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE measured")
    with database.connect() as connection:
        connection.execute(f"DO $$ BEGIN CREATE ROLE {shop.READER} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        connection.execute(SCHEMA)
    return database


@pytest.fixture(scope="module", params=["laplace", "gaussian"])
def measuring(
    measured: RealDatabase, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Noisegate]:
    directory: Path = tmp_path_factory.mktemp("measuring")
    rules = f"{RULES}noise: {request.param}\n"
    with noisegate(directory, measured.reader_dsn, rules=rules, name="measured") as running:
        yield running


def truth(database: RealDatabase, source: str, asked: str) -> Mapping[int, Decimal]:
    with database.connect() as connection:
        return dict(connection.execute(f"SELECT place, {asked} FROM {source} GROUP BY place").fetchall())


def coverage(
    proxy: Noisegate, source: str, asked: str, settings: str, true: Mapping[int, Decimal], times: int
) -> float:
    """The share of answers within their bars, over all groups and so many releases."""
    sql = f"SELECT place, noisegate.low({asked}), noisegate.high({asked}) FROM {source} GROUP BY place"
    held = 0
    with psycopg.connect(proxy.dsn("ada"), autocommit=True) as connection:
        connection.execute(f"SET noisegate.reuse = off; SET noisegate.empty_groups = show; {settings}")
        for _ in range(times):
            rows = connection.execute(sql).fetchall()
            assert len(rows) == GROUPS
            held += sum(low <= true[place] <= high for place, low, high in rows)
    return held / (times * GROUPS)


@pytest.mark.parametrize("times", [4, pytest.param(16, marks=pytest.mark.long)])
def test_asking_n_times_anew_and_once_again_divides_the_error_by_the_root_of_n_for_nothing(
    measured: RealDatabase, measuring: Noisegate, times: int
) -> None:
    """And the bars of means hold the answer as often as they say, and are narrower by as much."""
    squares, held = dict.fromkeys(("alone", "mean"), 0.0), 0
    questions = [f"points >= 0 AND points < {100 + times + number}" for number in range(8)]
    with psycopg.connect(measuring.dsn("ada"), autocommit=True) as connection:
        connection.execute("SET noisegate.epsilon = 0.05; SET noisegate.empty_groups = show")
        for condition in questions:
            true = truth(measured, PEOPLE, f"count(*) FILTER (WHERE {condition})")
            sql = f"SELECT place, count(*), noisegate.low(count(*)), noisegate.high(count(*)) FROM {PEOPLE}"
            sql = f"{sql} WHERE {condition} GROUP BY place"
            connection.execute("SET noisegate.reuse = off")
            for _ in range(times):
                alone = connection.execute(sql).fetchall()
                squares["alone"] += sum(float(count - true[place]) ** 2 for place, count, *_ in alone) / times
            connection.execute("SET noisegate.reuse = on")
            before = connection.execute("SELECT epsilon_spent FROM noisegate.budget").fetchall()
            mean = connection.execute(sql).fetchall()
            assert connection.execute(sql).fetchall() == mean
            assert connection.execute("SELECT epsilon_spent FROM noisegate.budget").fetchall() == before
            squares["mean"] += sum(float(count - true[place]) ** 2 for place, count, *_ in mean)
            held += sum(low <= true[place] <= high for place, _, low, high in mean)

    # Of 2,000 answers either is beyond six standard deviations.
    assert math.sqrt(squares["mean"] / squares["alone"]) == pytest.approx(1 / math.sqrt(times), rel=0.13)
    assert 0.92 < held / (len(questions) * GROUPS) < 0.98


@pytest.mark.long
@pytest.mark.parametrize(("source", "asked", "epsilon"), [each[1:] for each in ASKED], ids=[each[0] for each in ASKED])
def test_bars_of_95_percent_hold_the_answer_in_93_to_97(
    measured: RealDatabase, measuring: Noisegate, source: str, asked: str, epsilon: str
) -> None:
    """The lattice of replicates puts some of them off by 0.8 hundredths; the rest is for chance."""
    true = truth(measured, source, asked)

    share = coverage(measuring, source, asked, f"SET noisegate.epsilon = {epsilon}", true, 48)

    assert 0.93 < share < 0.97


@pytest.mark.long
def test_bars_of_quantiles_that_are_put_together_hold_at_least_what_they_say(
    measured: RealDatabase, measuring: Noisegate
) -> None:
    """The way from a quantile to the end of its bar has the noise of both, so a sum of such ways is rather too long."""
    asked = f"{MEDIAN} - {QUARTILE}"

    share = coverage(measuring, PEOPLE, asked, "SET noisegate.epsilon = 0.3", truth(measured, PEOPLE, asked), 12)

    assert share > 0.925


@pytest.mark.long
@pytest.mark.parametrize(("level", "least", "most"), [("0.8", 0.75, 0.85), ("0.99", 0.978, 0.998)])
def test_bars_of_another_confidence_hold_what_that_says(
    measured: RealDatabase, measuring: Noisegate, level: str, least: float, most: float
) -> None:
    asked = "count(*) FILTER (WHERE is_new) * 100.0 / count(*)"
    true = truth(measured, PEOPLE, asked)
    settings = f"SET noisegate.epsilon = 0.4; SET noisegate.confidence = {level}"

    share = coverage(measuring, PEOPLE, asked, settings, true, 24)

    assert least < share < most
