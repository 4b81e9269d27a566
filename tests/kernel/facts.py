"""A table of facts about units, with the worst values of every type, and rows of it as the kernel reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import psycopg
from hypothesis import strategies as st

from rules.kernel.canonical import literal
from rules.kernel.rows import Item
from rules.values.expression import Apply, Column, Constant, Expression
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
}  # fmt: skip
IDS = {name: number for number, name in enumerate(COLUMNS, start=1)}

Row = dict[str, str | None]
Data = dict[int | None, list[Row]]  # by unit


@dataclass(frozen=True)
class Facts:
    """Rows of the table, of which `condition` keeps some; candidates for being beyond a cap are all of them."""

    proved_one: bool = False
    has_identity: bool = True
    repeatable: bool = True
    condition: str = "true"
    table: str = "public.facts"

    def is_stored(self, expression: Expression) -> bool:
        return isinstance(expression, Column)

    def select(self, items: Sequence[Item]) -> str:
        columns = [f"{item.wrap.format(_sql(item.expression))} AS {item.alias}" for item in items]
        unit = ["t.u AS u"] if self.has_identity else []
        return f"SELECT {', '.join([*unit, *columns])} FROM {self.table} AS t WHERE {self.condition}"

    def candidates(self) -> str | None:
        return f"SELECT t.u AS u FROM {self.table} AS t"


def column(name: str) -> Column:
    return Column(IDS[name], COLUMNS[name], name=name)


def constant(text: str | None, name: str) -> Constant:
    return Constant(COLUMNS[name], text)


def is_true(name: str, sql: str) -> Apply:
    """A condition over a column."""
    return Apply("test", sql, (column(name),), BOOLEAN)


def _sql(given: Expression) -> str:
    match given:
        case Column(name=name):
            return f't."{name}"'
        case Constant(type=kind, text=text):
            return literal(text, kind)
        case Apply(sql=sql, arguments=arguments):
            return sql.format(*(f"({_sql(each)})" for each in arguments))


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
