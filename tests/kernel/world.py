"""A world of people, their visits and what they bought, small enough for every relation over it to be looked at.

Units have equal values in all columns by which careless joins would meet. A table has a child that its catalog does
not know, and a key that holds for some rows only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from proxy.twin.embedded import Cluster
from rules.catalog import Catalog, TableName
from rules.kernel.ground import Ground
from rules.kernel.script import Scan
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.values.expression import Column
from rules.values.types import INT4, INTERVAL, NUMERIC, TEXT, Type
from tests.properties.planning import PINNED
from tests.support import lab as tables
from tests.support.catalogs import catalog_of

SCHEMA = """
CREATE TABLE people (id integer PRIMARY KEY, city text, level integer);
CREATE TABLE visits (id numeric PRIMARY KEY, person_id integer, n integer, cost numeric, kind text, place integer);
CREATE TABLE items (id integer PRIMARY KEY, visit_id integer, amount numeric(10, 2));
CREATE TABLE parts (id integer PRIMARY KEY, item_id integer, size integer);
CREATE TABLE counts (person_id integer PRIMARY KEY, n integer);
CREATE TABLE partly (person_id integer, n integer);
CREATE UNIQUE INDEX ON partly (person_id) WHERE n > 5;
CREATE TABLE stays (person_id integer, day integer);
CREATE TABLE places (id integer PRIMARY KEY, region text);
CREATE TABLE spots (region text, size integer);
CREATE TABLE cards (code char(4) PRIMARY KEY, person_id integer UNIQUE);
CREATE TABLE loans (card varchar UNIQUE, n integer);
CREATE TABLE notes (person text, n integer);
CREATE TABLE bills (person_id numeric, n integer);
CREATE TABLE waits (person_id integer, wait interval, level integer, day integer);
CREATE TYPE mark AS (n integer);
CREATE TABLE marks (person_id integer, mark mark);
CREATE FUNCTION shown(given mark) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT (5 + coalesce(given.n, 0) * CASE WHEN EXISTS (SELECT FROM public.visits WHERE person_id = 1)
                                            THEN 1 ELSE -1 END)::text
$$;
CREATE CAST (mark AS text) WITH FUNCTION shown(mark);
INSERT INTO people SELECT i, CASE WHEN i < 4 THEN 'Rome' END, i % 2 FROM generate_series(1, 4) AS i;
INSERT INTO visits VALUES
    (1, 1, 1, 5.0, 'a', 1), (1.4, 2, 1, 5.00, 'a', 1), (2, 1, 1, 5.00, 'a', 2), (3, 1, 2, 7, 'b', 2),
    (4, 2, 2, 5.000, 'b', 1), (5, 2, 0, NULL, 'a', 3), (6, 3, 1, 1, 'a', NULL), (7, NULL, 1, 5.0, 'a', 1),
    (8, NULL, 3, 2, 'b', 1), (9, 3, NULL, 4, NULL, 2), (10, 4, 8, 5, 'c', 1), (11, 2, 0, 0, 'c', 2);
