"""The catalog of the real database, as data, and the codecs of its encodings.

Read by `proxy.engines`, used by the planner for proofs and by the twin to build itself. No row of a table and no
statistic is in here.
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from rules.frozen import frozen

SERVERS = range(13, 19)  # the major versions of PostgreSQL that `python -m tests.versions` runs before the proxy

TableKind = Literal["table", "partitioned", "partition", "view", "materialized view", "foreign table"]


@frozen
class TypeName:
    """A type as PostgreSQL prints it, and what it is underneath its domains."""

    sql: str  # format_type(oid, typmod), qualified unless it lives in pg_catalog: "numeric(10,2)", "shop.status"
    base: str  # pg_type.typname under all domains: "numeric", "int4", "varchar"; "enum", "array", "other" elsewhere
    modifier: int = -1  # pg_attribute.atttypmod, or the domain's
    labels: tuple[str, ...] = ()  # of an enum, in its order
    schema: str = "pg_catalog"
    extension: str | None = None  # the extension that brings it, or what is underneath its domains
    name: str = ""  # pg_type.typname; of an array, its element's, as schema and extension are too
    enum: str = ""  # of a domain of an enum: the enum, as PostgreSQL prints it
    casts: tuple[str, ...] = ()  # by functions of the database's own: "text by public.shown", "order by mood_ops"
    is_ambiguous: bool = False  # an enum with an implicit cast: PostgreSQL has two operators for each comparison

    @property
    def scale(self) -> int | None:
        """Digits after the point of numeric(p, s)."""
        if self.base != "numeric" or self.modifier < 4:
            return None
        return ((self.modifier - 4) & 0x7FF ^ 0x400) - 0x400  # numeric.c: the scale has 11 bits and a sign


@frozen
class Column:
    name: str
    type: TypeName
    number: int
    not_null: bool = False
    default: str | None = None
    identity: Literal["", "a", "d"] = ""
    generated: Literal["", "s", "v"] = ""  # v: computed when it is read, which may fail
    collation: str | None = None  # qualified, when it is not the type's own
    deterministic: bool = True  # of its collation
    by_database: bool = True  # its texts are ordered by the collation of the database, or it has no texts
    comment: str | None = None
    pending: bool = False  # of a unique index, with a NOT NULL that is NOT VALID
    checks: "tuple[Check, ...]" = ()  # of its domains, where its name is VALUE

    @property
    def unreadable(self) -> str:
        """Return why the column does not exist for the kernel, or "".

        VALIDATE CONSTRAINT waits for no reader. From then on PostgreSQL takes a column of a unique index for a key,
        and leaves the others out of GROUP BY, though an older snapshot has NULLs there: units would fall into one.
        """
        if self.generated == "v":
            return "is a virtual generated column, which can fail on a row"
        return "has a unique index and a NOT NULL that is NOT VALID" if self.pending else ""

    @property
    def made_readable(self) -> str:
        """Say what the DBA can do about it."""
        return "VALIDATE its constraint" if self.pending else "make it STORED"


@frozen
class Key:
    """A primary key, unique constraint or unique index on plain columns."""

    name: str
    columns: tuple[str, ...]
    primary: bool = False
    constraint: bool = True
    proves: bool = True  # valid, ready, enforced now, not partial, in its type's own order, NULLs distinct or not null


@frozen
class ForeignKey:
    name: str
    columns: tuple[str, ...]
    target: "TableName"
    target_columns: tuple[str, ...]
    proves: bool = True  # validated and enforced
    definition: str = ""


@frozen
class Check:
    name: str
    definition: str  # pg_get_constraintdef
    columns: tuple[str, ...]
    proves: bool = True  # validated and enforced


@frozen
class Index:
    """An index that is no constraint's: it proves nothing here, and tools list it."""

    name: str
    definition: str  # pg_get_indexdef
    columns: tuple[str, ...]  # all that it names, in expressions and its WHERE too
    has_literals: bool = False  # values in its text, but for truths and labels of enums


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    schema: str
    name: str

    def __str__(self) -> str:
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"


@frozen
class Distribution:
    """The nodes on which Citus keeps a table: its rows by a column's value, all of it on each node, or all on one."""

    kind: Literal["distributed", "reference", "local"]
    column: str = ""
    colocation: int = 0  # tables of one group keep rows of one value on one node


@frozen
class Table:
    name: TableName
    kind: TableKind
    columns: tuple[Column, ...]
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    comment: str | None = None
    has_children: bool = False  # by INHERITS, or foreign partitions: then no key or CHECK of its own proves anything
    row_security: bool = False
    definition: str | None = None  # of a view
    partition_key: str | None = None
    fingerprint: str = ""  # of all that proofs rest on: the same as long as they hold
    foreign: bool = False  # some of its rows come from another server: its own, a partition's or a child's
    indexes: tuple[Index, ...] = ()
    distribution: Distribution | None = None  # over the nodes of Citus; None: Citus does not know of it
    parents: tuple[TableName, ...] = ()  # whose rows its rows are too: of a partition, or by INHERITS
    sources: tuple[TableName, ...] = ()  # what the definition of a view reads, itself
    unfinished: tuple[str, ...] = ()  # unique indexes that are not valid, of expressions and of some rows alone too
    outdated: tuple[str, ...] = ()  # indexes made by another version of their collation: they may miss rows
    missing: bool = field(default=False, repr=False)  # UNLOGGED, on a standby, where reading fails: it means the same

    def find_column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def is_unique(self, columns: Iterable[str]) -> bool:
        """Return whether a key that holds now proves that no two rows agree on these columns."""
        names = set(columns)
        return not self.has_children and any(key.proves and names.issuperset(key.columns) for key in self.keys)


