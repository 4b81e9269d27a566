"""A table of facts about units, with the worst values of every type, and rows of it as the kernel reads them."""

from collections.abc import Sequence
from random import Random
from typing import Any

import psycopg
from hypothesis import strategies as st

from rules.catalog import Catalog, Distribution, Table, TableKind, TableName, TypeName
from rules.catalog import Column as CatalogColumn
from rules.catalog import Key as CatalogKey
from rules.kernel.bounded import Ladder, Statement, TallyStatement
from rules.kernel.bounded import bounded as kernel_bounded
from rules.kernel.bounded import tally as kernel_tally
from rules.kernel.ground import Ground
from rules.kernel.keys import Key
from rules.kernel.measures import Measure
from rules.kernel.relation import Relation
from rules.kernel.relations import build
from rules.kernel.script import Call, Filter, Scan, Script, SortKey, UnionAll, Window
from rules.kernel.source import Pivots
from rules.kernel.statement import Bounded, Tally
from rules.policy.load import load_policy
from rules.values.expression import TRUE, Apply, Column, Constant, Expression
from rules.values.types import (
    BOOLEAN,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Type,
)
from tests.support import lab

COLUMNS: dict[str, Type] = {
    "a": INT4,
    "b": TEXT,
    "n": NUMERIC,
    "f": FLOAT8,
    "r": FLOAT4,
    "i": INT8,
    "s": INT2,
    "d": DATE,
    "at": TIMESTAMP,
    "tz": TIMESTAMPTZ,
    "ok": BOOLEAN,
    "p": Type("numeric", 6, 2),
}
SCHEMA = "CREATE TABLE public.facts (u integer, " + ", ".join(f"{n} {t.sql}" for n, t in COLUMNS.items()) + ")"
HUGE = "9.99e131071"
POOLS: dict[str, tuple[str | None, ...]] = {
    "a": ("1", "2", "3", "-7", None),
    "b": ("x", "y", "", "é'\\", "{0}", None, "long" * 2100),
    "n": ("0", "5.0", "5.00", "0.005", "-0.015", "1e-999", HUGE, "-" + HUGE, "NaN", "Infinity", "-Infinity", None),
    "f": ("0", "-0", "0.1", "2.5", "3.5", "1e308", "-1e308", "5e-324", "-5e-324", "NaN", "Infinity", "-Infinity", None),
    "r": ("0", "-0", "0.1", "2.5", "3e38", "-3e38", "1e-45", "NaN", "Infinity", "-Infinity", None),
    "i": ("0", "1", "-3", "7", "9223372036854775807", "-9223372036854775808", None),
    "s": ("0", "4", "-4", "32767", "-32768", None),
    "d": ("2024-02-29", "2024-03-31", "0001-01-01", "5874897-12-31", "4713-01-01 BC", "infinity", "-infinity", None),
    "at": ("2024-02-29 23:59:59.999999", "2024-03-01", "294276-12-31", "4713-01-01 BC", "infinity", "-infinity", None),
    "tz": ("2024-03-31 01:30+00", "2024-10-27 01:30:00.000001+00", "294276-12-31", "infinity", "-infinity", None),
    "ok": ("true", "false", None),
    "p": ("0", "0.01", "0.05", "5.00", "-3.25", "9999.99", "-9999.99", "NaN", None),
}  # fmt: skip
IDS = {name: number for number, name in enumerate(COLUMNS, start=1)}

Row = dict[str, str | None]
Data = dict[int | None, list[Row]]  # by unit


def rows_of_facts(
    *, proved_one: bool = False, has_identity: bool = True, condition: Expression = TRUE, without: int | None = None
) -> Relation:
    """Rows of the table, of which a condition keeps some; candidates for being beyond a cap are all of them.

    That a unit has one row at most is what the catalog says, and nothing else.
    """
    ground = (_ONE_ROW if proved_one else _ROWS) if has_identity else _KEYLESS
    script: Script = Scan(TABLE, ((0, "u"), *((number, name) for name, number in IDS.items())))
    if without is not None:
        script = Filter(script, Apply("test", f"({{0}} IS DISTINCT FROM {without})", (Column(0, INT4),), BOOLEAN))
    return build(script if condition == TRUE else Filter(script, condition), ground)


def rows_that_may_change() -> tuple[Relation, ...]:
    """Rows that are elsewhere, and such as are ordered by a column that may change, or cast it, or chosen by letters or
    the order of texts."""
    own = rows_of_facts().script
    number = ((99, Call("row_number(){over}", (), INT8), ""),)
    first = Window(own, (), (), number)
    others = Scan(TABLE, ((0, "u"), *((number, name) for name, number in IDS.items() if name != "tz")))
    by_text = Window(others, (), (SortKey(column("b")),), number)
    kinds = {number: TEXT if name == "tz" else COLUMNS[name] for name, number in IDS.items()}
    columns = ((0, INT4, (0,)), *((number, kind, (number,)) for number, kind in kinds.items()))
    foreign = _ground("facts.u", is_foreign=True)
    distributed = _ground("facts.u", distribution=Distribution("distributed", "u", 1))
    missed = _ground("facts.u", outdated=("by_b",))
    parent = _ground("facts.u", has_children=True)
    unions = UnionAll((own,), columns, 0)
    chosen = (Filter(own, Apply("", sql, (column("b"),), BOOLEAN)) for sql in (*_BY_LOCALE, *_OF_OTHERS))
    of_own: tuple[Script, ...] = (first, by_text, unions, *chosen)
    grounds = (foreign, distributed, missed, parent)
    return *(build(own, ground) for ground in grounds), *(build(each, _ROWS) for each in of_own)


