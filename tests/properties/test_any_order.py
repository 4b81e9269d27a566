"""No statement fails on any row, in whatever order PostgreSQL evaluates its parts: hostile rows, and forced plans.

Each of these statements failed on some rows, or would where a guard rests on a condition, a CHECK or a declared range.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from rules.mechanisms.release_plan import Choice
from rules.policy.load import load_policy
from rules.policy.model import Policy
from tests.properties.conftest import MakeLab
from tests.properties.planning import FORCED, Lab
from tests.support import lab as tables

SCHEMA = """
CREATE TABLE people (id integer PRIMARY KEY, city text NOT NULL, few integer NOT NULL CHECK (few IN (1, 2)));
CREATE TABLE visits (
    id integer PRIMARY KEY, person_id integer NOT NULL, n integer, f float8, g real, big numeric, at timestamp, t text
);
CREATE TABLE places (size integer NOT NULL);
INSERT INTO people VALUES (5, 'Rome', 1), (6, 'Lyon', 2), (7, 'Rome', 1);
INSERT INTO visits VALUES
    (1, 5, 1, 1e-170, 1e-45, 1e200, 'infinity', 'x'), (2, 5, 0, 0, 0, 1e-200, '294276-12-31', '1'),
    (3, 5, NULL, NULL, NULL, 1e300, '4713-01-01 BC', ''), (4, 5, 1, 1e-165, 1e-44, 1e-16383, '-infinity', NULL),
    (5, 6, 0, 0, 0, 0, '2024-02-29', '-'), (6, 6, 2147483647, 1, 1, 9e131071, NULL, 'a'),
    (7, 7, -2147483648, 1.7e308, 3.4e38, 'NaN', '9999-12-31', '99999999999'),
    (8, 7, 1, 'NaN', '-Infinity', -1, '0001-01-01', '1');
INSERT INTO places VALUES (1), (2);
ANALYZE
"""
RULES = """unit: people.id
tables:
  people: {unit: id, columns: {few: {lower: 1, upper: 2}}}
  visits: {unit: person_id, rows_per_unit: 9}
  odds: {unit: person_id}
  places: public
