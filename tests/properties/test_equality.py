"""Columns of two types that meet: what `values/types` says of their equality is so in PostgreSQL, and what rests on it
moves no number further than is claimed. Values are equal in one of the types, and differ in the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import psycopg
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from proxy.twin.embedded import Cluster
from rules.catalog import TableName
from rules.mechanisms.release_plan import PrivateGroups
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.values.types import equality, type_of
from tests.properties.moved import broken_claims
from tests.properties.planning import PINNED, Lab, thorough
from tests.support import lab as tables
from tests.support.catalogs import catalog_of

_NUMBERS = ("1", "2", "16777216", "16777217", "9007199254740992", "9007199254740993")
_DOUBLES = (*_NUMBERS, "0.1", "0", "-0", "NaN", "1e30")
_TEXTS = ("a", "a ", "a  ", "A", "", " ", "b")
_MOMENTS = ("2024-01-01", "2024-01-01 00:00:00.4", "2024-01-02", "infinity", "-infinity", "4713-01-01 BC")
_UUIDS = tuple(f"{digit * 8}-0000-0000-0000-000000000000" for digit in "aAb")
TYPES = {
    "smallint": ("1", "2"),
    "integer": _NUMBERS[:4],
    "bigint": _NUMBERS,
    "numeric": (*_DOUBLES, "1.0", "1e400", "0.1000000000000000055511151231257827"),
    "numeric(30, 2)": (*_NUMBERS, "0.1", "1.004"),
    "real": _DOUBLES,
    "double precision": _DOUBLES,
    "text": (*_TEXTS, *_UUIDS, "1", "2024-01-01"),
    "varchar(3)": _TEXTS,
    "character(3)": _TEXTS,
    "bpchar": _TEXTS,
    "name": _TEXTS,
    "uuid": _UUIDS,
    "mood": ("a", "A", "b"),
    "badge": ("(a)", "(A)", "(b)"),
    "bytea": ("a", "b"),
    "date": ("2024-01-01", "2024-01-02", "infinity", "5874897-12-31"),
    "timestamp": (*_MOMENTS, "294276-12-31"),
    "timestamp(0)": _MOMENTS,
    "timestamptz": (*_MOMENTS, "2024-01-01 00:00+01"),
    "interval": ("1 day", "24:00", "1 month", "30 days"),
}
KINDS = tuple(TYPES)
_SCHEMA = """
CREATE TYPE mood AS ENUM ('a', 'A', 'b');
CREATE TYPE badge AS (word text);
CREATE TABLE people (id integer PRIMARY KEY);
"""
_TABLES = """
CREATE TABLE child{n} (k {kind}, n integer); CREATE TABLE lone{n} (k {kind} UNIQUE, n integer);
CREATE TABLE parent{n} (k {kind} PRIMARY KEY, person_id integer);
CREATE TABLE owned{n} (k {kind} PRIMARY KEY, person_id integer UNIQUE);
CREATE TABLE open{n} (k {kind} PRIMARY KEY, region text);
"""
_RULES = {
    "by a hop": """unit: people.id
tables:
  people: {{unit: id}}
  {child}: {{unit: k -> {parent}.k, rows_per_unit: 2, columns: {{n: {{lower: 0, upper: 3}}}}}}
  {parent}: {{unit: person_id, rows_per_unit: 2}}
  {open}: public
""",
    "directly": """unit: {parent}.k
tables:
  {child}: {{unit: k, rows_per_unit: 2, columns: {{n: {{lower: 0, upper: 3}}}}}}
  {parent}: {{unit: k}}
  {open}: public
