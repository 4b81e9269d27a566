"""GROUP BY a primary key: the other columns of its table may then be selected, and are keys of the groups as well.

SELECT c.id, c.city, count(*) FROM customers AS c … GROUP BY c.id is … GROUP BY c.id, c.city. PostgreSQL accepts the
first for it is known to mean the second; here it is written out, so that the rest of the planner sees plain keys.
"""

from collections.abc import Iterator

from rules.catalog import Table
from rules.frozen import frozen
from rules.planner.find_blocks import is_aggregate
from rules.planner.tables import Tables
from rules.sql.tree import Index, Json, Node, items, kind, strings


@frozen
class _Item:
    """A table in FROM, under its name there."""

    name: str
    table: Table

    @property
    def key(self) -> frozenset[str]:
        return next((frozenset(key.columns) for key in self.table.keys if key.primary), frozenset())

    def has(self, fields: tuple[str, ...]) -> bool:
        qualified = len(fields) == 1 or fields[-2] == self.name
        return qualified and any(column.name == fields[-1] for column in self.table.columns)


def expand_dependent_keys(index: Index, tables: Tables) -> Node:
    """Write the columns that a primary key in GROUP BY determines into GROUP BY."""
    selects = [node for node in index.holders("groupClause") if items(node, "groupClause") and "targetList" in node]
    written = {id(body): keys for body in selects if (keys := _dependent_keys(body, tables))}
    made = _with_keys(index.tree, written) if written else index.tree
    assert isinstance(made, dict)
    return made


def _with_keys(node: Json, written: dict[int, list[Json]]) -> Json:
    if isinstance(node, list):
        return [_with_keys(child, written) for child in node]
    if not isinstance(node, dict):
        return node
    made = {name: _with_keys(child, written) for name, child in node.items()}
    if id(node) in written:
        made["groupClause"] = [*items(made, "groupClause"), *written[id(node)]]
    return made


def _dependent_keys(body: Node, tables: Tables) -> list[Json]:
    groups = [_resolved(group_key, body) for group_key in items(body, "groupClause")]
    if any(kind(group)[0] == "GroupingSet" for group in groups):
        return []
    grouped = [strings(kind(group)[1].get("fields")) for group in groups]
    found = list(_tables(items(body, "fromClause"), tables))
    alone = [item for item in found if [item.name for item in found].count(item.name) == 1]
    return [key for item in alone for key in _keys_of(body, item, grouped)]


def _keys_of(body: Node, item: _Item, grouped: list[tuple[str, ...]]) -> Iterator[Json]:
    own = {fields[-1] for fields in grouped if fields and item.has(fields)}
    if not item.key or not item.key <= own:
        return
    sorted_by = [kind(sort_key)[1].get("node") for sort_key in items(body, "sortClause")]
    clauses = [
        body.get("targetList"),
        body.get("havingClause"),
        *(node for node in sorted_by if not _is_alias(node, body)),
    ]
    for node in [node for clause in clauses for node in _columns(clause)]:
        fields = strings(kind(node)[1].get("fields"))
        if fields and item.has(fields) and fields[-1] not in own:
            own.add(fields[-1])
            yield node


def _resolved(group: Json, body: Node) -> Json:
    """GROUP BY 1 is the first select item, and GROUP BY name one of that alias."""
    name, node = kind(group)
    targets = [kind(target)[1] for target in items(body, "targetList")]
    if name == "A_Const" and isinstance(value := node.get("ival"), dict):
        place = int(str(value.get("ival", 0)))
        return targets[place - 1].get("val") if 0 < place <= len(targets) else group
    return group


def _is_alias(ordered: Json, body: Node) -> bool:
    """A bare name in ORDER BY is an alias first, which needs no key."""
    fields = strings(kind(ordered)[1].get("fields")) if kind(ordered)[0] == "ColumnRef" else ()
    return len(fields) == 1 and fields[0] in [kind(target)[1].get("name") for target in items(body, "targetList")]


def _tables(node: Json, tables: Tables) -> Iterator[_Item]:
    """Tables in FROM, in joins too; what is in a subquery there is not."""
    if isinstance(node, list):
        for part in node:
            yield from _tables(part, tables)
        return
    name, body = kind(node)
    if name == "JoinExpr" and not body.get("alias"):
        yield from _tables([body.get("larg"), body.get("rarg")], tables)
    elif name == "RangeVar":
        schema, alias = body.get("schemaname"), body.get("alias")
        table = tables.find(None if schema is None else str(schema), str(body["relname"]))
        if table is not None and not (isinstance(alias, dict) and items(alias, "colnames")):
            yield _Item(str(alias["aliasname"]) if isinstance(alias, dict) else str(body["relname"]), table)


def _columns(node: Json) -> Iterator[Node]:
    """The columns outside of aggregates and of subqueries."""
    if isinstance(node, list):
        for part in node:
            yield from _columns(part)
    elif isinstance(node, dict):
        name, body = kind(node)
        if name == "ColumnRef" and all(kind(field)[0] == "String" for field in items(body, "fields")):
            yield node
        elif name != "SubLink" and not is_aggregate(node):
            for child in node.values():
                yield from _columns(child)
