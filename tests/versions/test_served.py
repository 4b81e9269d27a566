"""A PostgreSQL of any version behind the proxy: the same answers, near its own, and what it lacks refused in time."""

from collections.abc import Iterator
from decimal import Decimal
from threading import Timer

import psycopg
import pytest

from proxy.twin.server_programs import version_for
from rules.functions.registry import FUNCTIONS
from tests.conftest import RealDatabase
from tests.support.running import Noisegate
from tests.support.shop import LOYAL

Session = psycopg.Connection

# Rows of which the rules cut nothing: few of each customer, and amounts within their bounds.
ORDERS = f"FROM orders WHERE amount <= 500 AND customer_id NOT IN {LOYAL}"
ITEMS = "FROM order_items AS i JOIN products AS p ON p.id = i.product_id JOIN orders AS o ON o.id = i.order_id"

AGGREGATES = """
count(*)
count(note)
count(*) FILTER (WHERE status = 'paid')
count(*) FILTER (WHERE note ~ '1$' OR note IS NULL)
count(*) FILTER (WHERE ordered_at > timestamptz '2024-03-01' + interval '2 days 03:00:00')
count(*) FILTER (WHERE extract(month FROM ordered_at) = 5 OR to_char(ordered_at, 'DD') = '02')
count(DISTINCT customer_id)
count(DISTINCT status)
sum(amount)
sum(amount) FILTER (WHERE status <> 'open')
sum(CASE WHEN status = 'sent' THEN 1 ELSE 0 END)
sum(amount / 7 + abs(amount - 250) * 2)
sum(round(amount, 1) % 10)
avg(amount)
avg(extract(hour FROM ordered_at))
var_pop(amount)
stddev(amount)
covar_pop(amount, extract(hour FROM ordered_at))
regr_avgx(amount, extract(dow FROM ordered_at))
percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)
percentile_disc(0.9) WITHIN GROUP (ORDER BY amount)
"""

KEYS = {
    "an enum": ("status", ORDERS),
    "a boolean": ("amount > 100", ORDERS),
    "months": ("date_trunc('month', ordered_at)", ORDERS),
    "years": ("extract(year FROM ordered_at)", ORDERS),
    "days of the week": ("date_part('dow', ordered_at)", ORDERS),
    "buckets": ("width_bucket(amount, 0, 500, 4)", ORDERS),
    "texts": ("to_char(ordered_at, 'YYYY-\"Q\"Q')", ORDERS),
    "declared values": ("city", "FROM customers WHERE city IS NOT NULL"),
    "public rows": ("p.category", f"{ITEMS} WHERE o.customer_id NOT IN {LOYAL}"),
    "a rollup": ("status", f"{ORDERS} GROUP BY ROLLUP (status)"),
}

SINCE = {name: found.since for name, found in FUNCTIONS.items() if found.since > 13}


def near(given: object, expected: object, margin: object) -> bool:
    """A Laplace draw is beyond eight times the error that 95% stay within with a probability of 0.05^8 = 4e-11.

    Where 95% of counts are exact, that error is none, and a draw of more than none has a probability of 5%.
    """
    room = 8 * (margin + 1) if isinstance(margin, int) else 8 * Decimal(str(margin)) + Decimal("0.01")
    return abs(Decimal(str(given)) - Decimal(str(expected))) <= room


@pytest.fixture
def precise(analyst: Session) -> Iterator[Session]:
    """With as little noise as the rows above need: no customer has more than 17, of any table."""
    analyst.execute("SET noisegate.rows_per_unit = 17; SET noisegate.empty_groups = show")
    yield analyst
    analyst.execute("RESET noisegate.rows_per_unit; RESET noisegate.empty_groups")


@pytest.mark.parametrize("aggregate", AGGREGATES.strip().splitlines())
def test_an_aggregate_is_near_the_true_one(precise: Session, real: Session, aggregate: str) -> None:
    answer = precise.execute(f"SELECT {aggregate}, noisegate.margin({aggregate}) {ORDERS}").fetchone()
    truth = real.execute(f"SELECT {aggregate} {ORDERS}").fetchone()

    assert answer is not None and truth is not None
    assert near(answer[0], truth[0], answer[1])


@pytest.mark.parametrize(("key", "source"), KEYS.values(), ids=KEYS)
def test_groups_are_the_true_ones(precise: Session, real: Session, key: str, source: str) -> None:
    grouped = source if "GROUP BY" in source else f"{source} GROUP BY 1"
    answer = precise.execute(f"SELECT {key}, count(*), noisegate.margin(count(*)) {grouped}").fetchall()
    truth: dict[object, int] = dict(real.execute(f"SELECT {key}, count(*) {grouped}").fetchall())

    found = {row[0]: row[1:] for row in answer}
    assert truth.keys() <= found.keys()
    for group, (count, margin) in found.items():
        assert near(count, truth.get(group, 0), margin)


def test_the_smallest_the_largest_and_the_most_frequent_are_found(precise: Session) -> None:
    sql = f"SELECT min(amount), max(amount) {ORDERS}"
    low, high = precise.execute(sql).fetchone() or (None, None)
    city = precise.execute("SELECT mode() WITHIN GROUP (ORDER BY city) FROM customers").fetchone()

    assert 0 <= low < 100 < 400 < high <= 500
    assert city == ("Berlin",)


