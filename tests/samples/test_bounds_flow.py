"""Bounds follow from declared ones, CHECKs and public tables through what is computed, and noise with them."""

from datetime import timedelta

import pytest

from tests.samples.asking import Analyst

_LAG = (
    "(SELECT customer_id, rental_date - lag(rental_date) OVER (PARTITION BY customer_id ORDER BY rental_date) AS x"
    " FROM rental) AS t"
)
_ITEMS = "invoice_line AS l JOIN track AS t USING (track_id)"
_LINES = "order_details AS d JOIN products AS p USING (product_id)"


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        # 40 rows of a unit; twice the distance from the middle, in seconds or days
        ("SELECT avg(return_date::date - rental_date::date) FROM rental", 40 * 760),
        ("SELECT avg(extract(epoch FROM return_date - rental_date) / 86400) FROM rental", 40 * 761 * 10**7),
        ("SELECT avg(extract(day FROM return_date - rental_date)) FROM rental", 40 * 761),
        ("SELECT avg(coalesce(return_date::date, date '2023-01-01') - rental_date::date) FROM rental", 40 * 760),
        (f"SELECT avg(extract(epoch FROM x) / 3600) FROM {_LAG}", 40 * 730 * 24 * 10**5),
        ("SELECT avg(extract(day FROM x)) FROM (SELECT customer_id, return_date - rental_date AS x FROM rental) AS t",
         40 * 761),
    ],
)  # fmt: skip
def test_spans_of_time_have_the_bounds_of_their_ends(rental: Analyst, sql: str, most: int) -> None:
    if "extract(day FROM x)" in sql:
        assert "Use extract(epoch FROM x)" in (rental.refusal(sql).hint or "")
        return
    declared = rental.sample.policy((("    rows_per_unit: 40", "    sum_per_unit: off\n    rows_per_unit: 40"),))
    assert rental.sensitivities(sql, declared)[0] <= most


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT avg(return_date - rental_date) FROM rental",
        "SELECT avg((return_date - rental_date) / 2) FROM rental",
        f"SELECT avg(x) FROM {_LAG}",
    ],
)
def test_the_mean_of_intervals_is_an_interval(rental: Analyst, sql: str) -> None:
    ((found,),) = rental.rows(sql)
    ((truth,),) = rental.truth(sql)
    assert isinstance(found, timedelta) and isinstance(truth, timedelta)
    assert abs(found - truth) < timedelta(seconds=1)


def test_a_sum_of_intervals_is_an_interval(rental: Analyst) -> None:
    sql = "SELECT sum(return_date - rental_date), count(return_date - rental_date) FROM rental"
    ((found, _),), ((truth, _),) = rental.rows(sql), rental.truth(sql)
    assert isinstance(found, timedelta) and isinstance(truth, timedelta)
    assert abs(found - truth) < timedelta(minutes=10)


def test_an_interval_is_divided_by_constants_that_make_it_no_longer(rental: Analyst) -> None:
    sql = "SELECT count(*) FROM rental WHERE (return_date - rental_date) / 24 > interval '5 hours'"
    assert rental.rows(sql) == rental.truth(sql)
    assert "extract(epoch FROM x)" in (rental.refusal(sql.replace("24", "0.5")).hint or "")


