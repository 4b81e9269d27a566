"""Whether a SELECT shows nothing but the groups with the largest counts: ORDER BY count … DESC LIMIT n."""

from typing import Final

from rules.planner.block_leaves import is_aggregate
from rules.sql.grammar import Json, Node, items, kind, strings, walk
from rules.sql.selects import column_name

_COMPUTED_OF_ALL: Final = ("havingClause", "distinctClause", "windowClause", "valuesLists", "lockingClause")


def find_top(body: Node) -> int | None:
    """How many groups are shown of all, or skipped; None where something else is asked of the others."""
    count, offset = _constant(body.get("limitCount")), _constant(body.get("limitOffset"))
    if not count or body.get("limitOption") != "LIMIT_OPTION_COUNT" or (offset is None and "limitOffset" in body):
        return None
    if any(body.get(clause) for clause in _COMPUTED_OF_ALL):
        return None
    above = [part for clause in ("targetList", "sortClause") for part in walk_all(items(body, clause))]
    if any(kind(part)[0] == "SubLink" or kind(part)[1].get("over") for part in above):
        return None
    orders = items(body, "sortClause")
    return count + (offset or 0) if orders and _is_descending_count(orders[0], body) else None


def walk_all(nodes: list[Json]) -> list[Node]:
    return [part for node in nodes for part in walk(node)]


def _constant(node: Json) -> int | None:
    value = kind(node)[1].get("ival") if kind(node)[0] == "A_Const" else None
    found = value.get("ival") if isinstance(value, dict) else None
    return found if isinstance(found, int) and found > 0 else None


def _is_descending_count(order: Json, body: Node) -> bool:
    """By an aggregate itself, or by the name or the place of one among the columns."""
    sort = kind(order)[1]
    if sort.get("sortby_dir") != "SORTBY_DESC":
        return False
    node, targets = sort.get("node"), items(body, "targetList")
    if (place := _constant(node)) is not None:
        return place <= len(targets) and is_aggregate(kind(targets[place - 1])[1].get("val"))
    match kind(node):
        case "ColumnRef", reference if len(name := strings(reference.get("fields"))) == 1:
            named = [kind(each)[1] for each in targets]
            found = [each.get("val") for each in named if (each.get("name") or column_name(each.get("val"))) == name[0]]
            return len(found) == 1 and is_aggregate(found[0])
    return is_aggregate(node)