SHAPES = """
SELECT count(*) FROM (SELECT customer_id, count(*) AS n, avg(amount) AS mean FROM orders GROUP BY 1) AS c WHERE n > 2 AND mean > 50
SELECT count(*) FROM customers AS c WHERE EXISTS (SELECT FROM orders AS o WHERE o.customer_id = c.id AND o.amount > 400)
SELECT count(*) FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE status = 'paid')
SELECT count(*) FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY ordered_at DESC, id) AS r FROM orders) AS o WHERE r = 1
SELECT count(*) FROM (SELECT DISTINCT ON (customer_id) * FROM orders ORDER BY customer_id, ordered_at, id) AS o WHERE status = 'open'
SELECT count(*) FROM (SELECT lag(amount, 1, 0) OVER (PARTITION BY customer_id ORDER BY ordered_at, id) AS before, amount FROM orders) AS o WHERE before < amount
SELECT count(*) FROM customers AS c LEFT JOIN LATERAL (SELECT amount FROM orders AS o WHERE o.customer_id = c.id ORDER BY ordered_at DESC, id LIMIT 1) AS t ON true WHERE amount > 250
SELECT count(*) FROM customers AS c WHERE (SELECT sum(amount) FROM orders AS o WHERE o.customer_id = c.id) > 1000
SELECT count(*) FROM customers WHERE birth_date + interval '30 years 01:30:00' < date '2000-01-01' OR age(timestamp '2020-01-01', birth_date) > '40 years'
SELECT count(*) FROM customers WHERE substring(name FROM '\\d+')::integer % 2 = 0 AND split_part(name, ' ', 1) = 'Customer'
"""  # noqa: E501  (a statement a line)


@pytest.mark.parametrize("sql", SHAPES.strip().splitlines())
def test_whole_statements_run_on_every_version(analyst: Session, real: Session, sql: str) -> None:
    """Some customers have more rows than are counted, and lag of two types is not known to the oldest."""
    (answer,) = analyst.execute(sql).fetchone() or (None,)
    (truth,) = real.execute(sql.replace("lag(amount, 1, 0)", "lag(amount, 1, 0.0)")).fetchone() or (None,)

    assert answer is not None and truth is not None
    assert abs(answer - truth) <= 20 + (500 if "before" in sql else 0)


def test_bounds_are_chosen_and_costs_explained(analyst: Session, served: Noisegate) -> None:
    before = _entries(analyst)
    explained = analyst.execute("EXPLAIN SELECT status, sum(amount) FROM orders GROUP BY status").fetchall()
    assert any("sensitivity" in line.lower() for (line,) in explained)
    assert _entries(analyst) == before

    analyst.execute("SET noisegate.rows_per_unit = auto")
    try:
        answer = analyst.execute("SELECT count(*), sum(amount) FROM orders").fetchone()
    finally:
        analyst.execute("RESET noisegate.rows_per_unit")
    assert answer is not None and answer[0] > 1000
    assert _entries(analyst) == before + 1


def test_an_answer_is_copied_out(analyst: Session) -> None:
    with analyst.cursor().copy("COPY (SELECT status, count(*) FROM orders GROUP BY status) TO STDOUT") as copy:
        rows = list(copy.rows())
    assert [row[0] for row in rows] == ["open", "paid", "sent", "returned"]


def test_the_schema_is_shown_as_it_is(analyst: Session, real: Session) -> None:
    columns = """
        SELECT table_name, column_name, data_type, udt_name, is_nullable, numeric_precision, character_maximum_length
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position
    """
    keys = """
        SELECT table_name, constraint_name, column_name FROM information_schema.key_column_usage
        WHERE table_schema = 'public' ORDER BY 1, 2, ordinal_position
    """
    hidden = [("staff",), ("customers", "email")]
    for sql in columns, keys:
        truth = real.execute(sql).fetchall()
        shown = [row for row in truth if row[:1] not in hidden and "email" not in (row[1], row[2])]
        assert analyst.execute(sql).fetchall() == [row for row in shown if row[0] != "staff"]


def test_clients_see_the_version_of_the_twin_which_is_never_older(analyst: Session, real: Session) -> None:
    version = version_for(real.info.server_version)
    assert analyst.info.server_version // 10_000 == version >= real.info.server_version // 10_000
    assert (analyst.execute("SHOW server_version_num").fetchone() or ("",))[0].startswith(str(version))


CALLS = {
    "date_bin": "date_bin('1 hour', ordered_at, timestamptz '2024-01-01') > '2024-06-01'",
    "regexp_count": "regexp_count(status::text, '[aeiou]') > 1",
}


def test_each_function_that_is_not_everywhere_is_called_here() -> None:
    assert CALLS.keys() == SINCE.keys()


@pytest.mark.parametrize("name", SINCE)
def test_what_the_real_database_lacks_is_refused_before_anything_is_charged(
    analyst: Session, real: Session, name: str
) -> None:
    before = _entries(analyst)
    sql = f"SELECT count(*) FROM orders WHERE {CALLS[name]}"
    if real.info.server_version >= SINCE[name] * 10_000:
        analyst.execute(sql)
        return
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=f'"{name}" needs PostgreSQL {SINCE[name]}'):
        analyst.execute(sql)
    assert _entries(analyst) == before


def test_a_statement_that_waits_is_cancelled_and_costs_nothing(
    served: Noisegate, shop: RealDatabase, analyst: Session
) -> None:
    before = _entries(analyst)
    with shop.connect() as owner, psycopg.connect(served.dsn(), autocommit=True) as waiting:
        with owner.transaction():
            owner.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            timer = Timer(0.5, waiting.cancel_safe)
            timer.start()
            with pytest.raises(psycopg.errors.QueryCanceled):
                waiting.execute("SELECT count(*) FROM orders WHERE amount < 123.45")
            timer.join()
        assert waiting.execute("SELECT count(*) FROM products").fetchone() == (30,)
    assert _entries(analyst) == before


def _entries(analyst: Session) -> int:
    """How many charges the analyst's own account has."""
    return int((analyst.execute("SELECT count(*) FROM noisegate.ledger").fetchone() or (0,))[0])
