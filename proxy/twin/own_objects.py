"""Functions, aggregates and views of our own on the twin: there they give names and types to tools and to PostgreSQL.

Around protected rows the planner replaces error bars, noisegate.typical and noisegate.estimate before anything is
computed; over public rows they give what is right where nothing was noised. A statement that calls noisegate.request
or reads a system view is answered by the proxy. `moment` reads what holds in a session: no session can put another
function in its place, as it could with a prepared statement.
"""

from collections.abc import Iterator
from typing import Final

from proxy.twin.steps import Step, literal, quoted
from rules.sql.system_views import VIRTUAL, SystemView

_NUMBERS: Final = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
_OF_CURVES: Final = ("double precision", "numeric")  # for which there are roots, logarithms and powers
# Types of values, each with that of their distances.
_DISTANCES: Final = {
    **{name: name for name in (*_NUMBERS, "interval")},
    "date": "integer",
    "timestamp": "interval",
    "timestamptz": "interval",
}


def create_error_bars(schema: str) -> Iterator[Step]:
    """margin of every type that has distances; low and high of everything that has an order."""
    for of, distance in _DISTANCES.items():
        yield Step(f"""
CREATE FUNCTION {schema}.margin(value {of}) RETURNS {distance} LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $1 - $1""")
        yield _comment(f"{schema}.margin({of})", "how far noise may have moved an expression of aggregates; free")
    for name, side in (("low", "lower"), ("high", "upper")):
        yield Step(f"""
CREATE FUNCTION {schema}.{name}(value anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT $1
$$""")
        yield _comment(
            f"{schema}.{name}(anyelement)", f"the {side} end of the error bar of an expression of aggregates"
        )


def _comment(function: str, words: str) -> Step:
    return Step(f"COMMENT ON FUNCTION {function} IS {literal(words)}")


def _base_of_power(is_small: str) -> str:
    """Whatever is not known to be too large stands; of a double, whatever is not too near zero either."""
    return f"""CASE
        WHEN $1 = 0 THEN CASE WHEN $2 >= 0 THEN $1 END
        WHEN $1 < 0 AND $2 <> floor($2) THEN NULL
        WHEN abs($2) <= 1 OR {is_small} THEN $1
    END"""


# By its name: types of the argument, and what is made of it. A power or an e^x that is too large is not defined either.
_DEFINED: Final = (
    *(("divisor", (of,), f"nullif($1, 0::{of})") for of in (*_NUMBERS, "money")),
    ("divisor", ("anyelement",), "$1"),  # a point, say, which nothing compares with 0
    *(("not_negative", (of,), "CASE WHEN $1 >= 0 THEN $1 END") for of in _OF_CURVES),
    *(("positive", (of,), "CASE WHEN $1 > 0 THEN $1 END") for of in _OF_CURVES),
    ("positive_numeric", ("numeric",), "CASE WHEN $1 > 0 THEN $1 END"),
    ("base_of_log", ("numeric",), "CASE WHEN $1 > 0 AND $1 <> 1 THEN $1 END"),
    ("within_one", ("double precision",), "CASE WHEN $1 BETWEEN -1 AND 1 THEN $1 END"),
    ("from_one", ("double precision",), "CASE WHEN $1 >= 1 THEN $1 END"),
    ("exponent", ("double precision",), "CASE WHEN $1 BETWEEN -745 AND 709 THEN $1 END"),
    ("exponent", ("numeric",), "CASE WHEN $1 < 6000 THEN $1 END"),
    ("base_of_power", ("double precision",) * 2, _base_of_power("abs(ln(abs($1))) <= 709 / abs($2)")),
    ("base_of_power", ("numeric",) * 2, _base_of_power("sign($2) * ln(abs($1)) <= 300000 / abs($2)")),
)


def create_defined(prefix: str) -> Iterator[Step]:
    """Of an argument for which an operator or a function is not defined: NULL; of any other: itself.

    Each is there for the types for which that operator or function is, so that PostgreSQL reads the argument as one of
    the same type."""
    for name, of, made in _DEFINED:
        result = of[0]
        yield Step(f"""
CREATE FUNCTION {prefix}{name}({", ".join(of)}) RETURNS {result} LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT {made}
$$""")


_TYPICAL = (
    "the typical value of an expression over aggregates in blocks of units, between two bounds: "
    "noisegate.typical(corr(a, b), -1, 1)"
)


def create_typical(schema: str) -> Iterator[Step]:
    """Of public rows the expression itself, held between the bounds."""
    yield Step(f"""
CREATE FUNCTION {schema}.typical(
    value double precision, lower double precision, upper double precision, blocks integer DEFAULT NULL
) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN $1 IS NOT NULL THEN least(greatest($1, $2), $3) END""")
    function = f"{schema}.typical(double precision, double precision, double precision, integer)"
    yield Step(f"COMMENT ON FUNCTION {function} IS {literal(_TYPICAL)}")


