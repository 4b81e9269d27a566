"""Small databases full of trouble: what the property tests of the planner run on.

Rows and rules are drawn, schemas are drawn from a few that were made beforehand. People own visits, visits have items;
some visits have no person, some people have far more rows than the rules count, every type has its worst values.
"""

import re
from dataclasses import dataclass

import psycopg
from hypothesis import strategies as st

from rules.policy.load import load_policy
from rules.policy.model import Policy

SCHEMA = """
CREATE TYPE mood AS ENUM ('glad', 'sad', 'calm');
CREATE TABLE people (
    id integer PRIMARY KEY, city text, age integer CHECK (age >= 0 AND age <= 120), height float8, vip boolean NOT NULL,
    mood mood, born date, wealth numeric(12,2), note varchar(10), seen timestamp
);
CREATE TABLE places (id integer PRIMARY KEY, region text NOT NULL, size integer);
CREATE TABLE visits (
    id bigint PRIMARY KEY, person_id integer, place_id integer REFERENCES places, at timestamptz, day date,
    cost numeric, score float8, rating real, count integer, big bigint, kind text
);
CREATE TABLE items (
    visit_id bigint NOT NULL, line smallint NOT NULL, amount numeric(8,3), label text, flag boolean,
    PRIMARY KEY (visit_id, line)
);
INSERT INTO places VALUES (1, 'north', 10), (2, 'south', NULL), (3, 'north', 0);
"""


@dataclass(frozen=True)
class Variant:
    """Another schema for the same rows: what it changes, and which rows it then allows."""

    changes: str
    required: frozenset[str] = frozenset()
    kinds: frozenset[str | None] = frozenset(["a", "b", "c", "zzz", None])  # of visits


VARIANTS = (
    Variant(""),
    Variant("ALTER TABLE visits ADD UNIQUE (person_id); ALTER TABLE items DROP CONSTRAINT items_pkey"),
    Variant(
        "ALTER TABLE visits ADD UNIQUE (person_id, kind), ALTER kind TYPE varchar(5), ALTER person_id SET NOT NULL;"
        " ALTER TABLE people DROP CONSTRAINT people_age_check, ALTER city TYPE varchar(10)",
        frozenset(["person_id"]),
    ),
    Variant(
        "CREATE TABLE more_visits () INHERITS (visits); CREATE UNIQUE INDEX ON visits (person_id) WHERE count > 0;"
        " ALTER TABLE items ADD UNIQUE (visit_id)"
    ),
    Variant(
        "ALTER TABLE people ALTER id TYPE bigint, ALTER seen TYPE timestamp(3);"
        " ALTER TABLE visits ALTER id TYPE integer, ADD UNIQUE NULLS NOT DISTINCT (person_id, day),"
        " ALTER score SET NOT NULL, ADD CHECK (kind IN ('a', 'zzz'))",
        frozenset(["score"]),
        frozenset(["a", "zzz", None]),
    ),
    Variant(
        "ALTER TABLE visits DROP CONSTRAINT visits_pkey, ADD UNIQUE (place_id), ADD UNIQUE (kind);"
        " ALTER TABLE people DROP CONSTRAINT people_pkey, ADD UNIQUE (city); ALTER TABLE places DROP COLUMN size"
    ),
)
PADDED = Variant("ALTER TABLE people ALTER city TYPE char(10)")


def known_to(connection: psycopg.Connection, changes: str) -> str:
    """The changes as a server can make them: the older ones have no NULLS NOT DISTINCT, and then keys prove less."""
    return changes if connection.info.server_version >= 150000 else changes.replace(" NULLS NOT DISTINCT", "")


