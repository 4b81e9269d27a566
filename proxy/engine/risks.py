"""What our role in the real database may do and should not: a second wall is only as good as its role is small."""

from typing import Any

from psycopg import AsyncConnection

ATTRIBUTES = {
    "r.rolsuper": "is a superuser: nothing in the database could stop a mistake of the proxy's",
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
ADVICE = "give the proxy a role of its own: CREATE ROLE … LOGIN; GRANT SELECT ON the tables in the rules TO it"


async def find_risks(connection: AsyncConnection[Any]) -> list[str]:
    """Sentences about the role of this connection, each with what to do about it; none for a proper role."""
    cursor = await connection.execute(
        f"SELECT r.rolname, {', '.join(ATTRIBUTES)} FROM pg_roles r WHERE r.rolname = current_user"
    )
    ((role, *attributes),) = await cursor.fetchall()
    found = [text for text, holds in zip(ATTRIBUTES.values(), attributes, strict=True) if holds]
    found = found[:1] if attributes[0] else found + await _granted(connection)
    return [f'the role "{role}" {each}; {ADVICE}' for each in found]


async def _granted(connection: AsyncConnection[Any]) -> list[str]:
    """What a role has been given; a superuser has all of it anyway."""
    cursor = await connection.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND pg_has_role(oid, 'USAGE') ORDER BY 1",
        (list(MEMBERSHIPS),),
    )
    found = [f"is a member of {name}" for (name,) in await cursor.fetchall()]
    for query, text in (
        (OWNS, "owns {} tables or views"),
        (WRITES, "may write to {} tables"),
        (CREATES, "may create in {} schemas"),
    ):
        ((count,),) = await (await connection.execute(query)).fetchall()
        if count:
            found.append(text.format(count))
    return found
