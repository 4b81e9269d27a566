"""A login of the real database that reads the public tables and nothing else, and what runs there.

What it may read is asked in the very transaction in which a query runs, before it: whoever may read more runs nothing.
So a query that reached further than its allow-list (`rules.sql.public_sql`) would find the door closed by PostgreSQL.
Catalogs have no door: a planner that was taken over would count rows there, so every word is looked at before
(`rules.planner.check_public`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from psycopg.sql import Identifier, Literal

from proxy.causes import Cause
from proxy.engines.engine import (
    MOST_PUBLIC_CHARACTERS,
    MOST_PUBLIC_ROWS,
    PUBLIC_CONNECTIONS,
    EngineError,
    Readable,
    Row,
    SchemaChanged,
    TooCostly,
    TooPowerful,
)
from proxy.engines.postgres.catalog_queries import FIRST_ADDED
from proxy.engines.postgres.opening import cost_of
from proxy.engines.postgres.proof_queries import FINGERPRINTS
from proxy.engines.postgres.snapshots import PostgresEngine
from rules.catalog import Catalog, Table, TableName
from rules.planner.check_public import PublicNames, check_public
from rules.planner.plan import PublicQuery
from rules.refusal import Mismatch

CHECK_SECONDS: Final = 10.0
_NO_NAMES: Final = PublicNames(frozenset(), frozenset(), frozenset(), frozenset())

# Nothing but a plain login: no attribute that is above privileges, and a member of no role, by SET ROLE either.
_PLAIN: Final = """
SELECT 'it is a superuser, bypasses row security or may make roles, databases or copies of the server'
FROM pg_catalog.pg_roles r WHERE r.rolname IN (current_user, session_user)
    AND (r.rolsuper OR r.rolbypassrls OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication)
UNION ALL
SELECT 'it is a member of ' || pg_catalog.quote_ident(g.rolname)
FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid = m.member
JOIN pg_catalog.pg_roles g ON g.oid = m.roleid WHERE r.rolname IN (current_user, session_user)
UNION ALL
SELECT 'it runs as another role than it logs in as' WHERE current_user <> session_user
UNION ALL
SELECT 'its transaction is not read only' WHERE pg_catalog.current_setting('transaction_read_only') <> 'on'
"""
# Every column of every relation, sequences too (they count rows), that it may read and is not among the known ones.
_READS: Final = """
SELECT 'it may read ' || pg_catalog.format('%I.%I, column %I', r.nspname, r.relname, a.attname)
FROM (SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
          AND (pg_catalog.has_any_column_privilege(c.oid, 'SELECT') OR pg_catalog.pg_has_role(c.relowner, 'MEMBER'))
      OFFSET 0) AS r
JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE pg_catalog.has_column_privilege(r.oid, a.attnum, 'SELECT')
    AND (r.nspname::text, r.relname::text, a.attname::text) NOT IN ({known})
"""
# What reads with the rights of another, and data that is in no relation. A function in a schema that it may not use is
# called by an operator of another schema all the same.
_OTHER_DOORS: Final = """
SELECT 'it may call ' || pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
    pg_catalog.pg_get_function_identity_arguments(p.oid)) || ', which runs with its owner''s rights'
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.prosecdef AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
UNION ALL
SELECT 'it may read large object ' || o.oid
FROM pg_catalog.pg_largeobject_metadata o
WHERE pg_catalog.current_setting('lo_compat_privileges') = 'on' OR o.lomowner = current_user::pg_catalog.regrole
    OR EXISTS (SELECT FROM pg_catalog.aclexplode(o.lomacl) AS g
               WHERE g.privilege_type = 'SELECT' AND g.grantee IN (0, current_user::pg_catalog.regrole))
"""
# Names of pg_catalog mean what PostgreSQL made there, and no cast between its types runs code of somebody else's.
_FOREIGN_CODE: Final = """
SELECT 'pg_catalog has a function or an operator that is not PostgreSQL''s: ' || f.name
FROM (SELECT p.proname::text FROM pg_catalog.pg_proc p
      WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace AND p.oid >= {first}
          AND p.proname = ANY ({functions})
      UNION ALL
      SELECT o.oprname::text FROM pg_catalog.pg_operator o
      WHERE o.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace AND o.oid >= {first}
          AND o.oprname = ANY ({operators})) AS f (name)
UNION ALL
SELECT 'pg_catalog has a relation that is not PostgreSQL''s: ' || c.relname
FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'pg_catalog'::pg_catalog.regnamespace AND c.oid >= {first} AND c.relname = ANY ({names})
UNION ALL
SELECT 'a cast between types of PostgreSQL runs a function that is not PostgreSQL''s'
FROM pg_catalog.pg_cast t WHERE t.oid >= {first} AND t.castfunc >= {first}
    AND t.castsource < {first} AND t.casttarget < {first}