RULES = """\
database: ${DATABASE}
unit: people.id
tables:
  people:
    unit: id
    columns:
      city: {values: [Berlin, Lyon, "O'Hara"]}
      height: {lower: 0.5, upper: 2.5}
      born: {lower: 1990-01-01, upper: 1991-03-31}
      wealth: {lower: -100, upper: 1000.005}
      seen: {lower: 2024-01-01, upper: 2024-03-31}
  places: public
  visits:
    unit: person_id
    rows_per_unit: %(visits)d
    columns:
      at: {lower: 2024-01-01, upper: 2024-04-30}
      day: {lower: 2024-01-01, upper: 2024-01-20}
      cost: {lower: 0, upper: 100}
      score: {lower: -1.5, upper: 1.5}
      rating: {lower: 0, upper: 10}
      count: {lower: -3, upper: 7}
      big: {lower: 0, upper: 1000000000000}
      kind: {values: [a, b, c]}
  items:
    unit: visit_id -> visits.id
    rows_per_unit: %(items)d
    columns:
      amount: {lower: -10, upper: 10}
budget: {epsilon: 1000, delta: 1e-6}
analysts: {ada: {password: "SCRAM-SHA-256$4096:bm9pc2VnYXRlLXNhbHQtMQ==$\
Fx0st/XWuNDfeIQDWXDi1oBnoCVqttNumXyclzzuFCo=:yn7C40SXBTx0F1cq5nA+hSJiJWhbk0thlHnYhZfdRhE="}}
"""


def rules(visits: int = 3, items: int = 4) -> Policy:
    """Rules that count so many rows of each person."""
    return load_policy(RULES % {"visits": visits, "items": items}, "rules.yaml", {"DATABASE": "lab"})


_BOUNDS = re.compile(r"^      (?P<column>\w+): \{.*\}\n", re.MULTILINE)
_OTHERS = {
    "wealth": ("{lower: 0, upper: 0}", "{values: [-100, 12.34]}"),
    "cost": ("{lower: -1e6, upper: 1e6}", "{lower: 33.25, upper: 99.999}", "{values: [5, 0]}"),
    "score": ("{lower: 0.1, upper: 0.1}", "{lower: -1000, upper: 2}"),
    "count": ("{lower: 0, upper: 2147483647}", "{values: [0, 5]}"),
    "kind": ("{values: [b, zzz]}", "hidden"),
    "day": ("{lower: 2024-01-15, upper: 2024-12-31}",),
    "amount": ("{lower: 1, upper: 2}",),
}


@st.composite
def any_rules(draw: st.DrawFn) -> Policy:
    """Rules with other bounds, other values, other numbers of rows, or none."""
    text = RULES
    for found in _BOUNDS.finditer(RULES):
        name = found["column"]
        choice = draw(st.sampled_from((None, None, "", *_OTHERS.get(name, ()))))
        if choice is not None:
            text = text.replace(found[0], f"      {name}: {choice}\n" if choice else "")
    text = re.sub(r"    columns:\n(?=  \w|\w)", "", text)  # of which no column is left
    counts = {"visits": draw(st.integers(1, 8)), "items": draw(st.integers(1, 8))}
    return load_policy(text % counts, "rules.yaml", {"DATABASE": "lab"})


Cell = str | None
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Data:
    """Rows as texts that PostgreSQL reads."""

    people: tuple[Row, ...]
    visits: tuple[Row, ...]
    items: tuple[Row, ...]


