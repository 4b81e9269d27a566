"""Error bars as functions of the twin: there they give the types, and what is right where nothing was noised.

Around private aggregates they are replaced before anything is computed (`rules.planner.error_bars`).
"""

from collections.abc import Iterator
from typing import Final

from proxy.twin.sql_text import Step, literal

# Types of values, each with that of their distances.
_DISTANCES: Final = {
    **{name: name for name in ("smallint", "integer", "bigint", "numeric", "real", "double precision", "interval")},
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
