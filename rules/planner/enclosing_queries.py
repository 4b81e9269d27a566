"""Find the queries around a block that compute nothing: they only show its columns, or its largest groups.

Tools put their queries into others, as SELECT * FROM (…) LIMIT 100. The same question is to have the same numbers then.
SELECT * FROM (SELECT k, count(*) AS n … GROUP BY k) AS t ORDER BY n DESC LIMIT 5 asks what ORDER BY and LIMIT inside
ask, and so does … WHERE r <= 5 where r is row_number() or rank() OVER (ORDER BY n DESC).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rules.planner.find_blocks import find_top, is_aggregate
from rules.sql.selects import column_name
from rules.sql.tree import Json, Node, items, kind, strings, walk

_COMPUTING: Final = (
    "groupClause", "havingClause", "distinctClause", "windowClause", "valuesLists", "lockingClause",
)  # fmt: skip
_RANKS: Final = ("row_number", "rank")
_WINDOW: Final = {"orderClause", "frameOptions", "location"}  # of an OVER that ranks all groups

_CHANGING = ("whereClause", "groupClause", "havingClause", "distinctClause", "windowClause", "valuesLists")


def find_shown(query: Node, block: Node) -> int | None:
    """Return how many of a block's groups are shown of all, or skipped; None where more is asked of the others."""
    return find_top(block) or _find_outer_top(query, block)


def _find_outer_top(query: Node, block: Node) -> int | None:
    path = _path(kind(query)[1], block, {})
    if path is None or len(path) < 2 or any(block.get(clause) for clause in (*_COMPUTING[1:], "limitCount")):
        return None
    windows = _windows(block)
    for place in range(len(path) - 2, -1, -1):
        body = path[place]
        if len(windows) == 1 and (count := _ranked(body, path[place + 1 :], windows[0])) is not None:
            return count
        windows += _windows(body)
        if body.get("whereClause"):
            return None
        if body.get("limitCount"):
            return _limited(body, path[place:]) if not windows else None
    return None


def _path(body: Node, block: Node, ctes: dict[str, Node]) -> list[Node] | None:
    """The queries from the outermost one to the block, each of which reads the next one alone."""
    if any(kind(part)[0] == "SubLink" for part in _shown(body)):
        return None
    if body is block:
        return [body]
    clause = body.get("withClause")
    if isinstance(clause, dict):
        if clause.get("recursive"):
            return None
        ctes = ctes | {str(kind(cte)[1].get("ctename")): kind(cte)[1] for cte in items(clause, "ctes")}
    is_plain = body.get("op") == "SETOP_NONE" and not any(body.get(name) for name in _COMPUTING)
    sources = items(body, "fromClause")
    if not is_plain or len(sources) != 1 or any(is_aggregate(part) and not _over(part) for part in _shown(body)):
        return None
    alias = kind({"Alias": kind(sources[0])[1].get("alias")})[1]
    inner = _source_of(body, ctes)
    if inner is None or alias.get("colnames") or any(cte.get("aliascolnames") for cte in ctes.values()):
        return None
    rest = _path(kind(inner)[1], block, ctes)
    return None if rest is None else [body, *rest]


def _shown(body: Node) -> list[Node]:
    clauses: list[Json] = [*items(body, "targetList"), *items(body, "sortClause")]
    return [part for clause in (*clauses, body.get("whereClause")) for part in walk(clause)]


def _over(node: Node) -> Node | None:
    over = kind(node)[1].get("over")
    return over if isinstance(over, dict) else None


def _windows(body: Node) -> list[Node]:
    return [part for part in _shown(body) if _over(part) is not None]


def _limited(body: Node, path: Sequence[Node]) -> int | None:
    count, offset = _number(body.get("limitCount")), _number(body.get("limitOffset"))
    orders = items(body, "sortClause")
    is_plain = body.get("limitOption") == "LIMIT_OPTION_COUNT" and (offset is not None or "limitOffset" not in body)
    if count is None or not is_plain or not orders or not _is_largest_first(orders[0], path):
        return None
    return count + (offset or 0)


def _ranked(body: Node, path: Sequence[Node], window: Node) -> int | None:
    """The k of a condition r <= k, r being the rank of a group by its count."""
    for condition in _conjuncts(body.get("whereClause")):
        name, test = kind(condition)
        if name != "A_Expr" or test.get("kind") != "AEXPR_OP":
            continue
        count, (sign,) = _number(test.get("rexpr")), strings(test.get("name"))[-1:]
        most = {"<=": count, "<": None if count is None else count - 1, "=": 1 if count == 1 else None}.get(sign)
        meaning = _meaning(test.get("lexpr"), path)
        if most and meaning is not None and meaning[0] is kind(window)[1] and _ranks(window, path[meaning[1] :]):
            return most
    return None


