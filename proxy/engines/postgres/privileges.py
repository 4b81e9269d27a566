"""Privileges of our role in the real database: too few, too many. The fewer there are, the better the wall."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection
from psycopg.sql import Identifier, Literal

from proxy.engines.engine import tables_to_read
from rules.catalog import TableName
from rules.policy.model import Policy

ATTRIBUTES = {
    "r.rolsuper": "is a superuser: the database could not stop a mistake of the proxy",
    "r.rolcreaterole": "may create roles",
    "r.rolcreatedb": "may create databases",
    "r.rolreplication": "may read the whole server by replication",
    "r.rolbypassrls AND NOT r.rolsuper": "has BYPASSRLS, which only protected tables with row security need",
}
MEMBERSHIPS = (
    "pg_monitor",
    "pg_read_all_data",
    "pg_write_all_data",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_execute_server_program",
    "pg_signal_backend",
)
RELATIONS = """
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
OWNS = f"SELECT count(*) {RELATIONS} AND pg_has_role(c.relowner, 'USAGE')"
WRITES = f"SELECT count(*) {RELATIONS} AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
CREATES = """
SELECT count(*) FROM pg_namespace n
WHERE n.nspname !~ '^pg_' AND has_schema_privilege(n.oid, 'CREATE')
  AND NOT has_schema_privilege('public', n.oid, 'CREATE')  -- schema public of servers up to 14
"""
READS = f"""
SELECT n.nspname, c.relname {RELATIONS} AND NOT c.relispartition AND has_table_privilege(c.oid, 'SELECT')
AND has_schema_privilege(n.oid, 'USAGE') ORDER BY 1, 2
"""
MISSING = """
SELECT n.nspname, c.relname, has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'SELECT')
FROM unnest(%s::text[], %s::text[]) AS t (schema, name)
JOIN pg_namespace n ON n.nspname = t.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.name
"""
MOST_REVOKED = 20  # tables in one line
ADVICE = "give the proxy a role of its own: noisegate grants --role noisegate_reader prints the SQL"


async def find_risks(connection: AsyncConnection[Any], named: Sequence[TableName] = ()) -> list[str]:
    """Sentences about the role of this connection, each with what to do about it; none for a proper role."""
    cursor = await connection.execute(
        f"SELECT r.rolname, {', '.join(ATTRIBUTES)} FROM pg_roles r WHERE r.rolname = current_user"
    )
    ((role, *attributes),) = await cursor.fetchall()
    risks = [text for text, holds in zip(ATTRIBUTES.values(), attributes, strict=True) if holds]
    if attributes[0]:
        return [f'the role "{role}" {risks[0]}; {ADVICE}']
    risks += await _granted(connection)
    return [f'the role "{role}" {risk}; {ADVICE}' for risk in risks] + await _more(connection, role, named)


async def _granted(connection: AsyncConnection[Any]) -> list[str]:
    """Return what a role has been given; a superuser has all of it anyway."""
    cursor = await connection.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND pg_has_role(oid, 'USAGE') ORDER BY 1",
        (list(MEMBERSHIPS),),
    )
    risks = [f"is a member of {name}" for (name,) in await cursor.fetchall()]
    for query, text in (
        (OWNS, "owns {} table{s} or view{s}"),
        (WRITES, "may write to {} table{s}"),
        (CREATES, "may create in {} schema{s}"),
    ):
        ((count,),) = await (await connection.execute(query)).fetchall()
        if count:
            risks.append(text.format(count, s="s" * (count > 1)))
    return risks


async def _more(connection: AsyncConnection[Any], role: str, named: Sequence[TableName]) -> list[str]:
    """Tables that it may read although the rules do not name them."""
    if not named:
        return []
    rows = await (await connection.execute(READS)).fetchall()
    others = [table for row in rows if (table := TableName(*row)) not in named]
    if not others:
        return []
    shown = ", ".join(map(str, others[:3])) + (", …" if len(others) > 3 else "")
    listed = ", ".join(Identifier(other.schema, other.name).as_string() for other in others[:MOST_REVOKED])
    revoke = f"REVOKE SELECT ON {listed} FROM {Identifier(role).as_string()}"
    more = f", and so on for {len(others) - MOST_REVOKED} more" if len(others) > MOST_REVOKED else ""
    tables = "1 table or view" if len(others) == 1 else f"{len(others)} tables or views"
    advice = f"{revoke}{more}, or from PUBLIC or the role that it has this by"
    return [f'the role "{role}" may read {tables} that the rules do not name ({shown}); {advice}']


async def find_missing(connection: AsyncConnection[Any], named: Sequence[TableName]) -> Mapping[TableName, str]:
    """Return which of these tables the role of this connection cannot read, and the SQL that would let it."""
    ((role,),) = await (await connection.execute("SELECT current_user")).fetchall()
    to = f"TO {Identifier(role).as_string()}"
    names = [name.schema for name in named], [name.name for name in named]
    missing: dict[TableName, str] = {}
    for schema, name, enters, reads in await (await connection.execute(MISSING, names)).fetchall():
        parts = [] if enters else [f"GRANT USAGE ON SCHEMA {Identifier(schema).as_string()} {to}"]
        parts += [] if reads else [f"GRANT SELECT ON {Identifier(schema, name).as_string()} {to}"]
        if parts:
            missing[TableName(schema, name)] = "; ".join(parts)
    return missing


async def may_read(connection: AsyncConnection[Any], named: Sequence[TableName]) -> bool:
    """Return whether these tables are all there, and the role of this connection may read them."""
    names = [name.schema for name in named], [name.name for name in named]
    rows = await (await connection.execute(MISSING, names)).fetchall()
    return [enters and reads for _, _, enters, reads in rows] == [True] * len(named)


def grants_of(policy: Policy, database: str, role: str, verifier: str = "") -> str:
    """The SQL of a role that may read the tables of the rules and do nothing else; it may be run again."""
    tables = tables_to_read(policy)
    name = Identifier(role).as_string()
    schemas = dict.fromkeys(Identifier(table.schema).as_string() for table in tables)
    listed = ",\n    ".join(Identifier(table.schema, table.name).as_string() for table in tables)
    password = f" PASSWORD {Literal(verifier).as_string()}" if verifier else ""
    remark = "" if verifier else f"-- Then give it a password, in psql:  \\password {name}\n"
    made = Literal(f"CREATE ROLE {name} LOGIN").as_string()
    refused = Literal(f"{name} is a superuser or owns tables: the proxy needs a role of its own").as_string()
    return f"""\
-- The proxy's role: it reads the tables that the rules name, and does nothing else. It can be run again.
-- Run it in the database {database}, as a superuser or as the owner of the tables with CREATEROLE.
BEGIN;
DO $noisegate$ BEGIN
    IF EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = {Literal(role).as_string()}
               AND (r.rolsuper OR EXISTS (SELECT FROM pg_class AS c WHERE c.relowner = r.oid))) THEN
        RAISE EXCEPTION USING MESSAGE = {refused}, HINT = 'noisegate grants --role NAME RULES prints that of another.';
    END IF;
    EXECUTE {made};
EXCEPTION WHEN duplicate_object THEN NULL; END $noisegate$;
ALTER ROLE {name} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS{password};
{remark}ALTER ROLE {name} SET default_transaction_read_only = on;
GRANT CONNECT ON DATABASE {Identifier(database).as_string()} TO {name};
GRANT USAGE ON SCHEMA {", ".join(schemas)} TO {name};
GRANT SELECT ON
    {listed}
    TO {name};
COMMIT;
-- Where tables have row security (noisegate check says so):  ALTER ROLE {name} BYPASSRLS;
"""
