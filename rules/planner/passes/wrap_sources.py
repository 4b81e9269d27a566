"""FROM f(…) AS d becomes FROM (SELECT * FROM f(…) AS d) AS d, and a list of VALUES likewise: one kind of item less.

A function that reads the items beside it stays as it is.
"""

from collections.abc import Iterator

from rules.planner.tables import Tables
from rules.sql.grammar import Json, Node, bodies, holders, items, kind, strings, walk
from rules.sql.tree import copied


def wrap_sources(tree: Node, _: Tables) -> Node:
    """Make a query of every function and list of VALUES in FROM."""
    has_such = holders(tree, "RangeFunction") or holders(tree, "valuesLists")
    if not has_such or not any(map(_is_wrapped, _sources(tree))):
        return tree
    made = copied(tree)
    for owner in list(walk(made)):
        sources = items(owner, "fromClause")
        sources[:] = map(_as_query, sources)
        for side in ("larg", "rarg"):
            if side in owner:
                owner[side] = _as_query(owner[side])
    return made


def _sources(tree: Node) -> Iterator[Json]:
    for owner in holders(tree, "fromClause"):
        yield from items(owner, "fromClause")
    for side in ("larg", "rarg"):
        yield from (owner[side] for owner in holders(tree, side))


def _is_wrapped(item: Json) -> bool:
    name, body = kind(item)
    is_values = name == "RangeSubselect" and bool(items(kind(body.get("subquery"))[1], "valuesLists"))
    is_bare = (is_values or name == "RangeFunction") and not body.get("lateral")
    return is_bare and not holders(body, "ColumnRef")


def _as_query(item: Json) -> Json:
    if not _is_wrapped(item):
        return item
    body = kind(item)[1]
    alias = kind({"Alias": body.get("alias")})[1].get("aliasname") or _function_name(body)
    query: Node = {
        "targetList": [{"ResTarget": {"val": {"ColumnRef": {"fields": [{"A_Star": {}}]}}}}],
        "fromClause": [item],
        "limitOption": "LIMIT_OPTION_DEFAULT",
        "op": "SETOP_NONE",
    }
    return {"RangeSubselect": {"subquery": {"SelectStmt": query}, "alias": {"aliasname": alias}}}


def _function_name(body: Node) -> str:
    """Return what FROM f(…) without an alias is called."""
    calls = (strings(call.get("funcname")) for call in bodies(body, "FuncCall"))
    return next((names[-1] for names in calls if names), "f")
