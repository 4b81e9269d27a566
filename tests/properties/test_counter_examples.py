"""What once broke a proof: each with the smallest schema, rows and statement that did it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg
import pytest

from proxy.execute.question import Question
from rules.mechanisms.release_plan import Measure
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.properties.conftest import MakeLab
from tests.properties.moved import broken_claims, left_out, told_by_place
from tests.properties.planning import Exact, overmoved
from tests.support import lab as tables

PEOPLE = "unit: people.id\ntables:\n  people: {unit: id}\n"
VISITS = f"{PEOPLE}  visits: {{unit: person_id, rows_per_unit: 2}}\n"


@dataclass(frozen=True)
class Case:
    """One schema with rows, the rules for it, a statement, and who leaves."""

    name: str
    schema: str
    rules: str
    sql: str
    leave: str
    refusal: str = ""

    @property
    def policy(self) -> Policy:
        text = tables.RULES[: tables.RULES.index("unit:")] + self.rules
        return load_policy(text + tables.RULES[tables.RULES.index("budget:") :], "rules.yaml", {"DATABASE": "lab"})


def a_way(child: str, parent: str, how: str, refusal: str, *, visits: str, items: str, leave: str) -> Case:
    """Items that belong to a person by way of a visit, whose key is of one type and what they name it by of another."""
    return Case(
        f"a way to a unit by {child} = {parent}{', ' * bool(how)}{how}",
        f"""
        CREATE TABLE people (id integer PRIMARY KEY);
        CREATE TABLE visits (id {parent} PRIMARY KEY, person_id integer);
        CREATE TABLE items (visit_id {child});
        INSERT INTO people VALUES (5), (6);
        INSERT INTO visits VALUES {visits} ON CONFLICT DO NOTHING;
        INSERT INTO items VALUES {items}
        """,
        f"{VISITS}  items: {{unit: visit_id -> visits.id, rows_per_unit: 2}}\n",
        "SELECT count(*) FROM items",
        f"{leave}DELETE FROM people WHERE id = 5",
        refusal,
    )


NUMERIC = """
CREATE TABLE people (id numeric PRIMARY KEY);
CREATE TABLE visits (person_id numeric, kind text);
INSERT INTO people VALUES (5.0), (6);
INSERT INTO visits VALUES (5.0, 'a'), (5.00, 'a'), (5.000, 'b'), (6, 'a')
"""
DIGITS = """
CREATE TABLE people (id numeric(10, 1) PRIMARY KEY);
CREATE TABLE visits (person_id numeric(10, 2));
INSERT INTO people VALUES (5), (6); INSERT INTO visits VALUES (5), (6), (5)
"""
LONG = "x" * 63  # as long as a name can be
FEW = f"({' OR '.join(f'n = {number}' for number in range(1, 40))})"
JOINED = "visits AS v JOIN visits AS w ON w.person_id = v.person_id AND v.n = w.few"
CAPPED = """
CREATE TABLE people (
    id integer PRIMARY KEY, most integer NOT NULL CHECK (most BETWEEN 0 AND 1000), few integer CHECK (few IN (0, 1))
);
CREATE TABLE visits (person_id integer);
INSERT INTO people VALUES (5, 1000, NULL), (6, 3, 1)
"""
LEAVE_PERSON = "DELETE FROM people WHERE id = 5"
FAR_BOUNDS = "of at most 150 digits"
FAR = "CASE WHEN email = 'eve' THEN '9e307'::float8 WHEN email = 'bob' THEN '-9e307'::float8 ELSE f END"
MONTH_ENDS = (
    "('2024-01-29'::timestamp + interval '1 second' * (CASE WHEN email = 'eve' AND salary > 1776 THEN 169200 ELSE 0 "
    "END + salary % 7201 - salary % 7201))"
)
LEAVE = "DELETE FROM visits WHERE person_id = 5; DELETE FROM people WHERE id = 5"
CASES = (
    Case(
        "a numeric unit is written with other digits in each row",
        NUMERIC,
        VISITS,
        "SELECT person_id::text, count(*), count(DISTINCT person_id) FROM visits GROUP BY 1",
        LEAVE,
    ),
    Case(
        "a union of units with other digits",
        DIGITS,
        VISITS,
        "SELECT u.id::text, count(DISTINCT u.id) FROM (SELECT id FROM people UNION ALL SELECT person_id FROM visits) "
        "AS u GROUP BY 1",
        LEAVE,
    ),
    Case(
        "a row without identity stands in one group twice",
        "CREATE TABLE marks (kind text); INSERT INTO marks VALUES ('a'), ('b')",
        "unit: row\ntables:\n  marks: {}\n",
        "SELECT kind, count(*) FROM (SELECT * FROM marks UNION ALL SELECT * FROM marks) AS u GROUP BY 1",
        "DELETE FROM marks WHERE kind = 'a'",
        "cannot be duplicated by a join",
    ),
    Case(
        "a double refers to two large whole numbers",
        """
        CREATE TABLE people (id integer PRIMARY KEY);
        CREATE TABLE visits (id bigint PRIMARY KEY, person_id integer);
        CREATE TABLE items (visit_id float8);
        INSERT INTO people VALUES (5), (6);
        INSERT INTO visits VALUES (9007199254740992, 5), (9007199254740993, 6);
        INSERT INTO items VALUES (9007199254740992), (9007199254740992)
        """,
        f"{VISITS}  items: {{unit: visit_id -> visits.id, rows_per_unit: 3}}\n",
        "SELECT count(*) FROM items",
        "DELETE FROM items WHERE visit_id IN (SELECT id FROM visits WHERE person_id = 5); " + LEAVE,
        "a row could belong to two units",
    ),
    *(
        Case(
            f"a numeric of many digits beside a double: {condition}",
            """
            CREATE TABLE people (id integer PRIMARY KEY, wide numeric(400, 0), deep numeric(400, 399), f float8);
            INSERT INTO people VALUES (5, 1e350, 0, 1), (6, 1, 1e-390, 2)
            """,
            PEOPLE,
            f"SELECT count(*) FROM people WHERE {condition}",
            "DELETE FROM people WHERE id = 5",
        )
        for condition in ("wide < f", "deep IN (f, 1)", "wide IS DISTINCT FROM f", "nullif(deep, f) > 0")
    ),
    Case(
        "a subquery over public rows, which depends on a row of an outer join, is no answer that comes first",
        f"CREATE TABLE places (size integer); {NUMERIC}",
        f"{VISITS}  places: public\n",
        "SELECT count(*) FROM visits AS v LEFT JOIN people AS p ON p.id = v.person_id "
        "AND EXISTS (SELECT FROM places AS o WHERE o.size > v.person_id)",
        LEAVE,
        "correlated subquery",
    ),
    *(
        Case(
            f"a domain of an enum whose constraints are not those of the enum: {sql}",
            """
            CREATE TYPE mood AS ENUM ('glad', 'sad', 'calm');
            CREATE DOMAIN told AS mood NOT NULL; CREATE DOMAIN fine AS told CHECK (VALUE::mood <> 'sad');
            CREATE TABLE people (id integer PRIMARY KEY, mood told, best fine);
            CREATE TABLE visits (person_id integer, mood told, best fine);
            INSERT INTO people VALUES (5, 'sad', 'glad'), (6, 'glad', 'calm');
            INSERT INTO visits VALUES (5, 'sad', 'glad'), (6, 'glad', 'calm'), (6, 'calm', 'calm')
            """,
            "unit: people.id\ntables:\n  people: {unit: id, columns: {mood: {values: [glad, calm], other: true}}}\n"
            "  visits: {unit: person_id, rows_per_unit: 2}\n",
            sql,
            LEAVE,
        )
        for sql in (
            "SELECT count(CASE WHEN id > 5 THEN mood END) FROM people",
            "SELECT mood, count(*) FROM people GROUP BY 1",
            "SELECT before, count(*) FROM (SELECT person_id, lag(best, 1, 'sad') OVER (PARTITION BY person_id "
            "ORDER BY mood) AS before FROM visits) AS v GROUP BY 1",
        )
    ),
    Case(
        "a list of which a condition leaves nothing",
        """
        CREATE TABLE people (id integer PRIMARY KEY, city text);
        INSERT INTO people VALUES (5, 'Berlin'), (6, 'Rome')
        """,
        "unit: people.id\ntables:\n  people: {unit: id, columns: {city: {values: [Berlin]}}}\n",
        "SELECT coalesce(city, 'none'), count(*) FROM people WHERE city <> 'Berlin' GROUP BY 1",
        "DELETE FROM people WHERE id = 5",
    ),
    Case(
        "equal documents with other digits",
        """
        CREATE TABLE people (id integer PRIMARY KEY);
        CREATE TABLE visits (person_id integer, note jsonb)
        """,
        VISITS,
        "SELECT count(*) FROM (SELECT person_id, note FROM visits GROUP BY 1, 2) AS v WHERE note ->> 'a' = '1.0'",
        LEAVE,
        "cannot be grouped, because equal values can differ",
    ),
    Case(
        "equal ranges with other digits, of which one stands for a group",
        """
        CREATE TABLE people (id integer PRIMARY KEY);
        CREATE TABLE visits (person_id integer, span numrange)
        """,
        VISITS,
        "SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY person_id ORDER BY n) AS n FROM (SELECT person_id, "
        "span, count(*) AS n FROM visits GROUP BY 1, 2) AS v) AS w",
        LEAVE,
        "cannot be grouped, because equal values can differ",
    ),
    *(
        Case(
            f"blanks at the end of a character(n), which are not compared: {condition}",
            """
            CREATE TABLE people (id integer PRIMARY KEY);
            CREATE TABLE visits (
                person_id integer NOT NULL, kind text NOT NULL CHECK (kind IN ('a', 'b', 'c')),
                UNIQUE (person_id, kind)
            );
            INSERT INTO people VALUES (5), (6); INSERT INTO visits VALUES (5, 'a'), (5, 'b'), (5, 'c'), (6, 'a')
            """,
            f"{PEOPLE}  visits: {{unit: person_id, rows_per_unit: 9}}\n",
            f"SELECT count(*) FROM visits WHERE {condition}",
            LEAVE,
        )
        for condition in (
            "kind IN ('a '::char(3), 'b '::char(3), 'c')",
            "(kind = 'a '::bpchar OR kind = 'b '::bpchar OR kind = 'c') AND kind IN ('a', 'b', 'c')",
        )
    ),
    Case(
        "a pivot by one value that is written in two ways",
        """
        CREATE TABLE people (id integer PRIMARY KEY);
        CREATE TABLE visits (person_id integer NOT NULL, kind text NOT NULL);
        INSERT INTO people VALUES (5), (6); INSERT INTO visits VALUES (5, 'a'), (5, 'a'), (6, 'a')
        """,
        VISITS,
        "SELECT count(*) FILTER (WHERE kind = 'a '::bpchar), count(*) FILTER (WHERE kind = 'a') FROM visits",
        LEAVE,
    ),
    Case(
        "two names that differ in what is cut off",
        f"""
        CREATE TABLE people (id integer PRIMARY KEY);
        CREATE TABLE visits (person_id integer NOT NULL, kind text NOT NULL CHECK (kind IN ('{LONG}1', 'b')));
        INSERT INTO people VALUES (5), (6); INSERT INTO visits VALUES (5, '{LONG}1'), (5, 'b'), (6, 'b')
        """,
        f"{PEOPLE}  visits: {{unit: person_id, rows_per_unit: 9}}\n",
        "SELECT count(*) FROM (SELECT person_id, kind::name AS n, count(*) FROM visits GROUP BY 1, 2) AS v "
        f"WHERE n IN ('{LONG}', 'b')",
        LEAVE,
    ),
    *(
        Case(
            f"doubles are more than can be computed from their bounds: {computed}",
            """
            CREATE TABLE people (id integer PRIMARY KEY, f float8, g float8);
            INSERT INTO people VALUES (5, 0.7, 1.2), (6, 0, 0)
            """,
            "unit: people.id\ntables:\n  people: {unit: id, columns: {f: {lower: 0, upper: 0.7}, "
            "g: {lower: 0, upper: 1.2}}}\n",
            f"SELECT sum(k) FROM (SELECT {computed} AS k FROM people) AS p",
            "DELETE FROM people WHERE id = 5",
        )
        for computed in (
            "(f * 5)::integer",
            "((g + 9007199254740992) - 9007199254740992)::integer",
            "((g + 9007199254740992) - 9007199254740992)::numeric::integer",
        )
    ),
    *(
        Case(
            f"conditions are looked at in the order of their costs: {sql}",
            """
            CREATE TABLE people (id integer PRIMARY KEY);
            CREATE TABLE visits (
                id integer PRIMARY KEY, person_id integer NOT NULL, n integer,
                few integer NOT NULL CHECK (few IN (1, 2))
            );
            INSERT INTO people VALUES (5), (6); INSERT INTO visits VALUES (1, 5, 0, 1), (2, 5, 1, 2), (3, 6, 2, 1)
            """,
            VISITS,
            sql.format(few=FEW, joined=JOINED),
            LEAVE,
        )
        for sql in (
            "SELECT count(*) FROM (SELECT * FROM visits WHERE {few}) AS v WHERE 10 / n > 1",
            "SELECT count(*) FROM (SELECT 10 / n AS k FROM visits WHERE {few}) AS v WHERE k > 1",
            "SELECT count(*) FROM (SELECT person_id, 10 / n AS k FROM visits WHERE {few} GROUP BY 1, 2) AS v "
            "WHERE k > 1",
            "SELECT count(*) FROM people AS p JOIN (SELECT * FROM visits WHERE {few}) AS v ON v.person_id = p.id "
            "AND 10 / v.n > 1",
            "SELECT count(*) FROM visits AS v WHERE {few} AND EXISTS (SELECT FROM people AS p WHERE p.id = v.person_id "
            "AND 10 / v.n > 1)",
            "SELECT count(*) FROM (SELECT n FROM visits WHERE {few} UNION ALL SELECT n FROM visits WHERE {few}) AS v "
            "WHERE 10 / n > 1",
            "SELECT count(DISTINCT 10 / n) FROM visits WHERE {few}",
            "SELECT count(*) FROM {joined} WHERE 10 / v.n > 1",
            "SELECT sum(k) FROM people AS p LEFT JOIN (SELECT v.person_id, coalesce(10 / v.n, 5) AS k FROM {joined}) "
            "AS v ON v.person_id = p.id",
            "SELECT count(k) FROM (SELECT v.person_id, coalesce(10 / v.n, 5) AS k FROM {joined}) AS v FULL JOIN people "
            "AS p ON v.person_id = p.id",
        )
    ),
    Case(
        "the least of a value, NULL, and what may be NULL",
        CAPPED,
        PEOPLE,
        "SELECT sum(k) FROM (SELECT least(NULL::integer, most, few) AS k FROM people) AS p",
        LEAVE,
    ),
    Case(
        "what is computed from the least of a value, NULL, and what may be NULL",
        CAPPED,
        PEOPLE,
        "SELECT count(*) FROM people WHERE least(NULL::integer, most, few) + 2147483600 > 0",
        LEAVE,
    ),
    *(
        Case(
            f"moments that were computed and lie before the calendar: {computed}",
            """
            CREATE TABLE people (id integer PRIMARY KEY, born timestamp);
            INSERT INTO people VALUES (5, '0005-01-01'), (6, '2000-01-01')
            """,
            PEOPLE,
            f"SELECT count(*) FROM people WHERE {computed} > 0",
            "DELETE FROM people WHERE id = 5",
        )
        for computed in (
            "1 / (extract(year FROM date_trunc('decade', born)) + 1)",
            "extract(year FROM date_bin('3650000 days', born, timestamp '2024-01-01'))",
        )
    ),
    *(
        Case(
            f"a later moment a month later is an earlier one: {summed}",
            """
            CREATE TABLE people (id integer PRIMARY KEY, email text NOT NULL, salary integer NOT NULL);
            INSERT INTO people VALUES (5, 'eve', 90000), (6, 'bob', 7000)
            """,
            "unit: people.id\ntables:\n  people: {unit: id, columns: {salary: {lower: 0, upper: 100000}}}\n",
            f"SELECT sum(k) FROM (SELECT {summed} AS k FROM people) AS p",
            LEAVE_PERSON,
        )
        for summed in (
            f"(({MONTH_ENDS} + interval '1 month 3 hours')::date - date '2024-02-29') * 1000000000",
            f"-(({MONTH_ENDS} + interval '1 month 3 hours')::date - date '2024-02-29') * 1000000000",
            f"(({MONTH_ENDS} - interval '1 month' + interval '2 months 3 hours')::date - date '2024-02-29') * 1000",
            f"extract(day FROM {MONTH_ENDS} + interval '1 month 3 hours') * 1000000000 - 29000000000",
        )
    ),
    *(
        Case(
            f"a bin of doubles that lie too far apart: {asked}",
            """
            CREATE TABLE people (id integer PRIMARY KEY, email text NOT NULL, f float8);
            INSERT INTO people VALUES (5, 'eve', 1.7e308), (6, 'bob', -1.7e308)
            """,
            "unit: people.id\ntables:\n  people: {unit: id, columns: {f: {lower: 0, upper: 10}}}\n",
            f"SELECT {asked.format(FAR)}",
            LEAVE_PERSON,
            refusal,
        )
        for asked, refusal in (
            ("sum(b) FROM (SELECT width_bucket({}, -10, 100, 5) AS b FROM people) AS p", ""),
            ("count(*) FROM (SELECT id FROM (SELECT id, width_bucket({}, 1, '5e307'::float8, 5) AS b FROM people) AS p "
             "GROUP BY id HAVING abs(sum(b)) > 1e6) AS q", FAR_BOUNDS),
            ("sum(b) FROM (SELECT width_bucket({}, '-9e307'::float8, '9e307'::float8, 100) AS b FROM people) AS p",
             FAR_BOUNDS),
            ("sum(width_bucket({}, -1e150, 1e150, 100000)) FROM people", ""),
        )
    ),
    *(
        a_way(
            child, parent, "", refusal,
            visits="(1, 5), ('NaN', 6), (2, NULL)",
            items=items,
            leave="DELETE FROM items WHERE visit_id = 1; DELETE FROM visits WHERE id = 1; ",
        )
        for child, parent, items, refusal in (
            ("numeric", "float8", "(1), (1e400)", "or to none"),  # 1e400 is no double
            ("float8", "numeric", "(1), ('NaN')", "or to none"),
            ("float8", "float4", "(1), (1e300), ('NaN')", ""),
            ("bigint", "float8", "(1), (2), (9007199254740993), (1), (1)", ""),
            ("integer", "numeric", "(1), (1), (1), (2), (NULL)", ""),
        )
    ),
    *(
        a_way(
            child, parent, "with blanks", refusal,
            visits="('a', 5), ('b', 6), ('a ', 6)",
            items="('a'), ('a '), ('a'), ('b')",
            leave="DELETE FROM items USING visits AS v WHERE v.id = visit_id AND v.person_id = 5; "
            "DELETE FROM visits WHERE person_id = 5; ",
        )
        for child, parent, refusal in (
            ("character(3)", "varchar(3)", "belong to two units"),  # is compared as character(n)
            ("bpchar", "varchar", "belong to two units"),
            ("character(3)", "text", ""),
            ("character(3)", "name", ""),
            ("character(3)", "character(5)", ""),
            ("varchar(3)", "character(3)", ""),
            ("text", "character(3)", ""),
            ("text", "varchar(3)", ""),
        )
    ),
    *(
        a_way(
            child, parent, "which is another moment by another clock", refusal,
            visits="('2024-01-01 00:00+01', 5), ('2024-01-02 00:00+01', 6)",
            items="('2024-01-01'), ('2024-01-02')",
            leave="DELETE FROM items WHERE visit_id = '2024-01-01'; DELETE FROM visits WHERE person_id = 5; ",
        )
        for child, parent, refusal in (
            ("date", "timestamptz", "belong to two units"),
            ("timestamp", "timestamptz", "belong to two units"),
            ("timestamptz", "timestamp", "belong to two units"),
            ("timestamptz", "timestamptz", ""),
            ("date", "timestamp", ""),
            ("timestamp", "date", ""),
        )
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_unit_moves_nothing_further_than_is_claimed(make_lab: MakeLab, case: Case) -> None:
    lab = make_lab(case.schema)
    try:
        plan = lab.plan(case.sql, case.policy)
    except Refusal as refusal:
        if "needs PostgreSQL" in refusal.message:
            return  # this server does not have it
        assert case.refusal, refusal.message
        assert case.refusal in refusal.message
        return
    assert not case.refusal, [lab.sql(block.statement) for block in plan.blocks]
    for block in plan.blocks:
        assert not broken_claims(lab, block, case.leave), lab.sql(block.statement)


def test_a_key_that_is_computed_of_constants_is_a_group_of_its_own(make_lab: MakeLab) -> None:
    lab = make_lab("CREATE TABLE people (id integer PRIMARY KEY, vip boolean); INSERT INTO people VALUES (5, true)")
    sql = "SELECT vip, extract(isodow FROM date '2024-01-01'), count(*) FROM people GROUP BY 1, 2 ORDER BY 1"
    made = lab.plan(sql, Case("", "", PEOPLE, "", "").policy)

    assert lab.run(lab.outer(made), made).fetchall() == [(False, 1, 0), (True, 1, 1), (None, 1, 0)]


UNITED = """
CREATE TABLE people (id numeric(4,1) PRIMARY KEY);
CREATE TABLE visits (person_id numeric(6,2), kind text, late boolean, one numeric(4,2), two numeric(4,2));
INSERT INTO people SELECT generate_series(1, 20);
INSERT INTO visits SELECT p.id, k, late, 5 + late::integer * 2, 5 + late::integer * 2
FROM people AS p, (VALUES ('a'), ('b'), ('c'), ('c  ')) AS k(k), (VALUES (true), (false)) AS l(late)
"""
BY_PLACE = (
    "SELECT kind, count(*) FROM people AS p FULL JOIN visits AS v ON p.id = v.person_id AND v.late GROUP BY 1",
    "SELECT concat(k::text, '.'), count(*) FROM (SELECT person_id, kind::bpchar AS k FROM visits GROUP BY 1, 2) AS v "
    "GROUP BY 1",
    "SELECT k::text, count(*) FROM (SELECT person_id, k FROM (SELECT person_id, greatest(one, two) AS k FROM visits) "
    "AS w GROUP BY 1, 2) AS v GROUP BY 1",
)


@pytest.mark.parametrize("sql", BY_PLACE)
def test_which_of_several_equal_values_comes_first_is_seen_by_nobody(make_lab: MakeLab, sql: str) -> None:
    lab = make_lab(UNITED)
    bounds = "one: {lower: 0, upper: 5}, two: {lower: 0, upper: 5}, kind: {values: [a, b, c]}"
    rules = f"{PEOPLE}  visits: {{unit: person_id, rows_per_unit: 2, columns: {{{bounds}}}}}\n"
    (block,) = lab.plan(sql, Case("", "", rules, "", "").policy).blocks
    assert not told_by_place(lab, block, ("people", "visits")), lab.sql(block.statement)


def test_an_outer_join_and_an_inner_one_of_the_same_rows_have_groups_of_their_own(make_lab: MakeLab) -> None:
    lab = make_lab(
        """
        CREATE TABLE people (id integer PRIMARY KEY, place_id integer);
        CREATE TABLE places (id integer PRIMARY KEY, region text NOT NULL);
        INSERT INTO places VALUES (1, 'north'), (2, 'south'); INSERT INTO people VALUES (1, 1), (2, 2)
        """
    )
    query = "SELECT l.region, count(p.id) FROM places AS l {} people AS p ON p.place_id = l.id AND l.region = 'north' "
    outer, inner = (f"{query.format(join)} GROUP BY 1" for join in ("LEFT JOIN", "JOIN"))
    policy = Case("", "", f"{PEOPLE}  places: public\n", "", "").policy

    made = lab.plan(f"{outer} UNION ALL {inner}", policy)

    assert lab.run(lab.outer(made), made).fetchall() == [("north", 1), ("south", 0), ("north", 1)]


def test_shares_of_epsilon_are_those_of_the_question_whatever_rows_there_are(make_lab: MakeLab) -> None:
    rules = f"{PEOPLE}  visits: {{unit: person_id, rows_per_unit: 4, columns: {{n: {{lower: 0, upper: 9}}}}}}\n"
    sql = "SELECT count(*), sum(n), stddev(n), mode() WITHIN GROUP (ORDER BY n) FROM visits GROUP BY n > 3"
    plans = []
    for rows in ("SELECT 5, 9 WHERE false", "SELECT 5, 9 FROM generate_series(1, 900)", "VALUES (5, 0), (6, NULL)"):
        lab = make_lab(
            "CREATE TABLE people (id integer PRIMARY KEY); CREATE TABLE visits (person_id integer, n integer);"
            f"INSERT INTO people VALUES (5), (6); INSERT INTO visits {rows}; ANALYZE"
        )
        plans.append(lab.plan(sql, Case("", "", rules, "", "").policy))

    assert plans[0] == plans[1] == plans[2]


def test_a_list_that_is_known_has_all_rows_of_its_groups_whoever_counts_in_them(make_lab: MakeLab) -> None:
    """A unit counts in one of the groups that are found. The last one that counts in a group of a list that was
    released before takes only its own rows away, not those of all others, who count elsewhere."""
    lab = make_lab(
        """
        CREATE TABLE people (id integer PRIMARY KEY); CREATE TABLE visits (person_id integer, note text);
        INSERT INTO people SELECT generate_series(1, 12);
        INSERT INTO visits SELECT id, note FROM people, (VALUES ('a'), ('b')) AS n (note)
        """
    )
    policy = Case("", "", VISITS, "", "").policy
    (block,) = lab.plan("SELECT note, count(*) FROM visits GROUP BY note", policy).blocks
    groups = (("a",), ("b",))
    (statement,) = Question(block, "", groups).statements(lab.kernel)

    def over_list() -> Exact:
        found = {row[:1]: row[1:] for row in lab.connection.execute(statement.sql.encode()).fetchall()}
        return {group: found.get(group, (0,) * len(block.measures)) for group in groups}

    counts_in_a = []
    for person in range(1, 13):
        with left_out(lab, f"DELETE FROM visits WHERE person_id <> {person}"):
            counts_in_a += [person] if ("a",) in lab.exact(block) else []
    last, *others = counts_in_a
    lab.connection.execute("DELETE FROM public.visits WHERE person_id = ANY (%s)", [others])

    whole = over_list()
    with left_out(lab, f"DELETE FROM visits WHERE person_id = {last}"):
        without = over_list()

    assert 0 < len(others) < 11
    assert not overmoved(block, whole, without), statement.sql


def test_a_child_that_is_attached_to_a_table_on_the_way_to_the_unit_gives_no_row_two_units(make_lab: MakeLab) -> None:
    """After the proofs were read: which children a table has is seen as it is, and not as it was in the snapshot."""
    lab = make_lab(
        """
        CREATE TABLE people (id integer PRIMARY KEY); INSERT INTO people VALUES (5), (6);
        CREATE TABLE visits (id integer PRIMARY KEY, person_id integer); INSERT INTO visits VALUES (1, 5);
        CREATE TABLE items (visit_id integer); INSERT INTO items VALUES (1);
        CREATE TABLE older (id integer NOT NULL, person_id integer); INSERT INTO older VALUES (1, 6)
        """
    )
    rules = f"{VISITS}  items: {{unit: visit_id -> visits.id, rows_per_unit: 1}}\n"
    (block,) = lab.plan("SELECT count(*) FROM items", Case("", "", rules, "", "").policy).blocks

    lab.connection.execute("ALTER TABLE public.older INHERIT public.visits")

    leave = "DELETE FROM items WHERE visit_id IN (SELECT id FROM ONLY visits WHERE person_id = 5)"
    assert not broken_claims(lab, block, f"{leave}; {LEAVE}"), lab.sql(block.statement)


COLLATED = """
CREATE DOMAIN code AS text COLLATE "C";
CREATE TABLE people (id text COLLATE "POSIX" PRIMARY KEY); INSERT INTO people VALUES ('5'), ('6');
CREATE TABLE visits (id {key} PRIMARY KEY, person_id text COLLATE "C");
INSERT INTO visits VALUES ('a', '5'), ('b', '6');
CREATE TABLE items (visit_id {visit_id}, n integer); INSERT INTO items VALUES ('a', 1), ('a', 2), ('b', 1)
"""


@pytest.mark.parametrize(
    ("key", "visit_id"),
    [
        ('text COLLATE "C"', 'text COLLATE "POSIX"'),
        ('varchar(3) COLLATE "POSIX"', 'text COLLATE "C"'),
        ("code", 'text COLLATE "POSIX"'),
        ("name", 'text COLLATE "POSIX"'),
        ('text COLLATE "C"', 'text COLLATE "C"'),
        ("text", 'text COLLATE "C"'),
    ],
)
def test_units_and_the_way_to_them_may_have_a_collation_in_each_table(
    make_lab: MakeLab, key: str, visit_id: str
) -> None:
    """PostgreSQL fails of two that differ once it compares two values: whether it does tells whether there are rows."""
    lab = make_lab(COLLATED.format(key=key, visit_id=visit_id))
    rules = f"{VISITS}  items: {{unit: visit_id -> visits.id, rows_per_unit: 2}}\n"
    for rows, count in (
        ("items", 3),
        ("people AS p JOIN visits AS v ON v.person_id = p.id", 2),
        ("people AS p LEFT JOIN visits AS v ON v.person_id = p.id", 2),
        ("people AS p FULL JOIN visits AS v ON v.person_id = p.id", 2),
        ("people AS p WHERE EXISTS (SELECT FROM visits AS v WHERE v.person_id = p.id)", 2),
        ("people AS p WHERE p.id NOT IN (SELECT person_id FROM visits)", 0),
        ("(SELECT id FROM people INTERSECT SELECT person_id FROM visits) AS u", 2),
        ("(SELECT id FROM people UNION ALL SELECT person_id FROM visits) AS u JOIN people AS p ON p.id = u.id", 4),
        ("people AS p JOIN visits AS v ON p.id = v.person_id JOIN items AS i ON i.visit_id = v.id", 3),
    ):
        if key == "name" and "items AS i" in rows:
            continue  # which is not joined with a text
        plan = lab.plan(f"SELECT count(*) FROM {rows}", Case("", "", rules, "", "").policy, rows_per_unit=2)

        assert lab.run(lab.outer(plan), plan).fetchall() == [(count,)], rows


def test_columns_of_a_key_that_tells_rows_apart_may_have_a_collation_each(make_lab: MakeLab) -> None:
    lab = make_lab(
        """
        CREATE TABLE visits (one text COLLATE "C", two text COLLATE "POSIX", three text, PRIMARY KEY (one, two));
        INSERT INTO visits VALUES ('a', 'b', 'c'), ('a', 'c', 'c')
        """
    )
    policy = Case("", "", "unit: row\ntables:\n  visits: {}\n", "", "").policy
    sql = "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY one, two ORDER BY three) AS n FROM visits) AS v"
    plan = lab.plan(f"{sql} WHERE n = 1", policy)

    assert lab.run(lab.outer(plan), plan).fetchall() == [(2,)]


def test_a_label_that_is_renamed_between_two_readings_of_the_rows_uncuts_no_unit(make_lab: MakeLab) -> None:
    """PostgreSQL looks at the catalogs anew where it fetches a long text: what was sad before is blue from then on.

    The index of the long texts is held until the rows before are read, so it is renamed in between.
    """
    lab = make_lab(
        """
        CREATE TYPE mood AS ENUM ('glad', 'sad', 'calm');
        CREATE TABLE people (id integer PRIMARY KEY);
        CREATE TABLE visits (person_id integer, mood mood, note text);
        ALTER TABLE visits ALTER note SET STORAGE EXTERNAL;
        INSERT INTO visits SELECT 5, 'sad', 'short' FROM generate_series(1, 100);
        INSERT INTO visits VALUES (6, 'glad', repeat('long', 10000))
        """
    )
    policy = Case("", "", VISITS, "", "").policy
    (block,) = lab.plan("SELECT mood, count(*) FROM visits WHERE note NOT LIKE '%!' GROUP BY 1", policy).blocks
    pid, own = lab.connection.info.backend_pid, lab.connection.info.dsn
    with psycopg.connect(own) as owner, ThreadPoolExecutor(1) as pool:
        (index,) = owner.execute(
            "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class AS c ON reltoastrelid = indrelid "
            "WHERE c.oid = 'public.visits'::regclass"
        ).fetchone() or ("",)
        owner.execute(f"REINDEX INDEX {index}")
        running = pool.submit(lab.exact, block)
        while not owner.execute("SELECT FROM pg_locks WHERE pid = %s AND NOT granted", [pid]).fetchall():
            assert not running.done()
        owner.execute("ALTER TYPE public.mood RENAME VALUE 'sad' TO 'blue'")
        owner.commit()
        exact = running.result()

    (measure,) = (measure for measure in block.measures if isinstance(measure, Measure))
    assert exact["sad",][0] == measure.sensitivity, lab.sql(block.statement)


@pytest.mark.parametrize(
    ("key", "is_read_twice"),
    [
        ("at::date", False),
        ("extract(hour FROM seen AT TIME ZONE 'Europe/Lisbon')", False),
        ("(CASE WHEN at > '2024-01-02' THEN seen END)::date", False),
        ("seen::date", True),
        ("extract(hour FROM seen)", True),
    ],
)
def test_rows_that_follow_from_the_rules_of_a_time_zone_are_read_once(
    make_lab: MakeLab, key: str, *, is_read_twice: bool
) -> None:
    """Workers of a parallel plan may know newer rules than the connection that reads the rows again."""
    lab = make_lab(
        "CREATE TABLE people (id integer PRIMARY KEY); "
        "CREATE TABLE visits (person_id integer, at timestamptz, seen timestamp)"
    )
    bounds = "{lower: 2024-01-01, upper: 2024-01-05}"
    rules = f"{VISITS[:-2]}, columns: {{at: {bounds}, seen: {bounds}}}}}\n"
    (block,) = lab.plan(f"SELECT {key}, count(*) FROM visits GROUP BY 1", Case("", "", rules, "", "").policy).blocks

    assert ("beyond" in lab.sql(block.statement)) == is_read_twice  # whose rows are corrected


@pytest.mark.parametrize(
    ("condition", "is_read_twice"),
    [
        ("lower(note) = 'a'", False),
        ("initcap(note) LIKE 'A%'", False),
        ("note ILIKE 'a%'", False),
        (r"note ~ '^\w+$'", False),
        (r"substring(note FROM '\w+') IS NOT NULL", False),
        (r"regexp_replace(note, '\W', '') = 'a'", False),
        ("note >= 'a'", False),
        ("note BETWEEN 'a' AND 'b'", False),
        ("greatest(note, 'b') = 'b'", False),
        ("note >= ALL (SELECT note FROM visits AS v WHERE v.person_id = visits.person_id)", False),
        ("(SELECT min(v.note) FROM visits AS v WHERE v.person_id = visits.person_id) = 'a'", False),
        ("note = 'a'", True),
        ("note LIKE 'a%'", True),
        ("substring(note FROM 1 FOR 2) IN ('a', 'bc')", True),
        ("length(note) > 3", True),
        ("kind = 'A'", True),
        ("note IS DISTINCT FROM 'a' AND id > 3", True),
    ],
)
def test_rows_that_follow_from_the_rules_of_a_locale_are_read_once(
    make_lab: MakeLab, condition: str, *, is_read_twice: bool
) -> None:
    """Letters and the order of texts are those that libc and ICU had when a process first asked."""
    lab = make_lab(
        "CREATE TABLE people (id integer PRIMARY KEY); "
        "CREATE TABLE visits (id integer, person_id integer, note text, kind text)"
    )
    rules = f"{VISITS[:-2]}, columns: {{kind: {{values: [A, b]}}}}}}\n"
    sql = f"SELECT kind, count(*) FROM visits WHERE {condition} GROUP BY 1"
    (block,) = lab.plan(sql, Case("", "", rules, "", "").policy).blocks

    assert ("beyond" in lab.sql(block.statement)) == is_read_twice  # whose rows are corrected


@pytest.mark.parametrize("sql", ["SELECT mood, count(*) FROM people GROUP BY 1", "SELECT count(mood) FROM people"])
def test_who_reads_a_domain_of_an_enum_need_not_be_allowed_to_name_the_enum(make_lab: MakeLab, sql: str) -> None:
    lab = make_lab(
        "CREATE SCHEMA types; CREATE TYPE types.mood AS ENUM ('glad', 'sad'); CREATE DOMAIN told AS types.mood; "
        "CREATE TABLE people (id integer PRIMARY KEY, mood told); INSERT INTO people VALUES (1, 'sad')"
    )
    (block,) = lab.plan(sql, Case("", "", "unit: people.id\ntables:\n  people: {unit: id}\n", "", "").policy).blocks
    with lab.connection.transaction(force_rollback=True):
        lab.script("CREATE ROLE short; GRANT SELECT ON people TO short; SET LOCAL ROLE short")

        assert any(number for numbers in lab.exact(block).values() for number in numbers)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM people WHERE kind = 'q'::\"order\"", [(1,)]),
        ("SELECT coalesce(kind, 'r'::\"order\")::text, count(*) FROM people GROUP BY 1", [("q", 1), ("r", 1)]),
        ("SELECT count(*) FROM people WHERE mood = 'x'::mood", [(1,)]),
        ("SELECT count(*) FROM people WHERE other = 'x'::other.mood", [(1,)]),
        ("SELECT 'x'::mood::text, count(*) FROM people GROUP BY 1", [("x", 2)]),
    ],
)
def test_a_label_that_is_cast_is_of_the_enum_that_the_cast_means(
    make_lab: MakeLab, sql: str, rows: list[tuple[object, ...]]
) -> None:
    lab = make_lab(
        "CREATE SCHEMA other; CREATE TYPE other.mood AS ENUM ('x'); CREATE TYPE public.mood AS ENUM ('x', 'y'); "
        "CREATE TYPE \"order\" AS ENUM ('q', 'r'); "
        'CREATE TABLE people (id integer PRIMARY KEY, kind "order", mood mood, other other.mood); '
        "INSERT INTO people VALUES (5, 'q', 'x', 'x'), (6, 'r', 'y', NULL)"
    )
    made = lab.plan(sql, Case("", "", PEOPLE, "", "").policy)

    assert lab.run(lab.outer(made), made).fetchall() == rows


def test_a_row_of_nulls_is_a_value_that_is_counted(make_lab: MakeLab) -> None:
    lab = make_lab(
        "CREATE TYPE pair AS (a integer, b text); CREATE TABLE people (id integer PRIMARY KEY, pair pair, j json); "
        "INSERT INTO people VALUES (5, (NULL, NULL), '1'), (6, NULL, NULL), (7, (1, NULL), '{}'), (8, (1, 'b'), 'null')"
    )
    sql = """SELECT count(pair), count(pair) FILTER (WHERE id > 5), count(*) FILTER (WHERE pair IS NULL),
             count(*) FILTER (WHERE pair IS NOT NULL), count(j) FROM people"""
    made = lab.plan(sql, Case("", "", PEOPLE, "", "").policy)

    assert lab.run(lab.outer(made), made).fetchall() == [(3, 2, 2, 1, 3)]


def test_rows_of_a_foreign_table_are_read_once(make_lab: MakeLab) -> None:
    """A file that is written anew while a statement runs has other rows the next time: no snapshot is of them."""
    lab = make_lab(
        "CREATE TABLE people (id integer PRIMARY KEY); CREATE FOREIGN DATA WRAPPER files; "
        "CREATE SERVER files FOREIGN DATA WRAPPER files; "
        "CREATE FOREIGN TABLE visits (person_id integer, kind text) SERVER files"
    )
    rules = f"{VISITS[:-2]}, foreign: trusted, columns: {{kind: {{values: [a, b]}}}}}}\n"
    (block,) = lab.plan("SELECT kind, count(*) FROM visits GROUP BY 1", Case("", "", rules, "", "").policy).blocks

    assert lab.sql(block.statement).count('"visits"') == 1
