"""An inner query as a statement of its own, with the CTEs that it sees where it stands."""

from rules.refusal import NotSupported
from rules.relation.released import Inner, TableColumn
from rules.relation.render import qualified, text_constant
from rules.rewrite.decorrelate import grouped
from rules.sql.grammar import Json, Node, deparse, items, kind
from rules.sql.selects import numbered


def statement_of(query: Node, inner: Inner) -> str:
    """The text that answers what is asked of an inner query of this statement."""
    if inner.column is not None:
        return _values_of(inner.column)
    if inner.use == "reading":
        return _reading_of(inner)
    target = _with_operations(query, numbered(query)[inner.select], inner.depth)
    path = _path(query, target)
    assert path is not None, "the planner's queries are numbered as they stand in the tree"
    ctes, recursive = _seen(path)
    statement = _asked(target, inner)
    if not ctes:
        return deparse({"SelectStmt": statement})
    if "withClause" in statement:
        statement = _select([_item({"ColumnRef": {"fields": [{"A_Star": {}}]}})], [_named(statement)])
    statement["withClause"] = {"ctes": ctes} | ({"recursive": True} if recursive else {})
    return deparse({"SelectStmt": statement})


def _values_of(column: TableColumn) -> str:
    """The distinct values in the twin's copy; none where the table is not open there."""
    table = text_constant(qualified(column.table))
    return f"SELECT noisegate.public_values({table}::pg_catalog.regclass, {text_constant(column.name)}) AS value"


def _reading_of(inner: Inner) -> str:
    """The literals and what they are as values, NULL for those that are none: what the session's own input says."""
    texts = ", ".join(map(text_constant, inner.literals))
    value = f"CASE WHEN pg_catalog.pg_input_is_valid(t, {text_constant(inner.type)}) THEN t::{inner.type} END"
    return (
        f"SELECT t AS literal, {value} AS value"
        f" FROM pg_catalog.unnest(ARRAY[{texts}]::pg_catalog.text[]) WITH ORDINALITY AS u(t, n) ORDER BY n"
    )


def _asked(target: Node, inner: Inner) -> Node:
    match inner.use:
        case "rows":
            return dict(target)
        case "lookup":
            return grouped(target, inner.links)[0]
    return _select([_item(_sub_link(target, inner.use))])


def _with_operations(tree: Json, body: Node, depth: int) -> Node:
    """The UNION, INTERSECT or EXCEPT that begins with a SELECT, as many levels above it."""
    for _ in range(depth):
        body = next(each for each in _bodies(tree) if each.get("larg") is body)
    return body


def _bodies(tree: Json) -> list[Node]:
    found: list[Node] = []
    match tree:
        case list():
            for child in tree:
                found += _bodies(child)
        case dict():
            found.append(tree)
            for child in tree.values():
                found += _bodies(child)
    return found


def _path(tree: Json, target: Node) -> list[Node] | None:
    """All nodes from the top to one of them, itself last."""
    if tree is target:
        return [target]
    children = tree if isinstance(tree, list) else list(tree.values()) if isinstance(tree, dict) else []
    for child in children:
        if (found := _path(child, target)) is not None:
            return [tree, *found] if isinstance(tree, dict) else found
    return None


def _seen(path: list[Node]) -> tuple[list[Json], bool]:
    """The CTEs of all queries around the last one; one CTE sees those before it, or all where they are recursive."""
    found: list[Json] = []
    recursive = False
    for node in path[:-1]:
        clause = node.get("withClause")
        if not isinstance(clause, dict):
            continue
        ctes = items(clause, "ctes")
        inside = next((place for place, cte in enumerate(ctes) if any(kind(cte)[1] is each for each in path)), None)
        recursive = recursive or bool(clause.get("recursive"))
        found += ctes if inside is None or clause.get("recursive") else ctes[:inside]
    names = [str(kind(cte)[1].get("ctename")) for cte in found]
    if len(set(names)) < len(names):
        raise NotSupported("a name of WITH hides another one around it", hint="Give every CTE a name of its own.")
    return found, recursive


def _select(targets: list[Json], sources: list[Json] | None = None) -> Node:
    made: Node = {"targetList": targets, "limitOption": "LIMIT_OPTION_DEFAULT", "op": "SETOP_NONE"}
    return made if sources is None else made | {"fromClause": sources}


def _item(value: Json) -> Json:
    return {"ResTarget": {"val": value}}


def _sub_link(target: Node, use: str) -> Json:
    link = "EXPR_SUBLINK" if use == "value" else "EXISTS_SUBLINK"
    return {"SubLink": {"subLinkType": link, "subselect": {"SelectStmt": target}}}


def _named(target: Node) -> Json:
    return {"RangeSubselect": {"subquery": {"SelectStmt": target}, "alias": {"aliasname": "inner"}}}
