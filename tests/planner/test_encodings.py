"""Databases that are not UTF8: what could fail there on some letters is refused, and what cannot is answered."""

from dataclasses import replace

import pytest

from rules.mechanisms.release_plan import PublicGroups
from tests.conftest import RealDatabase
from tests.planner.planned import Planner
from tests.support import shop as shop_data


def planner(shop: RealDatabase, encoding: str, rules: str = shop_data.RULES) -> Planner:
    """Over the shop, as if its texts were stored in this encoding."""
    made = Planner(shop.dsn, rules)
    made.catalog = replace(made.catalog, encoding=encoding)
    return made


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "WIN1252"])
@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("ascii(name) = 65", "ascii"),
        ("lower(name) = 'a'", "lower"),
        ("lower(city) = 'lyon'", "lower"),
        ("upper(note) = 'A'", "upper"),
        ("initcap(city) = 'Lyon'", "initcap"),
        ("name ILIKE 'a%'", "ILIKE"),
        ("name NOT ILIKE 'a%'", "ILIKE"),
        ("name ~~* 'a%'", "ILIKE"),
    ],
)
def test_what_looks_at_letters_needs_a_database_in_utf8(
    shop: RealDatabase, encoding: str, condition: str, name: str
) -> None:
    sql = f"SELECT count(*) FROM customers JOIN orders ON customer_id = customers.id WHERE {condition}"

    refusal = planner(shop, encoding).refusal(sql)

    assert str(refusal) == f"{name} needs a database with encoding UTF8, and the real database has {encoding}"
    assert planner(shop, "UTF8").block(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT reverse(city), count(*) FROM customers WHERE name LIKE 'Ä%' GROUP BY 1",
        "SELECT name, count(*) FROM customers WHERE replace(name, 'ö', 'o') = 'o' GROUP BY 1",
        "SELECT count(*) FROM customers WHERE name ~* '^a' AND left(name, 2) > 'é' AND length(name) < 9",
    ],
)
def test_what_fails_on_no_letter_is_answered_in_every_encoding(shop: RealDatabase, sql: str) -> None:
    assert planner(shop, "LATIN1").block(sql) == planner(shop, "UTF8").block(sql)


@pytest.mark.parametrize(
    "asked",
    [
        "count(*) FROM customers WHERE name = 'Łódź'",
        "count(*) FILTER (WHERE name LIKE '%Łódź%') FROM customers",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) FROM orders WHERE note = 'it''s Łódź'",
        "name, count(*) FROM customers WHERE name IN ('Lyon', 'Łódź') GROUP BY name",
        "count(*) FROM customers WHERE id IN (SELECT customer_id FROM orders WHERE note = 'Łódź')",
    ],
)
def test_a_constant_that_the_encoding_does_not_have_is_refused_where_it_stands(shop: RealDatabase, asked: str) -> None:
    sql = f"SELECT {asked}"

    refusal = planner(shop, "LATIN1").refusal(sql)

    assert "' has no equivalent in LATIN1, the encoding of the real database" in str(refusal)
    assert refusal.position == sql.index("'%Ł" if "%Ł" in sql else "'it" if "'it" in sql else "'Ł") + 1
    assert planner(shop, "LATIN2").block(sql) == planner(shop, "UTF8").block(sql)


@pytest.mark.parametrize("character", ["\u00a5", "\u203e"], ids=["yen sign", "overline"])
def test_a_character_that_python_writes_as_ascii_is_refused_too(shop: RealDatabase, character: str) -> None:
    """As a backslash it would end a pattern, which fails for the rows that come so far."""
    refusal = planner(shop, "EUC_JP").refusal(f"SELECT count(*) FROM customers WHERE name LIKE 'a{character}'")

    assert f"'a{character}' has no equivalent in EUC_JP" in str(refusal)


def test_a_declared_value_that_the_encoding_does_not_have_is_refused_with_the_list(shop: RealDatabase) -> None:
    rules = shop_data.RULES.replace("values: [Berlin", "values: [Łódź, Berlin")
    sql = "SELECT city, count(*) FROM customers GROUP BY city"

    refusal = planner(shop, "LATIN1", rules).refusal(sql)

    assert str(refusal) == "'Łódź' has no equivalent in LATIN1, the encoding of the real database"
    assert "remove it from the rules file" in refusal.hint
    assert isinstance(planner(shop, "UTF8", rules).block(sql).groups, PublicGroups)


def test_in_an_encoding_that_nobody_reads_only_ascii_is_written(shop: RealDatabase) -> None:
    made = planner(shop, "MULE_INTERNAL")

    assert made.block("SELECT count(*) FROM customers WHERE name = 'Lyon'")
    assert "MULE_INTERNAL" in str(made.refusal("SELECT count(*) FROM customers WHERE name = 'Málaga'"))
