"""The columns that have noise, by the names that a client sees, and the arithmetic they are made of."""

import pytest

from rules.catalog import Catalog
from rules.release.margins import Formula, Number, Operation, Value
from tests.planner.test_outer_statement import catalog, planned

__all__ = ["catalog"]

SHARE = Operation("/", (Operation("*", (Value(0), Number("100.0"))), Operation("nullif", (Value(1), Number("0")))))
RESULTS: list[tuple[str, list[tuple[str, Formula | None]]]] = [
    ("SELECT city, count(*) FROM customers GROUP BY city", [("count", Value(0))]),
    ("SELECT round(avg(amount), 2) AS mean, 7 AS seven FROM orders", [("mean", Value(0))]),
    ("SELECT (sum(amount)::numeric(12,2))::float8 FROM orders", [("sum", Value(0))]),
    (
        "SELECT count(*) FILTER (WHERE amount > 9) * 100.0 / nullif(count(*), 0) AS share FROM orders",
        [("share", SHARE)],
    ),
    ("SELECT coalesce(sum(amount), 0) FROM orders", [("coalesce", Operation("coalesce", (Value(0), Number("0"))))]),
    ("SELECT -abs(count(*)) FROM orders", [("?column?", Operation("-", (Operation("abs", (Value(0),)),)))]),
    ("SELECT count(*) || ' orders' AS words FROM orders", [("words", None)]),
    ("SELECT count(*) * $1 AS n FROM orders", [("n", None)]),
    ("SELECT noisegate.margin(avg(amount)), avg(amount) FROM orders", [("avg", Value(0))]),
    ("SELECT sum(count(*)) OVER () FROM orders", [("sum", None)]),
    (
        "WITH a AS (SELECT status, count(*) AS n, avg(amount) FROM orders GROUP BY 1) SELECT n * 2 FROM a",
        [("count(*)", Value(0)), ("avg(amount)", Value(1))],
    ),
]


@pytest.mark.parametrize(("sql", "expected"), RESULTS, ids=[sql for sql, _ in RESULTS])
def test_every_column_with_noise_is_named(catalog: Catalog, sql: str, expected: list[tuple[str, Formula]]) -> None:
    given = (("2",), ("integer",)) if "$1" in sql else ((), ())

    made = planned(sql, catalog, *given)

    assert [(result.name, result.formula) for result in made.results] == expected
