"""A wide world: units of every type, a column of every type, and keys, CHECKs and NOT NULLs that are drawn.

People own visits, visits have items, items have parts; one person has far more of them than the rules count. Equal
values have several spellings, and every type has its worst ones.
"""

import random
from dataclasses import dataclass, replace
from typing import TypeVar

import psycopg
from hypothesis import strategies as st

from rules.catalog import Catalog, Check, ForeignKey, Key, Table, TableName
from rules.policy.load import load_policy
from rules.policy.model import Policy
from tests.support import lab as tables

# The type of the unit, of the columns that refer to it, and four units in their spellings.
UNITS = {
    "integer": ("integer", "integer", (("1",), ("2",), ("3",), ("4",))),
    "bigint": ("bigint", "smallint", (("1",), ("2",), ("3",), ("4",))),
    "numeric": ("numeric", "numeric", (("1", "1.0", "1.00"), ("2.5", "2.50"), ("-3",), ("NaN",))),
    "digits": ("numeric(4,1)", "numeric(6,2)", (("1",), ("2.5",), ("-3",), ("NaN",))),
    "text": ("text", "varchar(3)", (("a",), ("A",), ("",), ("a ",))),
    "padded": ("char(3)", "char(5)", (("a", "a "), ("A",), ("",), ("b",))),
    "uuid": ("uuid", "uuid", tuple((f"{digit}" * 8 + "-0000-0000-0000-000000000000",) for digit in "1234")),
    "enum": ("mood", "mood", (("glad",), ("sad",), ("calm",), ("wild",))),
    "date": ("date", "date", (("2024-01-01",), ("infinity",), ("-infinity",), ("0044-03-15 BC",))),
}
SCHEMA = """
CREATE TYPE mood AS ENUM ('glad', 'sad', 'calm', 'wild');
CREATE COLLATION folded (provider = libc, locale = 'C');
CREATE DOMAIN mark AS numeric(1,0);
CREATE TABLE people (
    id {unit} PRIMARY KEY, age smallint, level mark, height float8, vip boolean NOT NULL, mood mood, born date,
    city text, tag char(3), nick name, uid uuid, dur interval
);
CREATE TABLE visits (
    id {visit} PRIMARY KEY, person_id {person}, place_id integer, grade numeric(1,0), cost numeric, share real,
    score float8, n smallint, big bigint, flag boolean, kind text, tag char(3), nick name, mood mood, day date,
    at timestamptz, seen timestamp, dur interval, ci text COLLATE folded, uid uuid, cc text COLLATE "C"
);
CREATE TABLE items (
    id integer PRIMARY KEY, visit_id {refers}, line smallint, amount numeric(2,1), label varchar(3), flag boolean,
    weight float8
);
CREATE TABLE parts (id integer PRIMARY KEY, item_id bigint, size smallint, note text, ok boolean);
CREATE TABLE places (
    id integer PRIMARY KEY, region text NOT NULL, size integer, code name UNIQUE, lat float8 UNIQUE, flag boolean
);
CREATE TABLE spots (region text, size integer, flag boolean);
CREATE TABLE pairs (a numeric, b char(3), c text, n smallint, flag boolean, PRIMARY KEY (a, b));
CREATE TABLE loose (c text, n smallint, flag boolean);
INSERT INTO places VALUES (1, 'north', 10, 'x', 0, true), (2, 'south', NULL, 'y', 1.5, NULL),
    (3, 'north', 0, NULL, 'NaN', false), (4, '', 5, 'z', 'Infinity', true);
INSERT INTO spots VALUES ('north', 1, true), ('north', 1, true), ('south', NULL, NULL), (NULL, 3, false);
"""
VISITS = (("integer", "bigint"), ("numeric", "integer"), ("bigint", "numeric"))  # visits.id and items.visit_id

_RULES = """
  people: {{unit: {by}id, columns: {{city: {{values: [Berlin, Lyon]}}, height: {{lower: 0, upper: 2.5}}}}}}
  visits: {{unit: {by}person_id, rows_per_unit: {visits}, columns: {{cost: {{lower: 0, upper: 100}},
    share: {{lower: 0, upper: 1}}, score: {{lower: -1.5, upper: 1.5}}, big: {{lower: 0, upper: 1000}}, kind: {{values:
    [a, b]}}, day: {{lower: 2024-01-01, upper: 2024-01-20}}, at: {{lower: 2024-01-01, upper: 2024-03-31}}}}}}
  items: {{unit: {by}visit_id -> visits.id, rows_per_unit: {items}, columns: {{weight: {{lower: 0, upper: 9}}}}}}
  parts: {{unit: {by}item_id -> items.id, rows_per_unit: {items}}}
  places: public
  spots: public
"""


