"""A condition on the period of a moment is true for the moments for which PostgreSQL says so, in any zone."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import psycopg
import pytest

from proxy.twin.embedded import Cluster
from rules.functions.casts import cast_to
from rules.functions.comparison import compare, in_list
from rules.functions.datetime.extraction import date_part, extract
from rules.functions.datetime.truncation import date_trunc
from rules.functions.function import EvalContext
from rules.functions.registry import call
from rules.kernel.expressions import expression_sql
from rules.values.expression import Column, Constant, Expression, Literal, null_of
from rules.values.types import DATE, INT4, TIMESTAMP, TIMESTAMPTZ, Type

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kolkata", "America/St_Johns")
ALWAYS = ("UTC", "Europe/Berlin", "America/St_Johns")  # the others in the longer run
MOMENTS = (  # at the ends of periods, and where clocks are put forward and back, at midnight or over a whole day
    *("2024-12-31 23:59:59.999999", "2025-01-01 00:00", "2025-12-31 00:00", "2026-01-01 00:00", "2024-02-29 12:00"),
    *("2025-03-30 00:00", "2025-03-30 23:30", "2025-10-26 02:30", "2025-10-27 00:00", "2025-03-31 00:00"),
    *("2018-11-03 23:59", "2018-11-04 01:00", "2018-11-05 00:00", "2018-02-17 23:30", "2018-02-18 00:00"),
    *("2011-12-29 12:00", "2011-12-31 00:00", "0005-06-07 00:00", "9990-05-05 10:00"),
)
YEARS = tuple(Constant(INT4, str(year), Fraction(year)) for year in (2025, 2024, 2012))
STARTS = (
    "2025-01-01",
    "2025-03-30",
    "2025-10-26",
    "2018-11-04",
    "2018-02-18",
    "2011-12-30",
    "2025-03-15",
    "2012-01-01",
)
SIGNS = ("=", "<", "<=", ">", ">=", "<>")


def periods(column: Column, setting: EvalContext) -> Iterator[tuple[str, Expression]]:
    """Yield what tells a period of a column, with its SQL."""
    year = extract((Literal("year"), column), setting)
    yield "extract(year from m)", year
    yield "extract(year from m)::int", cast_to(year, INT4, setting)
    yield "trunc(extract(year from m))::int", cast_to(call("trunc", (year,), setting), INT4, setting)
    yield "date_part('year', m)", date_part((Literal("year"), column), setting)
    yield "m::date", cast_to(column, DATE, setting)
    for field in ("day", "week", "month", "quarter", "year"):
        cut = date_trunc((Literal(field), column), setting)
        yield f"date_trunc('{field}', m)", cut
        yield f"date_trunc('{field}', m)::date", cast_to(cut, DATE, setting)
        local = date_trunc((Literal(field), cast_to(column, TIMESTAMP, setting)), setting)
        yield f"date_trunc('{field}', m::timestamp)", local
        rounded = cast_to(column, Type("timestamp", 0), setting)
        yield f"date_trunc('{field}', m::timestamp(0))", date_trunc((Literal(field), rounded), setting)
        of_days = date_trunc((Literal(field), cast_to(column, DATE, setting)), setting)
        yield f"date_trunc('{field}', m::date)", of_days


def conditions(column: Column, setting: EvalContext) -> Iterator[tuple[str, Expression]]:
    """Yield conditions on such periods, with their SQL."""
    for sql, period in periods(column, setting):
        if period.type.is_number:
            yield from (
                (f"{sql} {sign} {year.text}", compare(sign, period, year, setting))
                for sign, year in product(SIGNS, YEARS)
            )
            yield f"{sql} IN (2025, 2024, 2012)", in_list(period, YEARS, setting, negated=False)
            yield f"{sql} IN (2025, NULL)", in_list(period, (YEARS[0], null_of(INT4)), setting, negated=False)
            yield f"{sql} NOT IN (2025, 2024, 2012)", in_list(period, YEARS, setting, negated=True)
        else:
            yield from (
                (f"{sql} {sign} '{start}'", compare(sign, period, Literal(start), setting))
                for sign, start in product(SIGNS, STARTS)
            )


@pytest.mark.parametrize("kind", [DATE, TIMESTAMP, TIMESTAMPTZ], ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    "zone", [pytest.param(each, marks=() if each in ALWAYS else pytest.mark.extended) for each in ZONES]
)
def test_conditions_are_true_where_postgresql_says_so(real_cluster: Cluster, zone: str, kind: Type) -> None:
    with psycopg.connect(real_cluster.dsn()) as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        connection.execute(f"CREATE TEMP TABLE moments AS SELECT unnest(%s::text[])::{kind.sql} AS m", [list(MOMENTS)])
        connection.execute("INSERT INTO moments VALUES (NULL)")
        for sql, condition in conditions(Column(1, kind), EvalContext(zone, None, False)):
            ours = expression_sql(condition, {1: "m"})
            differing = connection.execute(f"SELECT m FROM moments WHERE ({sql}) IS DISTINCT FROM ({ours})").fetchall()
            assert differing == [], (sql, ours)


@pytest.mark.parametrize("sql", ["extract(year from m) >= 2025", "date_trunc('month', m) < '2025-03-15'"])
def test_infinity_is_later_than_all_years(real_cluster: Cluster, sql: str) -> None:
    ours = dict(conditions(Column(1, TIMESTAMP), EvalContext("UTC", None, False)))[sql]

    with psycopg.connect(real_cluster.dsn()) as connection:
        rows = connection.execute(
            f"SELECT {sql}, {expression_sql(ours, {1: 'm'})} FROM unnest('{{infinity,-infinity}}'::timestamp[]) AS m"
        ).fetchall()

    assert all(theirs == own for theirs, own in rows)


@pytest.mark.parametrize("kind", [DATE, TIMESTAMP, TIMESTAMPTZ], ids=lambda kind: kind.kind)
def test_they_are_conditions_on_the_moment_itself(kind: Type) -> None:
    made = dict(conditions(Column(1, kind), EvalContext("Europe/Berlin", None, False)))

    for sql in (
        "extract(year from m) = 2025",
        "extract(year from m)::int IN (2025, 2024, 2012)",
        "date_part('year', m) < 2024",
        "date_trunc('quarter', m) = '2025-01-01'",
        "date_trunc('month', m)::date > '2025-03-15'",
        "m::date = '2025-03-30'",
    ):
        text = expression_sql(made.get(sql) or made[sql.replace("::int", "")], {1: "m"})
        assert not any(word in text for word in ("extract", "date_trunc", "::integer")), text
