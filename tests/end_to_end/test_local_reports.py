"""The worked example of docs/local-reports.md, as it stands there: a table of answers that people randomized."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
import yaml

from tests.conftest import RealDatabase
from tests.end_to_end.test_documents import error_of, merged, statements_of
from tests.support import shop as shop_data
from tests.support.markdown import ROOT, Fence, fences
from tests.support.running import Noisegate, noisegate

FENCES = fences(ROOT / "docs" / "local-reports.md")
PEOPLE = 4000
DRINKS = ("tea", "coffee", "o'brien's \"malt\"", "\u6c34", *(f"juice {number}" for number in range(40)))
APPS = ("mail", "maps", "music", "news", "chat", "shop", "bank", "game")
RULES = """
database: ${NOISEGATE_DATABASE}
unit: people.id
tables: {people: {unit: id}}
budget: {epsilon: 1000, delta: 1e-6}
defaults: {epsilon: 1, max_epsilon: 20}
"""


def _of(*info: str) -> list[Fence]:
    return [fence for fence in FENCES if fence.info == info]


def truth() -> list[tuple[int, str, str, bool, float, str, str]]:
    """What everybody would have said."""
    random = Random(11)
    return [
        (
            person,
            random.choice(("Berlin", "Lyon")),
            random.choices(("glad", "calm", "sad"), (5, 3, 2))[0],
            random.random() < 0.2,
            6 + 4 * random.random(),
            random.choices(APPS, range(8, 0, -1))[0],
            random.choices(DRINKS, (20, 10, 5, 5, *(1,) * 40))[0],
        )
        for person in range(1, PEOPLE + 1)
    ]


@pytest.fixture(scope="module")
def survey(shop: RealDatabase) -> RealDatabase:
    """The page's table, filled by the page's collector."""
    database = RealDatabase(shop.cluster, "survey")
    with psycopg.connect(shop.cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE survey")
    schema, (collector,) = _of("sql", "survey")[0], _of("python", "survey")
    names: dict[str, Any] = {}
    exec(collector.text, names)
    with psycopg.connect(database.dsn) as connection:
        connection.execute(schema.text.encode())
        connection.execute(f"INSERT INTO people SELECT generate_series(1, {PEOPLE}), 'x'")
        for each in truth():
            names["collect"](connection, *each)
        connection.execute(f"GRANT SELECT ON people, answers TO {shop_data.READER}; ANALYZE")
    return database


@pytest.fixture(scope="module")
def running(survey: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noisegate]:
    (rules,) = _of("yaml", "survey")
    verifiers = {"analysts": {"ada": yaml.safe_load(shop_data.RULES)["analysts"]["ada"]}}
    whole = merged(merged(yaml.safe_load(RULES), verifiers), yaml.safe_load(rules.text))
    place = tmp_path_factory.mktemp("survey")
    with noisegate(place, survey.reader_dsn, rules=yaml.safe_dump(whole), name="survey") as found:
        yield found


@pytest.fixture
def session(running: Noisegate) -> Iterator[psycopg.Connection]:
    with psycopg.connect(running.dsn(), autocommit=True) as connection:
        yield connection


def test_all_questions_of_the_page_are_answered(session: psycopg.Connection) -> None:
    for said in statements_of(_of("sql", "survey")[1]):
        assert session.execute(said.statement.encode()).fetchall()


def test_refusals_are_as_the_page_says(session: psycopg.Connection) -> None:
    (refused,) = _of("sql", "survey-refused")
    for said in statements_of(refused):
        assert error_of(session, said.statement) == said.reply


def test_estimates_hold_the_truth_within_their_margins(session: psycopg.Connection) -> None:
    """Within two of the widest margins: wrong in one of ten thousand, for each of a dozen numbers."""
    people = truth()
    session.execute("SET noisegate.confidence = 0.999")
    for mood, found, margin in session.execute(
        "SELECT mood, noisegate.estimate(mood), noisegate.margin(noisegate.estimate(mood)) FROM answers GROUP BY mood"
    ).fetchall():
        held = sum(unit[2] == mood for unit in people)
        assert abs(found - held) < 2 * margin < 2000, (mood, found, held, margin)
    asked = "noisegate.estimate(mood, 'glad')"
    for city, found, margin in session.execute(
        f"SELECT city, {asked}, noisegate.margin({asked}) FROM answers GROUP BY city"
    ).fetchall():
        held = sum(unit[1] == city and unit[2] == "glad" for unit in people)
        assert abs(found - held) < 2 * margin < 2000
    numbers = ("noisegate.estimate(smokes, true)", "noisegate.estimate(apps, 'mail')", "noisegate.estimate(hours)")
    truths = (
        sum(unit[3] for unit in people),
        sum(unit[5] == "mail" for unit in people),
        sum(unit[4] for unit in people) / PEOPLE,
    )
    for asked, held in zip(numbers, truths, strict=True):
        row = session.execute(f"SELECT {asked}, noisegate.margin({asked}) FROM answers").fetchone()
        assert row is not None and abs(row[0] - held) < 2 * row[1], (asked, row, held)


def test_words_that_nobody_has_listed_are_estimated_and_their_collisions_told(running: Noisegate) -> None:
    """Within two of the widest margins and twice what collisions may do, which a NOTICE says."""
    people, told = truth(), list[str]()
    with psycopg.connect(running.dsn(), autocommit=True) as session:
        session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        session.execute("SET noisegate.confidence = 0.999")
        for word in (*DRINKS[:4], "nobody's"):
            asked = f"noisegate.estimate(drink, '{word.replace(chr(39), chr(39) * 2)}')"
            row = session.execute(f"SELECT {asked}, noisegate.margin({asked}) FROM answers".encode()).fetchone()
            held = sum(unit[6] == word for unit in people)
            assert row is not None and abs(row[0] - held) < 2 * row[1] + 2 * PEOPLE / 128, (word, row, held)
    assert any(text.startswith('words of "drink" share bits by chance') and "0.78%" in text for text in told), told


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT city, noisegate.estimate(drink) FROM answers GROUP BY city", "no value of"),
        ("SELECT noisegate.estimate(drink, 'tea') FROM answers WHERE drink IS NOT NULL", "needs all reports"),
        ("SELECT noisegate.estimate(drink, city) FROM answers", "no word of"),
        ("SELECT noisegate.estimate(drink, NULL) FROM answers", "no word of"),
    ],
)
def test_what_a_sketch_does_not_say_is_refused(session: psycopg.Connection, query: str, words: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=words):
        session.execute(query.encode())


def test_rows_that_no_collector_makes_fail_nothing(survey: RealDatabase, session: psycopg.Connection) -> None:
    """Whatever stands in the columns, the statement that runs is total: functions that there are not are no reports."""
    with psycopg.connect(survey.dsn, autocommit=True) as owner, owner.transaction(force_rollback=True):
        explained = session.execute("EXPLAIN SELECT noisegate.estimate(drink, 'tea') FROM answers")
        plan = "\n".join(row[0] for row in explained)
        (array,) = set(re.findall(r"'\[0:63\]=\{[0-9,]+\}'", plan))
        owner.execute("INSERT INTO people SELECT generate_series(100001, 100006), 'x'")
        numbers = ("NULL", "-32768", "32767", "64", "-1", "5")
        rows = ", ".join(f"({100001 + place}, 'Lyon', {number}, NULL)" for place, number in enumerate(numbers))
        owner.execute(f"INSERT INTO answers (person_id, city, function, drink) VALUES {rows}".encode())
        bits = f"substr(drink::text, ({array}::int4[])[function], 1) = '1' AND function BETWEEN 0 AND 63"
        ((counted, whole),) = owner.execute(f"SELECT count(*) FILTER (WHERE {bits}), count(*) FROM answers").fetchall()
    assert 0 < counted < PEOPLE and whole == PEOPLE + 6


def test_counts_of_reports_are_told_as_such(running: Noisegate) -> None:
    told: list[str] = []
    with psycopg.connect(running.dsn(), autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        connection.execute("SELECT mood, count(*) FROM answers GROUP BY mood").fetchall()
        assert any(text.startswith('"mood" was randomized at epsilon 1: this counts reports') for text in told)
        connection.execute("SELECT noisegate.estimate(smokes, true) FROM answers").fetchall()
    assert re.search(r"95% of estimates within ±[0-9.]+", " ".join(told))


def test_the_page_has_what_this_test_reads() -> None:
    assert Path(ROOT / "docs" / "local-reports.md").exists()
    assert [len(_of(*info)) for info in (("sql", "survey"), ("python", "survey"), ("yaml", "survey"))] == [2, 1, 1]
