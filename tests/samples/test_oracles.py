"""What is planned over public lists, public bounds and row keys moves no further than is said, lies or not."""

from collections import Counter

import pytest

from tests.properties.moved import broken_claims
from tests.properties.test_lies import check_lies
from tests.samples.asking import Analyst

LEAVE = {
    "rental": "DELETE FROM payment WHERE customer_id = 50; DELETE FROM rental WHERE customer_id = 50;"
    " DELETE FROM customer WHERE customer_id = 50",
    "trading": "DELETE FROM order_details WHERE order_id IN (SELECT order_id FROM orders WHERE customer_id ="
    " (SELECT min(customer_id) FROM orders)); DELETE FROM orders WHERE customer_id ="
    " (SELECT min(customer_id) FROM orders)",
    "music": "DELETE FROM invoice_line WHERE invoice_id IN (SELECT invoice_id FROM invoice WHERE customer_id = 7);"
    " DELETE FROM invoice WHERE customer_id = 7; DELETE FROM customer WHERE customer_id = 7",
}
STATEMENTS = [
    ("rental", "SELECT f.rating, c.name, count(*), count(DISTINCT r.customer_id) FROM rental AS r"
     " JOIN inventory AS i USING (inventory_id) JOIN film AS f USING (film_id) JOIN film_category AS fc USING (film_id)"
     " JOIN category AS c USING (category_id) GROUP BY 1, 2"),
    ("rental", "SELECT staff_id, sum(amount), avg(amount) FROM payment GROUP BY 1"),
    ("rental", "SELECT i.store_id, sum(p.amount) FROM payment AS p JOIN rental AS r USING (rental_id)"
     " JOIN inventory AS i USING (inventory_id) GROUP BY 1"),
    ("rental", "SELECT count(*) FROM rental AS r WHERE EXISTS"
     " (SELECT 1 FROM payment AS p WHERE p.rental_id = r.rental_id)"),
    ("rental", "SELECT avg(return_date - rental_date), avg((return_date - rental_date) / 2) FROM rental"),
    ("rental", "SELECT sum(f.replacement_cost), avg(f.length) FROM rental JOIN inventory USING (inventory_id)"
     " JOIN film AS f USING (film_id)"),
    ("rental", "SELECT date_part('year', payment_date) * 100 + date_part('month', payment_date), count(*) FROM payment"
     " GROUP BY 1"),
    ("trading", "SELECT e.first_name || ' ' || e.last_name, count(DISTINCT o.customer_id) FROM orders AS o"
     " LEFT JOIN employees AS e USING (employee_id) GROUP BY 1"),
    ("trading", "SELECT extract(year FROM order_date), extract(month FROM order_date), count(*) FROM orders"
     " GROUP BY 1, 2"),
    ("trading", "SELECT segment, ship_via, sum(d.amount - p.cost * d.quantity) FROM order_details AS d"
     " JOIN products AS p USING (product_id) JOIN orders USING (order_id) JOIN customers USING (customer_id)"
     " GROUP BY 1, 2"),
    ("music", "SELECT c.country, e.last_name, sum(l.unit_price * l.quantity) FROM invoice_line AS l"
     " JOIN invoice AS i USING (invoice_id) JOIN customer AS c USING (customer_id)"
     " JOIN employee AS e ON e.employee_id = c.support_rep_id GROUP BY 1, 2"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sql"), STATEMENTS)
def test_one_customer_moves_nothing_further_than_is_said(analysts: dict[str, Analyst], name: str, sql: str) -> None:
    analyst = analysts[name]
    with analyst.lab.connection.transaction(force_rollback=True):
        for block in analyst.blocks(sql):
            assert not (broken := broken_claims(analyst.lab, block, LEAVE[name])), broken


FEW = {
    "rental": "DELETE FROM payment WHERE customer_id NOT BETWEEN 48 AND 52;"
    " DELETE FROM rental WHERE customer_id NOT BETWEEN 48 AND 52;"
    " DELETE FROM customer WHERE customer_id NOT BETWEEN 48 AND 52",
    "trading": "DELETE FROM order_details WHERE order_id > 10300; DELETE FROM orders WHERE order_id > 10300",
}
SMALL = [(name, sql) for name, sql in STATEMENTS if "inventory" not in sql and "products" not in sql and name in FEW]


@pytest.mark.parametrize(("name", "sql"), SMALL)
def test_a_lying_planner_costs_meaning_and_no_privacy(analysts: dict[str, Analyst], name: str, sql: str) -> None:
    """Over few rows and small public tables: a lie about what joins them makes pairs of all."""
    analyst, seen = analysts[name], Counter[str]()
    with analyst.lab.connection.transaction(force_rollback=True):
        analyst.lab.script(FEW[name])
        for lie in range(4):
            check_lies(analyst.lab, sql, analyst.sample.policy(), LEAVE[name], lie, (0.02, 0.1)[lie % 2], "", seen)
    assert seen["answered"] + seen["refused"] + seen["confused"] == 4
