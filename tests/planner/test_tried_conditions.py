"""Conditions on columns of listed keys: only groups that rows can be in are listed, and the answer is PostgreSQL's."""

import re
from decimal import Decimal

import pytest

from rules.catalog import DatabaseLocale
from rules.frozen import replace
from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import NeedsInner, Request
from rules.planner.planner import plan
from rules.planner.tried_conditions import tried
from rules.values.domain import Values
from rules.values.expression import Apply, Column, Constant
from rules.values.types import BOOLEAN, TEXT, Type
from tests.planner.planned import Planner, planned
from tests.support import shop

ITEMS = "FROM order_items JOIN products AS p ON p.id = product_id"
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
    request = Request(sql, ("pg_catalog", "public"), delta=Decimal("1e-9"))
    return isinstance(plan(request, planner.policy, planner.catalog), NeedsInner)


@pytest.mark.parametrize(
    ("key", "condition"),
    [
        ("city", "city LIKE 'B%'"),
        ("city", "city ILIKE '%R%' AND length(city) > 4"),
        ("city", "lower(city) ~ '^[bl]'"),
        ("city", "city IS NULL OR city NOT LIKE '%o%'"),
        ("city", "coalesce(city, 'none') LIKE '%n%'"),
        ("city", "city LIKE 'Z%'"),
        ("city", "city LIKE NULL"),
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


def test_bounds_of_a_year_are_none_of_its_day(planner: Planner) -> None:
    key = "make_date(extract(year FROM ordered_at)::int, 1, 1)"

    listed = [text for (text,) in rows(planner, f"SELECT {key}, count(*) FROM orders GROUP BY 1")]
    assert [text for text in listed if text is not None] == ["2024-01-01", "2025-01-01", "2026-01-01"]


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


@pytest.mark.parametrize(
    ("sql", "is_asked_elsewhere"),
    [
        ("SELECT upper(city), count(*) FROM customers WHERE length(city) > 4 GROUP BY 1", False),
        ("SELECT initcap(city), count(*) FROM customers WHERE city LIKE '%n' GROUP BY 1", False),
        ("SELECT city, count(*) FROM customers WHERE city ~~* 'k%' GROUP BY 1", False),
        ("SELECT city || '!', count(*) FROM customers WHERE length(city) > 4 GROUP BY 1", True),
        (f"SELECT lower(p.name), count(*) {ITEMS} GROUP BY 1", False),
        (f"SELECT greatest(p.name, 'm'), count(*) {ITEMS} GROUP BY 1", False),
        (f"SELECT p.name, count(*) {ITEMS} GROUP BY 1", True),
    ],
)
def test_a_twin_of_another_locale_lists_only_what_is_the_same_there(
    planner: Planner, sql: str, is_asked_elsewhere: bool
) -> None:
    other = Planner(planner.dsn, shop.RULES.replace("Porto", "Köln"))
    other.catalog = replace(other.catalog, locale=DatabaseLocale("i", "C", "C", "en-US", is_twins=False))

    assert is_asked(other, sql) is is_asked_elsewhere


@pytest.mark.parametrize("condition", ["p.name > 'Product 2'", "lower(p.name) = 'product 1'", "p.name ILIKE '%t 1%'"])
def test_public_rows_are_left_out_by_their_order_only_where_the_twin_has_it(planner: Planner, condition: str) -> None:
    """A group of the real database's order or letters would be missing, with all its rows."""
    sql = f"SELECT p.name, count(*) {ITEMS} WHERE {condition} GROUP BY 1"
    other = Planner(planner.dsn)
    other.catalog = replace(other.catalog, locale=DatabaseLocale("c", "xx_XX", "xx_XX", is_twins=False))

    assert len(rows(planner, sql)) < len(rows(other, sql)) == 30


@pytest.mark.parametrize(
    ("keys", "source"),
    [
        ("hour, ordered_at::date", "(SELECT extract(hour FROM ordered_at) AS hour, ordered_at FROM orders) AS o"),
        (
            "l.late, date_trunc('month', ordered_at)",
            "orders AS o, LATERAL (SELECT (o.ordered_at::time > '13:00')::int AS late) AS l",
        ),
        ("ordered_at::date + p.id", "orders LEFT JOIN products AS p ON p.id = 7 AND ordered_at::time > '13:00'"),
    ],
)
def test_no_key_and_no_join_of_hours_is_evaluated_at_noon(planner: Planner, keys: str, source: str) -> None:
    """Beside a key of days: the moments of its column are listed as one of each day."""
    rest = f"FROM {source} WHERE ordered_at < '2024-03-01'"
    shown = ", ".join(f"({key})::text" for key in re.split(r", (?!ord\w+\))", keys))

    found = planner.truth(f"SELECT DISTINCT {shown} {rest}")

    listed = {tuple(map(_plain, row)) for row in rows(planner, f"SELECT {keys}, count(*) {rest} GROUP BY {keys}")}
    assert {tuple(map(_plain, row)) for row in found} <= listed


def test_values_outside_of_bounds_keep_their_group_where_null_is_left_out(shop_database: Planner) -> None:
    sql = "SELECT birth_date, extract(isodow FROM birth_date), count(*) FROM customers {} GROUP BY 1, 2"

    for condition in ("WHERE birth_date IS NOT NULL", "WHERE extract(dow FROM birth_date) < 9"):
        assert (None, None) in rows(shop_database, sql.format(condition))


@pytest.fixture
def shop_database(planner: Planner) -> Planner:
    """Whose birth dates beyond their bounds are a group of their own."""
    bounds = "birth_date: {lower: 1920-01-01, upper: 2012-12-31}"
    narrow = "birth_date: {lower: 1960-01-01, upper: 1962-12-31, other: true}"
    return Planner(planner.dsn, shop.RULES.replace(bounds, narrow))


@pytest.mark.parametrize("kind", [TEXT, Type("enum", name="public.status")], ids=["text", "enum"])
@pytest.mark.parametrize(("label", "is_tried"), [("Offen", True), ("Öffen", False)])
def test_labels_of_other_letters_are_not_folded(kind: Type, label: str, *, is_tried: bool) -> None:
    column = Column(1, kind, Values((label, "paid")), name="status")
    condition = Apply("ilike", "({0} ILIKE {1})", (column, Constant(TEXT, "%f%", "%f%")), BOOLEAN)

    assert list(tried([condition], (column,), [column], DatabaseLocale())) == [condition] * is_tried


MONTHS_SINCE = (
    "(extract(year FROM o.ordered_at) - extract(year FROM c.joined)) * 12 "
    "+ extract(month FROM o.ordered_at) - extract(month FROM c.joined)"
)


@pytest.fixture
def dated(planner: Planner) -> Planner:
    """A shop whose rules bound both moments of a cohort."""
    bounded = "joined: {lower: 2023-01-01, upper: 2024-12-31}"
    return replace(planner, rules=planner.rules.replace("email: hidden", f"email: hidden\n      {bounded}"))


@pytest.mark.parametrize(
    ("condition", "ages"),
    [
        ("o.ordered_at >= c.joined", range(36)),
        ("c.joined < o.ordered_at", range(36)),
        (f"{MONTHS_SINCE} >= 0", range(36)),
        ("o.ordered_at BETWEEN c.joined AND c.joined + interval '30 days'", range(3)),
        ("o.ordered_at > c.joined AND o.ordered_at < c.joined + interval '3 months'", range(4)),
        ("o.ordered_at::date = c.joined::date", range(1)),
    ],
)
def test_cohorts_have_the_ages_that_conditions_between_their_moments_leave(
    dated: Planner, condition: str, ages: range
) -> None:
    """And every cell that has rows."""
    sql = f"""SELECT to_char(c.joined, 'YYYY-MM'), ({MONTHS_SINCE})::int AS age, count(*) {ORDERS}
              WHERE c.joined >= '2024-01-01' AND {condition} GROUP BY 1, 2"""
    (block,) = planned(dated, sql).blocks
    assert isinstance(block.groups, PublicGroups)
    cells = set(block.groups.rows)

    assert {int(age or "") for _, age in cells} <= set(ages)
    assert len(cells) < 12 * 36
    truth = {(month, str(age)) for month, age, _ in dated.truth(sql) if month <= "2024-12"}
    assert truth <= cells


def test_a_day_before_that_comes_later_keeps_its_group(dated: Planner) -> None:
    """In St. John's it was 00:01 on 7 November 2010, and then 23:01 on the sixth."""
    zone, november = "America/St_Johns", "{lower: 2010-11-01, upper: 2010-11-30}"
    rules = re.sub(r"((?:joined|ordered_at): )\{.*?\}", rf"\1{november}", dated.rules)
    keys = "c.joined::date, o.ordered_at::date"
    sql = f"SELECT {keys}, count(*) {ORDERS} WHERE c.joined < o.ordered_at GROUP BY 1, 2"
    request = Request(sql, ("pg_catalog", "public"), delta=Decimal("1e-9"), time_zone=zone)

    (block,) = Planner(dated.dsn, rules).whole(request).blocks

    moments = ("2010-11-07 02:30:30+00", "2010-11-07 03:00:00+00")
    days = ", ".join(f"(timestamptz '{moment}' AT TIME ZONE '{zone}')::date::text" for moment in moments)
    assert isinstance(block.groups, PublicGroups)
    assert ("2010-11-01", "2010-11-30") in block.groups.rows
    assert ("2010-11-30", "2010-11-01") not in block.groups.rows
    assert dated.truth(f"SELECT {days}") == [("2010-11-07", "2010-11-06")]
    assert ("2010-11-07", "2010-11-06") in block.groups.rows