_STEPS: Final = {  # arguments, and what a row adds
    "anyelement": "CASE WHEN $2 IS NOT NULL THEN 1 ELSE 0 END",
    "anyelement, anyelement": "CASE WHEN $2 = $3 THEN 1 ELSE 0 END",
    "bit, text": "0",
}
_ESTIMATE: Final = (
    "how many hold a value of a column that people randomized themselves: noisegate.estimate(mood, 'glad')"
)


def create_estimates(schema: str, inner: str) -> Iterator[Step]:
    """Of a group's own value, of a value, and of a value in a vector of bits."""
    for arguments, added in _STEPS.items():
        step = f"{inner}estimated"
        yield Step(f"""
CREATE FUNCTION {step}(double precision, {arguments}) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    SELECT $1 + {added}
$$""")
        yield Step(f"""
CREATE AGGREGATE {schema}.estimate({arguments}) (SFUNC = {step}, STYPE = double precision, INITCOND = '0')""")
        yield Step(f"COMMENT ON AGGREGATE {schema}.estimate({arguments}) IS {literal(_ESTIMATE)}")


def create_request(schema: str) -> Iterator[Step]:
    """The function, which refuses wherever the proxy does not stand in for it: in a view, or by a search path.

    Every number that a driver sends becomes double precision without a cast; the proxy reads its text.
    """
    yield Step(f"""
CREATE FUNCTION {schema}.request(epsilon double precision, reason text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE EXCEPTION '{schema}.request must be called by its full name and stand alone in a SELECT'
        USING ERRCODE = 'feature_not_supported', HINT = 'SELECT {schema}.request(5, ''why'');';
END
$$""")
    yield Step(
        f"COMMENT ON FUNCTION {schema}.request(double precision, text) IS {literal('asks your DBA for more budget')}"
    )


def create_virtual() -> Iterator[Step]:
    """All of them, each with what it says of itself."""
    for virtual in VIRTUAL.values():
        yield from _create(virtual)


def _create(virtual: SystemView) -> Iterator[Step]:
    columns = ", ".join(f"NULL::{column.type} AS {quoted(column.name)}" for column in virtual.columns)
    yield Step(f"CREATE VIEW {virtual.qualified} AS SELECT {columns} WHERE false")
    yield Step(f"GRANT REFERENCES ON {virtual.qualified} TO PUBLIC")
    yield Step(f"COMMENT ON VIEW {virtual.qualified} IS {literal(virtual.comment)}")
    for column in virtual.columns:
        yield Step(f"COMMENT ON COLUMN {virtual.qualified}.{quoted(column.name)} IS {literal(column.comment)}")


SETTINGS: Final = (
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "extra_float_digits",
    "statement_timeout",
    "transaction_timeout",  # since PostgreSQL 17
    "client_min_messages",
    "standard_conforming_strings",
    "transform_null_equals",
    "array_nulls",
    "noisegate.epsilon",
    "noisegate.rows_per_unit",
    "noisegate.sum_per_unit",
    "noisegate.groups_per_unit",
    "noisegate.cut",
    "noisegate.other",
    "noisegate.within",
    "noisegate.mark",
    "noisegate.empty_groups",
    "noisegate.confidence",
    "noisegate.previews",
    "noisegate.delta",
    "noisegate.reuse",
    "noisegate.notices",
    "noisegate.progress",
)

_PAIRS: Final = ", ".join(f"'{name}', pg_catalog.current_setting('{name}', true)" for name in SETTINGS)
# Asked of the catalog's cache: a join of pg_class and pg_namespace is planned anew each time, for 0.3 ms.
_RELATIONS: Final = """
SELECT pg_catalog.json_agg((
    SELECT a.object_names FROM pg_catalog.pg_identify_object_as_address(
        'pg_catalog.pg_class'::pg_catalog.regclass, pg_catalog.to_regclass(n.name), 0) AS a) ORDER BY n.number)
FROM pg_catalog.unnest(names) WITH ORDINALITY AS n(name, number)
"""


def create_moment(prefix: str) -> Iterator[Step]:
    """The function `moment(names)`, under a prefix: settings, search path and clock, and the tables these names mean.

    It runs under the session's own search path, by which the names are looked up, and names everything else in full.
    """
    yield Step(f"""
CREATE FUNCTION {prefix}moment(names text[]) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN pg_catalog.json_build_object(
        'search_path', pg_catalog.current_schemas(true),
        'relations', ({_RELATIONS}),
        'settings', pg_catalog.json_build_object({_PAIRS}),
        'now', pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.now()), 'YYYY-MM-DD HH24:MI:SS.US"+00"'));
END $$""")
