"""An enum with an implicit cast to text, which PostgreSQL cannot compare: it is grouped, and compared as text."""

import pytest

from rules.refusal import NotSupported
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop as tables

SCHEMA = """
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE CAST (mood AS text) WITH INOUT AS IMPLICIT;
CREATE DOMAIN mood_domain AS mood;
CREATE TABLE people (id integer PRIMARY KEY, m mood, d mood_domain);
INSERT INTO people SELECT i, 'a', 'b' FROM generate_series(1, 6) AS i;
"""
RULES = "database: ${NOISEGATE_DATABASE}\nunit: people.id\ntables: {people: {unit: id}}\n"


@pytest.fixture(scope="module")
def planner(shop: RealDatabase) -> Planner:
    with shop.connect() as owner:
        owner.execute("CREATE DATABASE ambiguous_enums")
    made = RealDatabase(shop.cluster, "ambiguous_enums")
    with made.connect() as connection:
        connection.execute(SCHEMA)
    return Planner(made.dsn, RULES + tables.RULES[tables.RULES.index("budget:") :])


@pytest.mark.parametrize(
    "condition",
    [
        "m = 'a'",
        "'a'::mood = m",
        "d < 'b'",
        "m IN ('a', 'b')",
        "m IS DISTINCT FROM 'a'",
        "CASE m WHEN 'a' THEN true END",
    ],
)
def test_a_comparison_is_refused_where_it_stands_with_a_hint_that_works(planner: Planner, condition: str) -> None:
    sql = "SELECT count(*) FROM people WHERE "
    with pytest.raises(NotSupported, match=r"public\.mood, an enum with an implicit cast") as refused:
        planner.block(sql + condition)

    assert refused.value.position is not None and refused.value.position > len(sql)
    assert "x::text = 'a'" in refused.value.hint
    assert planner.numbers(planner.block(f"{sql} m::text = 'a'")) == [6]
    assert planner.numbers(planner.block(f"{sql} m::text IN ('b')")) == [0]


def test_it_is_grouped(planner: Planner) -> None:
    assert planner.numbers(planner.block("SELECT m, count(*) FROM people WHERE d::text <> 'a' GROUP BY m")) == [6]
