"""Whatever types meet in an expression, it has the type that PostgreSQL gives it, with its digits.

The proxy runs no statement whose columns look otherwise to PostgreSQL, so an analyst would get no answer of it.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product

import psycopg
import pytest

from rules import catalog as real
from rules.bind.declared_columns import column_of, type_domain
from rules.bind.expression import Binding
from rules.bind.scope import PlannerContext
from rules.catalog import TypeName
from rules.functions.function import EvalContext, Needed
from rules.functions.guard import as_value
from rules.policy.column_kind import misfit, misfits
from rules.policy.model import ColumnRules, TableRules, check_order
from rules.refusal import Refusal
from rules.sql import syntax as s
from rules.sql.lower import parse_expression
from rules.values.domain import ANYTHING, range_of
from rules.values.expression import Column, Operand
from rules.values.types import Type, from_name
from tests.properties import worst
from tests.properties.planning import Lab
from tests.properties.test_totality import RULES, ZONE

DOMAINS = {
    "dn": Type("numeric", size=7, scale=3, domain="pg_temp.dn"),
    "dt": Type("timestamp", size=2, domain="pg_temp.dt"),
    "dv": Type("varchar", size=7, domain="pg_temp.dv"),
}
NAMES = (*"i2 i4 i8 n n2 nw f4 f8 d ts tz t0 z3 tm iv t vc c na b m u j".split(), *DOMAINS)
CONSTANTS = (
    *("2", "2.5", "'2'", "NULL", "'a'", "1e3", "2147483648", "now()", "'2024-01-05'", "interval '1 day'", "'1 day'"),
    *("2::smallint", "2::real", "'2'::numeric(5,1)", "2.50::numeric(5,1)", "'x'::varchar(3)", "'y'::char(2)"),
    *("'x'::name", "'2024-01-05'::timestamp(1)", "date '2024-01-05'"),
)
OF_TWO = (
    *("coalesce({}, {})", "greatest({}, {})", "nullif({}, {})", "CASE WHEN b THEN {} ELSE {} END", "{} || {}"),
    *("CASE WHEN b THEN {} WHEN NOT b THEN {} END", "coalesce({}, {}, NULL)", "least({}, {}, 1)", "concat({}, {})"),
    *("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "{} ^ {}", "power({}, {})", "mod({}, {})", "{} = {}"),
    *("age({}, {})", "round({}, {})"),
)
OF_ONE = (
    *("numeric(4,1)", "numeric", "real", "float(40)", "varchar(3)", "varchar", "char(3)", "bpchar", "name", "text"),
    *("timestamp(1)", "timestamptz(0)", "timestamp", "date", "time", "smallint", "bigint"),
)
EXPRESSIONS = {
    **{template: tuple(product((*NAMES, *CONSTANTS), repeat=2)) for template in OF_TWO},
    **{f"({{}})::{target}": tuple((one,) for one in (*NAMES, *CONSTANTS)) for target in OF_ONE},
}


ALWAYS = ("coalesce({}, {})", "CASE WHEN b THEN {} ELSE {} END", "{} || {}", "{} + {}", "{} / {}", "({})::numeric(4,1)")


@pytest.mark.parametrize(
    "template", [pytest.param(each, marks=() if each in ALWAYS else pytest.mark.extended) for each in EXPRESSIONS]
)
@pytest.mark.parametrize("declared", [None, pytest.param(0, marks=pytest.mark.extended)], ids=["any value", "declared"])
def test_types_that_meet_make_the_type_that_postgresql_makes(lab: Lab, template: str, declared: int | None) -> None:
    found = {text: kind for text, kind in _typed(lab, template, declared) if kind is not None}
    with lab.connection.transaction(force_rollback=True):
        for kind in DOMAINS.values():
            lab.connection.execute(f"CREATE DOMAIN {kind.domain} AS {Type(kind.base, kind.size, kind.scale).sql}")
        columns = (f"NULL::{DOMAINS[name].domain if name in DOMAINS else _kind(name).sql} AS {name}" for name in NAMES)
        lab.connection.execute(f"CREATE TEMPORARY VIEW row_of_all AS SELECT {', '.join(columns)}")
        for text, kind in found.items():
            theirs = _described(lab, f"SELECT {text} FROM pg_temp.row_of_all")
            ours = [_described(lab, f"SELECT NULL::{one.sql}") for one in (kind, *_without_length(kind))]
            assert theirs in (None, *ours), f"{text} is not {kind.sql}"


def _without_length(kind: Type) -> tuple[Type, ...]:
    """A character(n) beside NULL is still filled up to its length, which PostgreSQL does not tell then."""
    return (kind.plain(),) if kind.base == "bpchar" else ()


NUMBERS = (
    *("-1e400", "-1.7e308", "-1e300", "-3e9", "-5", "0", "1e-400", "5e-324", "1e-60", "1e-45", "0.001", "0.004", "0.5"),
    *("2.5", "5", "999.999", "1000", "32767", "9223372036854775807", "1e30", "3.4e38", "1e39", "1.7e308", "1e400"),
)
MOMENTS = (
    *(date(1, 1, 1), date(2024, 1, 1), date(9999, 12, 31), datetime(2024, 1, 1, 0, 0, 0, 100_000)),
    *(datetime(2024, 1, 1, 0, 0, 0, 900_001), datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    *(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),),
    *(datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-12))),),
)
BOUNDED = (
    *(TypeName(name, name) for name in "int2 int4 int8 float4 float8 numeric date timestamp timestamptz".split()),
    *(TypeName("numeric(8,2)", "numeric", (8 << 16 | 2) + 4), TypeName("numeric(3,0)", "numeric", (3 << 16) + 4)),
    *(TypeName("timestamp(0)", "timestamp", 0), TypeName("timestamptz(3)", "timestamptz", 3)),
)


@pytest.mark.parametrize("kind", BOUNDED, ids=lambda kind: kind.sql)
def test_a_column_whose_bounds_are_accepted_keeps_its_type_between_values_of_its_type(kind: TypeName) -> None:
    """Else statements fail, or are refused, of which the rules file says nothing."""
    is_time = kind.base in ("date", "timestamp", "timestamptz")
    found = MOMENTS if is_time else [Decimal(text) if "." in text or "e" in text else int(text) for text in NUMBERS]
    accepted = [bound for bound in found if not misfit(bound, kind)]
    assert len(accepted) > 1
    for lower, upper in product(accepted, repeat=2):
        try:
            check_order(lower, upper)
        except ValueError:
            continue
        if not misfits(lower, upper, kind):
            rules = TableRules(unit="x", columns={"x": ColumnRules(lower=lower, upper=upper)})
            made = as_value(column_of(real.Column("x", kind, 1), ONLY, rules, 1), EvalContext())
            assert made.type == from_name(kind)
            span = range_of(made.domain)
            assert span.low is None or span.high is None or span.low <= span.high


ONLY = real.Table(real.TableName("public", "only"), "table", ())


def _typed(lab: Lab, template: str, declared: int | None) -> Iterator[tuple[str, Type | None]]:
    """Each expression with its type, or None where it is refused, or a column: one that is cast to its own bare type is
    that column, which has the type of the analyst's cast above groups."""
    world = PlannerContext(RULES, lab.catalog, time_zone=ZONE, now="2024-02-29 23:59:59.999999+00:00")

    def leaf(each: s.Expression) -> Operand | None:
        return _column(each.parts[0], declared) if isinstance(each, s.Name) else None

    for operands in EXPRESSIONS[template]:
        text = template.format(*operands)
        try:
            made = Binding(leaf, world, world.setting).bind(parse_expression(text))
            yield text, None if isinstance(made, Column) else made.type
        except (Refusal, Needed):
            yield text, None


def _column(name: str, declared: int | None) -> Column:
    if name not in DOMAINS:
        return worst.column(name, nullable=True, declared=declared)
    kind = DOMAINS[name]
    return Column(-1 - NAMES.index(name), kind, type_domain(kind), ANYTHING, nullable=True, name=name)


def _kind(name: str) -> Type:
    return worst.COLUMNS[name][0]


def _described(lab: Lab, sql: str) -> tuple[int, int] | None:
    """The type of the first column, and its digits; None where PostgreSQL itself refuses it."""
    connection = lab.connection.pgconn
    connection.exec_(b"SAVEPOINT before")
    if connection.prepare(b"", sql.encode()).status != psycopg.pq.ExecStatus.COMMAND_OK:
        connection.exec_(b"ROLLBACK TO before")
        return None
    described = connection.describe_prepared(b"")
    return described.ftype(0), described.fmod(0)
