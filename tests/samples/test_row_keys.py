"""Tables that are joined by a key of rows, and other spellings that exercises have."""

import re

import pytest

from tests.samples.asking import Analyst

_JOINED = "FROM rental AS r JOIN payment AS p ON p.rental_id = r.rental_id"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*) {_JOINED}",
        "SELECT i.store_id, sum(p.amount) FROM payment AS p JOIN rental AS r USING (rental_id)"
        " JOIN inventory AS i USING (inventory_id) GROUP BY 1 ORDER BY 1",
        "SELECT count(*) FROM rental AS r LEFT JOIN payment AS p ON p.rental_id = r.rental_id"
        " WHERE p.payment_id IS NULL",
        "SELECT count(*) FROM rental AS r WHERE EXISTS (SELECT 1 FROM payment AS p WHERE p.rental_id = r.rental_id)",
        "SELECT count(*) FROM rental WHERE rental_id NOT IN (SELECT rental_id FROM payment)",
        "SELECT c.name, count(DISTINCT p.customer_id) FROM payment AS p JOIN rental AS r USING (rental_id)"
        " JOIN inventory AS i USING (inventory_id) JOIN film_category AS fc USING (film_id)"
        " JOIN category AS c USING (category_id) GROUP BY 1 ORDER BY 1",
    ],
)
def test_rows_that_a_key_joins_are_tied_by_their_units_too(rental: Analyst, sql: str) -> None:
    block = rental.block(sql)
    assert any(
        "are joined only where both belong to the same customer.customer_id" in notice for notice in block.notices
    )
    if "count(DISTINCT" not in sql and "JOIN inventory" not in sql:
        policy = rental.sample.policy((("rows_per_unit: 40", "rows_per_unit: 1000"),))
        assert rental.rows(sql, policy) == rental.truth(sql)


def test_the_units_are_compared_in_the_statement(rental: Analyst) -> None:
    sql = rental.lab.sql(rental.block(f"SELECT count(*) {_JOINED}").statement)
    assert sql.count('."customer_id" = ') >= 1
    with rental.lab.connection.transaction(force_rollback=True):
        rental.lab.script("UPDATE payment SET customer_id = customer_id % 600 + 1")  # now of somebody else's rental
        assert rental.rows(f"SELECT count(*) {_JOINED}") == [(0,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM customer AS a JOIN rental AS r ON r.staff_id = a.customer_id",
        "SELECT count(*) FROM customer AS a JOIN customer AS b ON a.customer_id = b.store_id",
        "SELECT count(*) FROM rental AS r JOIN payment AS p ON p.staff_id = r.staff_id",
    ],
)
def test_a_key_of_units_may_mean_another_unit(rental: Analyst, sql: str) -> None:
    refusal = rental.refusal(sql)

    assert "must be joined on their unit columns" in refusal.message
    assert re.search(r"Their units are \w\.customer_id and \w\.customer_id\.$", refusal.hint)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH g AS (SELECT film_id FROM film WHERE rating = 'G') SELECT count(*) FROM rental"
        " JOIN inventory USING (inventory_id) WHERE film_id IN (SELECT * FROM g)",
        "SELECT count(*) FROM customer WHERE customer_id IN (SELECT t.* FROM (SELECT customer_id FROM rental"
        " WHERE return_date IS NULL) AS t)",
        "SELECT count(*) FROM rental JOIN inventory USING (inventory_id) JOIN film AS f USING (film_id)"
        " WHERE f.rating = 'G'::text::rating",
    ],
)
def test_other_spellings_have_postgresqls_answer(rental: Analyst, sql: str) -> None:
    assert rental.rows(sql) == rental.truth(sql)


@pytest.mark.parametrize("spelled", ["round(avg(amount)::numeric, 2)",
                                     "round(cast(avg(amount) AS numeric), 2)",
                                     "round(avg(amount), 2)", "avg(amount)::numeric(10,2)",
                                     "round(avg(amount)::decimal, 2)"])  # fmt: skip
def test_a_mean_is_rounded_in_all_spellings(rental: Analyst, spelled: str) -> None:
    policy = rental.sample.policy((("rows_per_unit: 40", "rows_per_unit: 1000"),))
    sql = f"SELECT {spelled} FROM payment"
    assert rental.rows(sql, policy) == rental.truth(sql)


def test_a_table_of_another_name_is_no_row_key(trading: Analyst) -> None:
    """Numbers that happen to be comparable say nothing of whose rows they are."""
    sql = "SELECT count(*) FROM orders AS o JOIN order_details AS d ON o.order_id = d.quantity"
    assert "must be joined on their unit columns" in trading.refusal(sql).message


def test_a_public_table_that_is_tied_to_one_joined_later_still_multiplies(analysts: dict[str, Analyst]) -> None:
    """An employee has five territories at most, fewer as a rule, and each has one region."""
    sql = (
        "SELECT r.region_description, sum(d.amount) FROM order_details AS d JOIN orders AS o USING (order_id)"
        " JOIN employee_territories AS t USING (employee_id) JOIN territories AS y USING (territory_id)"
        " JOIN region AS r USING (region_id) GROUP BY 1"
    )
    trading = analysts["trading"]

    assert 80 * 4 < trading.block(sql).statement.rows_per_unit < 80 * 5
    assert sorted(trading.rows(sql)) == sorted(trading.truth(sql))