_WILD = {
    "city": ("Berlin", "Lyon", "O'Hara", "Rome", "", None),
    "age": ("0", "37", "120", None),
    "height": ("1.75", "0.5", "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "5e-324", "-0", None),
    "vip": ("true", "false"),
    "mood": ("glad", "sad", None),
    "born": ("1990-01-01", "1991-03-31", "infinity", "-infinity", "0044-03-15 BC", "5874897-12-31", None),
    "wealth": ("0.005", "-100", "1000", "NaN", "9999999999.99", "-9999999999.99", "12.34", None),
    "note": ("x", "50%", "a\\", "", None),
    "seen": ("2024-02-29 23:59:59.999999", "infinity", "-infinity", "0001-01-01 BC", "294276-12-31", None),
    "at": (
        "2024-03-31 01:30:00+00",
        "2024-01-01 00:00:00+00",
        "infinity",
        "-infinity",
        "4713-01-01 BC",
        "294276-12-31",
        None,
    ),
    "day": ("2024-01-01", "2024-01-15", "2024-02-01", "infinity", "-infinity", "5874897-12-31", None),
    "cost": (
        "5.0",
        "5.000000",
        "99.999",
        "-7",
        "1e1000",
        "-1e1000",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e-1000",
        "0",
        None,
    ),
    "score": ("0.1", "-1.5", "NaN", "Infinity", "1e308", "5e-324", "1e-320", "-0", "0", None),
    "rating": ("3.3", "NaN", "-Infinity", "3e38", "1e-45", None),
    "count": ("0", "5", "-3", "2147483647", "-2147483648", None),
    "big": ("0", "999999999999", "9223372036854775807", "-9223372036854775808", None),
    "kind": ("a", "b", "zzz", None),
    "place_id": ("1", "2", "3", None),
    "amount": ("1.234", "-10", "99999.999", "NaN", "0", None),
    "label": ("p", "q", None),
    "flag": ("true", "false", None),
}
_TAME = {
    **_WILD,
    "city": ("Berlin", "Lyon", "O'Hara", None),
    "height": ("1.75", "0.5", "2.5", None),
    "born": ("1990-01-01", "1990-07-15", "1991-03-31", None),
    "wealth": ("0.05", "-100", "1000", "12.34", None),
    "note": ("x", "50%", "", None),
    "seen": ("2024-02-29 23:59:59.999999", "2024-01-01", None),
    "at": ("2024-03-31 01:30:00+00", "2024-01-01 00:00:00+00", "2024-04-30 22:00:00+00", None),
    "day": ("2024-01-01", "2024-01-15", "2024-01-20", None),
    "cost": ("5.0", "5.000000", "99.5", "0", "33.25", None),
    "score": ("0.5", "-1.5", "0", "1.25", None),
    "rating": ("3.5", "0", None),
    "count": ("0", "5", "-3", "7", None),
    "big": ("0", "1000000", None),
    "kind": ("a", "b", "c", None),
    "amount": ("1.234", "-10", "0", "9.999", None),
}
_PEOPLE = ("city", "age", "height", "vip", "mood", "born", "wealth", "note", "seen")
_VISITS = ("place_id", "at", "day", "cost", "score", "rating", "count", "big", "kind")
_ITEMS = ("amount", "label", "flag")


@st.composite
def data(draw: st.DrawFn, *, tame: bool = False, most_visits: int = 7, most_items: int = 3) -> Data:
    """A few people; `tame` keeps every value within its declared bounds."""
    pool = _TAME if tame else _WILD

    def cells(names: tuple[str, ...]) -> Row:
        return tuple(draw(st.sampled_from(pool[name])) for name in names)

    people = tuple((str(number), *cells(_PEOPLE)) for number in range(1, draw(st.integers(2, 4)) + 1))
    visits: list[Row] = []
    items: list[Row] = []
    for person in (*(unit[0] for unit in people), *(() if tame else (None, "99"))):
        for _ in range(draw(st.integers(0, most_visits))):
            visits.append((str(len(visits) + 1), person, *cells(_VISITS)))
            lines = range(1, draw(st.integers(0, most_items)) + 1)
            items.extend((str(len(visits)), str(line), *cells(_ITEMS)) for line in lines)
    return Data(people, tuple(visits), tuple(items))


def insert(given: Data, variant: Variant = VARIANTS[0]) -> str:
    """The rows as one script; those that a schema does not allow are left out."""
    tables = (
        ("people", ("id", *_PEOPLE), given.people),
        ("visits", ("id", "person_id", *_VISITS), given.visits),
        ("items", ("visit_id", "line", *_ITEMS), given.items),
    )
    scripts = []
    for table, names, rows in tables:
        needed = [place for place, name in enumerate(names) if name in variant.required]
        kept = [row for row in rows if all(row[place] is not None for place in needed)]
        kept = [row for row in kept if table != "visits" or row[-1] in variant.kinds]
        if kept:
            scripts.append(f"INSERT INTO {table} VALUES {', '.join(map(_tuple, kept))} ON CONFLICT DO NOTHING")
    return "; ".join(scripts)


def delete(person: str) -> str:
    """The neighbour: the same database without all rows of one person."""
    return (
        f"DELETE FROM items WHERE visit_id IN (SELECT id FROM visits WHERE person_id = {person}); "
        f"DELETE FROM visits WHERE person_id = {person}; DELETE FROM people WHERE id = {person}"
    )


def _tuple(row: Row) -> str:
    cells = ("NULL" if cell is None else "'" + cell.replace("'", "''") + "'" for cell in row)
    return f"({', '.join(cells)})"
