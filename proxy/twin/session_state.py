"""What holds in a session at one moment, as a function of the twin's: no session can put another in its place.

A prepared statement would do the same, but a session may free it and prepare another under its name.
"""

from collections.abc import Iterator
from typing import Final

from proxy.twin.sql_text import Step

SETTINGS: Final = (
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",  # since PostgreSQL 17
    "client_min_messages",
    "standard_conforming_strings",
    "transform_null_equals",
    "noisegate.epsilon",
    "noisegate.rows_per_unit",
    "noisegate.sum_per_unit",
    "noisegate.groups_per_unit",
    "noisegate.cut",
    "noisegate.other",
    "noisegate.within",
    "noisegate.mark",
    "noisegate.confidence",
    "noisegate.previews",
    "noisegate.delta",
    "noisegate.reuse",
    "noisegate.notices",
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
