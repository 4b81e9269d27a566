"""Queries in their one spelling, clause by clause; it numbers the SELECTs as it meets them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from rules.frozen import frozen
from rules.refusal import NotSupported
from rules.sql.normalize.expressions import NormalExpressions
from rules.sql.normalize.lifted import Lifted
from rules.sql.normalize.nodes import RESERVED, function_source, numbered, some
from rules.sql.syntax import Constant
from rules.sql.tree import Json, Node, items, kind


@frozen
class Spelled:
    """A query's tree in its one spelling."""

    tree: Node
    selects: list[Node]  # of the original tree, by their numbers
    constants: Mapping[Constant, Constant]  # that were lifted, by their stand-ins
    names: tuple[str, ...]  # that were lifted, by the numbers of their stand-ins


MOST_SETS = 64

Sets = list[list[Json]]


def spelled(tree: Node, *, lifts: bool = False) -> Spelled:
    """A query's tree (a wrapped SelectStmt) in its one spelling, its constants and names lifted out if so asked."""
    lifted = Lifted()
    spelling = _Spelling(lifted if lifts else None)
    name, body = kind(tree)
    if name != "SelectStmt":
        raise NotSupported("this statement is not supported over protected tables", hint="Use SELECT instead.")
    return Spelled({"SelectStmt": spelling.select(body)}, spelling.selects, lifted.constants, tuple(lifted.names))


def spelled_expression(node: Json) -> Json:
    """One expression in its one spelling."""
    return _Spelling().expression(node)


