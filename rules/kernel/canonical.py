"""One spelling for equal values. Wherever values are compared (units, keys, DISTINCT, ties) equal must mean identical.

5.0 and 5.00 are equal numerics, 0 and -0 equal doubles: which of them stands for a group would follow from the order in
which rows are read, and so from other units' rows. Texts of deterministic collations are equal only if they are
identical; others are no texts to the planner (`types.type_of`), and character(n) is read as text.
"""

from rules.kernel.expressions import constant_sql
from rules.refusal import NotSupported
from rules.values.expression import Constant
from rules.values.types import TEXT, Type

_ONE_SPELLING = frozenset(("boolean", "integer", "date", "timestamp", "timestamptz", "time", "text", "enum", "uuid"))
_TEXTS = ("text", "character")  # with a collation of their own, which are read in the database's


def canonical(kind: Type, sql: str, *, is_column: bool = False) -> str:
    """The one value of all that are equal to this one. A table's own numeric(p, s) has one spelling already.

    Example:
        >>> canonical(Type("numeric"), "c1"), canonical(Type("float4"), "c1")
        ('trim_scale(c1)', '(c1 + 0.0)')
    """
    match kind.kind:
        case "numeric" if is_column and kind.scale is not None:
            return sql
        case "numeric":
            return f"trim_scale({sql})"
        case "float":
            return f"({sql} + 0.0)"  # a double: a real that was computed is one too, and need not fit a real
        case word if word in _ONE_SPELLING:
            return sql
        case _ if kind.name.startswith(_TEXTS):
            return sql
    raise NotSupported(f"values of type {kind.sql} cannot be grouped, because equal values can differ in their text")


def canonical_key(kind: Type, sql: str) -> str:
    """The same as a key of groups, which are compared, hashed and sent by their bytes.

    Labels of an enum are told by their names: who may read a table need not be allowed to name its types.
    """
    if kind.kind in ("text", "enum"):
        return f'({sql})::text COLLATE "C"'
    return f"({canonical(kind, f'({sql})')})"


def identity(kind: Type, sql: str) -> str:
    """An order in which only identical values are equal, for the last word on the order of a unit's rows."""
    match kind.kind:
        case "other" if kind.name == "bytea":
            return sql  # equal bytes are identical, and as text they can be longer than PostgreSQL holds
        case "numeric" | "float" | "interval" | "other" | "unknown":
            return f'({sql})::text COLLATE "C"'
        case "text":
            return f'({sql}) COLLATE "C"'
        case _:
            return sql


def label_sql(label: Constant, wanted: Type) -> str:
    """A label as the type of the key that it is compared with, in canonical form."""
    if label.type.kind != wanted.kind:
        raise NotSupported(f"a label of type {label.type.sql} is not a value of {wanted.sql}")
    kind = TEXT if wanted.kind == "enum" else Type(wanted.base)
    return canonical_key(kind, constant_sql(Constant(kind, label.text)))
