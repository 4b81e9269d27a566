# ruff: noqa: E501  (a statement a line)
"""noisegate.margin, low and high beside an answer, by every route, through a running proxy."""

import re
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from tests.support.running import Noisegate

Session = psycopg.Connection


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


ANSWERED = """
SELECT count(*), {0}(count(*)) FROM customers
SELECT city, avg(extract(year FROM birth_date)), {0}(avg(extract(year FROM birth_date))) FROM customers GROUP BY city
SELECT status, {0}(sum(amount) / nullif(count(*), 0)) AS bar FROM orders GROUP BY status ORDER BY bar DESC LIMIT 2
SELECT status, {0}(count(*) FILTER (WHERE amount > 100) * 100.0 / count(*)) FROM orders GROUP BY ROLLUP (status)
SELECT status FROM orders GROUP BY status HAVING {0}(count(*)) > 0
SELECT {0}(stddev(amount)), {0}(variance(amount)), {0}(sqrt(variance(amount))) FROM orders
SELECT {0}(percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)), {0}(max(amount)), {0}(min(birth_date)) FROM orders JOIN customers ON customer_id = customers.id
SELECT {0}(count(DISTINCT customer_id)::float8 / count(*)), {0}(count(*)::integer), {0}(round(avg(amount), 1)) FROM orders
SELECT {0}(1.0 / count(*) FILTER (WHERE amount < 0)) FROM orders WHERE status = 'open'
SELECT {0}(CASE WHEN count(*) > 10 THEN sum(amount) END), {0}(coalesce(avg(amount), 0) + $1::numeric) FROM orders
SELECT * FROM (SELECT status, {0}(count(*)) AS bar FROM orders GROUP BY status) AS s WHERE bar > 0
WITH a AS (SELECT {0}(count(*)) AS one FROM orders), b AS (SELECT {0}(count(*)) AS other FROM customers) SELECT one, other FROM a, b
SELECT o.status, sum({0}(count(*))) OVER () FROM orders AS o GROUP BY o.status
SELECT name, {0}(count(*)) FROM customers GROUP BY name
WITH a AS (SELECT status, avg(amount) AS m FROM orders GROUP BY 1) SELECT status, m, {0}(m) FROM a
WITH a(s, m, n) AS (SELECT status, sum(amount), count(*) FROM orders GROUP BY 1) SELECT s, {0}(m / nullif(n, 0)) AS bar FROM a ORDER BY {0}(a.n), s
SELECT *, {0}(m) FROM (SELECT status, avg(amount) AS m FROM orders GROUP BY 1) AS a WHERE {0}(m) > -1000
SELECT x.m, {0}(x.m) FROM (SELECT * FROM (SELECT avg(amount) AS m, count(*) FROM orders) AS y) AS x
SELECT s, {0}(n * 2), n FROM (SELECT status, count(*) FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 3) AS t(s, n) LIMIT 2
WITH a AS (SELECT city, count(*) AS n FROM customers GROUP BY 1), b AS (SELECT city, n * 2 AS d FROM a) SELECT a.city, {0}(d), n FROM a JOIN b USING (city)
SELECT products.category, {0}(sum(quantity)) FROM order_items JOIN products ON product_id = products.id GROUP BY products.category
"""


@pytest.mark.parametrize("bar", ["noisegate.margin", "noisegate.low", "noisegate.high"])
@pytest.mark.parametrize("sql", ANSWERED.strip().splitlines())
def test_bars_stand_around_any_expression_of_aggregates(session: Session, sql: str, bar: str) -> None:
    text = sql.format(bar)
    session.execute(text.replace("$1", "%s"), [Decimal(1)] if "$1" in text else [])


@pytest.mark.parametrize("binary", [False, True])
def test_low_and_high_lie_around_the_answer(session: Session, binary: bool) -> None:
    sql = (
        "SELECT status, avg(amount), noisegate.low(avg(amount)), noisegate.high(avg(amount)), noisegate.margin(avg(amount))"
        " FROM orders GROUP BY status"
    )
    rows = session.cursor(binary=binary).execute(sql).fetchall()

    assert len(rows) == 4
    for _, answer, low, high, margin in rows:
        assert low < answer < high
        assert 0 < margin < high - low < 3 * margin


