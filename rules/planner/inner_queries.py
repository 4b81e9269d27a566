"""Inner queries as statements of their own, and correlated ones as queries that are grouped by what they depend on.

A statement of its own has the CTEs that the inner query sees where it stands. To decorrelate,
(SELECT coalesce(sum(x), 0) FROM t WHERE t.a = o.b) becomes (SELECT coalesce(g.v, 0) FROM (VALUES (0)) AS one LEFT JOIN
(SELECT t.a, sum(x) FROM t GROUP BY t.a) AS g(k, v) ON g.k = o.b). PostgreSQL gives the same for both, also where t has
no row for o.b; to the planner the second is one block, and something computed from it.
"""

from collections.abc import Sequence
from typing import Final

from rules.bind.correlated_subquery import CORRELATED_HINT, COUNTS, EXISTS_HINT, GROUPED
from rules.bind.inner_answers import InnerQuery, Links, PublicColumn
from rules.frozen import frozen
from rules.functions.function import UnreadLiterals
from rules.kernel.expressions import quoted_text
from rules.planner.error_bars import bar_name
from rules.planner.find_blocks import is_aggregate
from rules.planner.public_rows import rows_sql
from rules.planner.tables import drop_unused_ctes
from rules.refusal import NotSupported
from rules.sql.grammar import deparse
from rules.sql.lower import expressions_from
from rules.sql.selects import column_name, target_value
from rules.sql.tree import Json, Node, bodies, copied, items, kind, strings, walk
from rules.values.value import find_value

_LONGEST_MOMENT = 100  # characters
_ONE: Final = "_ng_one"  # the rows beside which the groups stand, and their column


def statement_of(query: Node, selects: Sequence[Node], inner: InnerQuery) -> str:
    """The text that answers what is asked of an inner query of this statement, whose SELECTs these are."""
    if inner.use == "groups":
        return inner.sql
    if inner.use == "bounds":
        return _bounds_of(inner.columns, on_real=bool(inner.tables))
    if inner.use == "reading":
        return _reading_of(inner)
    target = _with_operations(query, selects[inner.select], inner.depth)
    path = _path(query, target)
    assert path is not None, "the planner's queries are numbered as they stand in the tree"
    ctes, recursive = _seen(path)
    statement = _statement_over(target, inner)
    if not ctes:
        return deparse({"SelectStmt": statement})
    if "withClause" in statement:
        statement = _select([_item({"ColumnRef": {"fields": [{"A_Star": {}}]}})], [_from(statement, "inner")])
    statement["withClause"] = {"ctes": ctes} | ({"recursive": True} if recursive else {})
    drop_unused_ctes(statement)  # one that this query does not read may be rows of units
    return deparse({"SelectStmt": statement})


def _bounds_of(columns: tuple[PublicColumn, ...], *, on_real: bool) -> str:
    """The least and the largest value of each, as texts; of the twin's copy NULL where the table is not open there."""
    selects, text = [], "CAST({} AS pg_catalog.text)" if on_real else "pg_catalog.noisegate_canon({})"
    for place, column in enumerate(columns):
        rows = rows_sql(column.table, [column.name], on_real=on_real)
        values = f"(SELECT (r.cells)[1]::{column.type} AS v FROM {rows} AS r(cells)) AS t"
        ends = ", ".join(f"{text.format(f'pg_catalog.{end}(v)')} AS {end}" for end in ("min", "max"))
        selects.append(f"SELECT {place} AS n, {ends} FROM {values}")
    return f"SELECT u.min, u.max FROM ({' UNION ALL '.join(selects)}) AS u ORDER BY u.n"


def _reading_of(inner: InnerQuery) -> str:
    """The literals and what they are as values, NULL for those that are none: what the session's own input says."""
    texts = ", ".join(map(quoted_text, inner.literals))
    value = f"CASE WHEN pg_catalog.pg_input_is_valid(t, {quoted_text(inner.type)}) THEN t::{inner.type} END"
    return (
        f"SELECT t AS literal, {value} AS value"
        f" FROM pg_catalog.unnest(ARRAY[{texts}]::pg_catalog.text[]) WITH ORDINALITY AS u(t, n) ORDER BY n"
    )


def literals_to_read(query: Node, missing: UnreadLiterals) -> tuple[str, ...]:
    """The literals that are wanted, and all others of the statement that may be wanted next."""
    constants = (body.get("sval") for body in bodies(query, "A_Const"))
    texts = (str(constant.get("sval", "")) for constant in constants if isinstance(constant, dict))
    others = (text for text in texts if find_value(text, missing.type) is None and len(text) <= _LONGEST_MOMENT)
    return tuple(dict.fromkeys((*missing.texts, *others)))


