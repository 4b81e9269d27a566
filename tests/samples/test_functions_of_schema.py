"""Functions of the schema in SQL, used over protected rows: the answer is PostgreSQL's own."""

import pytest

from tests.samples.asking import Analyst

QUESTIONS = (
    "SELECT size_of(total), count(*) FROM invoice GROUP BY 1 HAVING count(*) > 0 ORDER BY 1",
    "SELECT size_of(total) AS size, sum(total) FROM invoice GROUP BY size_of(total) HAVING count(*) > 0 ORDER BY 2",
    "SELECT count(*) FROM invoice WHERE is_large(total)",
    "SELECT count(*) FILTER (WHERE public.size_of(total) = 'small') FROM invoice",
    "SELECT sum(worth(total, 2)), sum(worth(total)) FROM invoice",
    "SELECT country, sum(net(total)) FROM invoice JOIN customer USING (customer_id) GROUP BY 1 HAVING count(*) > 0"
    " ORDER BY net(10), 1",
    "SELECT size_of FROM (SELECT size_of(total), count(*) AS n FROM invoice GROUP BY 1) AS s WHERE n > 0 ORDER BY n",
    "SELECT size_of(NULLIF(total, total)), count(*) FROM invoice GROUP BY 1 HAVING count(*) > 0",
)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_function_is_what_its_body_says(music: Analyst, sql: str) -> None:
    assert music.rows(sql) == music.truth(sql)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT sum(spent_by(customer_id)) FROM customer", "spent_by"),
        ("SELECT padded(country), count(*) FROM customer GROUP BY 1", "padded"),
        ("SELECT sum(endless(total)) FROM invoice", "nested"),
        ("SELECT sum(upper(total)) FROM invoice", "text, not numeric"),  # PostgreSQL's own has that name
        ("SELECT sum(worth(quantity => 1, price => total)) FROM invoice", "worth"),
    ],
)
def test_what_is_more_than_an_expression_is_refused(music: Analyst, sql: str, words: str) -> None:
    assert words in str(music.refusal(sql))
