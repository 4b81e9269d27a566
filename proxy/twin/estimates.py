"""noisegate.estimate as aggregates of the twin: there they give the type, and let PostgreSQL check what is grouped.

Around protected rows they are replaced before anything is computed (`rules.aggregates.estimates`); of public rows they
count what matches, for nobody has randomized these.
"""

from collections.abc import Iterator
from typing import Final

from proxy.twin.sql_text import Step, literal

_STEPS: Final = {  # arguments, and what a row adds
    "anyelement": "CASE WHEN $2 IS NOT NULL THEN 1 ELSE 0 END",
    "anyelement, anyelement": "CASE WHEN $2 = $3 THEN 1 ELSE 0 END",
    "bit, text": "0",
}
_WORDS: Final = "how many hold a value of a column that people randomized themselves: noisegate.estimate(mood, 'glad')"


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
        yield Step(f"COMMENT ON AGGREGATE {schema}.estimate({arguments}) IS {literal(_WORDS)}")