@pytest.mark.parametrize(
    ("name", "sql", "sensitivity"),
    [
        ("trading", f"SELECT sum(d.amount - p.cost * d.quantity) FROM {_LINES}", 80 * 600_000),
        ("trading", f"SELECT sum(p.cost) FROM {_LINES}", 80 * 3000),
        ("trading", "SELECT sum(amount) FROM order_details", 80 * 500_000),
        ("trading", f"SELECT sum(x) FROM (SELECT p.cost * 2 AS x FROM {_LINES}) AS t", 80 * 6000),
        ("trading", "SELECT avg(required_date - order_date) FROM orders", 30 * 2 * 1095),
        ("trading", "SELECT avg(shipped_date - order_date) FROM orders", 30 * 2 * 1095),
        ("music", "SELECT sum(unit_price * quantity) FROM invoice_line", 60 * 5000),
        ("music", f"SELECT sum(t.milliseconds) FROM {_ITEMS}", 60 * 399_994),
        ("rental", "SELECT sum(f.replacement_cost) FROM rental JOIN inventory USING (inventory_id)"
         " JOIN film AS f USING (film_id)", 40 * 2999),
    ],
)  # fmt: skip
def test_checks_and_public_values_are_bounds(
    analysts: dict[str, Analyst], name: str, sql: str, sensitivity: int
) -> None:
    assert analysts[name].sensitivities(sql)[0] <= sensitivity


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT sum(d.amount - p.cost * d.quantity) FROM {_LINES}",
        "SELECT sum(amount), count(*) FROM order_details",
        "SELECT avg(shipped_date - order_date) FROM orders",
        "SELECT extract(year FROM order_date), count(*) FROM orders GROUP BY 1 ORDER BY 1",
    ],
)
def test_within_such_bounds_an_answer_is_postgresqls_own(trading: Analyst, sql: str) -> None:
    policy = trading.sample.policy(
        (("rows_per_unit: 30", "rows_per_unit: 1000"), ("rows_per_unit: 80", "rows_per_unit: 1000"))
    )
    assert trading.rows(sql, policy) == trading.truth(sql)


def test_rows_beyond_what_the_twin_has_seen_are_counted_at_the_bound(trading: Analyst) -> None:
    """The list of public values may be older than the table: the clamp stands in the statement."""
    block = trading.block(f"SELECT sum(p.cost) FROM {_LINES}")
    before = trading.lab.exact(block)
    with trading.lab.connection.transaction(force_rollback=True):
        trading.lab.script("UPDATE products SET cost = 99999")
        after = trading.lab.exact(block)
    rows = trading.truth("SELECT count(*) FROM order_details")[0][0]
    assert before != after
    assert max(map(abs, after[()])) <= int(str(rows)) * 3000 * block.measures[0].factor


def test_years_of_dates_without_bounds_are_found_and_not_listed(trading: Analyst) -> None:
    policy = trading.sample.policy((("      required_date: {lower: 1996-01-01, upper: 1998-12-31}\n", ""),))
    assert trading.groups("SELECT extract(year FROM required_date), count(*) FROM orders GROUP BY 1", policy) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT to_char(date_trunc('month', payment_date), 'Mon'), count(DISTINCT customer_id) FROM payment GROUP BY 1",
        "SELECT date_trunc('month', payment_date), count(DISTINCT customer_id) FROM payment GROUP BY 1",
    ],
)
def test_a_unit_is_in_no_more_groups_than_there_are(rental: Analyst, sql: str) -> None:
    """Four months have four of them, though forty rows of a unit are counted."""
    sql = sql.replace("FROM payment", "FROM payment WHERE payment_date >= '2022-02-01' AND payment_date < '2022-06-01'")
    assert len(rental.groups(sql) or ()) == 4
    assert rental.sensitivities(sql) == [4]


@pytest.mark.parametrize(
    "join",
    [
        "payment AS p JOIN customer AS c USING (customer_id)",
        "customer AS c JOIN payment AS p USING (customer_id)",
    ],
)
def test_what_a_public_table_says_of_a_unit_is_one_group(rental: Analyst, join: str) -> None:
    sql = (
        f"SELECT co.country, count(DISTINCT c.customer_id) FROM {join} JOIN address AS a USING (address_id)"
        " JOIN city AS ci USING (city_id) JOIN country AS co USING (country_id) GROUP BY 1"
    )
    assert rental.sensitivities(sql) == [1]


def test_a_stored_generated_column_has_the_bounds_of_what_it_is_made_of(analysts: dict[str, Analyst]) -> None:
    """Its unit_price lies between 0 and 5, its quantity between 1 and 10, by CHECKs."""
    music, sql = analysts["music"], "SELECT sum(line_total) FROM invoice_line"
    policy = music.sample.policy((("rows_per_unit: 60", "rows_per_unit: 100"),))

    assert music.sensitivities(sql, policy) == [100 * 5000]
    assert music.rows(sql, policy) == music.truth(sql)
