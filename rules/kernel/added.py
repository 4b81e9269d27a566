"""All that the kernel itself adds to a statement around a column: casts, canonical forms, orders, hashes and texts.

The functions of this module, and the integers of sums in `summand`, are the whole list: no other module writes a cast
on a column. Two things are true of each of them, whatever the type and the row:

* It runs functions of PostgreSQL's own. `(x)::text` of a composite type, an enum or a type of an extension would be
  whatever function a `CREATE CAST` names, which may read tables or fail on a row. So columns of types that are not
  known here are handed on, and nothing is made of them.
* It fails on no value that a column can hold. The text of a jsonb, an array or a bit string can be longer than
  PostgreSQL holds, and before version 15 an interval of 2^31 hours has none. So values are ordered by their own order
  or by the bytes that a function such as `interval_send` makes of a short one.

Wherever values are compared (units, keys, DISTINCT, ties) equal must mean identical, so equal values have one spelling.
5.0 and 5.00 are equal numerics, 0 and -0 equal doubles: which of them stands for a group would follow from the order in
which rows are read, and so from other units' rows. Texts of deterministic collations are equal only if they are
identical; others are no texts to the planner (`types.type_of`), and character(n) is read as text.
"""

from collections.abc import Iterable

from rules.kernel.templates import check_type
from rules.refusal import Mismatch, NotSupported
from rules.values.types import UNKNOWN, Type, hint_for

SATURATION = 2**62
LONGEST_TEXT = 65_536  # letters, and octets of other values, of what is computed
LONGEST_KEY = 8192  # octets of a found key
_ONE_SPELLING = frozenset(("boolean", "integer", "date", "timestamp", "timestamptz", "time", "text", "enum", "uuid"))
_TEXTS = ("text[", "character varying")
# The first word of types of kind "other" of which equal values are identical, and so of arrays of them.
_EXACT = frozenset(
    """bigint bit boolean bytea cidr date daterange inet int4range int8range integer macaddr macaddr8 money oid pg_lsn
    smallint time timestamp tsrange tstzrange uuid""".split()
)


def type_sql(kind: Type) -> str:
    """A type as it stands in a cast. Only those that are not known by themselves have a name that a script gives."""
    if kind.name and kind.kind not in ("enum", "other"):
        raise Mismatch("the plan gives a type another one's name")
    return check_type(kind.sql)


def stored(kind: Type, sql: str, *, is_recast: bool = False) -> str:
    """A table's own column. Of types that do not compare as their bytes it is read as text of the database's collation,
    and of a domain of an enum as the enum: the type that COALESCE has, which need not be named."""
    if is_recast and kind.kind == "enum":
        return f"coalesce({sql}, NULL)"
    read = f"({sql})::text" if kind.base in ("bpchar", "name") or (is_recast and kind.kind == "text") else sql
    if kind.base == "bpchar" and not (kind.size and kind.size <= LONGEST_TEXT):  # which is cast by making a copy
        read = f"(CASE WHEN octet_length({read if kind.size else sql}) <= {4 * LONGEST_TEXT} THEN {read} END)"
    return f'({read}) COLLATE "default"' if is_recast else read


def typed(kind: Type, sql: str) -> str:
    """Of this kind, or no statement. Where it is, most casts are nothing; none is to a narrower type, which could fail.

    A double is made of it where it has to be one, in `canonical`.
    """
    match kind.kind:
        case "integer" if kind.base == "int8":
            return f"({sql})::bigint"
        case "integer":
            return f"(({sql}) | 0::smallint)"  # which only integers can be asked for
        case "enum":
            return f"enum_larger({sql}, {sql})"  # so with enums, whose names need not be known
        case "boolean" | "numeric" | "date" | "timestamp" | "timestamptz" | "time" | "uuid":
            return f"({sql})::{kind.kind}"
        case "text":  # PostgreSQL has no row of more than 1 GB to sort, to hash or to group, and texts may be that long
            return f'("left"(({sql})::text, {LONGEST_TEXT}) COLLATE "default")'  # as `_compared_by_bytes`
        case "other":  # so may be a part of a jsonb
            return f"(CASE WHEN pg_column_size({sql}) <= {LONGEST_TEXT} THEN {sql} END)"
    return sql


def in_one_type(kind: Type, sql: str) -> str:
    """A column of a branch as all branches have it. A real that was computed is a double, which need not fit a real."""
    is_as_read = kind.kind == "other" or kind.base == "float4"
    is_not_named = kind.base in ("bpchar", "enum")  # what a script calls an enum may be the name of any type
    return sql if is_as_read else typed(kind, sql) if is_not_named else f"({sql})::{type_sql(kind)}"