""",
}
QUERIES = (
    "SELECT count(*), sum(c.n) FROM {child} AS c",
    "SELECT c.n, count(*) FROM {child} AS c GROUP BY c.n",
    "SELECT count(*) FROM {child} AS c JOIN {parent} AS p ON p.k = c.k",
    "SELECT count(*) FROM {child} AS c JOIN {parent} AS p USING (k)",
    "SELECT count(*) FROM {child} AS c LEFT JOIN {parent} AS p ON p.k = c.k",
    "SELECT count(*) FROM {parent} AS p FULL JOIN {child} AS c USING (k)",
    "SELECT count(*) FROM {parent} AS p WHERE p.k IN (SELECT c.k FROM {child} AS c)",
    "SELECT count(*) FROM {child} AS c WHERE EXISTS (SELECT FROM {parent} AS p WHERE p.k = c.k)",
    "SELECT count(*) FROM (SELECT (SELECT count(*) FROM {child} AS c WHERE c.k = p.k) AS n FROM {parent} AS p) AS q "
    "WHERE n > 1",
    "SELECT count(*) FROM {child} AS c JOIN {open} AS o ON o.k = c.k",
    "SELECT count(*) FROM {parent} AS p JOIN {open} AS o ON o.k = p.k",
    "SELECT o.region, count(*) FROM {child} AS c LEFT JOIN {open} AS o USING (k) GROUP BY 1",
    "SELECT count(*) FROM (SELECT k FROM {child} UNION ALL SELECT k FROM {parent}) AS u",
)


@dataclass(frozen=True)
class Meeting:
    """Tables of three types, and how the rules lead from a row to its unit."""

    way: str
    child: str
    parent: str
    open: str

    @property
    def policy(self) -> Policy:
        head, tail = tables.RULES[: tables.RULES.index("unit:")], tables.RULES[tables.RULES.index("budget:") :]
        text = _RULES[self.way].format(**vars(self))
        return load_policy(f"{head}{text}{tail}", "rules.yaml", {"DATABASE": "lab"})

    @property
    def unit(self) -> str:
        return "p.k::text" if self.way == "directly" else "p.person_id::text"

    def leave(self, who: str, sql: str) -> str:
        """Without the unit's rows of the tables that are asked about, which are found as PostgreSQL compares keys."""
        own = f"SELECT FROM {self.parent} AS p WHERE p.k = {self.child}.k AND {self.unit} = '{who}'"
        children = f"DELETE FROM {self.child} WHERE EXISTS ({own}); " if "{child}" in sql else ""
        return f"{children}DELETE FROM {self.parent} AS p WHERE {self.unit} = '{who}'"


def _named(child: str, parent: str, *, way: str = "by a hop", unique: bool = True, owned: bool = True) -> Meeting:
    own, other = KINDS.index(child), KINDS.index(parent)
    return Meeting(
        way, f"{'lone' if unique else 'child'}{own}", f"{'owned' if owned else 'parent'}{other}", f"open{own}"
    )


def _filled(name: str, number: str = "n") -> str:
    """All values of a table's type, each once where its key says so, with a number each."""
    kind = KINDS[int(name.strip("abcdefghijklmnopqrstuvwxyz"))]
    rows = ", ".join(f"('{value}'::{kind}, {place})" for place, value in enumerate(TYPES[kind]))
    return f"INSERT INTO {name} SELECT k, {number} FROM (VALUES {rows}) AS v(k, n) ON CONFLICT DO NOTHING"


_KEYS = {"same": False, "coarser": True}  # whether groups by it have to be found
_REFERRING = f"""
CREATE TABLE referring (
    person_id integer REFERENCES people, same character(5) NOT NULL REFERENCES open{KINDS.index("character(3)")},
    coarser text NOT NULL REFERENCES open{KINDS.index("character(3)")}
)
"""


@pytest.fixture(scope="module")
def meetings(real_cluster: Cluster) -> Iterator[Lab]:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as owner:
        owner.execute("CREATE DATABASE meetings")
    with psycopg.connect(real_cluster.dsn("meetings"), autocommit=True) as connection:
        connection.execute(_SCHEMA)
        connection.execute("".join(_TABLES.format(n=n, kind=kind) for n, kind in enumerate(KINDS)))
        connection.execute(_REFERRING)
        connection.execute("INSERT INTO people SELECT generate_series(0, 20)")
        connection.execute(PINNED)
        yield Lab(connection, catalog_of(real_cluster.dsn("meetings")))


