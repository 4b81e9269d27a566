"""The keys of a block in the statement around it: as they were written, and by the names that subqueries use.

An array of texts has a type without length and precision. PostgreSQL gives a column those that all branches of an
expression have, so the key has them again.
"""

from collections.abc import Iterator, Mapping

from rules.bind.scope import Scope
from rules.frozen import frozen
from rules.planner.find_blocks import ABOVE, BlockSite, Leaves
from rules.sql.grammar import deparse_expression, parse
from rules.sql.tree import Json, Node, bodies, holders, items, kind, strings
from rules.values.types import Type, find_type


def as_written(column: Json, key: Json, of: str, site: BlockSite) -> Json:
    """A key of this type that has a length or a precision keeps it: the column of its texts has the type alone."""
    written = kind(key)[1].get("typeName") if kind(key)[0] == "TypeCast" else None
    if isinstance(written, dict) and written.get("typmods"):
        return {"TypeCast": {"arg": column, "typeName": written, "location": -1}}
    columns = _Columns.of(site)
    if kind(key)[0] == "TypeCast":
        taken = _find_sized(kind(key)[1].get("arg"), columns)
        is_taken = taken is not None and _find_type(key, columns) == _Sized(taken.type.plain())
        return {"TypeCast": {"arg": column, "typeName": written, "location": -1}} if is_taken else column
    if kind(key)[0] == "ColumnRef":
        lost = columns.find_taken(strings(kind(key)[1].get("fields")))
        return column if lost is None else _cast(column, lost.plain())
    sized = _find_compared(key, columns) if of != "double precision" else None
    sized = sized or _find_sized(key, columns)
    return column if sized is None else _cast(column, sized.type)


def _cast(column: Json, to: Type) -> Json:
    (piece,) = parse(f"SELECT NULL::{to.sql}")
    cast = kind(kind(items(kind(piece.tree)[1], "targetList")[0])[1].get("val"))[1]
    return {"TypeCast": {**cast, "arg": column, "location": -1}}


@frozen
class _Sized:
    """A type with its length or precision, if it has one; a domain is another type than the one below it."""

    type: Type
    domain: str = ""


@frozen
class _Columns:
    scope: Scope
    types: Mapping[int, Type]
    domains: Mapping[int, str]

    @classmethod
    def of(cls, site: BlockSite) -> "_Columns":
        types = {column.id: column.type for column in site.source.node.facts.columns}
        return cls(site.source.scope, types, dict(site.domains))

    def find(self, name: tuple[str, ...]) -> _Sized | None:
        number = self.scope.find(name)
        found = None if number is None else self.types.get(number)
        if number is None or found is None:
            return None
        return _Sized(found.plain()) if self.scope.is_bare(name) else _Sized(found, self.domains.get(number, ""))

    def find_taken(self, name: tuple[str, ...]) -> Type | None:
        """Find the type of a column with the length or precision that a cast below took away."""
        number = self.scope.find(name) if self.scope.is_bare(name) else None
        found = None if number is None else self.types.get(number)
        return None if found is None or found.size is None else found


def _find_sized(key: Json, columns: _Columns) -> _Sized | None:
    found = _find_type(key, columns)
    return None if found is None or found.type.size is None else found


def _find_compared(key: Json, columns: _Columns) -> _Sized | None:
    """The left side of a NULLIF that is numeric: numbers of any type but a double are compared with it as it is."""
    body = kind(key)[1]
    left = _find_sized(body.get("lexpr"), columns) if body.get("kind") == "AEXPR_NULLIF" else None
    return left if left is not None and left.type.base == "numeric" and not left.domain else None


def _find_type(node: Json, columns: _Columns) -> _Sized | None:
    """The type with its length or precision, where PostgreSQL keeps one (exprTypmod)."""
    name, body = kind(node)
    match name:
        case "ColumnRef":
            return columns.find(strings(body.get("fields")))
        case "TypeCast":
            null: Json = {"TypeCast": {**body, "arg": {"A_Const": {"isnull": True}}}}
            written = find_type(deparse_expression(null).removeprefix("NULL::"))
            return None if written is None else _Sized(written)
        case "A_Expr" if body.get("kind") == "AEXPR_NULLIF":
            left, right = _find_type(body.get("lexpr"), columns), body.get("rexpr")
            return left if left is not None and _stays(left, right, _find_type(right, columns)) else None
        case "CoalesceExpr" | "MinMaxExpr" | "CaseExpr":
            types = {_find_type(branch, columns) for branch in _branches(name, body)}
            return types.pop() if len(types) == 1 else None
    return None


def _stays(left: _Sized, right: Json, right_type: _Sized | None) -> bool:
    """Return whether NULLIF compares the left side as it is: a varchar becomes a text, and a domain what is below."""
    name, body = kind(right)
    if left.domain or left.type.base == "varchar":
        return False
    if name == "A_Const":
        return left.type.base == "numeric" or not {"sval", "isnull"}.isdisjoint(body)
    if left.type.base == "numeric":
        return right_type is not None and right_type.type.kind in ("integer", "numeric")
    alike = ("bpchar", "varchar") if left.type.base == "bpchar" else (left.type.base,)
    return right_type is not None and right_type.type.base in alike


def _branches(name: str, body: Node) -> Iterator[Json]:
    """What an expression may return; a CASE without ELSE may return a NULL that has no length."""
    if name == "CaseExpr":
        yield from (kind(when)[1].get("result") for when in items(body, "args"))
        yield body.get("defresult")
    else:
        yield from items(body, "args")


def named_below(body: Node, leaves: Leaves) -> dict[str, int]:
    """The keys that a subquery may mean by a name without a table: PostgreSQL looks for it in the subquery first."""
    subqueries: list[Json] = [*holders([body.get(clause) for clause in ABOVE], "SelectStmt")]
    references = bodies(subqueries, "ColumnRef")
    bare = {fields[0] for each in references if len(fields := strings(each.get("fields"))) == 1}
    named = {
        strings(kind(key)[1].get("fields"))[-1]: number
        for number, key in enumerate(leaves.keys)
        if kind(key)[0] == "ColumnRef"
    }
    return {name: number for name, number in named.items() if name in bare}
