"""The rows of a relation, as bounded statements read them: a unit, and expressions over one row."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rules.kernel.expressions import check_columns, expression_sql
from rules.kernel.relation import Relation, is_stored
from rules.kernel.render import From, Renderer
from rules.kernel.script import Call, Filter, Project, Scan, SortKey, UnionAll, Window
from rules.refusal import Mismatch
from rules.values.expression import Apply, Expression, ids_in
from rules.values.types import Type


@dataclass(frozen=True, slots=True)
class Item:
    """One column to be read: an expression, and SQL of the kernel's own around its text, which stands for {0}."""

    alias: str
    expression: Expression
    wrap: str = "{0}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Local rows: those of one unit follow from that unit's rows and public data alone, in every plan.

    They are the same whenever they are read within a statement: templates have immutable functions of PostgreSQL's own,
    and stable ones whose settings are pinned. Not so with an enum: the text of a label is that of the moment, and one
    may be renamed while a statement runs. Nor with time zones: each process of the server reads their rules once, so
    after an upgrade of tzdata the workers of a parallel plan have other ones than a connection that was there before.
    The same is true of what is a letter, which one is its capital and how texts are sorted: libc and ICU read a locale
    when a process first asks for it. Equality is that of bytes.
    Nor with foreign tables and those that Citus distributes: a file or another server is not in our snapshot, and may
    have other rows the next time. Citus has one for each reading of a shard, whatever the isolation level.
    Nor where an index was made by another version of its collation: it may miss rows that are there.
    Nor with tables that have children: one that is added while a statement is planned is in a later reading alone.
    """

    relation: Relation

    def __post_init__(self) -> None:
        if self.relation.unit is None:
            raise Mismatch("the plan measures public rows as if they were protected")

    @property
    def proved_one(self) -> bool:
        """Tell whether each unit has at most one row, by a key that PostgreSQL enforces."""
        return self.relation.known.is_single

    @property
    def has_identity(self) -> bool:
        """Tell whether rows know their unit. Without a key they do not: each is a unit, and `u` is missing."""
        return bool(self._units)

    def is_stored(self, expression: Expression) -> bool:
        """Tell whether it is a table's own column, of which PostgreSQL itself enforces the precision of the type."""
        return is_stored(self.relation, expression)

    def select(self, items: Sequence[Item]) -> str:
        """SELECT <unit> AS u, <wrapped expression> AS <alias>, … FROM …: one row for each row."""
        for item in items:
            check_columns(item.expression, self.relation.types)
        used = ids_in(*(item.expression for item in items)) | self._units
        source = Renderer().render(self.relation, used)
        columns = [f"{self._unit_sql(source)} AS u"] if self.has_identity else []
        columns += [
            f"{item.wrap.replace('{0}', expression_sql(item.expression, source.names))} AS {item.alias}"
            for item in items
        ]
        return f"SELECT {', '.join(columns)} {source.clause()}"

    def are_steady(self, items: Sequence[Item]) -> bool:
        """Tell whether they are the same whenever they are read for these items: no enum, zone, locale or other server
        has a part in it."""
        parts = (self.relation.script, *(item.expression for item in items))
        return _is_steady(self.relation) and not any(map(_may_change, parts))

    def candidates(self) -> str | None:
        """SELECT <unit> AS u FROM <a superset of the rows>: the table whose rows they are, without conditions. None of
        rows that are made of more: a window orders rows by the columns that are read, which are fewer here."""
        table = self.relation
        while isinstance(table.script, Filter | Project):
            (table,) = table.parts
        return Rows(table).select(()) if self.has_identity and isinstance(table.script, Scan) else None

    @property
    def _units(self) -> frozenset[int]:
        unit = self.relation.unit
        return frozenset() if unit is None or unit.column is None else frozenset([unit.column])

    def _unit_sql(self, source: From) -> str:
        """In its canonical form, which a relation's unit has already; a text by its bytes, for hashes and equality."""
        (unit,) = self._units
        return f'({source.names[unit]}) COLLATE "C"' if self.relation.types[unit].kind == "text" else source.names[unit]


def _is_steady(relation: Relation) -> bool:
    """Tell whether all tables are here and whole, and no column may change that an order or a cast reads by itself."""
    if relation.table is not None and relation.table.may_change:
        return False
    unnamed = relation.parts if isinstance(relation.script, UnionAll | Window) else ()
    may_change = any(_may_change(kind) for part in unnamed for kind in part.types.values())
    return not may_change and all(map(_is_steady, relation.parts))


def _may_change(part: object) -> bool:
    """Tell whether a column or a constant of an enum, or the rules of a time zone or of a locale, stand anywhere in a
    script or an expression: no other type is believed of a column than its own, and of what is computed none."""
    waiting, seen = [part], set[int]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Type) and (part.kind in ("enum", "timestamptz") or _OF_OTHERS.search(part.name)):
            return True
        if isinstance(part, Apply | Call) and (_BY_ZONE.search(part.sql) or _is_by_locale(part)):
            return True
        if isinstance(part, SortKey) and part.expression.type.kind in _SORTED_BY_LOCALE:
            return True
        if isinstance(part, tuple):
            waiting.extend(part)
        elif id(part) not in seen:  # parts may be shared
            seen.add(id(part))
            waiting.extend(getattr(part, name) for name in getattr(type(part), "__dataclass_fields__", ()))
    return False


def _is_by_locale(part: Apply | Call) -> bool:
    """Tell whether letters are looked at, or texts are compared by their order. One of substring is by a pattern."""
    sql = _BY_NO_LOCALE.sub("", part.sql)
    if _BY_LETTERS.search(sql):
        return True
    if "substring" in sql and ("'" in sql or any(each.type.kind != "integer" for each in part.arguments[1:])):
        return True
    are_sorted = any(each.type.kind in _SORTED_BY_LOCALE for each in part.arguments) or "text" in sql
    return are_sorted and _BY_ORDER.search(sql) is not None


_BY_LETTERS = re.compile(r"~|regexp|similar|ilike|initcap|jsonb_path_|\b(?:lower|upper)\b", re.IGNORECASE)
_BY_ORDER = re.compile(
    r"<(?![<>@])|(?<![<>@-])>|\b(?:greatest|least|min|max|between|width_bucket|order)\b", re.IGNORECASE
)
_BY_NO_LOCALE = re.compile(r'octet_length\(\{0\}\) <= [0-9]+|(?:lower|upper)\(\{0\} COLLATE "C"\)')
_SORTED_BY_LOCALE = ("text", "other", "unknown")  # a jsonb or an array may be of texts
_OWN = r"(?:bigint|boolean|character|date|double|float8|integer|interval|numeric|real|smallint|text|time|uuid)\b(?!\.)"
_BY_ZONE = re.compile(rf"zone|tz|to_timestamp|::\s*(?!{_OWN})", re.IGNORECASE)  # or by a type that may read a catalog
_OF_OTHERS = re.compile(r"\.|tz|with time zone|^reg")  # of what they may be made or name
