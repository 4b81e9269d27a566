"""Everything that the kernel adds by itself (`rules.kernel.added`), over the worst values of every type of a column.

Casts of the database's own types to text, and CHECKs of domains, call a function that raises: a statement with one of
them fails here. While the rows are written it returns.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psycopg

from proxy.twin.embedded import Cluster
from rules.catalog import Catalog, Column
from rules.kernel import added
from rules.kernel.expressions import quoted_text
from rules.refusal import NotSupported
from rules.values.types import Type, is_recast, type_of
from tests.properties import worst
from tests.properties.planning import PINNED
from tests.support.catalogs import catalog_of

TYPES = """
CREATE FUNCTION is_written() RETURNS boolean LANGUAGE plpgsql STABLE AS $$ BEGIN
    IF current_setting('lab.is_written', true) = 'on' THEN RETURN true; END IF;
    RAISE 'a function of the owner of the database was called';
END $$;
CREATE TYPE plain AS ENUM ('b', 'a');
CREATE TYPE shown AS ENUM ('b', 'a');
CREATE TYPE pair AS (n numeric, t text);
CREATE TYPE made;
CREATE FUNCTION made_in(cstring) RETURNS made LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION made_out(made) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE made (input = made_in, output = made_out, like = text);
CREATE FUNCTION made_send(made) RETURNS bytea LANGUAGE plpgsql STRICT AS $$
    BEGIN PERFORM public.is_written(); RETURN ''; END $$;
ALTER TYPE made SET (send = made_send);
CREATE TYPE span AS RANGE (subtype = text);
CREATE FUNCTION told(shown) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM public.is_written(); RETURN NULL; END';
CREATE FUNCTION told(pair) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM public.is_written(); RETURN NULL; END';
CREATE FUNCTION told(made) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM public.is_written(); RETURN NULL; END';
CREATE CAST (shown AS text) WITH FUNCTION told(shown) AS ASSIGNMENT;
CREATE CAST (pair AS text) WITH FUNCTION told(pair) AS ASSIGNMENT;
CREATE CAST (made AS text) WITH FUNCTION told(made) AS ASSIGNMENT;
"""
COLLATION = "CREATE COLLATION nobody (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
HAS_ICU = "SELECT count(*) > 1 FROM pg_collation WHERE collprovider = 'i'"
# Values of types that `worst` has not; those of user types are there as they are, as domains, and in arrays.
OF_USERS = {"plain": ("a", "b"), "shown": ("a", "b"), "pair": ("(1.0,a)", "(1.00,a)", "(,)"), "made": ("a", "b")}
OTHERS = {
    "bytea": (r"\x", r"\x00ff"),
    "varbit": ("", "0", "00", "1"),
    "bit(3)": ("000", "101"),
    "json": ("1", "1.0"),
    "money": ("-92233720368547758.08", "92233720368547758.07"),
    "inet": ("::1/0", "1.2.3.4/24", "1.2.3.0/24"),
    "cidr": ("1.2.3.0/24",),
    "macaddr": ("08:00:2b:01:02:03",),
    "timetz": ("00:00+15:59", "24:00-15:59", "10:00+00", "11:00+01"),
    "time(3)": ("00:00", "24:00"),
    "oid": ("0", "4294967295"),
    "regclass": ("pg_catalog.pg_class",),
    '"char"': ("", "a"),
    "tsvector": ("a:1 b", "a:2"),
    "point": ("(NaN,Infinity)", "(0,-0)"),
    "int4range": ("empty", "(,)", "[-2147483648,2147483647)"),
    "numrange": ("(1,2)", "(1.0,2)", "(1e-16383,1e131071)"),
    "tstzrange": ("[-infinity,infinity]", "[4713-01-02 BC,294276-12-31]"),
    "span": ("(,)", "[a,b]"),
    "numeric[]": ("{}", "{1.0,NULL}", "{1.00,NULL}", "{NaN,1e131071,1e-16383}"),
    "float8[]": ("{0}", "{-0}", "{NaN,Infinity,5e-324}"),
    "varchar(3)[]": ("{a}", '{"a  "}', "[2:2]={a}", "{{a}}"),
    "bpchar[]": ("{a}", '{"a  "}'),
    "date[]": ("{4713-01-01 BC,infinity}",),
    "interval[]": ("{1 mon}", "{30 days}"),
}
_BITS = "WITH a AS (SELECT (B'1'::bit(80000000))::varbit AS x), b AS (SELECT x || x || x || x AS x FROM a)"
LONGEST = f"({_BITS} SELECT x || x || x || x FROM b)"  # 1.28 * 10^9 bits, of which PostgreSQL holds no text

LATEST = "interval '2147483647 hours' + interval '10 hours'"  # which has no text before PostgreSQL 15


class Worst:
    """A table with a column of each type, and what the catalog says of them."""

    def __init__(self, connection: psycopg.Connection, read: Callable[[], Catalog]) -> None:
        self.connection, version = connection, connection.info.server_version
        types = {
            **{name: (kind.sql.replace('"public".', ""), worst.values_of(name, version))
               for name, (kind, _) in worst.COLUMNS.items() if kind != worst.MOOD},
            **{f"u{place}": each for place, each in enumerate(_users())},
            **{f"o{place}": each for place, each in enumerate(OTHERS.items())},
        }  # fmt: skip
        connection.execute(TYPES)
        if connection.execute(HAS_ICU).fetchone() == (True,):
            connection.execute(COLLATION)
            types["nobody"] = ("text COLLATE nobody", ("a", "A", "b"))
        connection.execute("BEGIN; SET lab.is_written = on")
        columns = dict[str, str]()
        for name, (kind, _) in types.items():
            columns[name], columns[f"{name}_domain"] = kind, f"{name}_domain"
            connection.execute(f"CREATE DOMAIN {name}_domain AS {kind} CHECK (public.is_written())")
        connection.execute(f"CREATE TABLE worst ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
        for name, (_, cells) in types.items():
            for cell in (*map(quoted_text, cells), "NULL"):
                connection.execute(f"INSERT INTO worst ({name}, {name}_domain) VALUES ({cell}, {cell})")
        connection.execute("ALTER TABLE worst ADD longest varbit, ADD latest interval")
        connection.execute(f"INSERT INTO worst (longest, latest) VALUES ({LONGEST}, {LATEST}), ('', '30 days')")
        connection.execute("INSERT INTO worst (latest) VALUES ('1 mon'), ('720:00')")
        connection.execute("SET lab.is_written = off; COMMIT")
        connection.execute(PINNED)
        self.columns = next(table for table in read().tables if table.name.name == "worst").columns


@contextmanager
def worst_rows(cluster: Cluster, name: str) -> Iterator[Worst]:
    """The table in a database of its own."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as owner:
        owner.execute(f'CREATE DATABASE "{name}"'.encode())
    with psycopg.connect(cluster.dsn(name), autocommit=True) as connection:
        connection.execute("SET client_min_messages = error")
        yield Worst(connection, partial(catalog_of, cluster.dsn(name)))


