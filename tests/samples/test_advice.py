"""The commonest refusals say what is answered instead, as a statement that is."""

import pytest

from tests.samples.asking import Analyst


@pytest.mark.parametrize(
    ("sql", "message", "instead"),
    [
        ("SELECT customer_id, sum(amount) FROM payment GROUP BY customer_id HAVING sum(amount) > 100"
         " ORDER BY 2 DESC LIMIT 5",
         "these groups would show single units of customer.customer_id",
         "SELECT count(*) FROM (SELECT customer_id, sum(amount) FROM payment GROUP BY customer_id"
         " HAVING sum(amount) > 100) t"),
        ("SELECT c.customer_id, c.last_name, count(*) FROM customer AS c JOIN rental AS r USING (customer_id)"
         " GROUP BY c.customer_id, c.last_name", "these groups would show single units of customer.customer_id",
         "SELECT count(*) FROM (SELECT c.customer_id, c.last_name, count(*) FROM customer c JOIN rental r"
         " USING (customer_id) GROUP BY c.customer_id, c.last_name) t"),
        ("SELECT rental_date FROM rental WHERE staff_id = 1 ORDER BY rental_date LIMIT 10", "LIMIT and OFFSET",
         "SELECT count(*) FROM rental WHERE staff_id = 1"),
        ("SELECT first_name, last_name FROM customer WHERE activebool", "rows of a protected table",
         "SELECT count(*) FROM customer WHERE activebool"),
        ("SELECT string_agg(last_name, ', ') FROM customer", 'the aggregate "string_agg" would reveal',
         "SELECT last_name, count(*) FROM customer GROUP BY last_name"),
    ],
)  # fmt: skip
def test_a_refusal_tells_a_statement_that_is_answered(rental: Analyst, sql: str, message: str, instead: str) -> None:
    refusal = rental.refusal(sql)
    assert refusal.message.startswith(message)
    told = refusal.hint[refusal.hint.index("SELECT") :]
    assert told.replace('""', "") == instead
    assert rental.blocks(told)


def test_what_is_not_answered_is_not_told(rental: Analyst) -> None:
    """Without δ no names are found."""
    refusal = rental.refusal("SELECT * FROM customer WHERE md5(last_name) = 'x'")
    assert "SELECT" not in refusal.hint
