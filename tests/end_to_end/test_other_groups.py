"""SET noisegate.other = on, as a client sees it: one more group, and what its released counts say."""

from pathlib import Path

import psycopg

from tests.conftest import RealDatabase
from tests.support import shop as shop_data
from tests.support.running import noisegate

CITIES = "SELECT city, count(*) FROM customers GROUP BY city ORDER BY city"


def test_what_is_not_declared_is_a_group_and_told_of_where_it_is_most(shop: RealDatabase, tmp_path: Path) -> None:
    """A list of two cities of four, in which fewer than half of the customers live."""
    rules = shop_data.RULES.replace("city: {values: [Berlin, Lyon, Porto, Graz]}", "city: {values: [Lyon, Graz]}")
    told: list[str] = []
    with (
        noisegate(tmp_path, shop.reader_dsn, rules=rules) as running,
        psycopg.connect(running.dsn("ada"), autocommit=True) as connection,
    ):
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        connection.execute("SET noisegate.epsilon = 10")
        without = connection.execute(CITIES).fetchall()
        assert not any("outside" in text for text in told)

        connection.execute("SET noisegate.other = on")
        groups = connection.execute(CITIES).fetchall()

    assert [city for city, _ in without] == ["Graz", "Lyon", None]
    assert [city for city, _ in groups] == ["Graz", "Lyon", "other", None]
    assert abs(sum(count for _, count in groups) - shop_data.CUSTOMERS) < 20
    assert "values of city outside of what the rules declare are the group other" in told
    assert any(text.startswith("most of what is counted lies outside of the lists and bounds") for text in told)