INSERT INTO items VALUES (1, 1, 1), (2, 1, 2), (3, 3, 5.5), (4, 6, 1), (5, 99, 9), (6, NULL, 3), (7, 10, 4), (8, 4, 2);
INSERT INTO parts VALUES (1, 1, 1), (2, 1, 3), (3, 3, 1), (4, 4, 1), (5, NULL, 2), (6, 5, 1), (7, 8, 3), (8, 1, 0);
INSERT INTO counts VALUES (1, 1), (2, 1), (3, 7);
INSERT INTO partly VALUES (1, 1), (1, 2), (1, 3), (2, 9), (3, 1);
INSERT INTO stays VALUES (1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (3, 9);
INSERT INTO waits VALUES
    (1, '1 day', 1, 5), (1, '1 day', 1, 5), (1, '1 day', 1, 5),
    (1, '1 day', 9, 1), (1, '1 day', 9, 1), (1, '1 day', 9, 1),
    (2, '1 mon', 2, 2), (2, '30 days', 2, 2), (3, '720:00:00', 2, 2), (3, '30 days', 2, 2), (4, '1 mon', 2, 5);
INSERT INTO marks VALUES (2, row(1)), (2, row(NULL)), (3, row(NULL)), (3, row(1)), (4, row(7));
INSERT INTO places VALUES (1, 'north'), (2, 'south'), (3, 'north');
INSERT INTO cards VALUES ('a', 1), ('b', 2), ('c', 3);
INSERT INTO loans VALUES ('a', 1), ('a ', 2), ('a  ', 3), ('b', 1), ('b ', 1), ('c', 5), ('x', 1);
INSERT INTO notes VALUES ('1', 1), ('01', 2), ('2', 1), ('3', 5);
INSERT INTO bills SELECT 1, 1 FROM generate_series(1, 9); INSERT INTO bills VALUES (1.4, 2), (1.4, 2), (2.0, 1), (3, 2);
INSERT INTO spots VALUES ('north', 1), ('north', 2), ('north', 3), ('south', 1), (NULL, 4);
"""
VIRTUAL = """
CREATE TABLE shares (person_id integer, part integer, whole integer GENERATED ALWAYS AS (10 / part) VIRTUAL);
INSERT INTO shares VALUES (1, 1), (2, 0), (3, 5);
"""
# After the catalog was read: a child, whose rows a key of its parent says nothing of.
LATER = """
CREATE TABLE more_counts () INHERITS (counts);
INSERT INTO more_counts VALUES (1, 2), (1, 3), (2, 4);
"""
RULES = """unit: people.id
tables:
  people: {unit: id}
  visits: {unit: person_id, rows_per_unit: 2, columns: {n: {lower: 0, upper: 9}, cost: {lower: 0, upper: 10}}}
  items: {unit: visit_id -> visits.id, rows_per_unit: 2}
  parts: {unit: item_id -> items.id, rows_per_unit: 2}
  counts: {unit: person_id}
  partly: {unit: person_id, rows_per_unit: 2}
  stays: {unit: person_id, rows_per_unit: 2}
  cards: {unit: person_id}
  loans: {unit: card -> cards.code, rows_per_unit: 2}
  notes: {unit: person, rows_per_unit: 2}
  bills: {unit: person_id, rows_per_unit: 2}
  waits: {unit: person_id, rows_per_unit: 2}
  marks: {unit: person_id, rows_per_unit: 2}
  places: public
  spots: public
"""
UNITS = (1, 2, 3, 4)
LEAVE = """
DELETE FROM public.parts WHERE item_id IN
    (SELECT i.id FROM public.items AS i JOIN public.visits AS v ON v.id = i.visit_id WHERE v.person_id = {0});
DELETE FROM public.items WHERE visit_id IN (SELECT id FROM public.visits WHERE person_id = {0});
DELETE FROM public.visits WHERE person_id = {0}; DELETE FROM public.people WHERE id = {0};
DELETE FROM public.counts WHERE person_id = {0}; DELETE FROM public.partly WHERE person_id = {0};
DELETE FROM public.stays WHERE person_id = {0}; DELETE FROM public.notes WHERE person::integer = {0};
DELETE FROM public.loans USING public.cards AS c WHERE c.code = card AND c.person_id = {0};
DELETE FROM public.cards WHERE person_id = {0}; DELETE FROM public.bills WHERE person_id = {0};
DELETE FROM public.waits WHERE person_id = {0};
DELETE FROM public.marks WHERE person_id = {0};
"""
LEAVE_VIRTUAL = "DELETE FROM public.shares WHERE person_id = {0};"
REORDERED = """
CREATE TEMP TABLE kept AS SELECT * FROM public.visits ORDER BY {0}; TRUNCATE public.visits;
INSERT INTO public.visits SELECT * FROM kept; DROP TABLE kept;
CREATE TEMP TABLE kept AS SELECT * FROM public.waits ORDER BY ctid DESC; TRUNCATE public.waits;
INSERT INTO public.waits SELECT * FROM kept; DROP TABLE kept;
"""
_TYPES: Mapping[str, Mapping[str, Type]] = {
    "people": {"id": INT4, "city": TEXT, "level": INT4},
    "visits": {"id": NUMERIC, "person_id": INT4, "n": INT4, "cost": NUMERIC, "kind": TEXT, "place": INT4},
    "items": {"id": INT4, "visit_id": INT4, "amount": Type("numeric", 10, 2)},
    "parts": {"id": INT4, "item_id": INT4, "size": INT4},
    "counts": {"person_id": INT4, "n": INT4},
    "partly": {"person_id": INT4, "n": INT4},
    "stays": {"person_id": INT4, "day": INT4},
    "waits": {"person_id": INT4, "wait": INTERVAL, "level": INT4, "day": INT4},
    "marks": {"person_id": INT4, "mark": Type("other", name="public.mark")},
    "places": {"id": INT4, "region": TEXT},
    "spots": {"region": TEXT, "size": INT4},
    "cards": {"code": Type("bpchar", 4), "person_id": INT4},
    "loans": {"card": Type("varchar"), "n": INT4},
    "notes": {"person": TEXT, "n": INT4},
    "bills": {"person_id": NUMERIC, "n": INT4},
    "shares": {"person_id": INT4, "part": INT4, "whole": INT4},
}


@dataclass(frozen=True)
class World:
    """The tables, and what was known of them before a child came."""

    connection: psycopg.Connection
    policy: Policy
    catalog: Catalog
    leave: str

    @property
    def ground(self) -> Ground:
        """Anew each time: what it says of a table is kept."""
        return Ground(self.policy, self.catalog)


@dataclass(frozen=True)
class Table:
    """A scan of all columns of a table, numbered from a number on; `unit` is the number of one that it has to find."""

    name: str
    first: int
    unit: int | None = None

    @property
    def scan(self) -> Scan:
        names = _TYPES[self.name]
        return Scan(TableName("public", self.name), tuple(enumerate(names, start=self.first)), self.unit)

    def __getitem__(self, name: str) -> Column:
        types = _TYPES[self.name]
        return Column(self.first + list(types).index(name), types[name])


def make_world(cluster: Cluster, connection: psycopg.Connection, name: str) -> World:
    """The world in an empty database, to which the connection is."""
    is_new = connection.info.server_version >= 180000
    virtual, rules = (VIRTUAL, RULES + "  shares: {unit: person_id}\n") if is_new else ("", RULES)
    connection.execute(f"{SCHEMA}{virtual}ANALYZE")
    catalog = catalog_of(cluster.dsn(name))
    connection.execute(LATER)
    connection.execute(PINNED)
    head, tail = tables.RULES[: tables.RULES.index("unit:")], tables.RULES[tables.RULES.index("budget:") :]
    policy = load_policy(f"{head}{rules}{tail}", "rules.yaml", {"DATABASE": name})
    return World(connection, policy, catalog, LEAVE + LEAVE_VIRTUAL * is_new)
