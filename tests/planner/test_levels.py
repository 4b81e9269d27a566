"""GROUPING SETS of what does not add up: one release for each level, for one ε."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from rules.mechanisms.draw import in_whole
from rules.mechanisms.release_plan import Block, Measure, PublicGroups
from rules.release.release import Noised, columns
from tests.conftest import RealDatabase
from tests.planner.planned import Planner

PEOPLE = "FROM orders AS o JOIN customers AS c ON c.id = o.customer_id WHERE city IS NOT NULL"


@pytest.fixture
def planner(shop: RealDatabase) -> Planner:
    return Planner(shop.dsn)


@pytest.fixture
def connection(shop: RealDatabase) -> Iterator[psycopg.Connection]:
    with shop.connect() as connected:
        yield connected


def exact(planner: Planner, connection: psycopg.Connection, block: Block) -> list[list[str | None]]:
    """The columns of a block as they would be without noise."""
    assert isinstance(block.groups, PublicGroups) and block.groups.ordinals is not None
    rows = connection.execute(planner.sql_of(block)).fetchall()
    width = block.key_cells
    found = {tuple(map(int, row[:width])): row[width:] for row in rows}
    values = {
        number: tuple(
            in_whole(found[ordinal][number] if ordinal in found else 0, measure.factor)
            for ordinal in block.groups.ordinals
        )
        for number, measure in enumerate(block.measures)
        if isinstance(measure, Measure)
    }
    return [list(column) for column in columns(block, Noised(block.groups.rows, values))]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT status, count(DISTINCT customer_id) {PEOPLE} GROUP BY ROLLUP (status)",
        f"""SELECT status, city, count(DISTINCT customer_id), grouping(status, city) AS g {PEOPLE}
            GROUP BY CUBE (status, city) HAVING count(DISTINCT customer_id) > 0""",
        f"""SELECT coalesce(city, 'all'), is_vip, count(DISTINCT o.status) {PEOPLE}
            GROUP BY GROUPING SETS ((city), (is_vip), (), (city))""",
        f"SELECT city, count(DISTINCT customer_id) {PEOPLE} GROUP BY ROLLUP (city)",
    ],
)
def test_every_level_is_postgresqls_own(planner: Planner, connection: psycopg.Connection, sql: str) -> None:
    """With caps that cut nobody."""
    made = planner.plan(sql, rows_per_unit=None, groups_per_unit=None)
    arrays = [column for block in made.blocks for column in exact(planner, connection, block)]
    text = "".join(part if isinstance(part, str) else f"%(a{part})s" for part in made.outer)

    shown = connection.execute(text, {f"a{place}": array for place, array in enumerate(arrays, start=1)}).fetchall()

    truth = connection.execute(sql).fetchall()
    counted = [row for row in shown if row not in truth]
    assert all(0 in row for row in counted), f"{counted} are not among {truth}"  # groups that nobody is in
    assert set(truth) <= set(shown)


def test_people_of_one_group_each_add_up_and_are_paid_once(planner: Planner) -> None:
    (block,) = planner.plan(f"SELECT city, count(DISTINCT customer_id) {PEOPLE} GROUP BY ROLLUP (city)").blocks

    assert block.sets == ((0,), ())


def test_levels_have_shares_by_the_root_of_their_sensitivity(planner: Planner) -> None:
    """A person is in four states of an order at most, and in one total."""
    made = planner.plan("SELECT status, count(DISTINCT customer_id) FROM orders GROUP BY ROLLUP (status)")

    four, one = made.blocks
    assert [block.measures[0].sensitivity for block in made.blocks] == [4, 1]
    assert abs(four.epsilon / one.epsilon - 2) < Decimal("0.001")
    assert four.epsilon + one.epsilon <= 1


def test_quantiles_have_levels_too(planner: Planner) -> None:
    made = planner.plan(
        "SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders GROUP BY CUBE (1)"
    )

    assert [len(block.keys) for block in made.blocks] == [1, 0]


def test_a_level_is_the_question_that_asks_for_it_alone(planner: Planner) -> None:
    """So that what was answered of it is served again."""
    first, total = planner.plan(
        "SELECT status, count(DISTINCT customer_id) FROM orders GROUP BY ROLLUP (status)"
    ).blocks

    assert (
        first.canonical == planner.block("SELECT status, count(DISTINCT customer_id) FROM orders GROUP BY 1").canonical
    )
    assert total.canonical == planner.block("SELECT count(DISTINCT customer_id) FROM orders").canonical