"""


@pytest.fixture
def lab(make_lab: MakeLab) -> Lab:
    return make_lab(SCHEMA)


def policy() -> Policy:
    head, tail = tables.RULES[: tables.RULES.index("unit:")], tables.RULES[tables.RULES.index("budget:") :]
    return load_policy(f"{head}{RULES}{tail}", "rules.yaml", {"DATABASE": "lab"})


@contextmanager
def forced(lab: Lab, settings: str) -> Iterator[None]:
    with lab.connection.transaction(force_rollback=True):
        lab.connection.execute(settings or "SELECT")
        yield


def check(lab: Lab, sql: str) -> None:
    """Run what is planned for a statement under every plan."""
    for block in lab.plan(sql, policy()).blocks:
        choices = (measure.statement for measure in block.measures if isinstance(measure, Choice))
        statements = [lab.sql(choice) for choice in (block.statement, *choices)]
        for settings in FORCED:
            for statement in statements:
                try:
                    with forced(lab, settings):
                        lab.connection.execute(statement).fetchall()
                except psycopg.Error as error:
                    raise AssertionError(f"{sql}\n{statement}\n{settings}\n{error}") from error


LARGE = "CASE WHEN n = 1 THEN '8e307'::float8 ELSE f END"
NUMBERS = (LARGE, "f", "big", "coalesce(g, big)", "big * big", "n * 1000000000")
OF_ROWS = ("sum", "avg", "var_pop", "variance", "stddev", "stddev_pop", "max", "min")
PLACES = ("percentile_cont(0.1)", "percentile_disc(0.9)", "mode()")


def test_what_the_rows_of_a_unit_add_up_to_fits_its_type_or_is_null(lab: Lab) -> None:
    for argument in NUMBERS:
        for name in OF_ROWS:
            check(lab, _positive(f"SELECT person_id, {name}({argument}) AS s FROM visits GROUP BY 1"))
            window = "PARTITION BY person_id ORDER BY id ROWS 1 PRECEDING"
            check(lab, _positive(f"SELECT {name}({argument}) OVER ({window}) AS s FROM visits"))
        for place in PLACES:
            made = f"{place} WITHIN GROUP (ORDER BY {argument})"
            check(lab, _positive(f"SELECT person_id, {made} AS s FROM visits GROUP BY 1"))


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT lag(g, 1, big) OVER (PARTITION BY person_id ORDER BY id) AS s FROM visits",
        "SELECT person_id, g AS s FROM visits UNION ALL SELECT person_id, big FROM visits",
        "SELECT person_id, coalesce(g, big) AS s FROM visits UNION ALL SELECT person_id, g FROM visits",
        "SELECT person_id, f AS s FROM visits UNION SELECT person_id, big * big FROM visits",
        "SELECT person_id, s FROM (SELECT person_id, coalesce(g, big) AS s FROM visits) AS v GROUP BY 1, 2",
        "SELECT person_id, f AS s FROM visits AS v FULL JOIN (SELECT person_id, big AS f FROM visits) AS w "
        "USING (person_id, f)",
    ],
)
def test_where_two_types_meet_neither_fails(lab: Lab, rows: str) -> None:
    check(lab, _positive(rows))


def _positive(rows: str) -> str:
    return f"SELECT count(*) FROM ({rows}) AS v WHERE s > 0"


# What costs more to look at than most conditions that rely on it.
FEW = f"({' OR '.join(f'n = {number}' for number in range(1, 40))})"
# Conditions and lists that keep zero and all that is large away from what is computed.
KEPT = (
    "SELECT count(*) FROM {kept} AS v WHERE {risky}",
    "SELECT count(*) FROM (SELECT {risky} AS k FROM visits AS v WHERE {few}) AS v WHERE k",
    "SELECT count(*) FROM (SELECT person_id, {risky} AS k FROM visits AS v WHERE {few} GROUP BY 1, 2) AS v WHERE k",
    "SELECT count(*) FROM people AS p JOIN {kept} AS v ON v.person_id = p.id AND {risky}",
    "SELECT count(*) FROM people AS p LEFT JOIN {kept} AS v ON v.person_id = p.id AND {risky}",
    "SELECT count(*) FROM visits AS v WHERE {few} AND EXISTS (SELECT FROM people AS p WHERE p.id = v.person_id AND "
    "{risky})",
    "SELECT count(*) FROM people AS p WHERE NOT EXISTS (SELECT FROM {kept} AS v WHERE p.id = v.person_id AND {risky})",
    "SELECT count(*) FROM (SELECT * FROM {kept} AS x UNION ALL SELECT * FROM {kept} AS y) AS v WHERE {risky}",
    "SELECT count(*) FILTER (WHERE {risky}) FROM {kept} AS v",
    "SELECT count(DISTINCT {value}) FROM {kept} AS v",
    "SELECT sum(least(greatest({value}, 0), 5)) FILTER (WHERE n = 1) FROM visits AS v",
    "SELECT count(*) FROM {joined} WHERE {risky}",
    "SELECT sum(k) FROM people AS p LEFT JOIN (SELECT v.person_id, least(greatest(coalesce({value}, 5), 0), 9) AS k "
    "FROM {joined}) AS v ON v.person_id = p.id",
    "SELECT count(k) FROM (SELECT v.person_id, coalesce({value}, 5) AS k FROM {joined}) AS v FULL JOIN people AS p ON "
    "v.person_id = p.id",
    # aggregates of the rows of a unit, and windows over them
    "SELECT count(*) FROM (SELECT person_id, sum({value}) FILTER (WHERE {few}) AS k FROM visits AS v GROUP BY 1) AS v "
    "WHERE k > 1",
    "SELECT count(*) FROM (SELECT CASE WHEN min(n) OVER (PARTITION BY person_id) > 0 THEN sum({value}) OVER (PARTITION "
    "BY person_id) END AS k FROM visits AS v) AS v WHERE k > 1",
    "SELECT count(*) FROM (SELECT person_id, CASE WHEN count(*) FILTER (WHERE n = 0) = 0 THEN sum({value}) END AS k "
    "FROM visits AS v GROUP BY 1) AS v WHERE k > 1",
    # subqueries for each row
    "SELECT count(*) FROM people AS p WHERE (SELECT count(*) FROM {kept} AS v WHERE v.person_id = p.id AND {tied}) > 1",
    "SELECT count(*) FROM people AS p WHERE (SELECT sum({value}) FROM {kept} AS v WHERE v.person_id = p.id AND {tied} "
    "AND v.n >= p.few) > 1",
    "SELECT count(*) FROM people AS p WHERE (SELECT max({value}) FROM {kept} AS v WHERE v.person_id = p.id AND "
    "{risky}) > 1",
    "SELECT count(*) FROM people AS p WHERE EXISTS (SELECT FROM {kept} AS v WHERE v.person_id = p.id AND {tied})",
    "SELECT count(*) FROM people AS p CROSS JOIN LATERAL (SELECT sum({value}) AS k FROM {kept} AS v WHERE v.person_id "
    "= p.id AND {tied}) AS w WHERE w.k > 1",
    "SELECT count(*) FROM people AS p CROSS JOIN LATERAL (SELECT {value} AS k FROM {kept} AS v WHERE v.person_id = "
    "p.id AND {risky} ORDER BY v.id LIMIT 1) AS w WHERE w.k > 1",
    "SELECT count(*) FROM people AS p LEFT JOIN LATERAL (SELECT {value} AS k FROM {kept} AS v WHERE v.person_id = p.id "
    "AND {tied}) AS w ON true WHERE w.k > 1",
    # what a CHECK and a declared range say
    "SELECT count(*) FROM people AS p JOIN visits AS v ON v.person_id = p.id AND v.n = p.few WHERE {risky}",
    "SELECT count(*) FROM places AS o JOIN visits AS v ON v.n = o.size WHERE o.size IN (1, 2) AND {risky}",
)
VALUES = (
    "10 / v.n",
    "1000000000 * v.n",
    "v.n::smallint",
    "extract(year FROM make_date(2020, v.n, 1))",
    "(date '2024-01-01' - v.n) - date '2020-01-01'",
    "v.f * 1e200",
    "v.big * v.big",
    "sqrt(v.n) + ln(v.big)",
    "width_bucket(CASE WHEN v.n = 1 THEN '9e307'::float8 ELSE v.f END, 0, 5, 5)",
    "extract(year FROM v.at + interval '1 month')",
    "extract(epoch FROM v.at::timestamptz - v.at)",
    "v.t::integer * v.n",
    "v.g * v.f",
    "extract(epoch FROM interval '1 day' * least(greatest(v.n, 1), 39))",
)


@pytest.mark.parametrize("statement", KEPT)
def test_conditions_keep_nothing_from_failing(lab: Lab, statement: str) -> None:
    """10 / n of the rows with n = 1 or n = 2: the quotient is cheaper to look at, so PostgreSQL looks at it first."""
    for value in VALUES:
        found = {"few": FEW, "value": value, "risky": f"{value} > 1", "tied": f"{value} > p.few"}
        found["kept"] = f"(SELECT * FROM visits WHERE {FEW})"
        found["joined"] = "visits AS v JOIN people AS w ON w.id = v.person_id AND v.n = w.few"
        check(lab, statement.format(**found))


ODDS = """
CREATE DOMAIN plain AS text COLLATE "C"; CREATE DOMAIN posix AS text COLLATE "POSIX";
CREATE TABLE odds (
    person_id integer PRIMARY KEY, fs float8[], ns numeric[], ats timestamp[], ds date[], a plain, b posix,
    c text COLLATE "C", cs text[] COLLATE "C", ts text[]
);
INSERT INTO odds VALUES
    (5, '{NaN,Infinity,1e308}', '{NaN,1e131071}', '{infinity,294276-12-31 23:59:59}', '{infinity,5874897-12-31}', 'a',
     'b', 'c', '{a,b}', '{b,c}'),
    (6, '{-Infinity,5e-324}', '{-1e131071,1e-16383}', '{4713-01-01 BC,-infinity}', '{4713-01-01 BC}', 'b', 'a', 'a',
     '{}', '{a}')
