"""Read a PostgreSQL's catalogs into a `rules.catalog.Catalog`.

One read-only transaction over the catalogs. What a proof may rest on is decided in the queries, by PostgreSQL's own
flags as they stand now; here rows only become values.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from psycopg import AsyncConnection

from proxy.engines.postgres import catalog_queries as queries
from proxy.engines.postgres.proof_queries import ALL_FINGERPRINTS
from rules.catalog import (
    Catalog,
    Check,
    Collation,
    Column,
    DatabaseLocale,
    Distribution,
    DomainType,
    EnumType,
    ForeignKey,
    Index,
    Key,
    Routine,
    Table,
    TableName,
    TypeName,
)
from rules.frozen import replace

Rows = Sequence[tuple[Any, ...]]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class CatalogType:
    """A row of pg_type."""

    oid: int
    schema: str
    name: str
    kind: str  # b base, c composite, d domain, e enum, p pseudo, r range, m multirange
    category: str
    element: int
    underneath: int  # of a domain
    modifier: int  # of a domain
    collation: int
    extension: str | None
    labels: list[str]
    not_null: bool
    default: str | None
    comment: str | None
    underneath_sql: str  # of a domain
    casts: list[str]  # and orders, by functions of the database's own, which may fail on some of its values
    is_ambiguous: bool  # an enum with an implicit cast


async def read_catalog(connection: AsyncConnection[Any]) -> Catalog:
    """The catalog as one snapshot shows it; the connection must be in a transaction with the settings of `opening`."""
    ask, setting = partial(_rows, connection), partial(_setting, connection)
    database, version, identifier, encoding, bypasses = await _database(connection)
    is_citus, distributions = await _distributions(connection)
    types = {row[0]: CatalogType(*row) for row in await ask(queries.TYPES)}
    checks = _grouped((row[0], _check(*row[1:])) for row in await ask(queries.checks(version)))
    return Catalog(
        database,
        version,
        identifier,
        encoding,
        tables=_tables(
            await ask(queries.TABLES),
            columns=_grouped((row[0], _column(types, checks, *row[1:])) for row in await ask(queries.columns(version))),
            keys=_grouped((row[0], _key(*row[1:])) for row in await ask(queries.KEYS)),
            foreign_keys=_grouped((row[0], _foreign_key(*row[1:])) for row in await ask(queries.foreign_keys(version))),
            checks=checks,
            indexes=_grouped((row[0], _index(*row[1:])) for row in await ask(queries.INDEXES)),
            parents=_grouped((row[0], TableName(*row[1:])) for row in await ask(queries.PARENTS)),
            sources=_grouped((row[0], TableName(*row[1:])) for row in await ask(queries.SOURCES)),
            unfinished=_grouped(await ask(queries.UNFINISHED)),
            outdated=_grouped(await ask(queries.OUTDATED_INDEXES)),
            fingerprints={row[0]: row[3] for row in await ask(ALL_FINGERPRINTS)},
            distributions=distributions,
        ),
        schemas=tuple((name, comment) for name, comment in await ask(queries.SCHEMAS)),
        enums=tuple(_enum(row) for row in types.values() if row.kind == "e" and row.extension is None),
        domains=_domains(types, checks),
        collations=tuple(Collation(TableName(*row[:2]), row[2]) for row in await ask(queries.COLLATIONS)),
        extensions=tuple(name for (name,) in await ask(queries.EXTENSIONS)),
        time_zones=frozenset(name for (name,) in await ask(queries.TIME_ZONES)),
        bypasses_row_security=bypasses,
        routines=tuple(_routine(*row) for row in await ask(queries.routines(version))),
        locale=DatabaseLocale(*(await ask(queries.locale(version)))[0]),
        is_citus=is_citus,
        search_path=tuple(name for path in await setting("search_path") for name in _names_of(path)),
        overrides=tuple(name for (name,) in await ask(queries.OVERRIDES)),
        session_time_zone=next(iter(await setting("TimeZone")), None),
    )


async def read_system_identifier(connection: AsyncConnection[Any]) -> str:
    """Return the server's identifier, or its place and the database's OID; asked of a connection that is not pinned."""
    ((readable,),) = await _rows(connection, queries.SHOWS_IDENTIFIER)
    question = queries.SYSTEM_IDENTIFIER if readable else queries.DATABASE_OID
    ((identifier,),) = await _rows(connection, question)
    return identifier if readable else f"{_place(connection)}/{identifier}"


async def _database(connection: AsyncConnection[Any]) -> tuple[str, int, str, str, bool]:
    """Its name, the server's version and identifier, the encoding, and whether our role bypasses row security."""
    ((name, version, encoding, bypasses),) = await _rows(connection, queries.DATABASE)
    # A cast of the version inside of the query could be one that `overrides` tells of.
    return name, int(version), await read_system_identifier(connection), encoding, bypasses


async def _distributions(connection: AsyncConnection[Any]) -> tuple[bool, Mapping[int, Distribution]]:
    """Return whether the database is one of Citus's, and what it does with its tables."""
    ((is_citus,),) = await _rows(connection, queries.IS_CITUS)
    rows = await _rows(connection, queries.DISTRIBUTIONS) if is_citus else []
    return is_citus, {row[0]: _distribution(*row[1:]) for row in rows}


async def _rows(connection: AsyncConnection[Any], sql: str) -> Rows:
    return await (await connection.execute(sql)).fetchall()


async def _setting(connection: AsyncConnection[Any], name: str) -> list[str]:
    return [value for (value,) in await _rows(connection, queries.setting_of_database(name))]


def _names_of(path: str) -> list[str]:
    """The schemas of a search path as it is stored: names in quotes where they need them."""
    return [quoted.replace('""', '"') or plain for quoted, plain in _NAME.findall(path)]


