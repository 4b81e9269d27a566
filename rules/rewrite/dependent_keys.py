"""GROUP BY a primary key: the other columns of its table may then be selected, and are keys of the groups as well.

SELECT c.id, c.city, count(*) FROM customers AS c … GROUP BY c.id is … GROUP BY c.id, c.city. PostgreSQL accepts the
first for it is known to mean the second; here it is written out, so that the rest of the planner sees plain keys.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rules.catalog import Table
from rules.rewrite.cut import is_aggregate
from rules.sql.grammar import Json, Node, items, kind, strings, walk

Find = Callable[[str | None, str], Table | None]


@dataclass(frozen=True, slots=True)
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


def write_dependent_keys(query: Node, find: Find) -> None:
    """Write the columns that a primary key in GROUP BY determines into GROUP BY, in place."""
    for body in [node for node in walk(query) if items(node, "groupClause") and "targetList" in node]:
        groups = [_resolved(each, body) for each in items(body, "groupClause")]
        if any(kind(each)[0] == "GroupingSet" for each in groups):
            continue
        found = list(_tables(items(body, "fromClause"), find))
        for item in found:
            if len([each for each in found if each.name == item.name]) == 1:
                _write_out(body, item, [strings(kind(each)[1].get("fields")) for each in groups])


def _write_out(body: Node, item: _Item, grouped: list[tuple[str, ...]]) -> None:
    own = {fields[-1] for fields in grouped if fields and item.has(fields)}
    if not item.key or not item.key <= own:
        return
    sorted_by = [kind(each)[1].get("node") for each in items(body, "sortClause")]
    clauses = [
        body.get("targetList"),
        body.get("havingClause"),
        *(each for each in sorted_by if not _is_alias(each, body)),
    ]
    for node in [node for clause in clauses for node in _columns(clause)]:
        fields = strings(kind(node)[1].get("fields"))
        if fields and item.has(fields) and fields[-1] not in own:
            own.add(fields[-1])
            body["groupClause"] = [*items(body, "groupClause"), node]


def _resolved(group: Json, body: Node) -> Json:
    """GROUP BY 1 is the first select item, and GROUP BY name one of that alias."""
    name, given = kind(group)
    targets = [kind(each)[1] for each in items(body, "targetList")]
    if name == "A_Const" and isinstance(value := given.get("ival"), dict):
        place = int(str(value.get("ival", 0)))
        return targets[place - 1].get("val") if 0 < place <= len(targets) else group
    return group


def _is_alias(ordered: Json, body: Node) -> bool:
    """A bare name in ORDER BY is an alias first, which needs no key."""
    fields = strings(kind(ordered)[1].get("fields")) if kind(ordered)[0] == "ColumnRef" else ()
    return len(fields) == 1 and fields[0] in [kind(each)[1].get("name") for each in items(body, "targetList")]


def _tables(given: Json, find: Find) -> Iterator[_Item]:
    """Tables in FROM, in joins too; what is in a subquery there is not."""
    if isinstance(given, list):
        for each in given:
            yield from _tables(each, find)
        return
    name, body = kind(given)
    if name == "JoinExpr" and not body.get("alias"):
        yield from _tables([body.get("larg"), body.get("rarg")], find)
    elif name == "RangeVar":
        schema, alias = body.get("schemaname"), body.get("alias")
        table = find(None if schema is None else str(schema), str(body["relname"]))
        if table is not None and not (isinstance(alias, dict) and items(alias, "colnames")):
            yield _Item(str(alias["aliasname"]) if isinstance(alias, dict) else str(body["relname"]), table)


def _columns(node: Json) -> Iterator[Node]:
    """The columns outside of aggregates and of subqueries."""
    if isinstance(node, list):
        for each in node:
            yield from _columns(each)
    elif isinstance(node, dict):
        name, body = kind(node)
        if name == "ColumnRef" and all(kind(field)[0] == "String" for field in items(body, "fields")):
            yield node
        elif name != "SubLink" and not is_aggregate(node):
            for child in node.values():
                yield from _columns(child)