def test_the_same_release_has_the_same_bars_and_they_are_free(session: Session) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    session.execute("SELECT count(*) FROM orders WHERE amount < 77")

    once = session.execute("SELECT count(*), noisegate.margin(count(*)) FROM orders WHERE amount < 77").fetchall()
    again = session.execute("SELECT count(*), noisegate.margin(count(*)) FROM orders WHERE amount < 77").fetchall()

    assert once == again
    assert [notice.startswith("ε 0 spent") for notice in told if "spent" in notice] == [False, True, True]


def test_an_answer_that_was_released_with_less_noise_has_the_bars_of_that_noise(session: Session) -> None:
    sql = "SELECT noisegate.margin(count(*)) FROM orders WHERE amount < 78"
    fresh = session.execute(sql).fetchall()

    session.execute("SET noisegate.epsilon = 1")

    assert session.execute(sql).fetchall() == fresh


def test_more_confidence_has_wider_bars(session: Session) -> None:
    sql = "SELECT noisegate.margin(count(*)), noisegate.margin(avg(amount)) FROM orders"
    margins = []
    for level in ("0.5", "0.9", "0.95", "0.99", "0.999"):
        session.execute(f"SET noisegate.confidence = {level}")
        margins += session.execute(sql).fetchall()

    for one, other in ((margins[place], margins[place + 1]) for place in range(4)):
        assert one[0] < other[0] and one[1] < other[1]


def test_more_bars_than_can_be_computed_are_refused_before_anything_is_paid(session: Session) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    session.execute("SET noisegate.confidence = 0.999")

    with pytest.raises(psycopg.errors.StatementTooComplex, match="error bars"):
        session.execute(
            "SELECT birth_date, noisegate.margin(count(*) * 2) FROM customers WHERE birth_date > '2000-01-01' GROUP BY 1"
        )

    assert told == []


def test_notices_and_explain_speak_of_the_confidence_that_was_set(session: Session) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    session.execute("SET noisegate.confidence = 0.9")

    session.execute("SELECT count(*) FROM orders")
    explained = session.execute("EXPLAIN SELECT count(*) FROM orders").fetchall()

    assert any("; 90% of counts within" in notice for notice in told)
    assert any("90% of draws within" in line for (line,) in explained)


@pytest.mark.parametrize("level", ["0.4", "1", "'NaN'", "95", "high"])
def test_a_confidence_that_cannot_be_is_refused_when_it_is_set(session: Session, level: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"noisegate\.confidence must be a number"):
        session.execute(f"SET noisegate.confidence = {level}")


def test_a_low_end_of_a_count_is_not_below_zero(session: Session) -> None:
    """Nor is the other: where noise takes more from zero than a margin, in one group of 40, both are zero."""
    session.execute("SET noisegate.epsilon = 0.01; SET noisegate.empty_groups = show")

    bars = session.execute(
        "SELECT noisegate.low(count(*)), noisegate.high(count(*)) FROM orders WHERE amount < 0"
        " GROUP BY date_trunc('month', ordered_at)"
    ).fetchall()

    assert len(bars) == 36
    assert all(0 <= low <= high for low, high in bars)
    assert any(low == 0 < high for low, high in bars)


def test_bars_go_through_copy_and_cursors(session: Session) -> None:
    sql = "SELECT status, noisegate.margin(count(*)) FROM orders GROUP BY status"

    with session.cursor().copy(f"COPY ({sql}) TO STDOUT") as copy:
        copied = [row.split(b"\t")[1] for row in b"".join(bytes(part) for part in copy).splitlines()]
    with session.transaction():
        fetched = session.cursor("c").execute(sql).fetchall()

    assert [int(data) for data in copied] == [margin for _, margin in fetched]


