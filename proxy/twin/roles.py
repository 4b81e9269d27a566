"""Roles of the twin: who may log in, and do what there: nothing that could answer from its empty tables.

Analysts hold REFERENCES on every table, so that it is listed, parsed and described, but SELECT only on public tables
that are filled: PostgreSQL checks that when execution starts, by whatever route. Rights are PUBLIC's: there are no
roles in the cluster but the owner and the analysts.

On a twin that they share, analysts see neither names nor temporary views of each other. PostgreSQL shows both to
everybody, so lists are filtered here, and the functions behind them answer for what is listed. The catalogs themselves
stay: whoever guesses a number finds a name by `regrole`, and names of temporary views stand in pg_class. Analysts who
must not know of each other get a twin each.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from proxy.twin.embedded import OWNER
from proxy.twin.steps import Step, literal, qualified, quoted
from rules.catalog import TableName
from rules.policy.model import Policy

RESERVED = ("public", "none", OWNER)

_IS_OWNER: Final = f"session_user = {literal(OWNER)}"
_KNOWN: Final = f"{{0}} IN (session_user, {literal(OWNER)}) OR {{0}} ~ '^pg_' OR {_IS_OWNER}"
_OWN_SCHEMA: Final = "NOT pg_catalog.pg_is_other_temp_schema(pg_catalog.to_regnamespace(pg_catalog.quote_ident({})))"
_FILTERS: Final = {  # some only to be bound to our functions
    "pg_catalog.pg_roles": _KNOWN.format("rolname"),
    "pg_catalog.pg_user": _KNOWN.format("usename"),
    "pg_catalog.pg_group": _KNOWN.format("groname"),
    "pg_catalog.pg_stat_activity": f"usename IS NULL OR {_KNOWN.format('usename')}",
    "pg_catalog.pg_views": f"{_OWN_SCHEMA.format('schemaname')} OR {_IS_OWNER}",
    "pg_catalog.pg_matviews": "true",
    "pg_catalog.pg_rules": "true",
    **dict.fromkeys(
        (
            "pg_catalog.pg_stat_database",
            "pg_catalog.pg_stat_all_tables",
            "pg_catalog.pg_stat_xact_all_tables",
            "pg_catalog.pg_statio_all_tables",
            "pg_catalog.pg_stat_all_indexes",
            "pg_catalog.pg_statio_all_indexes",
            "pg_catalog.pg_statio_all_sequences",
        ),
        "true",
    ),
    "information_schema.views": "true",
}


def misnamed(policy: Policy) -> list[str]:
    """Analysts whose names cannot be roles."""
    return [name for name in policy.analysts if name.startswith("pg_") or name in RESERVED]


def change_roles(old: Collection[str], new: Collection[str], connections: int) -> Iterator[Step]:
    """Log-in roles for analysts; the sessions of those who are gone end."""
    for name in sorted(set(old) - set(new)):
        yield Step(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = {literal(name)}")
        yield Step(f"DROP OWNED BY {quoted(name)}")  # views of a session and default privileges would keep the role
        yield Step(f"DROP ROLE {quoted(name)}")
    for name in sorted(set(new) - set(old)):
        yield Step(f"CREATE ROLE {quoted(name)} LOGIN NOINHERIT CONNECTION LIMIT {connections}")


def default_settings(policy: Policy, database: str) -> Mapping[str, Step]:
    """Defaults for every session, so that SHOW and RESET know our settings before they were ever set."""
    values = {
        "epsilon": str(policy.defaults.epsilon),
        "rows_per_unit": "",
        "sum_per_unit": "",
        "groups_per_unit": "",
        "cut": "off",
        "other": "off",
        "reuse": "on",
        "notices": "on",
        "progress": "on",
        "confidence": "0.95",
        "previews": "",
        "delta": "",
        "within": "off",
        "mark": "off",
        "empty_groups": "",
    }
    return {
        name: Step(f"ALTER DATABASE {quoted(database)} SET noisegate.{name} = {literal(value)}")
        for name, value in values.items()
    }


def close_tables(tables: Iterable[TableName]) -> Iterator[Step]:
    """Yield what every table starts with, and goes back to: seen, and not readable."""
    for name in sorted(tables):
        yield Step(f"REVOKE ALL ON {qualified(name)} FROM PUBLIC")
        yield Step(f"GRANT REFERENCES ON {qualified(name)} TO PUBLIC")


def open_table(name: TableName) -> Step:
    """For a public table whose rows are in the twin."""
    return Step(f"GRANT SELECT ON {qualified(name)} TO PUBLIC")


def hide_neighbours(renamed: str) -> Iterator[Step]:
    """Filter the lists. `renamed` stands before the names of PostgreSQL's own functions."""
    yield from _view_texts(renamed)
    yield from _role_names(renamed)
    yield Step("SET LOCAL allow_system_table_mods = on")
    for view, condition in _FILTERS.items():
        yield Step(f"""
DO $do$ BEGIN
    EXECUTE pg_catalog.format('CREATE OR REPLACE VIEW {view} AS SELECT * FROM (%s) AS r WHERE %s', pg_catalog.replace(
        pg_catalog.rtrim(pg_catalog.pg_get_viewdef('{view}'::pg_catalog.regclass), ';'), '{renamed}', ''
    ), {literal(condition)});
END $do$""")
    yield Step("REVOKE SELECT ON pg_catalog.pg_rewrite FROM PUBLIC")
    yield Step(
        "GRANT SELECT (oid, tableoid, ctid, xmin, rulename, ev_class, ev_type, ev_enabled, is_instead) "
        "ON pg_catalog.pg_rewrite TO PUBLIC"
    )
    yield Step("SET LOCAL allow_system_table_mods = off")


