"""Keys look as PostgreSQL shows them, with zeros behind the point and the blanks of a character(n), in texts too."""

import pytest

from rules.refusal import NotSupported
from tests.properties.planning import Lab
from tests.support import lab as tables

RULES = tables.rules()
PEOPLE = """
    INSERT INTO people (id, city, vip, wealth, age, note) VALUES
        (1, 'Berlin', true, 2, 10, 'Lyon'), (2, 'Berlin', false, 10.5, 12, NULL), (3, 'Lyon', true, -100, 12, 'Lyon '),
        (4, NULL, true, 0, 11, 'x'), (5, 'Lyon', false, 999.99, NULL, 'x')
"""
KEYS = (
    *("(p.wealth * 2)::text", "(p.wealth + 0.000) || '%'", "abs(p.wealth)::text", "round(p.wealth, 1)::text"),
    *("floor(p.wealth / 10) * 0.5 || '-'", "trunc(p.wealth) || ''", "(p.age * 1.0)::text", "mod(p.wealth, 1)::text"),
    *("(CASE WHEN p.vip THEN 1.0 ELSE 2.50 END)::text", "concat(coalesce(p.wealth, 0), '!')", "(p.age / 4.0)::text"),
    *("least(p.wealth, 1)::text", "round(p.age, -1)::text", "(-p.wealth)::text", "nullif(p.wealth, 0)::text"),
    *("p.city", "coalesce(p.city, '0123456789')", "CASE WHEN p.vip THEN p.city END", "nullif(p.city, 'Lyon')"),
    *(
        "concat(p.city, '|')",
        "concat_ws('-', p.city, p.vip)",
        "p.city || '|'",
        "bit_length(p.city)",
        "octet_length(p.city)",
    ),
    *("p.city = ANY (ARRAY['Berlin', 'Lyon '])", "p.city = ANY ('{Berlin,Lyon }')", "p.city IN ('Berlin', 'Lyon ')"),
    *("round(p.wealth, 1)", "p.wealth * 2", "p.wealth + 1.000", "floor(p.wealth / 10) * 0.5"),
    *("p.wealth * 5.", "p.wealth * 1.50e1", "p.wealth * 5.e-1", "p.wealth * (1.5 + 0.50)", "p.wealth * '1.50'"),
    *("extract(year FROM p.born) * 1.0", "p.wealth * numeric '1.50'", "p.wealth * greatest(1.50, 1.50)"),
    *("p.wealth < '10.504'", "p.wealth = '10.504'", "nullif(p.wealth, '10.504')", "p.wealth * '1.23456'"),
    *("p.wealth IN ('2', '10.504')", "p.wealth = ANY ('{10.504}')", "p.wealth < '10.504'::numeric(8,2)"),
    *("p.city IN ('Berlin '::text, 'Lyon ')", "p.city IN ('Berlin '::text, 'Lyon '::varchar)"),
    *("p.note IN ('x '::char(2), 'Lyon ')", "p.city = ANY (ARRAY['Berlin '::text, 'Lyon '])"),
    *("p.city = ALL (ARRAY['Lyon '])", "p.city <> ALL (ARRAY['Lyon '])", "coalesce(p.city::text, 'none')"),
)
MIXED = (
    *("coalesce(p.city, 'none')", "coalesce(p.city, p.note)", "CASE WHEN p.vip THEN p.city ELSE '-' END"),
    *("greatest(p.city, 'K')", "nullif(p.note, p.city)", "p.note::bpchar", "coalesce(p.city, p.city::char(8))"),
)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_looks_as_postgresql_shows_it(labs: tuple[Lab, ...], key: str) -> None:
    lab, sql = labs[-1], f"SELECT {key} AS k, count(*) FROM people AS p GROUP BY 1"
    with lab.connection.transaction(force_rollback=True):
        lab.script(PEOPLE)
        plan = lab.plan(sql, RULES)
        answer = [(str(shown), n) for shown, n in lab.run(lab.outer(plan), plan) if n > 0]
        lab.connection.execute("SET LOCAL search_path = public")
        truth = [(str(shown), n) for shown, n in lab.connection.execute(sql)]

    assert sorted(answer) == sorted(truth)


@pytest.mark.parametrize(
    "items", ["(0.1, 1.5)", "(0.1)", "(0.1, v.cost)", "(0.1, 1.5, v.cost)", "(0.1, 1.5::float8)", "('0.1', 0.7)"]
)
def test_numbers_in_a_list_are_reals_where_postgresql_has_them_so(labs: tuple[Lab, ...], items: str) -> None:
    lab, sql = labs[-1], f"SELECT count(*) FROM visits AS v WHERE v.rating IN {items}"
    with lab.connection.transaction(force_rollback=True):
        lab.script(
            f"{PEOPLE}; INSERT INTO visits (id, person_id, rating, cost) VALUES (1, 1, 0.1, 2), (2, 2, 1.5, 1.5)"
        )
        plan = lab.plan(sql, RULES)
        ((answer,),) = lab.run(lab.outer(plan), plan)
        lab.connection.execute("SET LOCAL search_path = public")
        ((truth,),) = lab.connection.execute(sql)

    assert answer == truth


@pytest.mark.parametrize("key", ["p.age * 1." + 999 * "0", "p.age::numeric(1000,990) * 1." + 10 * "0"])
def test_zeros_that_no_numeric_of_one_scale_has_room_for_are_left_out(labs: tuple[Lab, ...], key: str) -> None:
    lab, sql = labs[-1], f"SELECT {key} AS k, count(*) FROM people AS p GROUP BY 1"
    with lab.connection.transaction(force_rollback=True):
        lab.script(PEOPLE)
        plan = lab.plan(sql, RULES)
        answer = {(str(shown), n) for shown, n in lab.run(lab.outer(plan), plan) if n > 0}

    assert answer == {("10", 1), ("11", 1), ("12", 2), ("None", 1)}


def test_zeros_beyond_those_of_any_numeric_type_are_left_out(labs: tuple[Lab, ...]) -> None:
    lab, sql = labs[-1], "SELECT p.age * 0e-1200 AS k, count(*) FROM people AS p GROUP BY 1"
    with lab.connection.transaction(force_rollback=True):
        lab.script(PEOPLE)
        plan = lab.plan(sql, RULES)
        assert {(str(shown), n) for shown, n in lab.run(lab.outer(plan), plan)} == {("0", 4), ("None", 1)}


@pytest.mark.parametrize("key", MIXED)
def test_a_character_whose_blanks_differ_from_row_to_row_is_no_key(labs: tuple[Lab, ...], key: str) -> None:
    with pytest.raises(NotSupported, match="without one length"):
        labs[-1].plan(f"SELECT {key}, count(*) FROM people AS p GROUP BY 1", RULES)


def test_branches_of_a_union_with_other_lengths_are_no_key(labs: tuple[Lab, ...]) -> None:
    union = "SELECT id, city AS k FROM people UNION ALL SELECT id, city::char(8) FROM people"
    with pytest.raises(NotSupported, match="without one length"):
        labs[-1].plan(f"SELECT k, count(*) FROM ({union}) AS u GROUP BY k", RULES)
