"""Lists and bounds that the twin makes of public tables, through the whole proxy."""

import psycopg

from tests.support.running import Noisegate

_ITEMS = "order_items AS i JOIN products AS p ON p.id = i.product_id"


def test_keys_of_a_public_table_are_listed_as_they_go_together(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn("ada"), autocommit=True) as connection:
        connection.execute("SET noisegate.empty_groups = show")
        found = connection.execute(f"SELECT p.category, p.name, count(*) FROM {_ITEMS} GROUP BY 1, 2").fetchall()
        listed = connection.execute("SELECT category, name FROM products ORDER BY 1, 2").fetchall()
        by_key = connection.execute("SELECT product_id, count(*) FROM order_items GROUP BY 1").fetchall()
    assert [row[:2] for row in found] == listed
    assert [row[0] for row in by_key] == list(range(1, 31))


def test_a_public_price_bounds_what_is_computed_with_it(proxy: Noisegate) -> None:
    with psycopg.connect(proxy.dsn("ada"), autocommit=True) as connection:
        ((total,),) = connection.execute(f"SELECT sum(p.price * i.quantity) FROM {_ITEMS}").fetchall()
    assert total is not None


def test_a_list_that_stands_on_the_clock_is_made_for_each_statement(proxy: Noisegate) -> None:
    """Lists of earlier moments were kept, each before the next one, until they were too many."""
    sql = f"SELECT category, count(*) FROM {_ITEMS} WHERE price + extract(epoch FROM now()) > 5 GROUP BY 1"
    with psycopg.connect(proxy.dsn("ada"), autocommit=True) as connection:
        connection.execute("SET noisegate.empty_groups = show")
        answers = [connection.execute(sql).fetchall() for _ in range(25)]
    assert {tuple(category for category, _ in rows) for rows in answers} == {("book", "game", "tool")}
