"""A query over public tables alone, as it runs on the real database where the twin does not hold their rows.

It runs there as a role that can read the public tables and nothing else (`public_reader` in the rules).
"""

from typing import Final

from rules.bind.inner_answers import InnerQuery
from rules.catalog import Column, Table, TableName
from rules.planner.passes.inline_sources import inline_views
from rules.planner.plan import PublicQuery, Request
from rules.planner.tables import Tables, tables_in
from rules.policy.model import TableRules
from rules.refusal import NotAllowed, NotSupported
from rules.sql.grammar import parse
from rules.sql.normalize.to_text import literal, quoted
from rules.sql.public_sql import HINT, TYPES, ReadableTable, print_public, unknown
from rules.sql.tree import Index, Node, made_canonical

NO_READER: Final = (
    "Ask your DBA to raise --max-public-rows, or to name a login in public_reader of the rules, which reads large "
    "tables."
)
DATE_ORDERS: Final = ("MDY", "DMY", "YMD")
_KINDS: Final = ("table", "partitioned", "partition")
_ALIASES: Final = {
    "boolean": "bool",
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "real": "float4",
    "double precision": "float8",
    "character varying": "varchar",
    "character": "bpchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
}


def find_public_query(inner: InnerQuery, text: str, request: Request, tables: Tables) -> PublicQuery | None:
    """The query for the real database; None where the twin, or the planner, answers this text."""
    if inner.tables:
        return PublicQuery(text, inner.tables)
    if not tables.context.closed or inner.use in ("bounds", "reading", "groups"):
        return None
    (piece,) = parse(text)
    tree = inline_views(Index(made_canonical(piece.tree)), tables)
    name = find_closed(tree, tables)
    if tables.are_read(tree) or name is None:
        return None
    if tables.context.policy.public_reader is None:
        raise closed_table(name, NO_READER)
    return _printed(tree, request, tables)


def find_closed(tree: Node, tables: Tables) -> TableName | None:
    """Find a public table in a statement of which the twin has no rows."""
    if not tables.context.closed:
        return None
    named = (_named(tables, *name) for name in sorted(tables_in(tree), key=str))
    return next((name for name in named if name in tables.context.closed), None)


def closed_table(name: TableName, hint: str) -> NotAllowed:
    """Say that a public table cannot be queried."""
    words = f'public table "{name}" cannot be queried here: the proxy does not hold its rows'
    return NotAllowed(words, hint=hint, about=name.name)


def readable_columns(table: Table, rules: TableRules) -> tuple[str, ...]:
    """The columns of a public table that such a query may see: those of PostgreSQL's own types, and enums."""
    return tuple(column.name for column in table.columns if not rules.hides(column) and _is_plain(column))


def _is_plain(column: Column) -> bool:
    """Reading such a column runs no code but PostgreSQL's own; regclass would show names of tables."""
    kind = column.type
    is_own = kind.schema == "pg_catalog" or kind.base not in ("array", "other")
    return kind.extension is None and is_own and not kind.name.startswith("reg")


def _named(tables: Tables, schema: str | None, name: str) -> TableName | None:
    table = tables.find(schema, name)
    return None if table is None else table.name


def _printed(tree: Node, request: Request, tables: Tables) -> PublicQuery:
    order = request.styles.date.rpartition(" ")[2]
    if request.parsed_under is not None:
        raise unknown("a statement that was prepared under another DateStyle, IntervalStyle or TimeZone")
    if request.styles.interval != "postgres":
        raise unknown(f"IntervalStyle {request.styles.interval}")

    def find_table(schema: str | None, name: str) -> ReadableTable:
        table = tables.find(schema, name)
        rules = None if table is None else tables.context.policy.find_table(table.name)
        if table is None or rules is None or not rules.public:
            raise NotSupported(f'"{name}" cannot be read together with a large public table', hint=HINT, about=name)
        if table.kind not in _KINDS or table.row_security or table.foreign:
            words = "has row security" if table.row_security else f"is a {table.kind}"
            raise NotSupported(
                f'"{name}" {words}, and cannot be read together with a large public table', hint=HINT, about=name
            )
        return ReadableTable(table.name, readable_columns(table, rules))

    def find_enum(names: tuple[str, ...]) -> str | None:
        schemas = names[:-1] if len(names) == 2 else tables.context.search_path
        known = {enum.name for enum in tables.context.catalog.enums}
        found = next((each for schema in schemas if (each := TableName(schema, names[-1])) in known), None)
        return None if found is None else f"{quoted(found.schema)}.{quoted(found.name)}"

    constants = [
        _constant(value, written) for value, written in zip(request.parameters, request.parameter_types, strict=True)
    ]
    made = print_public(tree, find_table, find_enum, constants)
    return PublicQuery(made.sql, made.tables, order if order in DATE_ORDERS else "MDY")


def _constant(value: str | None, written: str) -> str:
    """A parameter as a constant of its type."""
    name = _ALIASES.get(written, written)
    if name not in TYPES:
        raise unknown(f"a parameter of type {written}")
    return f"CAST({'NULL' if value is None else literal(value)} AS pg_catalog.{quoted(name)})"