_NAME = re.compile(r'"((?:[^"]|"")+)"|([^,"\s]+)')


def _place(connection: AsyncConnection[Any]) -> str:
    """Return where a provider closes pg_control_system: the server's address as our configuration writes it."""
    parameters = connection.info.get_parameters()
    return f"{parameters.get('host', 'localhost')}:{parameters.get('port', '5432')}"


def _type_name(types: Mapping[int, CatalogType], oid: int, sql: str, modifier: int) -> TypeName:
    """A type by its OID, and what is underneath its domains."""
    named = types[oid]
    row, below = named, ""
    while row.kind == "d":
        row, modifier, below = types[row.underneath], row.modifier, row.underneath_sql
    element = types.get(row.element, row) if row.category == "A" else row
    shown = named if named.kind == "d" else element
    enum = below if _base(row) == "enum" else ""
    casts = tuple(dict.fromkeys((*row.casts, *element.casts)))
    of_type = (tuple(row.labels), shown.schema, element.extension, shown.name, enum, casts, row.is_ambiguous)
    return TypeName(sql, _base(row), modifier, *of_type)


def _base(row: CatalogType) -> str:
    if row.kind == "e":
        return "other" if row.casts else "enum"  # as text, and where it is grouped, it is what that function says
    if row.category == "A":
        return "array"
    return row.name if row.kind == "b" and row.schema == "pg_catalog" else "other"


def _grouped(pairs: Iterable[tuple[int, Value]]) -> Mapping[int, tuple[Value, ...]]:
    groups: dict[int, tuple[Value, ...]] = defaultdict(tuple)
    for oid, value in pairs:
        groups[oid] += (value,)
    return groups


def _tables(
    rows: Rows,
    *,
    columns: Mapping[int, tuple[Column, ...]],
    keys: Mapping[int, tuple[Key, ...]],
    foreign_keys: Mapping[int, tuple[ForeignKey, ...]],
    checks: Mapping[int, tuple[Check, ...]],
    indexes: Mapping[int, tuple[Index, ...]],
    parents: Mapping[int, tuple[TableName, ...]],
    sources: Mapping[int, tuple[TableName, ...]],
    unfinished: Mapping[int, tuple[str, ...]],
    outdated: Mapping[int, tuple[str, ...]],
    fingerprints: Mapping[int, str],
    distributions: Mapping[int, Distribution],
) -> tuple[Table, ...]:
    return tuple(
        Table(
            TableName(schema, name),
            kind,
            columns.get(oid, ()),
            keys.get(oid, ()),
            foreign_keys.get(oid, ()),
            checks.get(oid, ()),
            comment,
            has_children,
            row_security,
            view,
            partition_key,
            fingerprints.get(oid, ""),
            foreign,
            indexes.get(oid, ()),
            distributions.get(oid),
            parents.get(oid, ()),
            sources.get(oid, ()),
            unfinished.get(oid, ()),
            outdated.get(oid, ()),
            missing,
        )
        for oid, schema, name, kind, comment, has_children, row_security, view, partition_key, foreign, missing in rows
    )


def _column(
    types: Mapping[int, CatalogType],
    checks: Mapping[int, tuple[Check, ...]],
    name: str,
    oid: int,
    sql: str,
    modifier: int,
    *rest: Any,
) -> Column:
    of_domains = tuple(check for domain in _domains_of(types, oid) for check in checks.get(domain, ()))
    return replace(Column(name, _type_name(types, oid, sql, modifier), *rest), checks=of_domains)


def _domains_of(types: Mapping[int, CatalogType], oid: int) -> Iterator[int]:
    """Yield a domain, and those that it is made of."""
    while types[oid].kind == "d":
        yield oid
        oid = types[oid].underneath


def _key(name: str, columns: list[str], primary: bool, constraint: bool, proves: bool) -> Key:
    return Key(name, tuple(columns), primary, constraint, proves)


def _foreign_key(
    name: str, columns: list[str], schema: str, table: str, target: list[str], proves: bool, definition: str
) -> ForeignKey:
    return ForeignKey(name, tuple(columns), TableName(schema, table), tuple(target), proves, definition)


def _check(name: str, definition: str, columns: list[str], proves: bool) -> Check:
    return Check(name, definition, tuple(columns), proves)


def _index(name: str, definition: str, columns: list[str], has_literals: bool) -> Index:
    return Index(name, definition, tuple(columns), has_literals)


def _distribution(method: str, replication: str, column: str | None, colocation: int) -> Distribution:
    """By Citus's letters: h, r and a spread rows by a column; n does not, and t copies all of it to each node."""
    if method == "n":
        return Distribution("reference" if replication == "t" else "local", "", colocation)
    return Distribution("distributed", column or "", colocation)


def _routine(
    schema: str,
    name: str,
    kind: Literal["function", "procedure"],
    arguments: list[str],
    result: str,
    definition: str,
    body: str,
    is_overloaded: bool,
) -> Routine:
    return Routine(TableName(schema, name), kind, tuple(arguments), result, definition, body, is_overloaded)


def _enum(row: CatalogType) -> EnumType:
    return EnumType(TableName(row.schema, row.name), tuple(row.labels), row.comment, row.is_ambiguous)


def _domains(types: Mapping[int, CatalogType], checks: Mapping[int, tuple[Check, ...]]) -> tuple[DomainType, ...]:
    ours = [
        row
        for row in types.values()
        if row.kind == "d" and row.extension is None and row.schema != "information_schema"
    ]
    return tuple(
        DomainType(
            TableName(row.schema, row.name),
            _type_name(types, row.underneath, row.underneath_sql, row.modifier),
            row.not_null,
            row.default,
            checks.get(row.oid, ()),
            row.comment,
        )
        for row in ours
    )
