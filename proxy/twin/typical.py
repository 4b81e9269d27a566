"""noisegate.typical as a function of the twin: there it gives the type, and what is right of a whole that is no sample.

Around aggregates of protected rows it is replaced before anything is computed (`rules.aggregates.typical`).
"""

from collections.abc import Iterator

from proxy.twin.sql_text import Step, literal

_WORDS = (
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
    yield Step(f"COMMENT ON FUNCTION {function} IS {literal(_WORDS)}")
