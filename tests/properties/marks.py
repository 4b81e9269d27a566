"""A table whose unique keys and constraints tempt a planner to prove too much, and queries that tempt it further."""

from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import strategies as st

from rules.policy.load import load_policy
from tests.support import lab as tables

SCHEMA = """
CREATE TABLE people (id integer PRIMARY KEY, vip boolean NOT NULL, level smallint);
CREATE TABLE marks (
    person_id integer NOT NULL, grade numeric(1,0), passed boolean, code bigint NOT NULL, slot integer, label text,
    share real, UNIQUE (person_id, grade), UNIQUE (person_id, passed), UNIQUE (person_id, code),
    UNIQUE (person_id, slot), UNIQUE (person_id, label), UNIQUE (person_id, share),
    CHECK (slot BETWEEN 0 AND 5), CHECK (label IN ('a', 'b', 'c'))
)
"""
RULES = load_policy(
    tables.RULES[: tables.RULES.index("tables:")]
    + """tables:
  people: {unit: id}
  marks: {unit: person_id, rows_per_unit: 60, columns: {code: {lower: 0, upper: 100}, share: {lower: 0, upper: 1}}}
"""
    + tables.RULES[tables.RULES.index("budget:") :],
    "rules.yaml",
    {"DATABASE": "marks"},
)

# A unique column takes a value once for each person, and NULL as often as there are rows.
VALUES = {
    "grade": (*(f"'{grade}'" for grade in range(-9, 10)), "'NaN'", "NULL"),
    "passed": ("true", "false", "NULL", "NULL"),
    "code": tuple(
        str(base + step)
        for base, most in ((0, 3), (2**24, 4), (2**53, 5), (9 * 10**18, 30), (2**63 - 9, 9))
        for step in range(most)
    ),
    "slot": (*map(str, range(6)), "NULL"),
    "label": ("'a'", "'b'", "'c'", "NULL"),
    "share": ("'0'", "'0.1'", "'0.5'", "'NaN'", "'Infinity'", "NULL"),
}
NUMBERS = ("m.grade", "m.code", "m.slot", "m.share")
CONSTANTS = (
    *("0", "1", "5", "9", "2.5", "9::real", "'9'::float8", "'4.99999999999999999999'::float8", "'NaN'::numeric"),
    *("9007199254740993", "'9007199254740993'::float8", "9000000000000000001", "'9e18'::float8", "'16777217'::real"),
    *("'9223372036854775807'::float8", "'9e18'::real", "9e18", "p.level", "m.slot", "m.code"),
)
SIMPLE = (
    *(f"{column} {sign} {other}" for column in NUMBERS for sign in ("=", "<", "<=", ">", ">=") for other in CONSTANTS),
    *(f"{column} IS {what}" for column in NUMBERS for what in ("NULL", "NOT NULL")),
    *("m.passed", "NOT m.passed", "m.passed IS NOT FALSE", "m.label IN ('a', 'z')", "m.label <> 'a'"),
)
JOINED = "people AS p JOIN marks AS m ON m.person_id = p.id"
BESIDE = "people AS p JOIN ({}) AS m ON m.person_id = p.id"
NUMBERED = "SELECT *, row_number() OVER (PARTITION BY person_id, passed ORDER BY code) AS number FROM marks"
GROUPED = """SELECT person_id, grade, label, slot, max(code) AS code, bool_or(passed) AS passed, max(share) AS share
    FROM marks GROUP BY 1, 2, 3, 4"""
UNITED = """SELECT person_id, grade, max(label) AS label, max(slot) AS slot, max(code) AS code,
    bool_or(passed) AS passed, max(share) AS share
    FROM (SELECT * FROM marks WHERE grade {} UNION ALL SELECT * FROM marks WHERE grade {}) AS u GROUP BY 1, 2"""