def _statement_over(target: Node, inner: InnerQuery) -> Node:
    match inner.use:
        case "rows":
            return dict(target)
        case "lookup":
            return _for_each(target, inner.links)
    return _select([_item(_sub_link(target, inner.use))])


def _with_operations(tree: Json, body: Node, depth: int) -> Node:
    """The UNION, INTERSECT or EXCEPT that begins with a SELECT, as many levels above it."""
    for _ in range(depth):
        body = next(node for node in _bodies(tree) if node.get("larg") is body)
    return body


def _bodies(tree: Json) -> list[Node]:
    nodes: list[Node] = []
    match tree:
        case list():
            for child in tree:
                nodes += _bodies(child)
        case dict():
            nodes.append(tree)
            for child in tree.values():
                nodes += _bodies(child)
    return nodes


def _path(tree: Json, target: Node) -> list[Node] | None:
    """All nodes from the top to one of them, itself last."""
    if tree is target:
        return [target]
    children = tree if isinstance(tree, list) else list(tree.values()) if isinstance(tree, dict) else []
    for child in children:
        if (nodes := _path(child, target)) is not None:
            return [tree, *nodes] if isinstance(tree, dict) else nodes
    return None


def _seen(path: list[Node]) -> tuple[list[Json], bool]:
    """The CTEs of all queries around the last one; one CTE sees those before it, or all where they are recursive."""
    nodes: list[Json] = []
    recursive = False
    for node in path[:-1]:
        clause = node.get("withClause")
        if not isinstance(clause, dict):
            continue
        ctes = items(clause, "ctes")
        inside = next((place for place, cte in enumerate(ctes) if any(kind(cte)[1] is node for node in path)), None)
        recursive = recursive or bool(clause.get("recursive"))
        nodes += ctes if inside is None or clause.get("recursive") else ctes[:inside]
    names = [str(kind(cte)[1].get("ctename")) for cte in nodes]
    if len(set(names)) < len(names):
        raise NotSupported(
            "the name of a CTE hides another CTE of an outer query", hint="Give every CTE a unique name."
        )
    return nodes, recursive


def _select(targets: list[Json], sources: list[Json] | None = None) -> Node:
    made: Node = {"targetList": targets, "limitOption": "LIMIT_OPTION_DEFAULT", "op": "SETOP_NONE"}
    return made if sources is None else made | {"fromClause": sources}


def _item(value: Json) -> Json:
    return {"ResTarget": {"val": value}}


def _sub_link(target: Node, use: str) -> Json:
    link = "EXPR_SUBLINK" if use == "value" else "EXISTS_SUBLINK"
    return {"SubLink": {"subLinkType": link, "subselect": {"SelectStmt": target}}}


def _from(target: Node, name: str, columns: Sequence[str] = ()) -> Json:
    """A query as an item of FROM."""
    alias: Node = {"aliasname": name} | ({"colnames": list(map(_name, columns))} if columns else {})
    return {"RangeSubselect": {"subquery": {"SelectStmt": target}, "alias": alias}}


def decorrelate(tree: Node, body: Node, links: Links) -> None:
    """Rewrite a subquery of a tree where it stands: the SELECT with this body, by its links to the row around it."""
    scalars = (link for link in bodies(tree, "SubLink") if link.get("subLinkType") == "EXPR_SUBLINK")
    link = next((link for link in scalars if kind(link["subselect"])[1] is body), None)
    if link is None:
        message = "EXISTS and IN with a correlated aggregate of protected rows are not supported"
        raise NotSupported(message, hint=EXISTS_HINT, about="EXISTS")
    for target in bodies(tree, "ResTarget"):
        _keep_name(target, link)
    link["subselect"] = {"SelectStmt": _in_place(body, links)}


def _in_place(body: Node, links: Links) -> Node:
    """The answer that belongs to the row around it, or where there is none the one of no rows."""
    answers = _Answers.of(body, links)
    if bodies(answers.item, "SubLink"):  # SELECTs are numbered as they stand, and this one would come before others
        message = "a subquery next to the aggregate of a correlated subquery is not supported"
        raise NotSupported(message, hint="Select the aggregate alone, and compute with it in the outer query.")
    same = [_equal(key, side) for key, side in zip(answers.keys, answers.outside, strict=True)]
    return answers.select([_constant(ival={})], (), _all_of(same))