def schema(unit: str, number: int) -> str:
    own, person, _ = UNITS[unit]
    visit, refers = VISITS[number % len(VISITS)]
    return SCHEMA.format(unit=own, person=person, visit=visit, refers=refers)


def rules(visits: int, items: int) -> Policy:
    """Rules that count so many rows of each person."""
    return _policy("unit: people.id\ntables:" + _RULES.format(by="", visits=visits, items=items))


def rules_by_row() -> Policy:
    """Every row of these is a unit of its own: with a key of one column, of two, and without one."""
    named = "\n".join(f"  {name}: {{}}" for name in ("people", "visits", "items", "pairs", "loose"))
    return _policy(f"unit: row\ntables:\n{named}\n  places: public\n  spots: public\n")


def _policy(text: str) -> Policy:
    head, tail = tables.RULES[: tables.RULES.index("unit:")], tables.RULES[tables.RULES.index("budget:") :]
    return load_policy(f"{head}{text}{tail}", "rules.yaml", {"DATABASE": "wide"})


# What a table may be forbidden besides: a key, a CHECK (NULL passes it), or NULL.
_KEYS = {
    "people": ("city", "level", "tag", "nick", "age, vip", "height"),
    "visits": (
        *("person_id", "person_id, grade", "person_id, flag", "person_id, n", "person_id, kind", "person_id, tag"),
        *("person_id, mood", "person_id, share", "person_id, cost", "person_id, day", "place_id", "kind", "flag, n"),
        *("person_id, nick", "person_id, cc", "person_id, uid", "person_id, dur", "person_id, at", "person_id, ci"),
        *("person_id, place_id", "grade", "id, flag", "person_id, big", "person_id, seen", "person_id, score"),
    ),
    "items": ("visit_id", "visit_id, line", "visit_id, flag", "visit_id, amount", "visit_id, label"),
    "parts": ("item_id", "item_id, size", "item_id, ok"),
}
_CHECKS = {
    "people": ("age BETWEEN 0 AND 3", "age = ANY ('{1,2,NULL}')", "level > 7", "city IN ('Berlin', 'Rome')"),
    "visits": (
        *("n >= 0 AND n <= 3", "n IN (1, 2)", "n IS NULL OR n > 30", "n = 1 OR n = 5 OR flag", "NOT n < 0"),
        *("kind IN ('a', 'zzz')", "kind = 'a' OR n = 1 AND kind = 'b'", "kind <> 'c' AND kind = ANY ('{a,b,c}')"),
        *("grade >= 8", "big BETWEEN -1 AND 2 OR big IS NULL", "n > 1 OR NULL", "n = 1 OR n = NULL", "cost >= 0"),
        *("n IN (1, NULL)", "tag = 'a'", "nick IN ('a', 'b')", "cc = 'a' OR cc = 'b'", "(n > 0) = flag", "n % 2 = 1"),
        *("kind = 'a' COLLATE folded", "n > 1.5", "n::text = '1'", "NOT (n <> 1)", "n BETWEEN SYMMETRIC 3 AND 1"),
    ),
    "items": ("line BETWEEN 1 AND 2", "label IN ('p', 'q')", "amount IN (1, 2)", "label = 'p'::varchar(1)"),
    "parts": ("size = 1", "size > 0 AND size < 3 OR size = 100"),
}
_NOT_NULLS = {
    "people": ("city", "age", "level"),
    "visits": ("person_id", "n", "flag", "grade", "kind", "place_id", "mood", "day", "tag"),
    "items": ("visit_id", "line", "flag"),
    "parts": ("item_id", "size"),
}