def _ranks(window: Node, path: Sequence[Node]) -> bool:
    body, over = kind(window)[1], _over(window) or {}
    names = strings(body.get("funcname"))
    orders = items(over, "orderClause")
    return (
        names[-1] in _RANKS
        and tuple(names[:-1]) in ((), ("pg_catalog",))
        and over.keys() <= _WINDOW
        and bool(orders)
        and _is_largest_first(orders[0], path, is_window=True)
    )


def _is_largest_first(order: Json, path: Sequence[Node], *, is_window: bool = False) -> bool:
    """Tell whether an order in the first query begins with an aggregate of the last one, the largest first.

    ORDER BY of a query may name its columns, by their places too; that of a window names columns of what is read, and
    so does a name with a table's before it.
    """
    sort = kind(order)[1]
    if sort.get("sortby_dir") != "SORTBY_DESC":
        return False
    node = sort.get("node")
    if is_window and len(path) == 1:
        return is_aggregate(node)
    if not is_window and (place := _number(node)) is not None:
        targets = items(path[0], "targetList")
        if place > len(targets) or any("A_Star" in part for target in targets for part in walk(target)):
            return False
        node = kind(targets[place - 1])[1].get("val")
        meaning = _below(node, path)
    else:
        is_below = is_window or len(_fields(node)) > 1 or not _named(node, path[0])
        meaning = _below(node, path) if is_below else _meaning(node, path)
    return meaning is not None and meaning[1] == len(path) - 1 and is_aggregate({"FuncCall": meaning[0]})


def _meaning(node: Json, path: Sequence[Node]) -> tuple[Node, int] | None:
    """The call that a column of the first of these queries shows, and in which of them it stands."""
    name, reference = kind(node)
    if name == "FuncCall":
        return reference, 0
    if name != "ColumnRef" or not path:
        return None
    nodes = _named(node, path[0])
    if len(nodes) > 1:
        return None
    if not nodes:
        targets = items(path[0], "targetList")
        return _below(node, path) if any("A_Star" in part for target in targets for part in walk(target)) else None
    return (kind(nodes[0])[1], 0) if kind(nodes[0])[0] == "FuncCall" else _below(nodes[0], path)


def _named(node: Json, body: Node) -> list[Json]:
    """The columns of a query that have the name which a reference ends in."""
    fields = _fields(node)
    named = [kind(target)[1] for target in items(body, "targetList")] if fields else []
    return [node.get("val") for node in named if (node.get("name") or column_name(node.get("val"))) == fields[-1]]


def _fields(node: Json) -> tuple[str, ...]:
    return strings(kind(node)[1].get("fields")) if kind(node)[0] == "ColumnRef" else ()


def _below(node: Json, path: Sequence[Node]) -> tuple[Node, int] | None:
    meaning = _meaning(node, path[1:])
    return None if meaning is None else (meaning[0], meaning[1] + 1)


def _number(node: Json) -> int | None:
    value = kind(node)[1].get("ival") if kind(node)[0] == "A_Const" else None
    constant = value.get("ival") if isinstance(value, dict) else None
    return constant if isinstance(constant, int) and constant > 0 else None


def _conjuncts(condition: Json) -> list[Json]:
    name, body = kind(condition)
    if name == "BoolExpr" and body.get("boolop") == "AND_EXPR":
        return [conjunct for part in items(body, "args") for conjunct in _conjuncts(part)]
    return [condition] if name else []


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
    if body.get("op") == "SETOP_NONE" and _only_shows(body) and (inner := _source_of(body, known)) is not None:
        yield from shown_selects(inner, known)


def _only_shows(body: Node) -> bool:
    """Tell whether a SELECT computes nothing, and reads one thing; an order is by one of its columns."""
    if any(items(body, name) or isinstance(body.get(name), dict) for name in _CHANGING):
        return False
    shown = [kind(target)[1].get("val") for target in items(body, "targetList")]
    ordered = [kind(sort_key)[1].get("node") for sort_key in items(body, "sortClause")]
    return len(items(body, "fromClause")) == 1 and all(map(_is_column, (*shown, *ordered)))


def _is_column(node: Json) -> bool:
    """A column, or its number in ORDER BY."""
    return kind(node)[0] in ("ColumnRef", "A_Const")


def _source_of(body: Node, ctes: dict[str, Node]) -> Node | None:
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
