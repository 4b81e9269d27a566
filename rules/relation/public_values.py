"""The values that a column of a public table has: a list of groups that tells nothing of protected rows.

They are asked of the twin's copy, when a query is grouped by such a column and nothing else lists its groups. The copy
may be older than the table, so the list is enforced like a declared one: a row with another value is in no group.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from rules.relation import domain
from rules.relation.domain import ANYTHING, Values
from rules.relation.expression import Column, Expression, columns_in
from rules.relation.functions.coerce import literal
from rules.relation.nodes import Node, Scan, scans_in
from rules.relation.released import AnswerFirst, Inner, Released, TableColumn
from rules.relation.scope import World

MOST = 10_000
_LONGEST = 50_000  # characters of all values together: they stand in the inner statement
_KINDS = ("boolean", "integer", "numeric", "date", "timestamp", "timestamptz", "text", "enum", "uuid")


def with_known_values(node: Scan, world: World) -> Scan:
    """A public table whose columns have the values that were listed for this statement."""
    if node.facts.unit is not None or not world.released:
        return node
    known = {released.inner.column: released for released in world.released if released.inner.column is not None}
    names = dict(node.names)
    found = {column.id: known.get(TableColumn(node.table, names[column.id])) for column in node.facts.columns}
    columns = tuple(
        column if (released := found[column.id]) is None else _listed(column, released, world)
        for column in node.facts.columns
    )
    return replace(node, facts=replace(node.facts, columns=columns))


def demand_values(node: Node, keys: tuple[Expression, ...], world: World, limit: int) -> None:
    """Ask for the values of the public columns in keys, if with them all groups could be listed."""
    public = {number: (scan, name) for scan in scans_in(node) for number, name in _public_names(scan)}
    asked = {released.inner.column for released in world.released}
    missing: list[TableColumn] = []
    for key in keys:
        if domain.items_of(key.domain, limit) is not None:
            continue
        for column in columns_in(key):
            if column.id not in public or column.type.kind not in _KINDS:
                return
            scan, name = public[column.id]
            missing.append(TableColumn(scan.table, name))
    for place in missing:
        if place not in asked:
            raise AnswerFirst(Inner(use="values", column=place))


def _public_names(scan: Scan) -> Iterator[tuple[int, str]]:
    return iter(scan.names if scan.facts.unit is None else ())


def _listed(column: Column, released: Released, world: World) -> Column:
    """The column with its list; as it was, where the list is too long or not open."""
    texts = [text for (text,) in released.rows if text is not None]
    if not texts or len(texts) >= MOST or sum(map(len, texts)) > _LONGEST or column.declared != ANYTHING:
        return column
    items = [literal(text, column.type, world.setting()).value for text in texts]
    plain = [item for item in items if isinstance(item, Fraction | str | bool)]
    if len(plain) < len(items):
        return column
    if column.type.kind == "enum":
        return replace(column, declared=Values(tuple(label for label in column.type.labels if label in plain)))
    return replace(column, declared=domain.values(plain))