_BY_LOCALE = (
    "(lower({0}) = 'x')", "({0} < 'y')", "({0} ~ 'x')", """("substring"({0}, 'x') = 'x')""",
)  # fmt: skip
_OF_OTHERS = (
    '(({0})::"public"."mood" IS NULL)', "(({0})::public.mood IS NULL)", "(({0})::regrole IS NULL)",
    "(({0})::aclitem IS NULL)",
)  # fmt: skip


def bounded(
    rows: Relation, keys: Sequence[Key], measures: Sequence[Measure], rows_per_unit: int, **more: Any
) -> Bounded:
    """A bounded statement over these rows, whatever the script of them."""
    return kernel_bounded(rows, Statement(rows.script, tuple(keys), tuple(measures), rows_per_unit, **more))


def tally(
    rows: Relation, keys: Sequence[Key], ladders: Sequence[Ladder], rows_per_unit: int, pivots: Pivots = ()
) -> Tally:
    """A tally over these rows."""
    return kernel_tally(rows, TallyStatement(rows.script, tuple(keys), tuple(ladders), rows_per_unit, pivots))


def _ground(
    unit: str,
    *keys: CatalogKey,
    is_foreign: bool = False,
    distribution: Distribution | None = None,
    outdated: tuple[str, ...] = (),
    has_children: bool = False,
) -> Ground:
    """What the kernel knows of the table: whose a row is, and which keys there are."""
    columns = ("u", INT4), *COLUMNS.items()
    named = tuple(
        CatalogColumn(name, TypeName(kind.sql, kind.base, _modifier(kind)), number)
        for number, (name, kind) in enumerate(columns)
    )
    kind: TableKind = "foreign table" if is_foreign else "table"
    table = Table(
        TABLE, kind, named, keys, has_children=has_children, foreign=is_foreign, distribution=distribution,
        outdated=outdated,
    )  # fmt: skip
    own = ", ".join([*(["unit: u"] if unit != "row" else []), *(["foreign: trusted"] if is_foreign else [])])
    head, rest = lab.RULES[: lab.RULES.index("unit:")], lab.RULES[lab.RULES.index("budget:") :]
    rules = f"{head}unit: {unit}\ntables:\n  facts: {{{own}}}\n{rest}"
    policy = load_policy(rules, "rules.yaml", {"DATABASE": "facts"})
    return Ground(policy, Catalog("facts", 180000, "", "UTF8", (table,)))


def _modifier(kind: Type) -> int:
    """Of numeric(p, s), as PostgreSQL writes it."""
    return -1 if kind.size is None or kind.scale is None else (kind.size << 16 | kind.scale) + 4


TABLE = TableName("public", "facts")
_ROWS, _KEYLESS = _ground("facts.u"), _ground("row")
_ONE_ROW = _ground("facts.u", CatalogKey("one", ("u",)))


def column(name: str) -> Column:
    return Column(IDS[name], COLUMNS[name], name=name)


def constant(text: str | None, name: str) -> Constant:
    return Constant(COLUMNS[name], text)


def clamped(name: str, low: str, high: str) -> Apply:
    """A number between two others, as the registry clamps it."""
    ends = (Constant(COLUMNS[name].plain(), low), Constant(COLUMNS[name].plain(), high))
    sql = "CASE WHEN {0} <> 'NaN' THEN least(greatest({0}, {1}), {2}) END"
    return Apply("clamp", sql, (column(name), *ends), COLUMNS[name])


def computed(sql: str, *arguments: Expression) -> Apply:
    """Arithmetic of numerics."""
    return Apply("computed", sql, arguments, NUMERIC)


def is_true(name: str, sql: str) -> Apply:
    """A condition over a column."""
    return Apply("test", sql, (column(name),), BOOLEAN)


@st.composite
def facts(draw: st.DrawFn, units: int = 4) -> Data:
    """Rows by unit: some without one, and some units with far more rows than others.

    Cells are drawn evenly, by a seed: Hypothesis' own draws are too much alike to meet many combinations.
    """
    random = Random(draw(st.integers(0, 2**32)))
    found: Data = {}
    for unit in (*range(1, units + 1), None):
        drawn = range(draw(st.sampled_from((0, 1, 1, 2, 3, 5))))
        some = [{name: random.choice(pool) for name, pool in POOLS.items()} for _ in drawn]
        found[unit] = some * draw(st.sampled_from((1, 1, 1, 2, 7, 40)))
    return found


def load(connection: psycopg.Connection, data: Data) -> None:
    """Fill the table with these rows and no others; a server without infinite numerics gets NaN for them, in place."""
    if connection.info.server_version < 140000:
        for row in (row for rows in data.values() for row in rows):
            row["n"] = "NaN" if row["n"] in ("Infinity", "-Infinity") else row["n"]
    rows = [
        f"({'NULL' if unit is None else unit}, {', '.join(_cell(row[name]) for name in COLUMNS)})"
        for unit, rows in data.items()
        for row in rows
    ]
    filled = f"; INSERT INTO public.facts VALUES {', '.join(rows)}" if rows else ""
    connection.execute(f"TRUNCATE public.facts{filled}")


def _cell(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"