def _compared_by_bytes(sql: str) -> str:
    """A text whose equality is that of the database: a domain, which a script may cast to, can bring another one."""
    return f'(({sql})::text COLLATE "default")'


def canonical(kind: Type, sql: str, *, is_stored: bool = False) -> str:
    """The one value of all that are equal to this one. A table's own numeric(p, s) has one spelling already.

    Example:
        >>> canonical(Type("numeric"), "c1"), canonical(Type("float4"), "c1")
        ('trim_scale((c1)::numeric)', '((c1)::float8 + 0.0)')
    """
    match kind.kind:
        case word if word in _ONE_SPELLING or (word == "numeric" and is_stored and kind.scale is not None):
            return sql
        case "numeric":
            return f"trim_scale(({sql})::numeric)"
        case "float":
            return f"(({sql})::float8 + 0.0)"  # a real that was computed need not fit a real
        case _ if kind.is_other_text:
            return _compared_by_bytes(sql)
    raise NotSupported(f"values of type {kind.sql} cannot be grouped, because equal values can differ in their text")


def canonical_key(kind: Type, sql: str, *, is_computed: bool = False) -> str:
    """The same as a key of groups, which are compared, hashed and sent by their bytes.

    Labels of an enum are told by their names: who may read a table need not be allowed to name its types.
    """
    if kind.kind in ("text", "enum"):
        return f'({sql})::text COLLATE "C"'
    return f"({canonical(kind, typed(kind, sql) if is_computed else f'({sql})')})"


def last_order(kind: Type, sql: str, *, is_stored: bool, is_decided: bool) -> str:
    """An order in which only identical values are equal, for the last word on the order of a unit's rows.

    There is none that fails on no row and runs nobody's function for jsonb, types of extensions, rows and arrays of
    numerics: nothing where a key decides, and else no statement. What a script says of a computed column of kind
    "other" is not believed.
    """
    word = kind.name.removesuffix("[]").replace("(", " ").split(" ")[0]
    match kind.kind:
        case "numeric":
            return f"numeric_send({sql})"
        case "float":
            return f"float8send({sql})"
        case "interval":
            return f"interval_send({sql})"
        case "text" | "other" if kind.kind == "text" or (is_stored and kind.name.startswith(_TEXTS)):
            return f'({sql}) COLLATE "C"'
        case _ if kind.kind == "unknown" or kind.is_other_text:
            return f'coalesce({sql}, NULL::text) COLLATE "C"'  # which is no statement where it is no text
        case "other" if not is_stored or word not in _EXACT:
            if is_decided:
                return ""
            message = f"rows with values of type {kind.sql} have no order for a window function without a primary key"
            hint = f"Compute what you need of these values in a sub-select below the window function. {hint_for(kind)}"
            raise NotSupported(message, hint=hint)
    return sql


def row_identity(key: Iterable[tuple[Type, str]]) -> str:
    """The values of a key as one text, each told with its length, so that different ones never read the same."""
    by_parts = "encode(interval_send({}), 'hex')"
    texts = ((by_parts if kind.kind == "interval" else "({})::text").format(sql) for kind, sql in key)
    parts = (f"char_length({text}) || ':' || {text}" for text in texts)
    return f'({" || ".join(parts)}) COLLATE "C"'  # each column may have a collation of its own


def key_text(column: str) -> str:
    """A canonical key as it leaves."""
    return f"{column}::text"


def is_short(kind: Type, column: str) -> str:
    """Keys that are too long are dropped with their rows, so that no key is too long to be hashed, sorted or sent."""
    if kind.kind not in ("text", "numeric"):
        return ""
    return f"(octet_length({key_text(column)}) <= {LONGEST_KEY}) IS NOT FALSE"


def hashed(column: str, seed: str, kind: Type = UNKNOWN) -> str:
    """A hash of a unit, a place in a list or a canonical value, and of all that the seed is made of. NULL passes the
    seed on. Where the type is not known, PostgreSQL looks its function up."""
    match kind.kind:
        case "text":
            made = f"hashtextextended({column}, {seed})"
        case "integer":
            made = f"hashint8extended({column}::int8, {seed})"
        case _:
            made = f"hash_array_extended(ARRAY[{column}], {seed})"
    return f"coalesce({made}, {seed})"


def saturated(number: str) -> str:
    """A number of any size as a bigint; of no rows, 0."""
    return f"least(greatest(coalesce({number}, 0), -{SATURATION}), {SATURATION})::int8"