_REFERENCES = (
    *(("visits", "person_id", "people"), ("visits", "place_id", "places"), ("items", "visit_id", "visits")),
    ("parts", "item_id", "items"),
)
_Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Limits:
    """What is forbidden of the rows: by table a key, a CHECK, NOT NULLs and foreign keys; and a child that has more."""

    keys: tuple[tuple[str, str, bool], ...]  # the table, the columns, and whether NULLs count as equal
    checks: tuple[tuple[str, str], ...]
    not_nulls: tuple[tuple[str, str], ...]
    references: tuple[tuple[str, str, str], ...]  # the table, its column, and the table whose id it is
    inherited: bool  # whether visits have a child

    def apply(self, connection: psycopg.Connection, catalog: Catalog) -> Catalog:
        """Within the transaction; the catalog as it would be read then."""
        connection.execute("SET LOCAL search_path = public")
        for table, columns, is_equal in self.keys:
            index = f"CREATE UNIQUE INDEX ON {table} ({columns})" + " NULLS NOT DISTINCT" * is_equal
            connection.execute(tables.known_to(connection, index))
        for place, (table, check) in enumerate(self.checks):
            connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT check{place} CHECK ({check})")
        for table, column in self.not_nulls:
            connection.execute(f"ALTER TABLE {table} ALTER {column} SET NOT NULL")
        if self.inherited:
            connection.execute("CREATE TABLE more_visits () INHERITS (visits)")
        connection.execute("SET LOCAL search_path = ''")
        return replace(catalog, tables=tuple(self._seen(connection, table) for table in catalog.tables))

    def _seen(self, connection: psycopg.Connection, table: Table) -> Table:
        name = table.name.name
        keys = [Key(f"key{place}", tuple(columns.split(", "))) for place, (_, columns, _) in _of(self.keys, name)]
        foreign = [
            ForeignKey(f"foreign{place}", (column,), TableName("public", target), ("id",))
            for place, (_, column, target) in _of(self.references, name)
        ]
        checks = [_check(connection, place) for place, _ in _of(self.checks, name)]
        needed = {column for _, (_, column) in _of(self.not_nulls, name)}
        is_parent = self.inherited and name == "visits"
        return replace(
            table,
            keys=(*table.keys, *keys),
            checks=(*table.checks, *checks),
            foreign_keys=() if is_parent else tuple(foreign),
            has_children=is_parent,
            columns=tuple(
                replace(column, not_null=(column.not_null or column.name in needed) and not is_parent)
                for column in table.columns
            ),
        )


_Given = TypeVar("_Given", bound=tuple[object, ...])


def _of(given: tuple[_Given, ...], name: str) -> list[tuple[int, _Given]]:
    """Those of one table, with their places."""
    return [(place, each) for place, each in enumerate(given) if each[0] == name]


def _check(connection: psycopg.Connection, place: int) -> Check:
    found = connection.execute(
        "SELECT pg_get_constraintdef(o.oid), array_agg(a.attname::text) FROM pg_constraint AS o JOIN pg_attribute AS a "
        "ON attrelid = conrelid AND attnum = ANY (conkey) WHERE conname = %s AND coninhcount = 0 GROUP BY o.oid",
        [f"check{place}"],
    ).fetchone()
    assert found is not None
    return Check(f"check{place}", found[0], tuple(found[1]))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    keys = tuple(
        (table, draw(st.sampled_from(known)), draw(st.integers(0, 5)) == 0)
        for table, known in _KEYS.items()
        for _ in range(draw(st.integers(0, 2 if table == "visits" else 1)))
    )
    checks = tuple((table, draw(st.sampled_from(known))) for table, known in _CHECKS.items() if draw(st.booleans()))
    not_nulls = tuple(
        (table, column) for table, known in _NOT_NULLS.items() for column in known if draw(st.integers(0, 4)) == 0
    )
    references = tuple(reference for reference in _REFERENCES if draw(st.booleans()))
    return Limits(keys, checks, not_nulls, references, draw(st.integers(0, 7)) == 0)


_CELLS: dict[str, tuple[str | None, ...]] = {
    "age": ("0", "1", "2", "3", "37", None),
    "level": (*map(str, range(-9, 10)), "NaN", None),
    "height": ("1.75", "0", "-0", "NaN", "Infinity", "1e308", "5e-324", None),
    "vip": ("true", "false"),
    "mood": ("glad", "sad", "calm", None),
    "born": ("1990-01-01", "infinity", "-infinity", "0044-03-15 BC", None),
    "city": ("Berlin", "Lyon", "Rome", "", None),
    "tag": ("a", "a ", "b", "", "A", None),
    "nick": ("a", "b", "B", None),
    "uid": ("11111111-0000-0000-0000-000000000000", "22222222-0000-0000-0000-000000000000", None),
    "dur": ("1 month", "30 days", "29 days 24:00", "00:00", None),
    "place_id": ("1", "2", "3", "4", None),
    "grade": (*map(str, range(-9, 10)), "NaN", None),
    "cost": ("5.0", "5.000000", "5", "NaN", "Infinity", "1e-1000", "-7", "1e1000", "33.25", None),
    "share": ("0", "-0", "0.1", "1", "NaN", "Infinity", "3e38", None),
    "score": ("0", "-0", "0.1", "NaN", "-Infinity", "1e308", "5e-324", None),
    "n": (*map(str, range(0, 7)), "32767", "-32768", "31", None),
    "big": ("0", "1", "2", "9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", None),
    "flag": ("true", "false", None, None),
    "kind": ("a", "b", "c", "zzz", "A", None),
    "day": (*(f"2024-01-{day:02}" for day in range(1, 29, 3)), "infinity", "-infinity", None),
    "at": ("2024-03-31 01:30+00", "2024-01-01", "infinity", "-infinity", "4713-01-01 BC", None),
    "seen": ("2024-02-29 23:59:59.999999", "infinity", "0001-01-01 BC", "2024-01-01", None),
    "ci": ("a", "A", "b", None),
    "cc": ("a", "A", "b", "ä", None),
    "line": ("0", "1", "2", "-1", None),
    "amount": ("1", "1.5", "-9.9", "NaN", "2", None),
    "label": ("p", "q", "P", None),
    "weight": ("1", "NaN", "1e308", "-0", None),
    "size": ("1", "2", "100", None),
    "note": ("x", "y", "", None),
    "ok": ("true", "false", None),
    "a": ("1", "1.0", "2.50", "NaN"),
    "b": ("a", "a ", "B"),
    "c": ("x", "y", "z", None),
}  # fmt: skip
_COLUMNS = {
    "people": "age level height vip mood born city tag nick uid dur".split(),
    "visits": "place_id grade cost share score n big flag kind tag nick mood day at seen dur ci uid cc".split(),
    "items": "line amount label flag weight".split(),
    "parts": "size note ok".split(),
    "pairs": "a b c n flag".split(),
    "loose": "c n flag".split(),
}
TABLES = ("people", "visits", "items", "parts", "pairs", "loose")