def _view_texts(renamed: str) -> Iterator[Step]:
    """A temporary view of another session has no text. PostgreSQL reads the rule of a view with its caller's rights."""
    is_own = "NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)"
    for arguments, values in (("oid", "$1"), ("oid, boolean", "$1, $2"), ("oid, integer", "$1, $2")):
        yield Step(f"ALTER FUNCTION pg_catalog.pg_get_viewdef({arguments}) RENAME TO {renamed}pg_get_viewdef")
        yield Step(f"""
CREATE FUNCTION pg_catalog.pg_get_viewdef({arguments}) RETURNS text LANGUAGE sql STABLE STRICT SECURITY DEFINER AS $$
    SELECT pg_catalog.{renamed}pg_get_viewdef({values}) FROM pg_catalog.pg_class AS c WHERE c.oid = $1 AND {is_own}
$$""")
    for arguments, values in (("text", "$1"), ("text, boolean", "$1, $2")):
        yield Step(f"ALTER FUNCTION pg_catalog.pg_get_viewdef({arguments}) RENAME TO {renamed}pg_get_viewdef")
        yield Step(f"""
CREATE FUNCTION pg_catalog.pg_get_viewdef({arguments}) RETURNS text LANGUAGE sql STABLE STRICT AS $$
    SELECT pg_catalog.pg_get_viewdef({values.replace("$1", "$1::pg_catalog.regclass::pg_catalog.oid")})
$$""")
    for arguments, values in (("oid", "$1"), ("oid, boolean", "$1, $2")):
        yield Step(f"ALTER FUNCTION pg_catalog.pg_get_ruledef({arguments}) RENAME TO {renamed}pg_get_ruledef")
        yield Step(f"""
CREATE FUNCTION pg_catalog.pg_get_ruledef({arguments}) RETURNS text LANGUAGE sql STABLE STRICT SECURITY DEFINER AS $$
    SELECT pg_catalog.{renamed}pg_get_ruledef({values}) FROM pg_catalog.pg_rewrite AS r
    JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class WHERE r.oid = $1 AND {is_own}
$$""")


def _role_names(renamed: str) -> Iterator[Step]:
    yield Step(f"ALTER FUNCTION pg_catalog.pg_get_userbyid(oid) RENAME TO {renamed}pg_get_userbyid")
    yield Step("""
CREATE FUNCTION pg_catalog.pg_get_userbyid(oid) RETURNS name LANGUAGE sql STABLE STRICT AS $$
    SELECT coalesce((SELECT r.rolname FROM pg_catalog.pg_roles AS r WHERE r.oid = $1),
                    pg_catalog.concat('unknown (OID=', $1, ')')::name)
$$""")
