"""A text that is cast to a date is PostgreSQL's own value in a form that is read; for the rest there is a remark."""

import pytest

from tests.planner.planned import Planner

REMARK = "texts that are cast to date count as NULL in other forms than 2021-01-31, 2021/01/31 and 20210131"
YEAR = "CAST(CAST((extract(year FROM joined) * 100 + 1) * 100 + 1 AS varchar) AS date)"  # as a BI tool writes it


@pytest.mark.parametrize(
    "key",
    [
        YEAR,
        YEAR.replace("varchar", "text"),
        "to_char(joined, 'YYYY-MM-01')::date",
        "to_char(joined, 'YYYYMM01')::date",
        "to_char(joined, 'YYYY/FMMM/FMDD')::date",
    ],
)
def test_a_date_made_of_a_text_has_postgresqls_own_groups(planner: Planner, key: str) -> None:
    sql = f"SELECT {key} AS k, count(*) FROM customers WHERE joined BETWEEN '2022-03-01' AND '2024-12-30' GROUP BY 1"

    found = [(str(label), count) for label, count, *_ in planner.run(sql) if count]

    assert sorted(found) == sorted((str(day), count) for day, count in planner.truth(sql))
    assert not [notice for notice in planner.plan(sql).notices if "count as NULL" in notice]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders WHERE note::date > '2024-01-01'",
        "SELECT count(note::date) FROM orders",
        "SELECT note::date, count(*) FROM orders GROUP BY 1",
        "SELECT count(*) FROM (SELECT CASE WHEN amount > 5 THEN note END AS n FROM orders) AS o WHERE n::date > now()",
        "SELECT count(*) FROM orders JOIN customers AS c ON c.id = customer_id AND c.birth_date = note::date",
    ],
)
def test_a_statement_with_the_cast_says_which_texts_count_as_null(planner: Planner, sql: str) -> None:
    notices = planner.plan(sql).notices

    assert len([notice for notice in notices if notice.startswith(REMARK)]) == 1
    assert REMARK in "".join(map(str, planner.plan(f"EXPLAIN {sql}").outer))


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("to_char(ordered_at, 'DD.MM.YYYY')::date", "Use to_char(x, 'YYYY-MM-DD')"),
        ("to_char(ordered_at, 'Mon DD YYYY')::date", "Use to_char(x, 'YYYY-MM-DD')"),
        ("to_char(ordered_at, 'YYYY-MM-DD HH12:MI')::timestamp", "Use to_char(x, 'YYYY-MM-DD')"),
        ("(amount::text)::date", "Cast a whole number such as 20210131"),
        ("((extract(epoch FROM ordered_at) / 7)::varchar)::timestamp", "Cast a whole number such as 20210131"),
    ],
)
def test_a_text_that_is_plainly_of_another_form_is_refused(planner: Planner, key: str, hint: str) -> None:
    refused = planner.refusal(f"SELECT count(*) FROM orders WHERE {key} > '2024-01-01'")

    assert "of a text in this form is not supported" in refused.message and refused.hint.startswith(hint)