def _is_equal(lab: Lab, own: str, other: str) -> list[tuple[str, int]]:
    """Each different value of one type with the number of the other's different values that are equal to it."""
    one, two = f"open{KINDS.index(own)}", f"owned{KINDS.index(other)}"
    with lab.connection.transaction(force_rollback=True):
        lab.script(f"{_filled(one)}; {_filled(two)}")
        lab.connection.execute("SET LOCAL search_path = ''")
        sql = (
            f"SELECT a.k::text, count(b.k) FROM public.{one} AS a LEFT JOIN public.{two} AS b ON a.k = b.k GROUP BY a.k"
        )
        return lab.connection.execute(sql.encode()).fetchall()


def test_an_equality_that_is_the_same_or_coarser_finds_one_value_and_never_fails(meetings: Lab) -> None:
    kinds = {}
    for number, name in enumerate(KINDS):
        table = meetings.catalog.find_table(TableName("public", f"open{number}"))
        column = None if table is None else table.find_column("k")
        assert column is not None
        kinds[name] = type_of(column)
    said = {pair: equality(kinds[pair[0]], kinds[pair[1]]) for pair in product(KINDS, repeat=2)}

    assert {word: list(said.values()).count(word) for word in ("same", "coarser")} == {"same": 59, "coarser": 17}
    for (own, other), word in said.items():
        if word != "none":
            wrong = [value for value, count in _is_equal(meetings, own, other) if count > 1]
            assert not wrong, f"{own} = {other} is said to be {word}: {wrong}"
        assert (word == "same") == (said[other, own] == "same"), f"{own} = {other}"


def check_one(lab: Lab, meeting: Meeting, sql: str) -> str:
    """One statement, with and without the unit that has the most rows."""
    try:
        plan = lab.plan(sql.format(**vars(meeting)), meeting.policy)
    except Refusal:
        return "refused"
    joined = f" JOIN public.{meeting.child} AS c ON p.k = c.k" if "{child}" in sql else ""
    most = f"SELECT {meeting.unit} FROM public.{meeting.parent} AS p{joined} GROUP BY 1 ORDER BY count(*) DESC, 1"
    found = lab.connection.execute(most.encode()).fetchone()
    if found is None:
        return "no unit has rows"
    for block in plan.blocks:
        assert not (broken := broken_claims(lab, block, meeting.leave(found[0], sql))), f"{meeting}: {sql}: {broken}"
    measures = (measure for block in plan.blocks for measure in block.measures)
    return "one row" if any(measure.sensitivity == 1 for measure in measures) else "several rows"


@pytest.mark.parametrize(
    ("child", "parent", "way", "expected"),
    [
        ("bigint", "numeric", "by a hop", "one row"),
        ("varchar(3)", "text", "by a hop", "one row"),
        ("integer", "real", "by a hop", "one row"),
        ("bigint", "real", "by a hop", "several rows"),
        ("bigint", "double precision", "by a hop", "several rows"),
        ("varchar(3)", "character(3)", "by a hop", "several rows"),
        ("badge", "badge", "by a hop", "refused"),  # a cast to text may stand in for its equality
        ("numeric", "bigint", "directly", "one row"),
        ("text", "varchar(3)", "directly", "one row"),
        ("bpchar", "character(3)", "directly", "one row"),
        ("varchar(3)", "character(3)", "directly", "refused"),
        ("bigint", "double precision", "directly", "refused"),
        ("text", "uuid", "directly", "refused"),
    ],
)
def test_a_unique_key_bounds_the_rows_of_a_unit_where_both_types_have_one_equality(
    meetings: Lab, child: str, parent: str, way: str, expected: str
) -> None:
    meeting = _named(child, parent, way=way)
    with meetings.connection.transaction(force_rollback=True):
        meetings.script(f"{_filled(meeting.child, 'n % 3')}; {_filled(meeting.parent)}")

        assert check_one(meetings, meeting, QUERIES[0]) == expected


