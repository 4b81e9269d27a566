"""A LEFT JOIN along a foreign key is an inner join, and only where the key proves that each row has its partner."""

from dataclasses import replace

import pytest

from rules.catalog import Catalog
from rules.mechanisms.release_plan import PublicGroups
from tests.planner.planned import Planner

ALONG = (
    "SELECT c.segment, count(*) FROM orders AS o LEFT JOIN customers AS c ON o.customer_id = c.id GROUP BY c.segment"
)


def has_null_group(planner: Planner, sql: str) -> bool:
    """Whether the answer has a group of rows without a partner."""
    groups = planner.block(sql).groups
    assert isinstance(groups, PublicGroups)
    return (None,) in groups.rows


@pytest.mark.parametrize(
    "sql",
    [
        ALONG,
        ALONG.replace("o.customer_id = c.id", "c.id = o.customer_id"),
        ALONG.replace("orders AS o", "(SELECT * FROM orders WHERE amount > 10) AS o"),
        ALONG.replace("orders AS o", "order_items AS i JOIN orders AS o ON i.order_id = o.id"),
    ],
)
def test_every_row_has_a_partner_along_a_foreign_key(planner: Planner, sql: str) -> None:
    assert not has_null_group(planner, sql)
    assert "LEFT JOIN" not in planner.sql(sql)


@pytest.mark.parametrize(
    "sql",
    [
        ALONG.replace("= c.id", "= c.id AND c.is_vip"),
        ALONG.replace("customers AS c", "(SELECT * FROM customers WHERE is_vip) AS c"),
        ALONG.replace("o.customer_id = c.id", "o.customer_id = c.id AND o.amount > 10"),
    ],
)
def test_any_other_condition_may_leave_a_row_alone(planner: Planner, sql: str) -> None:
    assert has_null_group(planner, sql)


def test_a_foreign_key_that_is_not_validated_proves_nothing(planner: Planner) -> None:
    doubtful = replace(planner, dsn=planner.dsn)
    doubtful.catalog = without_proof(planner.catalog)
    assert has_null_group(doubtful, ALONG)


def test_the_answer_is_that_of_the_left_join(planner: Planner) -> None:
    found = {
        row[0]: row[1] for row in planner.run(ALONG, "DELETE FROM order_items", "DELETE FROM orders WHERE id % 2 = 0")
    }
    assert set(found) == {"consumer", "business", "public sector"}


def without_proof(catalog: Catalog) -> Catalog:
    tables = [
        replace(table, foreign_keys=tuple(replace(key, proves=False) for key in table.foreign_keys))
        for table in catalog.tables
    ]
    return replace(catalog, tables=tuple(tables))