"""


@pytest.mark.parametrize(
    "condition",
    [
        "fs[{n}] + 1 > 0", "fs[{n}] * fs[{n}] > 0", "fs[{n}]::integer > 0", "fs[{n}]::numeric > 0", "exp(fs[{n}]) > 0",
        "ns[{n}] * 100 > 0", "ns[{n}]::bigint > 0", "round(ns[{n}], -3) > 0", "ns[{n}]::float8 > 0", "ns[{n}] ^ 3 > 0",
        "ats[{n}] + interval '1 month' > '2024-01-01'", "ats[{n}]::timestamptz > '2024-01-01'", "ats[{n}]::text > ''",
        "extract(year FROM ats[{n}]) > 0", "ds[{n}] + 1 > '2024-01-01'", "ds[{n}]::timestamp > '2024-01-01'",
        "age(ats[{n}], ds[{n}]) > interval '1 year'", "a <> b", "a = b", "a = c", "b = c AND a IN (b, c)",
        "a LIKE 'a%'", "a || b || c = 'a'", "cs @> ts", "a = ANY (cs)", "b <> ALL (ts)", "cs[{n}] = b",
        "strpos(a, b) > 0", "a ~ 'b'", "coalesce(a, b) = coalesce(c, b)", "nullif(a, b) = c",
    ],
)  # fmt: skip
def test_what_stands_in_arrays_and_domains_fails_nowhere(make_lab: MakeLab, condition: str) -> None:
    """Infinite items of arrays, and texts that have two collations, by which PostgreSQL does not compare."""
    lab = make_lab(f"{SCHEMA}; {ODDS}")
    for place in (1, 2, 3):
        asked = condition.format(n=place)
        check(lab, f"SELECT count(*) FROM odds WHERE {asked}")
        check(lab, f"SELECT sum(CASE WHEN {asked} THEN 1 ELSE 0 END) FROM odds")