def _users() -> Iterator[tuple[str, tuple[str, ...]]]:
    for kind, cells in OF_USERS.items():
        yield kind, cells
        yield f"{kind}[]", tuple(f'{{"{cell}",NULL}}' for cell in cells)


def check_added(rows: Worst) -> set[str]:
    """Raises an AssertionError where something fails on a row, runs a function of somebody, or lets two values tie;
    returns the types that have no order."""
    unordered = set[str]()
    for column in rows.columns:
        kind = type_of(column)
        read = added.stored(kind, f'w."{column.name}"', is_recast=is_recast(column))
        for sql in _made(kind, read):
            _run(rows, column, f"count({sql})")
        try:
            order = added.last_order(kind, read, is_stored=True, is_decided=False)
        except NotSupported:
            unordered.add(kind.sql)
            continue
        ties = f'SELECT ROW({read}) AS x, {order} AS o FROM public.worst AS w WHERE w."{column.name}" IS NOT NULL'
        same = "x OPERATOR(pg_catalog.*=) lag(x) OVER o AS same"  # byte by byte
        told = f"SELECT o = lag(o) OVER o AS tie, {same} FROM ({ties}) AS r WINDOW o AS (ORDER BY o)"
        _run(rows, column, "bool_and(same) FILTER (WHERE tie) IS NOT FALSE", f"({told}) AS t")
    return unordered


def _made(kind: Type, read: str) -> Iterator[str]:
    """All that is made of a column beside its order."""
    with suppress(NotSupported):
        for is_stored in (True, False):
            yield added.canonical(kind, read, is_stored=is_stored)
        for is_computed in (True, False):
            key = added.canonical_key(kind, read, is_computed=is_computed)
            yield from (key, added.key_text(key), added.is_short(kind, key) or key, added.hashed(key, "0", kind))
            yield from (added.hashed(key, "0"), added.typed(kind, read), added.in_one_type(kind, read))
    if kind.kind != "other":
        yield added.row_identity([(kind, read), (kind, read)])
    if kind.kind in ("integer", "numeric"):
        yield added.saturated(read)


def _run(rows: Worst, column: Column, answer: str, source: str = "public.worst AS w") -> None:
    sql = f"SELECT {answer} FROM {source}"
    try:
        with rows.connection.transaction(force_rollback=True):
            found = rows.connection.execute(sql.encode()).fetchone()
    except psycopg.Error as error:
        raise AssertionError(f"{column.type.sql}\n{sql}\n{error}") from error
    assert found is not None and found[0] is not False, f"{column.type.sql}: two values tie\n{sql}"