FIRST = "SELECT *, first_value(code) OVER (PARTITION BY person_id ORDER BY code {}) AS first FROM marks"
SOURCES = (
    *3 * (f"{JOINED} WHERE {{}}",),
    "people AS p LEFT JOIN marks AS m ON m.person_id = p.id AND {}",
    "people AS p FULL JOIN marks AS m ON m.person_id = p.id AND {}",
    f"{JOINED} JOIN marks AS n ON n.person_id = p.id AND n.slot = m.slot WHERE {{}}",
    f"{JOINED} LEFT JOIN marks AS n ON n.person_id = p.id AND n.slot = 1 WHERE {{}}",
    f"{BESIDE.format(NUMBERED)} WHERE m.number = 1 AND {{}}",
    f"{BESIDE.format(GROUPED)} WHERE {{}}",
    f"{BESIDE.format(UNITED.format('> 9', '= 3'))} WHERE {{}}",
    f"{BESIDE.format(UNITED.format('IN (1, 2)', '>= 8'))} WHERE {{}}",
    f"{BESIDE.format(FIRST)} WHERE true",
)  # fmt: skip
FRAMES = (
    "",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
    "GROUPS BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING",
)
KEYS = ("m.grade", "m.passed", "m.slot", "m.label", "p.vip", "m.code", "coalesce(m.slot, 7)")


@dataclass(frozen=True)
class Asked:
    """Counts and a sum over a source, by a key or for all."""

    source: str
    key: str | None

    @property
    def sql(self) -> str:
        counted = f"count(*), count(DISTINCT p.id), sum(m.slot), count(m.code) FROM {self.source}"
        return f"SELECT {counted}" if self.key is None else f"SELECT {self.key}, {counted} GROUP BY 1"


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    source = draw(st.sampled_from(SOURCES))
    if "first_value" in source:
        return Asked(source.format(draw(st.sampled_from(FRAMES))), draw(st.sampled_from((None, "m.first"))))
    return Asked(source.format(draw(conditions())), draw(st.sampled_from((None, *KEYS))))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    column, constant, other = (draw(st.sampled_from(each)) for each in (NUMBERS, CONSTANTS, CONSTANTS))
    match draw(st.integers(-6, 5 if depth else 2)):
        case 0:
            return f"{column} IN ({constant}, {other})"
        case 1:
            return f"{constant} IN ({column}, {other})"
        case 2:
            return f"{draw(st.sampled_from(('true', 'p.vip', 'false')))} IN (m.passed, {draw(st.booleans())})"
        case 3:
            return f"({draw(conditions(depth - 1))} AND {draw(conditions(depth - 1))})"
        case 4:
            return f"({draw(conditions(depth - 1))} OR {draw(conditions(depth - 1))})"
        case 5:
            return f"(NOT {draw(conditions(depth - 1))})"
    return draw(st.sampled_from(SIMPLE))


def each_value(names: Iterable[str]) -> list[str]:
    """Rows that have one key each, the others NULL: so that each key takes all of its values."""
    made: list[str] = []
    for name in names:
        for value in VALUES[name]:
            cells = dict.fromkeys(VALUES, "NULL") | {"code": str(1000 + len(made))} | {name: value}
            made.append(f"(1, {', '.join(cells.values())})")
    return made


def inserted(made: list[str]) -> str:
    return f"INSERT INTO marks VALUES {', '.join(made)} ON CONFLICT DO NOTHING"


@st.composite
def rows(draw: st.DrawFn) -> str:
    """Rows of one person among few of others; those that a key does not allow are left out."""
    made = [f"(1, {', '.join(draw(st.sampled_from(VALUES[name])) for name in VALUES)})" for _ in range(8)]
    return inserted(made + each_value(sorted(draw(st.sets(st.sampled_from(sorted(VALUES)), min_size=1)))))


PEOPLE = (
    "INSERT INTO people VALUES (1, true, 5), (2, false, NULL), (3, true, 1); INSERT INTO marks VALUES (2, 1, true, 7)"
)


TEMPTING = (
    f"{JOINED} WHERE m.grade >= 9",
    f"{JOINED} WHERE m.code = '9e18'::float8",
    f"{JOINED} WHERE true IN (m.passed, true)",
    f"{JOINED} WHERE NOT (NOT 0 IN (m.grade, 0))",
    f"{BESIDE.format(UNITED.format('> 9', '= 3'))} WHERE true",
    BESIDE.format(FIRST.format("ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")),
)
