"""Lists of one column, and of what is computed of it: as many groups as there can be, and none of nobody."""

import pytest

from tests.samples.asking import Analyst


@pytest.mark.parametrize(
    ("name", "sql", "size"),
    [
        ("trading", "SELECT segment, count(*) FROM customers GROUP BY 1", 4),
        ("trading", "SELECT segment, count(*) FROM customers WHERE segment <> 'small' GROUP BY 1", 2),
        ("trading", "SELECT upper(segment), count(*) FROM customers WHERE segment IN ('small', 'large') GROUP BY 1", 2),
        ("trading", "SELECT to_char(date_trunc('quarter', order_date), 'YYYY-\"Q\"Q'), count(*) FROM orders"
         " GROUP BY 1", 12),
        ("trading", "SELECT to_char(date_trunc('quarter', order_date), 'YYYY-MM-DD'), count(*) FROM orders"
         " GROUP BY 1", 12),
        ("trading", "SELECT extract(year FROM order_date), extract(month FROM order_date), count(*) FROM orders"
         " GROUP BY 1, 2", 36),
        ("trading", "SELECT extract(year FROM order_date), extract(quarter FROM order_date),"
         " date_trunc('month', order_date), count(*) FROM orders GROUP BY 1, 2, 3", 36),
        ("trading", "SELECT make_date(extract(year FROM order_date)::int, 1, 1), count(*) FROM orders GROUP BY 1", 3),
        ("trading", "SELECT (date_trunc('year', order_date) + interval '1 year - 1 day')::date, count(*) FROM orders"
         " GROUP BY 1", 3),
        ("trading", "SELECT width_bucket(quantity, 1, 201, 4), count(*) FROM order_details GROUP BY 1", 4),
        ("trading", "SELECT CASE WHEN extract(month FROM order_date) < 7 THEN 'first' ELSE 'second' END || ' half',"
         " count(*) FROM orders GROUP BY 1", 2),
        ("trading", "SELECT extract(year FROM order_date) || ' Q' || extract(quarter FROM order_date), count(*)"
         " FROM orders GROUP BY 1", 12),
        ("trading", "SELECT extract(dow FROM order_date), to_char(order_date, 'Dy'), count(*) FROM orders"
         " GROUP BY 1, 2", 7),
        ("rental", "SELECT date_trunc('month', payment_date), to_char(payment_date, 'Mon'), count(*) FROM payment"
         " GROUP BY 1, 2", 12),
        ("rental", "SELECT date_part('year', payment_date) * 100 + date_part('month', payment_date), count(*)"
         " FROM payment GROUP BY 1", 12),
        ("rental", "SELECT payment_date::date - extract(day FROM payment_date)::int + 1, count(*)"
         " FROM payment GROUP BY 1", 12),
        ("rental", "SELECT CAST(to_char(payment_date, 'YYYY') || '-01-01' AS date), count(*) FROM payment"
         " GROUP BY 1", 1),
        ("rental", "SELECT extract(hour FROM payment_date), payment_date::date, count(*) FROM payment"
         " WHERE payment_date < '2022-01-03' GROUP BY 1, 2", 48),
        ("music", "SELECT billing_country, extract(year FROM invoice_date), sum(total) FROM invoice GROUP BY 1, 2", 25),
    ],
)  # fmt: skip
def test_a_list_has_what_can_be_and_no_more(analysts: dict[str, Analyst], name: str, sql: str, size: int) -> None:
    analyst = analysts[name]
    groups = analyst.groups(sql)
    assert groups is not None
    assert len(groups) == size
    shown = {row[:-1] for row in analyst.rows(sql)}
    assert {row[:-1] for row in analyst.truth(sql)} <= shown


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT segment, count(*) FROM customers GROUP BY 1",
        "SELECT extract(year FROM order_date), extract(month FROM order_date), count(*) FROM orders GROUP BY 1, 2",
        "SELECT make_date(extract(year FROM order_date)::int, 1, 1), count(*) FROM orders GROUP BY 1",
    ],
)
def test_without_noise_a_listed_group_has_postgresqls_number(trading: Analyst, sql: str) -> None:
    policy = trading.sample.policy((("rows_per_unit: 30", "rows_per_unit: 1000"),))
    assert {row for row in trading.rows(sql, policy) if row[-1]} == set(trading.truth(sql))


def test_a_column_that_is_never_null_has_no_group_of_null(trading: Analyst) -> None:
    segments = "segment: {values: [small, middle, large]}"
    policy = trading.sample.policy(((segments, segments.replace("]}", "], nullable: false}")),))
    sql = "SELECT segment, count(*) FROM customers GROUP BY 1"
    with trading.lab.connection.transaction(force_rollback=True):
        trading.lab.script("UPDATE customers SET segment = NULL WHERE country = 'UK'")
        assert trading.groups(sql, policy) == (("large",), ("middle",), ("small",))
        assert trading.rows(sql, policy) == trading.truth(sql + " HAVING segment IS NOT NULL ORDER BY 1")
        assert len(trading.rows(sql)) == 4
    outer = "SELECT segment, count(*) FROM orders AS o LEFT JOIN customers AS c"
    outer += " ON c.customer_id = o.customer_id AND c.country = 'UK' GROUP BY 1"
    assert (None,) in (trading.groups(outer, policy) or ())


def test_found_groups_of_a_column_that_is_never_null_are_not_null(trading: Analyst) -> None:
    policy = trading.sample.policy((("      freight:", "      ship_country: {nullable: false}\n      freight:"),))
    with trading.lab.connection.transaction(force_rollback=True):
        trading.lab.script("UPDATE orders SET ship_country = NULL WHERE ship_country = 'UK'")
        sql = "SELECT ship_country, count(*) FROM orders GROUP BY 1"
        assert (None,) in trading.exact(sql)
        assert (None,) not in trading.exact(sql, policy)


def test_rows_beyond_declared_dates_are_in_no_group(rental: Analyst) -> None:
    sql = "SELECT date_trunc('month', payment_date), count(*) FROM payment GROUP BY 1"
    dates = "payment_date: {lower: 2022-01-01, upper: 2022-12-31}"
    policy = rental.sample.policy(((dates, dates.replace("2022-12-31", "2022-03-31")),))
    whole = rental.rows(sql)
    assert rental.rows(sql, policy) == [row for row in whole if str(row[0]) < "2022-04"]
