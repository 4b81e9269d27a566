"""Keys of public tables are listed together: the groups are the rows that the public tables can form."""

import pytest

from tests.samples.asking import Analyst, Groups


def assert_all_there(analyst: Analyst, sql: str, groups: Groups) -> None:
    """Every group that PostgreSQL finds is listed; columns that a key of GROUP BY determines are keys as well."""
    for *found, _ in analyst.truth(sql):
        assert any(tuple(map(str, found)) == tuple(map(str, group[: len(found)])) for group in groups), found


def test_employees_are_listed_with_their_own_names(trading: Analyst) -> None:
    groups = trading.groups(
        "SELECT e.employee_id, e.last_name, count(*) FROM orders o JOIN employees e USING (employee_id) GROUP BY 1, 2"
    )
    assert groups is not None and len(groups) == 9
    assert groups[0] == ("1", "Davolio")


@pytest.mark.parametrize(
    ("sql", "size"),
    [
        (
            "SELECT c.category_name, p.product_name, count(*) FROM order_details d"
            " JOIN products p USING (product_id) JOIN categories c USING (category_id) GROUP BY 1, 2",
            77,
        ),
        (
            "SELECT e.first_name || ' ' || e.last_name, count(*) FROM orders o JOIN employees e"
            " ON e.employee_id = o.employee_id GROUP BY 1",
            9,
        ),
        ("SELECT employee_id, count(*) FROM orders GROUP BY 1", 10),  # it may be NULL
        ("SELECT employee_id, count(*) FROM orders WHERE employee_id IS NOT NULL GROUP BY 1", 9),
        ("SELECT ship_via, employee_id, count(*) FROM orders GROUP BY 1, 2", 40),
        (
            "SELECT c.category_name, count(*) FROM order_details d JOIN products p USING (product_id)"
            " JOIN categories c USING (category_id) WHERE c.category_name LIKE 'C%' GROUP BY 1",
            2,
        ),
        (
            "SELECT r.region_description, t.territory_description, count(*) FROM orders o JOIN employees e"
            " USING (employee_id) JOIN employee_territories et USING (employee_id) JOIN territories t"
            " USING (territory_id) JOIN region r USING (region_id) GROUP BY 1, 2",
            40,
        ),
        (
            "SELECT s.company_name, (o.ship_country IS NULL)::text, count(*) FROM orders o JOIN shippers s"
            " ON s.shipper_id = o.ship_via GROUP BY 1, 2",
            6,
        ),
        (
            "SELECT e.last_name, count(*) FROM orders o LEFT JOIN employees e ON e.employee_id = o.employee_id"
            " GROUP BY 1",
            10,
        ),
        (
            "SELECT product_id, product_name, count(*) FROM order_details JOIN products USING (product_id)"
            " WHERE product_id IN (3, 5, 8) GROUP BY 1, 2",
            3,
        ),
    ],
)
def test_groups_are_what_public_tables_can_form(trading: Analyst, sql: str, size: int) -> None:
    groups = trading.groups(sql)
    assert groups is not None
    assert len(groups) == size
    assert_all_there(trading, sql, groups)


@pytest.mark.parametrize(
    ("sql", "size"),
    [
        (
            "SELECT co.country, ci.city, count(*) FROM customer c JOIN address a USING (address_id)"
            " JOIN city ci USING (city_id) JOIN country co USING (country_id) GROUP BY 1, 2",
            60,
        ),
        ("SELECT store_id, count(*) FROM customer GROUP BY store_id", 2),
        ("SELECT staff_id, sum(amount) FROM payment GROUP BY staff_id", 3),
        (
            "SELECT i.store_id, s.first_name, count(*) FROM rental r JOIN inventory i USING (inventory_id)"
            " JOIN staff s ON s.staff_id = r.staff_id AND s.store_id = i.store_id GROUP BY 1, 2",
            2,
        ),
        (
            "SELECT f.rating, c.name, count(*) FROM rental r JOIN inventory i USING (inventory_id)"
            " JOIN film f USING (film_id) JOIN film_category fc USING (film_id) JOIN category c USING (category_id)"
            " WHERE f.rating IN ('G', 'R') GROUP BY 1, 2",
            12,
        ),
        (
            "SELECT a.actor_id, a.last_name || ', ' || a.first_name AS actor, count(*) FROM rental r"
            " JOIN inventory i USING (inventory_id) JOIN film_actor fa USING (film_id) JOIN actor a USING (actor_id)"
            " GROUP BY 1, 2",
            28,
        ),
        ("SELECT f.rental_rate, f.rating, count(*) FROM rental JOIN inventory USING (inventory_id)"
         " JOIN film f USING (film_id) GROUP BY 1, 2", 15),
    ],
)  # fmt: skip
def test_films_and_places_are_listed_as_they_go_together(rental: Analyst, sql: str, size: int) -> None:
    groups = rental.groups(sql)
    assert groups is not None
    assert len(groups) == size
    assert_all_there(rental, sql, groups)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT e.employee_id, e.last_name, count(*) FROM orders o JOIN employees e USING (employee_id) GROUP BY 1, 2",
        "SELECT employee_id, count(*) FROM orders GROUP BY 1",
        "SELECT ship_via, country, count(*) FROM orders JOIN customers USING (customer_id) GROUP BY 1, 2",
        "SELECT upper(left(e.last_name, 1)), count(*) FROM orders JOIN employees e USING (employee_id) GROUP BY 1",
        "SELECT CASE WHEN e.reports_to IS NULL THEN 'top' ELSE e.first_name END, count(*) FROM orders"
        " JOIN employees e USING (employee_id) GROUP BY 1",
    ],
)
def test_without_noise_listed_groups_have_postgresqls_numbers(trading: Analyst, sql: str) -> None:
    policy = trading.sample.policy((("rows_per_unit: 30", "rows_per_unit: 1000"),))
    exact = {tuple(map(str, group)): row[0] for group, row in trading.exact(sql, policy).items()}
    truth = {tuple(map(str, row[:-1])): row[-1] for row in trading.truth(sql)}
    assert {group: number for group, number in exact.items() if number} == truth
