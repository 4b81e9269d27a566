"""Error bars around columns of a subquery or CTE move into it, to the aggregates of which these are computed.

SELECT m, noisegate.low(m) FROM (SELECT avg(x) AS m FROM t) AS a is SELECT m, a.bar FROM (SELECT avg(x) AS m,
noisegate.low(avg(x)) AS bar FROM t) AS a. The new column is seen by nobody else: where a star would show it, the star
is written out, and where that cannot be done the bar stays where it is, to be refused.
"""

from collections.abc import Iterator

from rules.frozen import frozen
from rules.planner.error_bars import argument_of, bar_name
from rules.planner.find_blocks import is_aggregate
from rules.planner.tables import Tables
from rules.sql.selects import column_name
from rules.sql.tree import Index, Json, Node, bodies, copied, holders, items, kind, strings, walk

_MOST = 100  # moves of bars, each by one level
_NAME = "_ngbar"


@frozen
class _Entry:
    """A subquery or CTE in FROM: its SELECT, the names of its columns, and every SELECT that reads it."""

    alias: str
    body: Node
    names: tuple[str, ...]  # of the select items, in their order; "*" for a star
    readers: tuple[Node, ...]


def push_error_bars(index: Index, _: Tables) -> Node:
    """Move all bars as far as they go."""
    has_bars = any(map(bar_name, index.holders("FuncCall")))
    if not has_bars or any(node["isNatural"] for node in index.holders("isNatural")):
        return index.tree
    made = copied(index.tree)
    number = 0
    while number < _MOST and _push_one(made, f"{_NAME}{number}"):
        number += 1
    return made if number else index.tree


def _push_one(query: Node, name: str) -> bool:
    for body in [node for node in holders(query, "fromClause") if "targetList" in node]:
        if items(body, "groupClause") or any(is_aggregate(node) for node in _own(body)):
            continue
        for bar in [node for node in _own(body) if bar_name(node)]:
            entry = _entry_of(bar, body, query)
            if entry is not None and _write_stars_out(entry):
                _move(bar, body, entry, name)
                return True
    return False


def _own(node: Json, *, is_top: bool = True) -> Iterator[Node]:
    """The nodes of one SELECT without those of SELECTs in it."""
    if isinstance(node, list):
        for child in node:
            yield from _own(child, is_top=False)
    elif isinstance(node, dict) and (is_top or kind(node)[0] not in ("SelectStmt", "CommonTableExpr")):
        yield node
        for child in node.values():
            yield from _own(child, is_top=False)


def _entry_of(bar: Node, body: Node, query: Node) -> _Entry | None:
    """The one item of FROM of which all columns in a bar come, if it is a SELECT that may have one more."""
    columns = [strings(body.get("fields")) for body in bodies(argument_of(bar), "ColumnRef")]
    if not columns or holders(argument_of(bar), "SelectStmt"):
        return None
    entries = [entry for source in items(body, "fromClause") for entry in _entries(source, body, query)]
    fitting = [entry for entry in entries if all(_has(entry, fields) for fields in columns)]
    return fitting[0] if len(fitting) == 1 else None


def _has(entry: _Entry, fields: tuple[str, ...]) -> bool:
    if len(fields) == 2 and fields[0] != entry.alias:
        return False
    return len(fields) <= 2 and (fields[-1] in entry.names or entry.names.count("*") == 1)


def _entries(source: Json, body: Node, query: Node) -> Iterator[_Entry]:
    name, item = kind(source)
    alias = kind({"Alias": item.get("alias")})[1]
    shown = str(alias.get("aliasname") or item.get("relname") or "")
    if name == "JoinExpr":
        yield from _entries(item.get("larg"), body, query)
        yield from _entries(item.get("rarg"), body, query)
    elif name == "RangeSubselect" and not item.get("lateral"):
        yield from _entry(shown, kind(item.get("subquery"))[1], strings(alias.get("colnames")), (body,))
    elif name == "RangeVar" and "schemaname" not in item and (cte := _cte(str(item["relname"]), query)) is not None:
        named = strings(alias.get("colnames")) or strings(cte.get("aliascolnames"))
        yield from _entry(shown, kind(cte.get("ctequery"))[1], named, tuple(_readers(str(item["relname"]), query)))