"""


class PublicReader:
    """Runs queries over public tables alone, as that login."""

    def __init__(self, dsn: str, *, most_cost: float | None = None) -> None:
        self._engine, self._most_cost = PostgresEngine(dsn, connections=PUBLIC_CONNECTIONS), most_cost

    async def bind(self, system_identifier: str) -> None:
        await self._engine.bind(system_identifier)

    async def read(
        self, query: PublicQuery, width: int, readable: Readable, tables: Mapping[TableName, Table], *,
        time_zone: str, timeout_seconds: float,
    ) -> tuple[tuple[str | None, ...], ...]:  # fmt: skip
        """Return the rows as texts, one more than MOST_PUBLIC_ROWS where there are more.

        Raises an EngineError: TooPowerful before anything ran, SchemaChanged where a table is not what it was; and
        Mismatch for a query that no planner of ours has written.
        """
        named, read = check_public(query), [tables[name] for name in query.tables]
        if not named.tables & {name for name, _ in readable.columns} <= set(query.tables):
            raise Mismatch("the plan reads a public table that it does not name")
        async with self._engine.snapshot(time_zone=time_zone, timeout_seconds=timeout_seconds) as snapshot:
            excess = await snapshot.read_public(_excess(readable, named))
            if reasons := _texts(excess, snapshot.codec):
                raise TooPowerful([str(row[0]) for row in reasons])
            await snapshot.read_public(f"SET LOCAL DateStyle = 'ISO, {query.date_order}'")
            sql = _limited(query.sql, width)
            if self._most_cost is not None and cost_of(await snapshot.read_public(f"EXPLAIN {sql}")) > self._most_cost:
                raise TooCostly
            rows = await snapshot.read_public(sql)
            prints = await snapshot.read_public(_fingerprints(read))  # the query holds its locks until the end
            known = {(row[1], row[2]): row[3] for row in _texts(prints, snapshot.codec)}
            if any(known.get((table.name.schema, table.name.name)) != table.fingerprint for table in read):
                raise SchemaChanged
            return _texts(rows, snapshot.codec)

    async def find_excess(self, readable: Readable) -> list[str]:
        """Return its rights beyond reading these, or why they cannot be read."""
        try:
            async with self._engine.snapshot(time_zone="UTC", timeout_seconds=CHECK_SECONDS) as snapshot:
                return [str(row[0]) for row in _texts(await snapshot.read_public(_excess(readable)), snapshot.codec)]
        except EngineError as error:
            return [error.cause.advice]

    async def close(self) -> None:
        await self._engine.close()


def public_grants(readable: Readable, catalog: Catalog, role: str) -> str:
    """The SQL of a role that reads what is public and does nothing else; it may be run again."""
    name, tables = Identifier(role).as_string(), {table.name: table for table in catalog.tables}
    lines = [
        "\n-- public_reader: it reads the columns of public tables that analysts may see. It can be run again.",
        f"DO $noisegate$ BEGIN EXECUTE {Literal(f'CREATE ROLE {name} LOGIN').as_string()}; "
        "EXCEPTION WHEN duplicate_object THEN NULL; END $noisegate$;",
        f"ALTER ROLE {name} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;",
        f"-- Then give it a password, in psql:  \\password {name}",
        f"ALTER ROLE {name} SET default_transaction_read_only = on;",
        f"-- As a superuser, against large sorts:  ALTER ROLE {name} SET temp_file_limit = '1GB';",
        f"GRANT CONNECT ON DATABASE {Identifier(catalog.database).as_string()} TO {name};",
    ]
    schemas = sorted({table.schema for table, _ in readable.columns})
    lines += [f"GRANT USAGE ON SCHEMA {Identifier(schema).as_string()} TO {name};" for schema in schemas]
    for table, columns in readable.columns:
        is_whole = len(columns) == len(tables[table].columns)
        listed = "" if is_whole else f" ({', '.join(Identifier(column).as_string() for column in columns)})"
        if columns:
            lines.append(f"GRANT SELECT{listed} ON {Identifier(table.schema, table.name).as_string()} TO {name};")
    return "\n".join(lines) + "\n"


def _excess(readable: Readable, named: PublicNames = _NO_NAMES) -> str:
    known = [(name.schema, name.name, column) for name, columns in readable.columns for column in columns]
    listed = ", ".join(f"({', '.join(Literal(part).as_string() for part in each)})" for each in known)
    reads = _READS.format(known=listed or "SELECT NULL::text, NULL::text, NULL::text WHERE false")
    arrays = {"functions": _array(named.functions), "operators": _array(named.operators), "names": _array(named.names)}
    code = _FOREIGN_CODE.format(first=FIRST_ADDED, **arrays)
    parts = " UNION ALL ".join((_PLAIN, reads, _OTHER_DOORS, code))
    return f"SELECT reason FROM ({parts}) AS e (reason) LIMIT 5"


def _array(names: Collection[str]) -> str:
    return f"ARRAY[{', '.join(Literal(name).as_string() for name in sorted(names))}]::pg_catalog.name[]"


def _limited(sql: str, width: int) -> str:
    """As many rows, and of each value as many characters, as are taken in, and one more."""
    names = [f"c{place}" for place in range(width)]
    cut = ", ".join(
        f"pg_catalog.left(CAST(a.{name} AS pg_catalog.text), {MOST_PUBLIC_CHARACTERS + 1})" for name in names
    )
    return f"SELECT {cut} FROM ({sql}) AS a ({', '.join(names)}) LIMIT {MOST_PUBLIC_ROWS + 1}"


def _fingerprints(tables: Sequence[Table]) -> str:
    names = (Literal(Identifier(table.name.schema, table.name.name).as_string()).as_string() for table in tables)
    return f"{FINGERPRINTS} WHERE c.oid = ANY (ARRAY[{', '.join(f'{name}::regclass' for name in names)}]::oid[])"


def _texts(rows: Sequence[Row], codec: str) -> tuple[tuple[str | None, ...], ...]:
    try:
        return tuple(tuple(None if cell is None else cell.decode(codec) for cell in row) for row in rows)
    except UnicodeDecodeError:
        raise EngineError(cause=Cause("unknown_encoding")) from None
