"""No number about few units: whatever shape a question has, groups of few people have no numbers, and others have."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import Noisegate, noisegate

RULES = shop_data.RULES.replace("{epsilon: 1, max_epsilon: 10,", "{epsilon: 10, max_epsilon: 10,") + "min_units: 60\n"
FEW, MANY = 20, 150
"""Customers of a question; the count of them is off by 40 at ε above 1 with a probability below 10^-17."""


@pytest.fixture(scope="module")
def session(shop: RealDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    directory: Path = tmp_path_factory.mktemp("min_units")
    running: Noisegate
    with (
        noisegate(directory, shop.reader_dsn, rules=RULES) as running,
        psycopg.connect(running.dsn(), autocommit=True) as connection,
    ):
        yield connection


SHAPES = [
    "SELECT count(*) FROM customers WHERE id <= {}",
    "SELECT count(DISTINCT id) FROM customers WHERE id <= {}",
    "SELECT avg(amount) FROM orders WHERE customer_id <= {}",
    "SELECT sum(amount) FROM orders WHERE customer_id <= {}",
    "SELECT 2 * count(*) + 1 FROM orders WHERE customer_id <= {}",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders WHERE customer_id <= {}",
    "SELECT noisegate.high(count(*)) FROM customers WHERE id <= {}",
    "SELECT noisegate.margin(avg(amount)) FROM orders WHERE customer_id <= {}",
    "SELECT n FROM (SELECT count(*) AS n FROM customers WHERE id <= {}) AS t",
    "WITH t AS (SELECT stddev(amount) AS s FROM orders WHERE customer_id <= {}) SELECT s FROM t",
    "SELECT count(*) FILTER (WHERE amount > 100) FROM orders WHERE customer_id <= {}",
]


@pytest.mark.parametrize("sql", SHAPES)
def test_an_answer_about_few_people_has_no_number(session: psycopg.Connection, sql: str) -> None:
    (few,) = session.execute(sql.format(FEW)).fetchone() or ()
    (many,) = session.execute(sql.format(MANY)).fetchone() or ()

    assert few is None
    assert many is not None and many > 0


PARTS = [
    "count(*) FILTER (WHERE id <= {})",
    "count(CASE WHEN id <= {} THEN 1 END)",
    "sum(CASE WHEN id <= {} THEN 1 ELSE 0 END)",
    "count(DISTINCT id) FILTER (WHERE id <= {})",
    "min(birth_date) FILTER (WHERE id <= {})",
    "noisegate.margin(count(*) FILTER (WHERE id <= {}))",
]


@pytest.mark.parametrize("part", PARTS)
def test_a_number_about_few_people_of_a_large_group_is_none(session: psycopg.Connection, part: str) -> None:
    sql = f"SELECT {part.format(FEW)}, {part.format(MANY)}, count(*) FROM customers"
    few, many, of_all = session.execute(sql).fetchone() or ()

    assert few is None
    assert many is not None and of_all > 100


def test_what_would_tell_of_few_people_is_not_to_be_had(session: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="min_units"):
        session.execute("SET noisegate.cut = on")


@pytest.mark.parametrize("within", ["1%", "3"])
def test_numbers_that_are_shown_may_be_asked_for_by_their_error(session: psycopg.Connection, within: str) -> None:
    """The probe is off by 200 with a probability below 10^-20."""
    session.execute(f"SET noisegate.within = '{within}'")
    (count,) = session.execute("SELECT count(*) FROM customers WHERE id > -2").fetchone() or (0,)
    session.execute("RESET noisegate.within")

    assert abs(count - 400) < 30


def test_groups_and_levels_are_looked_at_one_by_one(session: psycopg.Connection) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    sql = (
        "SELECT city, count(*), min(birth_date) FROM customers WHERE city <> 'Berlin' OR id <= 8 "
        "GROUP BY ROLLUP (city) HAVING count(*) IS NULL OR count(*) > 0 ORDER BY 1"
    )
    session.execute("SET noisegate.empty_groups = show")
    rows = session.execute(sql).fetchall()
    session.execute("RESET noisegate.empty_groups")
    left = {city for city, _, _ in session.execute(sql).fetchall()}

    named = {city: (count, least) for city, count, least in rows}
    assert named["Berlin"] == (None, None)
    assert named["Lyon"][0] > 50
    assert "Berlin" not in left and "Lyon" in left  # a group without numbers is left out, unless all are to be shown
    assert any("have no numbers" in line or "has no numbers" in line for line in told), told


def test_groups_found_in_the_data_are_left_out(session: psycopg.Connection) -> None:
    rows = session.execute(
        "SELECT extract(year FROM ordered_at), customer_id % 2, count(*) FROM orders "
        "WHERE customer_id <= 150 GROUP BY 1, 2"
    ).fetchall()
    assert all(count is None or count > 40 for _, _, count in rows)