def _entry(alias: str, body: Node, named: tuple[str, ...], readers: tuple[Node, ...]) -> Iterator[_Entry]:
    if body.get("op") != "SETOP_NONE" or "distinctClause" in body or not items(body, "targetList"):
        return
    targets = tuple(kind(target)[1] for target in items(body, "targetList"))
    names = tuple(
        "*" if _is_star(target) else str(target.get("name") or column_name(target.get("val"))) for target in targets
    )
    if named and "*" in names:
        return
    yield _Entry(alias, body, (*named, *names[len(named) :]), readers)


def _cte(name: str, query: Node) -> Node | None:
    """The only CTE of this name."""
    clauses = bodies(query, "withClause")
    if any(isinstance(clause, dict) and clause.get("recursive") for clause in clauses):
        return None
    ctes = [kind(cte)[1] for clause in clauses if isinstance(clause, dict) for cte in items(clause, "ctes")]
    nodes = [cte for cte in ctes if cte.get("ctename") == name]
    return nodes[0] if len(nodes) == 1 else None


def _readers(name: str, query: Node) -> Iterator[Node]:
    """The SELECTs that have a table of this name in FROM."""
    for body in walk(query):
        sources = [node for source in items(body, "fromClause") for node in _own(source)]
        if any(kind(node)[0] == "RangeVar" and kind(node)[1].get("relname") == name for node in sources):
            yield body


def _is_star(target: Node) -> bool:
    return kind(target.get("val"))[0] == "ColumnRef" and bool(holders(target.get("val"), "A_Star"))


def _write_stars_out(entry: _Entry) -> bool:
    """Return whether nobody sees one more column: stars over the entry alone become its columns, others may not be."""
    for body in entry.readers:
        if any(_is_whole_row(node, entry) for node in _own(body)):
            return False
        has_star = any(_is_star(kind(target)[1]) for target in items(body, "targetList"))
        if has_star and (len(items(body, "fromClause")) > 1 or "JoinExpr" in str(body["fromClause"])):
            return False
        if has_star and ("*" in entry.names or len(set(entry.names)) < len(entry.names)):
            return False
    for body in entry.readers:
        written: list[Json] = []
        for target in items(body, "targetList"):
            is_star = _is_star(kind(target)[1])
            written += [{"ResTarget": {"val": _column(name)}} for name in entry.names] if is_star else [target]
        body["targetList"] = written
    return True


def _is_whole_row(node: Node, entry: _Entry) -> bool:
    name, body = kind(node)
    return name == "ColumnRef" and strings(body.get("fields")) == (entry.alias,) and entry.alias not in entry.names


def _move(bar: Node, body: Node, entry: _Entry, name: str) -> None:
    """The bar as a column of the entry's SELECT, around what its own columns are made of."""
    for target in items(body, "targetList"):
        if any(node is bar for node in walk(target)):
            item = kind(target)[1]
            item.setdefault("name", column_name(item.get("val")))
    values = dict(
        zip(entry.names, (kind(target)[1].get("val") for target in items(entry.body, "targetList")), strict=True)
    )
    inner = _within(bar, values)
    items(entry.body, "targetList").append({"ResTarget": {"name": name, "val": inner}})
    bar.clear()
    bar.update(_column(entry.alias, name))


def _within(node: Json, values: dict[str, Json]) -> Json:
    """An expression over columns as one over what these are; what a star brings keeps its name."""
    if isinstance(node, list):
        return [_within(child, values) for child in node]
    if not isinstance(node, dict):
        return node
    name, body = kind(node)
    if name == "ColumnRef":
        last = strings(body.get("fields"))[-1]
        return copied(values[last]) if last in values else _column(last)
    return {key: _within(child, values) for key, child in node.items()}


def _column(*names: str) -> Node:
    return {"ColumnRef": {"fields": [{"String": {"sval": name}} for name in names]}}
