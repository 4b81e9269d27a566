"""Subqueries over public tables alone use whatever SQL PostgreSQL has: the twin answers them exactly, and free."""

import pytest

from tests.samples.asking import Analyst

MATCHING = [
    "inventory_id IN (SELECT inventory_id FROM inventory JOIN film USING (film_id)"
    " WHERE fulltext @@ to_tsquery('film & 7'))",
    "inventory_id NOT IN (SELECT inventory_id FROM inventory JOIN film USING (film_id)"
    " WHERE fulltext @@ to_tsquery('film & 7'))",
    "inventory_id IN (SELECT inventory_id FROM inventory WHERE md5(inventory_id::text) LIKE 'a%')",
    "inventory_id IN (SELECT unnest(ARRAY[1, 2, 3]) FROM store)",
    "inventory_id = ANY (SELECT inventory_id FROM inventory WHERE format('%s', store_id) = '1')",
    "EXISTS (SELECT FROM film WHERE fulltext @@ to_tsquery('film & 7'))",
    "NOT EXISTS (SELECT FROM film WHERE fulltext @@ to_tsquery('film & 7'))",
]


@pytest.mark.parametrize("condition", MATCHING)
def test_a_subquery_over_public_tables_is_answered_by_the_twin(rental: Analyst, condition: str) -> None:
    sql = f"SELECT count(*) FROM rental WHERE {condition}"

    assert rental.rows(sql) == rental.truth(sql)