@dataclass
class _Spelling(NormalExpressions):
    """One run over one statement; it numbers the SELECTs as it meets them."""

    lifted: Lifted | None = None
    selects: list[Node] = field(default_factory=list)
    _windows: list[dict[str, Node]] = field(default_factory=list)

    def window(self, name: str) -> Node:
        """A window of the WINDOW clause."""
        return self._windows[-1].get(name, {}) if self._windows else {}

    def constant(self, spelled: Node) -> Node:
        return spelled if self.lifted is None else self.lifted.constant(spelled)

    def name(self, written: Json) -> Json:
        return written if self.lifted is None or written is None else self.lifted.name(written)

    def names(self, written: list[Json]) -> list[Json]:
        return written if self.lifted is None else self.lifted.parts(written)

    def _alias(self, body: Node) -> Json:
        """The name of a source, and those of its columns."""
        alias = body.get("alias")
        if self.lifted is None or not isinstance(alias, dict):
            return alias
        named = self.lifted.name(alias["aliasname"])
        return some(aliasname=named, colnames=self.lifted.parts(items(alias, "colnames")))

    def select(self, body: Node) -> Node:
        if body.get("op", "SETOP_NONE") != "SETOP_NONE":
            return self._set_operation(body)
        if rows := items(body, "valuesLists"):
            return self._around(body, {"valuesLists": [self.listed(row) for row in rows], "op": "SETOP_NONE"})
        number = len(self.selects)
        self.selects.append(body)
        if body.get("groupDistinct"):
            hint = "Write each set once: GROUP BY GROUPING SETS ((a, b), (a), ())."
            raise NotSupported("GROUP BY DISTINCT is not supported over protected tables", hint=hint)
        self._windows.append({str(node["name"]): node for _, node in map(kind, items(body, "windowClause"))})
        clauses = self._clauses(body, number)
        whole = self._around(body, clauses)
        self._windows.pop()
        return whole

    def _clauses(self, body: Node, number: int) -> Node:
        return some(
            distinctClause=[node and self.expression(node) for node in items(body, "distinctClause")],
            targetList=[numbered(number), *(self._target(target) for target in items(body, "targetList"))],
            fromClause=self._from(items(body, "fromClause")),
            whereClause=self.optional(body, "whereClause"),
            groupClause=grouping_sets([self._group(group_key) for group_key in items(body, "groupClause")]),
            havingClause=self.optional(body, "havingClause"),
            op="SETOP_NONE",
        )

    def _set_operation(self, body: Node) -> Node:
        left, right = body.get("larg"), body.get("rarg")
        assert isinstance(left, dict) and isinstance(right, dict), "a set operation has two sides"
        sides = some(op=body["op"], all=body.get("all"), larg=self.select(left), rarg=self.select(right))
        return self._around(body, sides)

    def _around(self, body: Node, inner: Node) -> Node:
        """Return what may stand around any query: WITH, ORDER BY, LIMIT, locks."""
        count = body.get("limitCount")
        if count is not None and kind(count)[1].get("isnull"):
            count = None  # LIMIT ALL
        offset = self.optional(body, "limitOffset")
        limited = "LIMIT_OPTION_COUNT" if count is not None or offset is not None else "LIMIT_OPTION_DEFAULT"
        locks: Json = [{"LockingClause": {"strength": "LCS_FORUPDATE", "waitPolicy": "LockWaitBlock"}}]
        return inner | some(
            sortClause=self.order(items(body, "sortClause")),
            limitOffset=offset,
            limitCount=None if count is None else self.expression(count),
            limitOption=limited,
            lockingClause=locks if body.get("lockingClause") else None,
            withClause=self._with(body.get("withClause")),
        )

    def _with(self, clause: Json) -> Node | None:
        if not isinstance(clause, dict):
            return None
        return some(ctes=[self._cte(kind(cte)[1]) for cte in items(clause, "ctes")], recursive=clause.get("recursive"))

    def _cte(self, cte: Node) -> Node:
        name, query = kind(cte.get("ctequery"))
        if name != "SelectStmt" or "search_clause" in cte or "cycle_clause" in cte:
            raise NotSupported("SEARCH and CYCLE are not supported over protected tables")
        return {
            "CommonTableExpr": some(
                ctename=self.name(cte["ctename"]),
                aliascolnames=self.names(items(cte, "aliascolnames")),
                ctematerialized="CTEMaterializeDefault",
                ctequery={"SelectStmt": self.select(query)},
            )
        }

    def _target(self, node: Json) -> Node:
        _, target = kind(node)
        if target.get("name") == RESERVED:
            raise NotSupported(f'"{RESERVED}" is a reserved name')
        return {"ResTarget": some(name=self.name(target.get("name")), val=self.expression(target.get("val")))}

    def _group(self, node: Json) -> Json:
        """An element of GROUP BY; sets are spelled out later."""
        name, body = kind(node)
        if name == "GroupingSet":
            return {"GroupingSet": body | {"content": [self._group(node) for node in items(body, "content")]}}
        if name == "RowExpr":
            return {"RowExpr": body | {"args": [self.expression(argument) for argument in items(body, "args")]}}
        return self.expression(node)

    # FROM

    def _from(self, nodes: list[Json]) -> list[Json]:
        """Commas are cross joins."""
        if not nodes:
            return []
        joined = self._source(nodes[0])
        for node in nodes[1:]:
            joined = {"JoinExpr": {"jointype": "JOIN_INNER", "larg": joined, "rarg": self._source(node)}}
        return [joined]

    def _source(self, node: Json) -> Node:
        name, body = kind(node)
        match name:
            case "RangeVar" if not body.get("inh"):
                message = "ONLY is not supported in a statement that reads protected tables"
                raise NotSupported(message, hint="Leave ONLY out.", about="ONLY")
            case "RangeVar":
                return self._table(body)
            case "RangeSubselect":
                query: Json = {"SelectStmt": self.select(kind(body["subquery"])[1])}
                return {"RangeSubselect": some(lateral=body.get("lateral"), subquery=query, alias=self._alias(body))}
            case "JoinExpr":
                return {"JoinExpr": self._join(body)}
            case "RangeFunction":
                return self._function(body)
            case "RangeTableSample":
                hint = "Use aggregates over all rows."
                raise NotSupported("TABLESAMPLE is not supported", hint=hint, about="TABLESAMPLE")
        return function_source(self.opaque(name, body), self._alias(body))

    def _table(self, body: Node) -> Node:
        """A table as it is named, without the database, which can only be this one."""
        names = some(schemaname=self.name(body.get("schemaname")), relname=self.name(body["relname"]))
        kept = {key: body[key] for key in ("inh", "relpersistence") if key in body}
        return {"RangeVar": names | kept | some(alias=self._alias(body))}

    def _join(self, body: Node) -> Node:
        if body.get("alias") or body.get("join_using_alias"):
            raise NotSupported("an alias for a join is not supported", hint="Give the tables aliases instead.")
        return some(
            jointype=body["jointype"],
            isNatural=body.get("isNatural"),
            larg=self._source(body["larg"]),
            rarg=self._source(body["rarg"]),
            usingClause=self.names(items(body, "usingClause")),
            quals=self.optional(body, "quals"),
        )

    def _function(self, body: Node) -> Node:
        functions = items(body, "functions")
        parts = items(kind(functions[0])[1], "items")
        plain = len(functions) == 1 and len(parts) == 2 and not parts[1] and kind(parts[0])[0] == "FuncCall"
        if plain and not (body.get("ordinality") or body.get("coldeflist") or body.get("is_rowsfrom")):
            return function_source(self.expression(parts[0]), self._alias(body))
        return function_source(self.opaque("from", {"functions": functions}), self._alias(body))


