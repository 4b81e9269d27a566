# ruff: noqa: E501  (a statement a line)
"""Any function may be computed of public rows, beside protected ones too: over the public table alone, beforehand."""

from collections.abc import Iterator

import pytest

from rules.planner.plan import NeedsInner
from rules.planner.planner import plan
from rules.refusal import NotSupported
from tests.conftest import RealDatabase, make_shop
from tests.planner.planned import Planner, planned
from tests.planner.test_prerequisites import request

ITEMS = "order_items i JOIN products p ON p.id = i.product_id"


@pytest.fixture(scope="module")
def tagged(shop: RealDatabase) -> Iterator[RealDatabase]:
    made = make_shop(shop.cluster, "tagged_shop")
    with made.connect() as connection:
        connection.execute("ALTER TABLE products ADD tags text[], ADD words tsvector")
        connection.execute(
            "UPDATE products SET tags = ARRAY[category, 'n' || id % 3], words = to_tsvector('english', name)"
        )
        connection.execute("ALTER TABLE customers ADD hobbies text[]")
    yield made
    with shop.connect() as connection:
        connection.execute("DROP DATABASE tagged_shop WITH (FORCE)")


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (
            f"SELECT count(*) FROM {ITEMS} WHERE to_tsvector('english', p.name) @@ to_tsquery('english', '7 | 8') AND i.quantity > 1",
            "SELECT p.id FROM products p WHERE to_tsvector('english', p.name) @@ to_tsquery('english', '7 | 8')",
        ),
        (
            f"SELECT count(*) FROM {ITEMS} WHERE words @@ '7'",
            "SELECT p.id FROM products p WHERE words @@ '7'",
        ),
        (
            f"SELECT t, count(*) FROM {ITEMS}, unnest(p.tags) AS t GROUP BY t",
            "SELECT p.id AS noisegate_key, t.* FROM products p, unnest(p.tags) t",
        ),
        (
            f"SELECT u.tag, count(*) FROM {ITEMS} CROSS JOIN LATERAL unnest(p.tags) AS u (tag) GROUP BY u.tag",
            "SELECT p.id AS noisegate_key, u.* FROM products p, LATERAL unnest(p.tags) u(tag)",
        ),
        (
            f"SELECT w, count(*) FROM {ITEMS} JOIN LATERAL regexp_split_to_table(p.name, ' ') AS w ON w <> 'Product' GROUP BY w",
            "SELECT p.id AS noisegate_key, w.* FROM products p, LATERAL regexp_split_to_table(p.name, ' ') w",
        ),
    ],
)
def test_public_rows_are_asked_for_first_by_their_key(tagged: RealDatabase, sql: str, asked: str) -> None:
    planner = Planner(tagged.dsn)
    first = plan(request(sql), planner.policy, planner.catalog)

    assert isinstance(first, NeedsInner) and first.text == asked
    (block,) = planned(planner, sql).blocks
    with tagged.connect() as connection:
        truth = sorted(connection.execute(sql).fetchall())
    uncapped = sorted((*row[: len(block.keys)], *row[len(block.keys) :][:1]) for row in planner.rows_of(block))
    assert [row[:-1] for row in uncapped] == [row[:-1] for row in truth]
    assert sum(row[-1] for row in uncapped) <= sum(row[-1] for row in truth)
    assert sum(row[-1] for row in uncapped) > 0.7 * sum(row[-1] for row in truth)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM customers WHERE to_tsvector(name) @@ to_tsquery('a')",
        f"SELECT count(*) FROM {ITEMS} JOIN orders o ON o.id = i.order_id WHERE to_tsvector(p.name || o.note) @@ to_tsquery('a')",
        "SELECT h, count(*) FROM customers c, unnest(c.hobbies) AS h GROUP BY h",
        f"SELECT count(*) FROM {ITEMS} WHERE to_tsvector('english', p.name) @@ to_tsquery(i.quantity::text)",
        f"SELECT count(*) FROM {ITEMS} WHERE NOT to_tsvector('english', p.name) @@ to_tsquery('a') OR i.quantity > 1",
    ],
)
def test_what_reads_protected_columns_too_is_refused(tagged: RealDatabase, sql: str) -> None:
    with pytest.raises(NotSupported):
        Planner(tagged.dsn).plan(sql)


def test_a_name_that_may_be_of_another_table_is_not_taken_for_the_public_one(tagged: RealDatabase) -> None:
    sql = f"SELECT count(*) FROM {ITEMS} JOIN (SELECT 1 AS x) s ON true WHERE to_tsvector(name) @@ to_tsquery('a')"

    with pytest.raises(NotSupported, match="to_tsvector"):
        planned(Planner(tagged.dsn), sql)


def test_a_condition_that_rows_of_nulls_may_pass_is_refused(tagged: RealDatabase) -> None:
    sql = (
        "SELECT count(*) FROM order_items i LEFT JOIN products p ON p.id = i.product_id"
        " WHERE to_tsvector(coalesce(p.name, 'a')) @@ to_tsquery('a')"
    )

    with pytest.raises(NotSupported, match="to_tsvector"):
        planned(Planner(tagged.dsn), sql)