def test_a_foreign_key_under_another_equality_lists_no_values_and_promises_no_partner(meetings: Lab) -> None:
    """'a ' refers to 'a' as a character(3), and is not equal to it as a text."""
    head, tail = tables.RULES[: tables.RULES.index("unit:")], tables.RULES[tables.RULES.index("budget:") :]
    public = f"open{KINDS.index('character(3)')}"
    rules = f"unit: people.id\ntables:\n  people: {{unit: id}}\n  referring: {{unit: person_id}}\n  {public}: public\n"
    policy = load_policy(f"{head}{rules}{tail}", "rules.yaml", {"DATABASE": "lab"})
    with meetings.connection.transaction(force_rollback=True):
        meetings.script(
            f"INSERT INTO {public} VALUES ('a'); INSERT INTO referring VALUES (1, 'a', 'a '), (2, 'a', 'a')"
        )
        found = {name: meetings.plan(f"SELECT {name}, count(*) FROM referring GROUP BY 1", policy) for name in _KEYS}
        for name in _KEYS:
            joined = f"SELECT count(*) FROM referring AS r LEFT JOIN {public} AS o ON o.k = r.{name}"
            plan = meetings.plan(joined, policy, rows_per_unit=1)
            assert meetings.run(meetings.outer(plan), plan).fetchall() == [(2,)], name

    assert {name: isinstance(plan.blocks[0].groups, PrivateGroups) for name, plan in found.items()} == _KEYS


@pytest.mark.extended
@pytest.mark.parametrize("parent", KINDS)
def test_no_pair_of_types_moves_a_count_further_than_is_claimed(meetings: Lab, parent: str) -> None:
    for child, way, unique in product(KINDS, _RULES, (True, False)):
        meeting = _named(child, parent, way=way, unique=unique)
        with meetings.connection.transaction(force_rollback=True):
            meetings.script(f"{_filled(meeting.child, 'n % 3')}; {_filled(meeting.parent)}")
            check_one(meetings, meeting, QUERIES[0])


_TEMPTING = (
    *(
        ("varchar(3)", "character(3)"),
        ("varchar(3)", "bpchar"),
        ("text", "character(3)"),
        ("character(3)", "varchar(3)"),
    ),
    *(("bigint", "double precision"), ("bigint", "real"), ("integer", "real"), ("numeric", "double precision")),
    *(("bigint", "numeric"), ("date", "timestamp"), ("timestamp", "timestamptz"), ("uuid", "text"), ("name", "text")),
)


@st.composite
def _drawn(draw: st.DrawFn) -> tuple[Meeting, str]:
    """Three types, of which some are alike, and rows of their tables."""
    kinds = st.sampled_from(KINDS)
    child, parent = draw(st.one_of(st.sampled_from(_TEMPTING), st.tuples(kinds, kinds)))
    other = draw(st.one_of(st.sampled_from((child, parent)), kinds))
    unique, owned = (draw(st.sampled_from((True, True, False))) for _ in range(2))
    made = _named(child, parent, way=draw(st.sampled_from(tuple(_RULES))), unique=unique, owned=owned)
    meeting = Meeting(made.way, made.child, made.parent, f"open{KINDS.index(other)}")
    scripts = []
    for name, kind, most in ((meeting.child, child, 12), (meeting.parent, parent, 6), (meeting.open, other, 6)):
        values = draw(st.lists(st.sampled_from(TYPES[kind]), min_size=1, max_size=most))
        numbers = "r" if name == meeting.open else "0123"
        rows = ", ".join(f"('{value}', '{draw(st.sampled_from(numbers))}')" for value in values)
        scripts.append(f"INSERT INTO {name} VALUES {rows} ON CONFLICT DO NOTHING")
    return meeting, "; ".join(scripts)


@thorough
@given(drawn=_drawn(), queries=st.lists(st.sampled_from(QUERIES), min_size=2, max_size=5, unique=True))
def test_columns_of_two_types_move_no_number_further_than_is_claimed(
    meetings: Lab, drawn: tuple[Meeting, str], queries: list[str]
) -> None:
    meeting, script = drawn
    with meetings.connection.transaction(force_rollback=True):
        meetings.script(script)
        for sql in queries:
            event(check_one(meetings, meeting, sql))
