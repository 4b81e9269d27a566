"""noisegate.request on the twin: tools see it and its types. A statement that calls it is answered by the proxy."""

from collections.abc import Iterator

from proxy.twin.sql_text import Step, literal


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
