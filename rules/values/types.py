"""PostgreSQL's scalar types as far as the planner knows them, and how it infers the types of operators.

A type that is not known here has the kind "other": its values can be counted and tested for NULL, nothing else.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from rules.catalog import Catalog, Column, ForeignKey, Table, TypeName
from rules.frozen import replace

Kind = Literal[
    "boolean", "integer", "numeric", "float", "date", "timestamp", "timestamptz", "interval", "time", "text", "enum",
    "uuid", "unknown", "other",
]  # fmt: skip

SpanForm = Literal["", "days", "months"]  # how an interval of so many seconds is shown

# Kinds of which equal values have one text, so that they may tell groups and distinct values apart.
KEY_KINDS: frozenset[Kind] = frozenset(
    {
        "boolean", "integer", "numeric", "float", "date", "timestamp", "timestamptz", "time", "text", "enum", "uuid",
    }
)  # fmt: skip

_KINDS: dict[str, Kind] = {
    "bool": "boolean",
    **dict.fromkeys(("int2", "int4", "int8"), "integer"),
    "numeric": "numeric",
    **dict.fromkeys(("float4", "float8"), "float"),
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "interval": "interval",
    "time": "time",
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), "text"),
    "enum": "enum",
    "uuid": "uuid",
    "unknown": "unknown",
}  # fmt: skip

_SQL = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "time": "time without time zone",
    "varchar": "character varying",
    "bpchar": "character",
}
_ALIASES = {
    **{sql: base for base, sql in _SQL.items()},
    "int": "int4",
    "decimal": "numeric",
    "float": "float8",
    "char": "bpchar",
    **{base: base for base in _KINDS if base not in ("unknown", "enum")},
}
_WRITTEN = re.compile(r"([a-z_][a-z0-9_ ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\))?( with(?:out)? time zone)?")

WIDTHS = {"int2": 16, "int4": 32, "int8": 64}


@dataclass(frozen=True)
class Type:
    """A scalar type. `size` and `scale` are what stands in parentheses: varchar(20), numeric(10,2)."""

    base: str  # pg_type.typname under all domains; "enum" and "other" elsewhere
    size: int | None = None
    scale: int | None = None
    name: str = ""  # of an enum or an unknown type, as SQL writes it
    labels: tuple[str, ...] = ()
    domain: str = ""  # that sets `size`, as SQL writes it: functions of any type keep a domain, and so its size
    is_ambiguous: bool = False  # as of `TypeName`

    @cached_property
    def kind(self) -> Kind:
        return _KINDS.get(self.base, "other")

    @property
    def is_number(self) -> bool:
        return self.kind in ("integer", "numeric", "float")

    @property
    def is_time(self) -> bool:
        return self.kind in ("date", "timestamp", "timestamptz")

    @property
    def sql(self) -> str:
        """As it stands in a cast."""
        if self.name:
            return self.name
        if self.size is None:  # "character" alone is one letter
            return self.base if self.base == "bpchar" else _SQL.get(self.base, self.base)
        if self.base in ("timestamp", "timestamptz"):
            head, _, tail = _SQL[self.base].partition(" ")
            return f"{head}({self.size}) {tail}"
        inside = f"{self.size},{self.scale}" if self.scale is not None else f"{self.size}"
        return f"{_SQL.get(self.base, self.base)}({inside})"

    @property
    def is_other_text(self) -> bool:
        """Tell whether it is a text of a collation whose equality is not that of its bytes."""
        name, is_array = self.name.partition("(")[0], self.name.endswith("[]")
        return self.base == "other" and name in ("text", "character varying", "character") and not is_array

    def plain(self) -> "Type":
        """Without what stands in parentheses, as the results of operators are typed."""
        return self if self.size is self.scale is None else self._plain

    def passed(self, *, is_cast: bool) -> "Type":
        """As functions of any type return it: mode, percentile_disc, lag, first_value. A cast leaves no domain."""
        return self if self.domain and not is_cast else self.plain()

    @cached_property
    def _plain(self) -> "Type":
        return replace(self, size=None, scale=None, domain="")


BOOLEAN, INT2, INT4, INT8 = Type("bool"), Type("int2"), Type("int4"), Type("int8")
NUMERIC, FLOAT4, FLOAT8 = Type("numeric"), Type("float4"), Type("float8")
DATE, TIMESTAMP, TIMESTAMPTZ, INTERVAL = Type("date"), Type("timestamp"), Type("timestamptz"), Type("interval")
JSONB = Type("other", name="jsonb")
TEXT, UUID, UNKNOWN = Type("text"), Type("uuid"), Type("unknown")


def hint_for(sql_type: Type) -> str:
    """Say which part of a value that has no groups has some."""
    if sql_type.kind == "interval":
        return "Take its seconds: extract(epoch FROM x)."
    if sql_type.sql == "jsonb":
        return "Take a text of the document: document->>'key'."
    if sql_type.sql.endswith("[]"):
        return "Take an item or their number: x[1], cardinality(x)."
    return "Ask your DBA for a column of a type such as text or numeric."


def type_of(column: Column) -> Type:
    """The type of a real column; one whose equality is not that of its bytes is "other"."""
    sql_type = from_name(column.type)
    if sql_type.kind == "text" and not column.deterministic:
        return Type("other", name=column.type.sql)
    return sql_type


def is_collated(column: Column) -> bool:
    """Tell whether it may have a collation of its own, as a domain has: PostgreSQL fails where two are compared."""
    is_domain = type_of(column).kind == "text" and column.type.schema != "pg_catalog"
    return column.collation is not None or is_domain


def is_recast(column: Column) -> bool:
    """Tell whether it is read in another collation, or as an enum in place of a domain of one.

    Such a domain has no operators in PostgreSQL, and its constraints would be looked at where a constant or NULL is
    made one of its values: on those rows alone that come there.
    """
    return is_collated(column) or column.type.enum != ""


def from_name(name: TypeName) -> Type:
    if name.base == "enum":
        return Type("enum", name=name.enum or name.sql, labels=name.labels, is_ambiguous=name.is_ambiguous)
    kind = _KINDS.get(name.base, "other")
    is_rounded = name.base == "time" and name.modifier >= 0
    if kind in ("other", "unknown") or is_rounded or (name.extension is not None and kind != "enum"):
        return Type("other", name=name.sql)
    if name.modifier < 0:
        return Type(name.base)
    set_by = "" if name.schema == "pg_catalog" else name.sql
    if name.base == "numeric":
        return Type("numeric", size=(name.modifier - 4) >> 16 & 0xFFFF, scale=name.scale, domain=set_by)
    if name.base in ("varchar", "bpchar"):
        return Type(name.base, size=name.modifier - 4, domain=set_by)
    if name.base in ("timestamp", "timestamptz"):
        return Type(name.base, size=name.modifier, domain=set_by)
    return Type(name.base)


def find_type(written: str) -> Type | None:
    """The type that a cast names, or None when the planner does not know it."""
    match = _WRITTEN.fullmatch(written.strip().removeprefix("pg_catalog."))
    base = _ALIASES.get((match[1] + (match[4] or "")).strip()) if match else None
    if match is None or base is None or (base == "time" and match[2]):
        return None
    size = int(match[2]) if match[2] else None
    scale = int(match[3]) if match[3] else None
    if base == "numeric" and size is not None:
        return Type(base, size=size, scale=scale or 0)
    if base == "bpchar" and size is None and match[1] != "bpchar":
        return Type(base, size=1)
    return Type(base, size=size, scale=scale)


def wider_number(left: Type, right: Type) -> Type:
    """The type of left + right, as PostgreSQL picks its operator.

    Example:
        >>> wider_number(INT4, FLOAT4).base, wider_number(INT8, NUMERIC).base, wider_number(INT2, INT4).base
        ('float8', 'numeric', 'int4')
    """
    if left.base == right.base:
        return left.plain()
    if "float" in (left.kind, right.kind):
        return FLOAT8
    if "numeric" in (left.kind, right.kind):
        return NUMERIC
    return left if WIDTHS[left.base] >= WIDTHS[right.base] else right


def find_common(types: list[Type]) -> Type | None:
    """The type that CASE, COALESCE, UNION, GREATEST and IN make of several (select_common_type), or None."""
    known = [sql_type for sql_type in types if sql_type.kind != "unknown"]
    if not known:
        return TEXT
    chosen = known[0]
    for sql_type in known[1:]:
        if sql_type.base != chosen.base or sql_type.name != chosen.name:
            if not _same_category(chosen, sql_type):
                return None
            chosen = sql_type if _yields(chosen, sql_type) else chosen
    return known[0] if types.count(known[0]) == len(types) else (chosen if chosen.name else chosen.plain())


def _same_category(left: Type, right: Type) -> bool:
    if left.is_number and right.is_number:
        return True
    if left.is_time and right.is_time:
        return True
    return left.kind == right.kind == "text"


_ORDER = ("int2", "int4", "int8", "numeric", "float4", "float8", "date", "timestamp", "timestamptz")


def _yields(chosen: Type, other: Type) -> bool:
    """Return whether the chosen type converts implicitly to the other and not the other way round."""
    if chosen.kind == "text":
        return other.base == "name" and chosen.base != "text"  # all others convert both ways
    return _ORDER.index(other.base) > _ORDER.index(chosen.base)


Equality = Literal["same", "coarser", "none"]

_SAME: Final = (  # types whose values are compared as they are
    frozenset(("int2", "int4", "int8", "numeric")),
    frozenset(("int2", "int4", "float4", "float8")),
    frozenset(("date", "timestamp")),
    frozenset(("text", "varchar")),
)
_COARSER: Final = frozenset(
    (
        *(("int8", "float4"), ("int8", "float8")),  # 2^53 and 2^53 + 1 are one double
        *(("text", "bpchar"), ("varchar", "bpchar"), ("name", "bpchar")),  # 'a' and 'a ' are one character(2)
        *(("bpchar", "text"), ("bpchar", "name")),  # nothing more is known of these, for nobody needs it
        *(("name", "text"), ("name", "varchar"), ("text", "name"), ("varchar", "name")),
    )
)


def equality(first: Type, second: Type) -> Equality:
    """How = between columns of two types agrees with the equality of each type, on which unique keys rest.

    same: a value of either type is equal to at most one of the other's different values.
    coarser: a value of the first is equal to at most one of the second's different values, but different values of the
    first may be equal to the same one, for all that is known.
    none: a value may be equal to several different values of the second, the session decides, the comparison may fail
    on a value, or it does not exist. PostgreSQL compares a character(n) with a varchar as two character(n). A type that
    is not PostgreSQL's own may be compared by a cast of its own.

    Example:
        >>> equality(INT8, NUMERIC), equality(INT8, FLOAT8), equality(FLOAT8, INT8), equality(TIMESTAMPTZ, DATE)
        ('same', 'coarser', 'none', 'none')
        >>> equality(Type("varchar"), Type("bpchar")), equality(Type("bpchar"), Type("varchar"))
        ('coarser', 'none')
    """
    if first.base == second.base and first.name == second.name:
        return "same" if first.kind != "other" else "none" if "." in first.name else "coarser"
    if any({first.base, second.base} <= bases for bases in _SAME):
        return "same"
    return "coarser" if (first.base, second.base) in _COARSER else "none"


def equality_of_key(key: ForeignKey, table: Table, catalog: Catalog) -> Equality:
    """The equality of the columns of a foreign key with those that they refer to; of several the least."""
    target, words = catalog.find_table(key.target), set[Equality]()
    for own, other in zip(key.columns, key.target_columns, strict=True):
        column, found = table.find_column(own), None if target is None else target.find_column(other)
        words.add("none" if column is None or found is None else equality(type_of(column), type_of(found)))
    return "none" if "none" in words else "coarser" if "coarser" in words else "same"


def integer_range(base: str) -> tuple[int, int]:
    limit = 1 << (WIDTHS[base] - 1)
    return -limit, limit - 1