def test_what_is_exact_has_no_width(session: Session) -> None:
    rows = session.execute(
        "SELECT noisegate.margin(count(*)), noisegate.low(sum(price)), sum(price), noisegate.margin(now()) FROM products"
    ).fetchall()

    assert rows[0][0] == 0
    assert rows[0][1] == rows[0][2]
    assert rows[0][3].total_seconds() == 0


REFUSED = """
SELECT noisegate.margin(n) FROM (SELECT count(*) AS n FROM orders UNION ALL SELECT 1) AS t
SELECT DISTINCT noisegate.low(n) FROM (SELECT DISTINCT count(*) AS n FROM orders GROUP BY status) AS t
SELECT sum(n), noisegate.low(sum(n)) FROM (SELECT count(*) AS n FROM orders GROUP BY status) AS t
SELECT status, noisegate.low(5) FROM orders GROUP BY status
SELECT noisegate.margin(sum(count(*)) OVER ()) FROM orders GROUP BY status
SELECT noisegate.margin(count(*) / (SELECT count(*) FROM customers)) FROM orders
SELECT noisegate.margin(noisegate.margin(count(*))) FROM orders
SELECT noisegate.low(percentile_cont(ARRAY[0.2, 0.8]) WITHIN GROUP (ORDER BY amount)) FROM orders
SELECT noisegate.low(mode() WITHIN GROUP (ORDER BY status)) FROM orders
SELECT sum(noisegate.margin(amount)) FROM orders
"""


@pytest.mark.parametrize("sql", REFUSED.strip().splitlines())
def test_a_bar_that_would_not_tell_the_noise_is_refused(session: Session, sql: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        session.execute(sql)

    assert refused.value.diag.message_hint


def test_a_bar_that_is_found_by_the_search_path_is_one_too(session: Session) -> None:
    qualified = session.execute("SELECT noisegate.margin(count(*)) FROM orders").fetchall()
    in_one_string = session.execute(
        "SET search_path = noisegate, public; SELECT margin(n) FROM (SELECT count(*) AS n FROM orders) AS t"
    )

    assert in_one_string.nextset()
    assert in_one_string.fetchall() == qualified
    assert session.execute("SELECT margin(count(*)) FROM orders").fetchall() == qualified


def test_a_bar_around_columns_of_a_subquery_is_that_around_their_aggregates(session: Session) -> None:
    """And the column that carries it is seen by nobody."""
    inside = "SELECT status, avg(amount) AS m, noisegate.low(avg(amount)), noisegate.margin(avg(amount) / 2) FROM orders GROUP BY 1"
    outside = "SELECT *, noisegate.low(m), noisegate.margin(m / 2) FROM (SELECT status, avg(amount) AS m FROM orders GROUP BY 1) AS a"

    one, other = session.execute(inside), session.execute(outside)

    assert [column.name for column in other.description or ()] == ["status", "m", "low", "margin"]
    assert sorted(one.fetchall()) == sorted(other.fetchall())


def test_a_statistic_that_noise_has_left_without_variance_says_so(proxy: Noisegate) -> None:
    """Of dozens of months without orders, each has as many rows too few as too many."""
    told: list[str] = []
    sql = "SELECT date_trunc('month', ordered_at), stddev(amount) FROM orders WHERE id < 0 GROUP BY 1"
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        connection.execute("SET noisegate.empty_groups = show")
        rows = connection.execute(sql).fetchall()

    missing = sum(deviation is None for _, deviation in rows)
    assert len(rows) > 20 and missing
    assert any(text.startswith(f"{missing} of {len(rows)} statistics ") for text in told)


def test_an_extreme_says_which_percentile_it_is(session: Session) -> None:
    told: list[str] = []
    session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

    session.execute("SELECT count(*), min(amount), max(amount) FROM orders")

    assert any(
        re.match(r"min is about the \d+(st|nd|rd|th) percentile here: the .* row from the end", text) for text in told
    )
    assert any(text.startswith("max is about the ") for text in told)
