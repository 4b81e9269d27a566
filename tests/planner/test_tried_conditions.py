"""Conditions on columns of listed keys: only groups that rows can be in are listed, and the answer is PostgreSQL's."""

import pytest

from rules.frozen import replace
from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import NeedsInner, Request
from rules.planner.planner import plan
from tests.planner.planned import Planner
from tests.support import shop

ORDERS = "FROM customers AS c JOIN orders AS o ON o.customer_id = c.id"


def rows(planner: Planner, sql: str) -> list[tuple[str | None, ...]]:
    made = planner.plan(sql)
    if not made.blocks:
        return []  # no group is left, and nothing is charged
    groups = made.blocks[0].groups
    assert isinstance(groups, PublicGroups)
    return sorted(groups.rows, key=repr)


def is_asked(planner: Planner, sql: str) -> bool:
    """Whether the twin is asked for a list of groups first."""
    return isinstance(plan(Request(sql, ("pg_catalog", "public")), planner.policy, planner.catalog), NeedsInner)


@pytest.mark.parametrize(
    ("key", "condition"),
    [
        ("city", "city LIKE 'B%'"),
        ("city", "city ILIKE '%R%' AND length(city) > 4"),
        ("city", "lower(city) ~ '^[bl]'"),
        ("city", "city IS NULL OR city NOT LIKE '%o%'"),
        ("city", "coalesce(city, 'none') LIKE '%n%'"),
        ("city", "city LIKE 'Z%'"),
        ("left(city, 1)", "city LIKE '%r%'"),
        ("upper(city)", "city LIKE 'G%'"),
        ("country", "country || '!' <> 'DE!'"),
        ("o.status", "o.status::text LIKE '%en%'"),
        ("o.status", "o.status > 'paid' AND o.status::text <> 'sent'"),
        ("c.city, o.status", "c.city LIKE 'B%' AND o.status::text LIKE 'p%'"),
        ("c.city, o.status", "c.city LIKE 'B%' OR o.status = 'open'"),
        ("c.city, c.is_vip", "c.city LIKE 'B%' AND NOT c.is_vip"),
        ("date_trunc('month', o.ordered_at)", "to_char(o.ordered_at, 'YYYY') = '2025'"),
        (
            "date_trunc('week', o.ordered_at)",
            "extract(dow FROM o.ordered_at) IN (0, 6) AND o.ordered_at < '2024-03-01'",
        ),
        ("extract(month FROM o.ordered_at)", "extract(quarter FROM o.ordered_at) = 2"),
        ("to_char(o.ordered_at, 'YYYY-MM')", "extract(year FROM o.ordered_at) = 2024 AND city LIKE 'B%'"),
        ("c.town", "c.town LIKE 'B%'"),
    ],
)
def test_a_condition_leaves_the_groups_that_rows_are_in(planner: Planner, key: str, condition: str) -> None:
    source = ORDERS.replace("customers AS c", "(SELECT *, city AS town FROM customers) AS c")
    sql = f"SELECT {key}, count(*) {source} WHERE {condition} GROUP BY {key}"

    names = ", ".join(f"({part})::text" for part in key.split(", ")) if "(" not in key else f"({key})::text"
    found = planner.truth(f"SELECT DISTINCT {names} {source} WHERE {condition}")
    assert [tuple(map(_plain, row)) for row in rows(planner, sql)] == sorted(
        (tuple(map(_plain, row)) for row in found), key=repr
    )


def _plain(text: str | None) -> str | None:
    """A moment without the offset of its session, which is UTC; a number of days of a list as it is."""
    return None if text is None else text.removesuffix("+00")


@pytest.mark.parametrize(
    ("key", "condition"),
    [
        ("city", "city <> 'Berlin'"),
        ("country", "country IN ('DE', 'AT')"),
        ("city", "city > 'C'"),  # the database may sort otherwise than the twin
        ("city", "greatest(city, 'C') = 'C'"),
        ("c.city", "c.city LIKE 'B%' OR amount > 5"),  # any city may have such orders
        ("date_trunc('hour', o.ordered_at)", "extract(dow FROM o.ordered_at) = 1 AND o.ordered_at < '2024-02-01'"),
        ("extract(dow FROM o.ordered_at)", "extract(dow FROM o.ordered_at) IN (0, 6)"),
        ("c.country, o.status", "(c.country, o.status) IN (('DE', 'paid'), ('FR', 'open'))"),
    ],
)
def test_what_is_known_without_the_twin_or_not_even_there_is_not_tried(
    planner: Planner, key: str, condition: str
) -> None:
    assert not is_asked(planner, f"SELECT {key}, count(*) {ORDERS} WHERE {condition} GROUP BY {key}")


def test_letters_are_tried_where_all_locales_agree_on_them(planner: Planner) -> None:
    sql = "SELECT city, count(*) FROM customers WHERE lower(city) = 'lyon' GROUP BY city"
    assert is_asked(planner, sql)

    for rules, letters in ((shop.RULES.replace("Porto", "Köln"), "en_US.utf8"), (shop.RULES, "tr_TR.utf8")):
        other = Planner(planner.dsn, rules)
        other.catalog = replace(other.catalog, locale=replace(other.catalog.locale, ctype=letters))
        assert not is_asked(other, sql)
        assert is_asked(other, sql.replace("lower(city) =", "city LIKE"))


def test_values_that_are_not_declared_keep_their_group(planner: Planner) -> None:
    rules = shop.RULES.replace(
        "city: {values: [Berlin, Lyon, Porto, Graz]}", "city: {values: [Graz, Lyon], other: true}"
    )
    sql = "SELECT city, count(*) FROM customers WHERE city LIKE 'B%' GROUP BY city"

    assert ("other",) in rows(Planner(planner.dsn, rules), sql)
