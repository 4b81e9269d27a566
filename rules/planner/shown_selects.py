"""The SELECTs whose columns a client sees as they are: the outermost one, and those of which it only shows columns.

Tools put their queries into others, as SELECT * FROM (…) LIMIT 100. The same question is to have the same numbers then.
"""

from collections.abc import Iterator

from rules.sql.grammar import Json, Node, items, kind, walk

_COMPUTING = ("whereClause", "groupClause", "havingClause", "distinctClause", "windowClause", "valuesLists")


def shown_selects(query: Node, ctes: dict[str, Node] | None = None) -> Iterator[Node]:
    """The bodies of these SELECTs."""
    body = kind(query)[1]
    known = dict(ctes or {})
    clause = body.get("withClause")
    if isinstance(clause, dict):
        if clause.get("recursive"):
            return
        known |= {str(kind(cte)[1].get("ctename")): kind(cte)[1] for cte in items(clause, "ctes")}
    if body.get("op") == "SETOP_UNION" and body.get("all"):
        for side in ("larg", "rarg"):
            yield from shown_selects({"SelectStmt": body[side]}, known)
        return
    yield body
    if body.get("op") == "SETOP_NONE" and _only_shows(body) and (inner := source_of(body, known)) is not None:
        yield from shown_selects(inner, known)


def _only_shows(body: Node) -> bool:
    """Tell whether a SELECT computes nothing, and reads one thing; an order is by one of its columns."""
    if any(items(body, name) or isinstance(body.get(name), dict) for name in _COMPUTING):
        return False
    shown = [kind(target)[1].get("val") for target in items(body, "targetList")]
    ordered = [kind(sort_key)[1].get("node") for sort_key in items(body, "sortClause")]
    return len(items(body, "fromClause")) == 1 and all(map(_is_column, (*shown, *ordered)))


def _is_column(node: Json) -> bool:
    """A column, or its number in ORDER BY."""
    return kind(node)[0] in ("ColumnRef", "A_Const")


def source_of(body: Node, ctes: dict[str, Node]) -> Node | None:
    """The query that is read: a subquery, or a CTE that nothing else reads."""
    name, source = kind(items(body, "fromClause")[0])
    if name == "RangeSubselect" and not source.get("lateral"):
        inner = source.get("subquery")
        return inner if isinstance(inner, dict) else None
    if name != "RangeVar" or "schemaname" in source:
        return None
    called = str(source.get("relname"))
    cte = ctes.get(called)
    readers = sum(node.get("relname") == called for cte in (body, *ctes.values()) for node in walk(cte))
    inner = None if cte is None else cte.get("ctequery")
    return inner if isinstance(inner, dict) and readers <= 2 else None  # `body` holds the clause of its CTEs too