def _for_each(body: Node, links: Links) -> Node:
    """The answers for all values of what it depends on, and in a row that says so the one of no rows."""
    answers, may_be_found = _Answers.of(body, links), _column(_ONE, _ONE)
    return answers.select(
        [_constant(boolval={"boolval": True}), _constant(boolval={})], (may_be_found, *answers.keys), may_be_found
    )


@frozen
class _Answers:
    """A correlated subquery, grouped by what it depends on, and its item over the aggregates of a group.

    Beside a row of no group these are NULL, or 0 for a count, as they are of no rows.
    """

    grouped: Json
    keys: Sequence[Json]
    outside: Sequence[Json]  # what the keys are compared with
    item: Json

    @classmethod
    def of(cls, body: Node, links: Links) -> "_Answers":
        leaves = list[Json]()
        item = _over_answers(target_value(body, 0), leaves)
        inner, outside = _grouped(body | {"targetList": list(map(_item, leaves))}, links)
        keys = [f"_ng_k{place}" for place in range(1, len(outside) + 1)]
        values = [f"_ng_v{place}" for place in range(1, len(leaves) + 1)]
        grouped = _from(inner, GROUPED, (*keys, *values))
        return cls(grouped, [_column(GROUPED, key) for key in keys], outside, item)

    def select(self, ones: Sequence[Json], shown: Sequence[Json], on: Json) -> Node:
        """SELECT shown, item FROM (VALUES ones) LEFT JOIN the groups ON a condition."""
        rows: list[Json] = [{"List": {"items": [one]}} for one in ones]
        values: Node = {"valuesLists": rows, "limitOption": "LIMIT_OPTION_DEFAULT", "op": "SETOP_NONE"}
        join: Node = {"jointype": "JOIN_LEFT", "larg": _from(values, _ONE, (_ONE,)), "rarg": self.grouped, "quals": on}
        return _select(list(map(_item, (*shown, self.item))), [{"JoinExpr": join}])


def _over_answers(node: Json, leaves: list[Json]) -> Json:
    """An expression over columns in place of its aggregates and error bars, which are noted."""
    match node:
        case list():
            return [_over_answers(child, leaves) for child in node]
        case dict() if is_aggregate(node) or bar_name(node) is not None:
            leaves.append(node)
            column = _column(GROUPED, f"_ng_v{len(leaves)}")
            return {"CoalesceExpr": {"args": [column, _constant(ival={})]}} if _is_count(node) else column
        case dict():
            return {name: _over_answers(child, leaves) for name, child in node.items()}
    return node


def _grouped(body: Node, links: Links) -> tuple[Node, list[Json]]:
    """A query for all values of what it depends on: without those conditions, and grouped by their inner sides.

    The outer sides are given too.
    """
    kept = list[Json]()
    sides: dict[int, tuple[Json, Json]] = {}
    written = [expression for expression, _ in links]
    conditions = _conjuncts(body.get("whereClause"))
    for condition, read in zip(conditions, expressions_from(conditions), strict=True):
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
    made["groupClause"] = copied(inside)
    if kept:
        made["whereClause"] = _all_of(kept)
    return made, outside


def _all_of(conditions: list[Json]) -> Json:
    return {"BoolExpr": {"boolop": "AND_EXPR", "args": conditions}} if len(conditions) > 1 else conditions[0]


def _equal(left: Json, right: Json) -> Json:
    return {"A_Expr": {"kind": "AEXPR_OP", "name": [_name("=")], "lexpr": left, "rexpr": right}}


def _column(*names: str) -> Json:
    return {"ColumnRef": {"fields": list(map(_name, names))}}


def _constant(**value: Json) -> Json:
    return {"A_Const": value}


def _name(name: str) -> Json:
    return {"String": {"sval": name}}


def _conjuncts(condition: Json) -> list[Json]:
    name, body = kind(condition)
    if name == "BoolExpr" and body.get("boolop") == "AND_EXPR":
        return [conjunct for part in items(body, "args") for conjunct in _conjuncts(part)]
    return [condition] if name else []


def _keep_name(target: Node, link: Node) -> None:
    """A select item that shows the subquery keeps the name that it would have had."""
    if "name" not in target and any(node is link for node in walk(target.get("val"))):
        target["name"] = column_name(target.get("val"))


def _is_count(value: Json) -> bool:
    name, body = kind(value)
    return name == "FuncCall" and strings(body.get("funcname"))[-1] in COUNTS