def rows(unit: str, seed: int, given: Limits) -> str:
    """One script of rows, the same for the same seed; what the limits forbid is left out."""
    pick = random.Random(seed)
    units = UNITS[unit][2]
    made = {"people": [(spellings[0], *_cells(pick, "people")) for _ in range(6) for spellings in units[:3]]}
    visits: list[_Row] = []
    for spellings in (*units, None):
        for _ in range(pick.choice((0, 2, 6, 12)) if spellings != units[0] else pick.choice((12, 24, 40))):
            visits.append((pick.choice(spellings) if spellings else None, *_cells(pick, "visits")))
    made["visits"] = _numbered(visits)
    seen = [*map(str, range(1, len(visits) + 3)), None]
    items = (pick.choice(seen[:6] if pick.random() < 0.5 else seen) for _ in range(pick.choice((9, 30, 60))))
    made["items"] = _numbered([(item, *_cells(pick, "items")) for item in items])
    found = len(made["items"]) + 2
    parts = (str(pick.randint(1, found)) for _ in range(pick.choice((0, 9, 50))))
    made["parts"] = _numbered([(part, *_cells(pick, "parts")) for part in parts])
    made |= {table: [_cells(pick, table) for _ in range(6)] for table in ("pairs", "loose")}
    scripts = [_insert(table, found, given) for table, found in made.items() if found]
    for table, column, target in given.references:
        scripts.append(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM {target})")
    if given.inherited:
        scripts.append(f"INSERT INTO more_visits SELECT * FROM visits WHERE n % {seed % 3 + 1} = 0")
    return "; ".join(scripts)


def _numbered(given: list[_Row]) -> list[_Row]:
    return [(str(number), *texts) for number, texts in enumerate(given, start=1)]


def _cells(pick: random.Random, table: str) -> _Row:
    return tuple(pick.choice(_CELLS[column]) for column in _COLUMNS[table])


def _insert(table: str, made: list[_Row], given: Limits) -> str:
    listed = ", ".join(f"ROW({', '.join(map(_cell, row))})::{table}" for row in made)
    tests = [f"({check}) IS NOT FALSE" for of, check in given.checks if of == table]
    tests += [f"{column} IS NOT NULL" for of, column in given.not_nulls if of == table]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return f"INSERT INTO {table} SELECT * FROM unnest(ARRAY[{listed}]){where} ON CONFLICT DO NOTHING"


def _cell(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def leave(unit: str, number: int) -> str:
    """The neighbour: without all rows of one person."""
    who = _cell(UNITS[unit][2][number][0])
    visits = f"SELECT id FROM visits WHERE person_id = {who}"
    return (
        f"DELETE FROM parts WHERE item_id IN (SELECT id FROM items WHERE visit_id IN ({visits})); "
        f"DELETE FROM items WHERE visit_id IN ({visits}); DELETE FROM visits WHERE person_id = {who}; "
        f"DELETE FROM people WHERE id = {who}"
    )


def leave_row(seed: int) -> str:
    """The neighbour where every row is a unit: without one row of one table."""
    table = ("people", "visits", "items", "pairs", "loose")[seed % 5]
    one = f"SELECT tableoid, ctid FROM {table} ORDER BY 1, 2 LIMIT 1 OFFSET {seed // 5 % 4}"
    return f"DELETE FROM {table} WHERE (tableoid, ctid) = ({one})"