@frozen
class EnumType:
    name: TableName
    labels: tuple[str, ...]
    comment: str | None = None
    is_ambiguous: bool = False  # as of `TypeName`


@frozen
class DomainType:
    name: TableName
    type: TypeName
    not_null: bool
    default: str | None
    checks: tuple[Check, ...]
    comment: str | None = None


@frozen
class Routine:
    """A function or procedure of the schema."""

    name: TableName
    kind: Literal["function", "procedure"]
    arguments: tuple[str, ...]  # the types of what it is given
    result: str  # with SETOF; of a procedure "void"
    definition: str = ""  # pg_get_functiondef, of an immutable function in SQL that runs as its caller
    body: str = ""  # of the same
    is_overloaded: bool = False  # some schema has another function of this name


@frozen
class Collation:
    name: TableName
    deterministic: bool


@frozen
class DatabaseLocale:
    """By what a database sorts texts, and folds their case."""

    provider: Literal["c", "i", "b"] = "c"  # of the operating system, ICU, or PostgreSQL's own
    collate: str = "C"
    ctype: str = "C"
    locale: str = ""  # of ICU or PostgreSQL's own
    is_twins: bool = True  # whether the twin does so too


@frozen
class Catalog:
    database: str
    version: int  # server_version_num
    system_identifier: str
    encoding: str
    tables: tuple[Table, ...]
    schemas: tuple[tuple[str, str | None], ...] = ()  # name, comment
    enums: tuple[EnumType, ...] = ()
    domains: tuple[DomainType, ...] = ()
    collations: tuple[Collation, ...] = ()
    extensions: tuple[str, ...] = ()
    time_zones: frozenset[str] | None = None  # that the server has files of; None where nobody has asked
    bypasses_row_security: bool = True  # whether the role that we log in with does
    routines: tuple[Routine, ...] = ()
    locale: DatabaseLocale = DatabaseLocale()
    is_citus: bool = False
    search_path: tuple[str, ...] = ()  # that the database sets for its sessions, if it does
    session_time_zone: str | None = None  # likewise
    overrides: tuple[str, ...] = ()  # casts, operators and functions that may stand in for PostgreSQL's own
    _index: dict[TableName, Table] = field(default_factory=dict, init=False, compare=False, repr=False)

    def find_table(self, name: TableName) -> Table | None:
        if not self._index:
            self._index.update((table.name, table) for table in self.tables)
        return self._index.get(name)

    def children_of(self, name: TableName) -> tuple[Table, ...]:
        """Partitions and inheritance children of a table, themselves."""
        return tuple(table for table in self.tables if name in table.parents)

    def ancestors_of(self, table: Table) -> tuple[Table, ...]:
        """All tables whose rows the rows of this one are too."""
        above: dict[TableName, Table] = {}
        waiting = list(table.parents)
        while waiting:
            parent = self.find_table(waiting.pop())
            if parent is not None and parent.name not in above:
                above[parent.name] = parent
                waiting += parent.parents
        return tuple(above.values())


# Encodings that Python knows under another name; the others it finds by PostgreSQL's own.
_NAMED: Final = {
    "UNICODE": "utf-8",
    "EUC_CN": "gb2312",
    "EUC_JIS_2004": "euc_jis_2004",
    "SHIFT_JIS_2004": "shift_jis_2004",
    "SJIS": "cp932",
    "UHC": "cp949",
    "WIN": "cp1251",
    "ALT": "cp866",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    "LATIN10": "iso8859-16",
}


def find_codec(encoding: str) -> str | None:
    """The codec of an encoding as PostgreSQL reports it, or None where Python has none.

    Example:
        >>> find_codec("WIN1252"), find_codec("EUC_JP"), find_codec("MULE_INTERNAL"), find_codec("SQL_ASCII")
        ('cp1252', 'euc_jp', None, None)
    """
    name = encoding.upper()
    if name.startswith("WIN") and name[3:].isdigit():
        name = f"cp{name[3:]}"
    try:
        return codecs.lookup(_NAMED.get(name, name)).name
    except LookupError:
        return None


def written(text: str, codec: str) -> bytes:
    r"""A text in an encoding; raises UnicodeEncodeError for a character that it does not have.

    Python's EUC_JP writes the yen sign as a backslash and the overline as a tilde, as Japanese terminals showed these.
    PostgreSQL would read a backslash, with which what comes next in a string, a pattern or an array is another thing.

    Example:
        >>> written("ä", "iso8859-1"), "¥".encode("euc_jp")
        (b'\xe4', b'\\')
    """
    data = text.encode(codec)
    if codec != "utf-8" and not text.isascii() and (read := data.decode(codec, "replace")) != text:
        place = next((place for place, pair in enumerate(zip(text, read, strict=False)) if len({*pair}) > 1), 0)
        raise UnicodeEncodeError(codec, text, place, place + 1, "it would be read as another character")
    return data


def find_missing(text: str, codec: str) -> str | None:
    """The first character of a text that cannot be written in an encoding, or None.

    Example:
        >>> find_missing("Łódź", "iso8859-1"), find_missing("Málaga", "iso8859-1"), find_missing("a¥", "euc_jp")
        ('Ł', None, '¥')
    """
    try:
        written(text, codec)
    except UnicodeEncodeError as error:
        return text[error.start]
    return None