def grouping_sets(elements: list[Json]) -> list[Json]:
    """The elements as they are, or one GROUPING SETS: the product of all of them (SQL:1999, 7.9).

    Elements are spelled but for GroupingSet and RowExpr nodes.
    """
    if not any(kind(element)[0] == "GroupingSet" for element in elements):
        return [column for element in elements for column in _columns(element)]
    sets: Sets = [[]]
    for element in elements:
        sets = _bounded([left + right for left, right in product(sets, _sets(element))])
    return [{"GroupingSet": {"kind": "GROUPING_SET_SETS", "content": [_set(nodes) for nodes in sets]}}]


def _sets(element: Json) -> Sets:
    name, body = kind(element)
    if name != "GroupingSet":
        return [_columns(element)]
    content = items(body, "content")
    match body.get("kind"):
        case "GROUPING_SET_EMPTY":
            return [[]]
        case "GROUPING_SET_ROLLUP":
            return _bounded([_all_columns(content[:length]) for length in range(len(content), -1, -1)])
        case "GROUPING_SET_CUBE":
            return _cube(content)
    return _bounded([nodes for inner in content for nodes in _sets(inner)])


def _cube(content: list[Json]) -> Sets:
    if 2 ** len(content) > MOST_SETS:
        raise _too_many()
    choices = product((True, False), repeat=len(content))
    return [_all_columns([part for part, taken in zip(content, choice, strict=True) if taken]) for choice in choices]


def _all_columns(parts: list[Json]) -> list[Json]:
    return [column for part in parts for column in _columns(part)]


def _columns(element: Json) -> list[Json]:
    """A column, or the columns of `(a, b)`."""
    name, body = kind(element)
    return items(body, "args") if name == "RowExpr" else [element]


def _set(columns: list[Json]) -> Node:
    """One set as PostgreSQL writes it down: (), (a), (a, b)."""
    if not columns:
        return {"GroupingSet": {"kind": "GROUPING_SET_EMPTY"}}
    if len(columns) == 1:
        (only,) = columns
        assert isinstance(only, dict)
        return only
    return {"RowExpr": {"args": columns, "row_format": "COERCE_IMPLICIT_CAST"}}


def _bounded(sets: Sets) -> Sets:
    if len(sets) > MOST_SETS:
        raise _too_many()
    return sets


def _too_many() -> NotSupported:
    return NotSupported(f"more than {MOST_SETS} grouping sets are not supported", hint="Use fewer grouping sets.")
