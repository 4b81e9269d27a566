"""A scalar subquery that depends on its row by equality, as one query grouped by what it depends on.

(SELECT sum(x) FROM t WHERE t.a = o.b) becomes (SELECT v FROM (SELECT t.a, sum(x) FROM t GROUP BY t.a) AS g(k, v) WHERE
g.k = o.b). PostgreSQL gives the same for both; to the planner the second is one block, and something computed from it.
"""

from rules.bind.correlated_subquery import CORRELATED_HINT, Correlated
from rules.bind.inner_answers import Links
from rules.refusal import NotSupported
from rules.sql.grammar import Json, Node, deparse, deparse_expression, items, kind, parse, walk
from rules.sql.lower import expression_from
from rules.sql.selects import column_name, numbered, query_of, target_value
from rules.sql.tree import copied

_NAME = "_ng_by"


def decorrelate(tree: Node, correlated: Correlated) -> Node:
    """Rewrite one subquery: the first that binding met."""
    made = copied(tree)
    query = query_of(made)
    body = None if query is None else numbered(query)[correlated.select]
    link = next((node for node in map(_scalar, walk(made)) if node and kind(node["subselect"])[1] is body), None)
    if link is None or body is None:
        raise NotSupported(
            "a correlated subquery over protected rows can refer to the outer query only by =", hint=CORRELATED_HINT
        )
    for target in walk(made):
        _keep_name(target, link)
    inner, outside = grouped(body, correlated.links)
    keys = [f"_ng_k{place}" for place in range(1, len(outside) + 1)]
    answer = "_ng_v"
    if _is_count(target_value(body, 0)):  # of no rows it is 0, and an aggregate without groups always has a row
        answer = "coalesce(pg_catalog.max(_ng_v), 0)"
    same = (f"{_NAME}.{key} = ({deparse_expression(side)})" for key, side in zip(keys, outside, strict=True))
    source = f"({deparse({'SelectStmt': inner})}) AS {_NAME}({', '.join(keys)}, _ng_v)"
    (piece,) = parse(f"SELECT {answer} FROM {source} WHERE {' AND '.join(same)}")
    link["subselect"] = piece.tree
    return made


def grouped(body: Node, links: Links) -> tuple[Node, list[Json]]:
    """A query for all values of what it depends on: without those conditions, and grouped by their inner sides.

    The outer sides are given too.
    """
    kept = list[Json]()
    sides: dict[int, tuple[Json, Json]] = {}
    written = [expression for expression, _ in links]
    for condition in _conjuncts(body.get("whereClause")):
        read = expression_from(condition)
        if read in written:
            place, (left, right) = written.index(read), (kind(condition)[1][side] for side in ("lexpr", "rexpr"))
            sides[place] = (left, right) if links[place][1] else (right, left)
        else:
            kept.append(condition)
    if len(sides) < len(links):
        raise NotSupported(
            "a correlated subquery over protected rows can refer to the outer query only by =", hint=CORRELATED_HINT
        )
    inside, outside = ([sides[place][which] for place in range(len(links))] for which in (0, 1))
    made: Node = {name: part for name, part in body.items() if name not in ("whereClause", "sortClause")}
    keys: list[Json] = [{"ResTarget": {"val": side}} for side in inside]
    made["targetList"] = [*keys, *items(body, "targetList")]
    made["groupClause"] = inside
    if kept:
        made["whereClause"] = {"BoolExpr": {"boolop": "AND_EXPR", "args": kept}} if len(kept) > 1 else kept[0]
    return made, outside


def _conjuncts(condition: Json) -> list[Json]:
    name, body = kind(condition)
    if name == "BoolExpr" and body.get("boolop") == "AND_EXPR":
        return [conjunct for part in items(body, "args") for conjunct in _conjuncts(part)]
    return [condition] if name else []


def _scalar(node: Node) -> Node | None:
    name, body = kind(node)
    return body if name == "SubLink" and body.get("subLinkType") == "EXPR_SUBLINK" else None


def _keep_name(target: Node, link: Node) -> None:
    """A select item that shows the subquery keeps the name that it would have had."""
    name, body = kind(target)
    if name == "ResTarget" and "name" not in body and any(node is link for node in walk(body.get("val"))):
        body["name"] = column_name(body.get("val"))


def _is_count(value: Json) -> bool:
    name, body = kind(value)
    return name == "FuncCall" and kind(items(body, "funcname")[-1])[1].get("sval") == "count"
