"""A query in its one spelling, clause by clause and expression by expression; it numbers the SELECTs as it meets them.

Constants and names are lifted out of a statement: statements of one structure have one text, which sqlglot reads once.
A dashboard asks the same with other filters, and of other columns. A stand-in takes the place of each constant, of the
same kind, and of each name, equal names alike, and tells its number; the syntax of the text is then filled with the
names and the constants themselves. All names are quoted, so that neither parser looks at what is in them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from rules.frozen import frozen
from rules.refusal import NotSupported
from rules.sql.normalize.nodes import (
    DEFAULT_FRAME,
    JSON_AGGREGATES,
    RESERVED,
    call,
    constant,
    flat,
    frame_offsets,
    frame_text,
    function_source,
    integer,
    negation,
    numbered,
    operator,
    parts,
    positional,
    some,
    text,
    type_text,
)
from rules.sql.syntax import Constant
from rules.sql.tree import Json, Node, holders, items, kind, strings, type_of_cast

PLAIN_OPERATORS = frozenset("+ - * / % ^ || = <> < <= > >= ~ ~*".split())
NEGATED_OPERATORS = {"!~": "~", "!~*": "~*"}
OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SPECIAL_CALLS = frozenset(
    (
        "coalesce greatest least nullif grouping current_date current_time current_timestamp localtime localtimestamp "
        "current_user current_role session_user user current_catalog current_schema"
    ).split()
)
OPAQUE = {"A_Indirection": "subscript", "XmlExpr": "xml", "SetToDefault": "default", "A_Const": "bit string"}
_FIRST: Final = 10**12  # beyond all numbers that are not lifted
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Lifted:
    """The constants of one statement by their stand-ins, and the stand-ins of its names."""

    def __init__(self) -> None:
        self.constants: dict[Constant, Constant] = {}
        self.names: dict[str, str] = {}

    def constant(self, constant: Node) -> Node:
        """The stand-in of a constant in its one spelling; the constant itself where the syntax may depend on it."""
        match constant:
            case {"A_Const": {"sval": dict() as value}}:
                name = str(len(self.constants))
                self.constants[Constant("string", name)] = Constant("string", str(value.get("sval", "")))
                return {"A_Const": {"sval": {"sval": name}}}
            case {"A_Const": {"ival": dict() as value}}:
                return self._number(str(value.get("ival", 0)))
            case {"A_Const": {"fval": {"fval": str(number)}}} if _DECIMAL.fullmatch(number):
                return self._number(number)
        return constant

    def name(self, name: Json) -> str:
        """The stand-in of a name."""
        assert isinstance(name, str), "a name is a text"
        return self.names.setdefault(name, f"${len(self.names)}")

    def parts(self, nodes: list[Json]) -> list[Json]:
        """The stand-ins of a list of names, in which * stays what it is."""
        return [node if (body := kind(node))[0] != "String" else self._part(body[1]) for node in nodes]

    def _part(self, body: Node) -> Node:
        return {"String": {"sval": self.name(body.get("sval", ""))}}

    def _number(self, text: str) -> Node:
        name = str(_FIRST + len(self.constants))
        self.constants[Constant("number", name)] = Constant("number", text)
        return {"A_Const": {"fval": {"fval": name}}}


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
class _Spelling:
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
            left, right = body.get("larg"), body.get("rarg")
            assert isinstance(left, dict) and isinstance(right, dict), "a set operation has two sides"
            sides = some(op=body["op"], all=body.get("all"), larg=self.select(left), rarg=self.select(right))
            return self._around(body, sides)
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
                # A table as it is named, without the database, which can only be this one
                names = some(schemaname=self.name(body.get("schemaname")), relname=self.name(body["relname"]))
                kept = {key: body[key] for key in ("inh", "relpersistence") if key in body}
                return {"RangeVar": names | kept | some(alias=self._alias(body))}
            case "RangeSubselect":
                query: Json = {"SelectStmt": self.select(kind(body["subquery"])[1])}
                return {"RangeSubselect": some(lateral=body.get("lateral"), subquery=query, alias=self._alias(body))}
            case "JoinExpr":
                return {"JoinExpr": self._join(body)}
            case "RangeFunction":
                functions = items(body, "functions")
                parts = items(kind(functions[0])[1], "items")
                plain = len(functions) == 1 and len(parts) == 2 and not parts[1] and kind(parts[0])[0] == "FuncCall"
                if plain and not (body.get("ordinality") or body.get("coldeflist") or body.get("is_rowsfrom")):
                    return function_source(self.expression(parts[0]), self._alias(body))
                return function_source(self.opaque("from", {"functions": functions}), self._alias(body))
            case "RangeTableSample":
                hint = "Use aggregates over all rows."
                raise NotSupported("TABLESAMPLE is not supported", hint=hint, about="TABLESAMPLE")
        return function_source(self.opaque(name, body), self._alias(body))

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

    # expressions

    def order(self, nodes: list[Json]) -> list[Json]:
        """ORDER BY with direction and place of NULLs written out."""
        return [self._sort_item(kind(node)[1]) for node in nodes]

    def expression(self, node: Json) -> Json:
        name, body = kind(node)
        match name:
            case "ColumnRef":
                return {"ColumnRef": {"fields": self.names(items(body, "fields")[-3:])}}  # there is one database
            case "A_Const" if "bsval" not in body:
                return self.constant(constant(body))
            case "ParamRef":
                number = body.get("number", 0)
                return operator("$", integer(number if isinstance(number, int) else 0))
            case "TypeCast":
                # A type's name is a constant: it may be longer than a name can be, and no parser has an idea of it
                printed = type_text(type_of_cast(body))
                argument = self.expression(body["arg"])
                return operator("cast", argument) if printed is None else operator("cast", argument, text(printed))
            case "FuncCall":
                return self._call(body)
            case "A_Expr":
                return self._operation(body)
            case "SubLink":
                return self._sublink(body)
            case "CaseExpr":
                return self._case(body)
        return self._truth(name, body) or self._special(name, body) or self.opaque(name, body)

    def optional(self, body: Node, key: str) -> Json:
        return self.expression(body[key]) if key in body else None

    def all(self, body: Node, key: str) -> list[Json]:
        return [self.expression(item) for item in items(body, key)]

    def listed(self, node: Json) -> Node:
        return {"List": {"items": self.all(kind(node)[1], "items")}}

    def _case(self, body: Node) -> Node:
        branches: list[Json] = [
            {"CaseWhen": {"expr": self.expression(when["expr"]), "result": self.expression(when["result"])}}
            for _, when in map(kind, items(body, "args"))
        ]
        return {
            "CaseExpr": some(arg=self.optional(body, "arg"), args=branches, defresult=self.optional(body, "defresult"))
        }

    def _truth(self, name: str, body: Node) -> Json:
        match name:
            case "BoolExpr" if body["boolop"] == "NOT_EXPR":
                return negation(self.expression(items(body, "args")[0]))
            case "BoolExpr":
                parts = [part for node in self.all(body, "args") for part in flat(node, body["boolop"])]
                return {"BoolExpr": {"boolop": body["boolop"], "args": parts}}
            case "NullTest":
                is_null: Node = {"NullTest": {"arg": self.expression(body["arg"]), "nulltesttype": "IS_NULL"}}
                return is_null if body["nulltesttype"] == "IS_NULL" else negation(is_null)
            case "BooleanTest":
                return self._boolean_test(str(body["booltesttype"]), self.expression(body["arg"]))
        return None

    def _boolean_test(self, test: str, argument: Json) -> Node:
        positive = test.replace("IS_NOT_", "IS_")
        plain: Node = {"BooleanTest": {"arg": argument, "booltesttype": positive}}
        if positive == "IS_UNKNOWN":
            plain = {"NullTest": {"arg": argument, "nulltesttype": "IS_NULL"}}
        return plain if test == positive else negation(plain)

    def _special(self, name: str, body: Node) -> Json:
        """Nodes of the grammar that read as functions."""
        match name:
            case "CoalesceExpr":
                return call(("coalesce",), *self.all(body, "args"))
            case "MinMaxExpr":
                function = "least" if body.get("op") == "IS_LEAST" else "greatest"
                return call((function,), *self.all(body, "args"))
            case "GroupingFunc":
                return call(("grouping",), *self.all(body, "args"))
            case "SQLValueFunction":
                function = str(body["op"]).removeprefix("SVFOP_").lower()
                precision = body.get("typmod", -1)
                arguments = [integer(precision)] if isinstance(precision, int) and precision >= 0 else []
                return call((function.removesuffix("_n"),), *arguments)
            case "JsonArrayAgg" | "JsonObjectAgg":
                return call((JSON_AGGREGATES[name],), *map(self.expression, parts(body)))
            case "A_ArrayExpr":
                return operator("array", *self.all(body, "elements"))
            case "RowExpr":
                return operator("row", *self.all(body, "args"))
            case "CollateClause":
                return operator("collate", self.expression(body["arg"]))
        return None

    def _operation(self, body: Node) -> Json:
        names, expression_kind = strings(body.get("name")), str(body["kind"]).removeprefix("AEXPR_")
        name = names[-1]
        if len(names) > 1 and names[0] != "pg_catalog":
            return self.opaque("operator", body)
        if expression_kind in ("OP", "IN") and (compared := by_columns(expression_kind, name, body)) is not None:
            return self.expression(compared)
        match expression_kind:
            case "OP":
                return self._plain_operation(name, body)
            case "LIKE" | "ILIKE":
                plain = self._binary(expression_kind, name.removeprefix("!"), body)
                return negation(plain) if name.startswith("!") else plain
            case "DISTINCT" | "NOT_DISTINCT":
                return self._binary(expression_kind, "=", body)
            case "IN":
                in_list = self._binary(expression_kind, "=", body)
                return in_list if name == "=" else negation(in_list)
            case "NULLIF":
                return call(("nullif",), self.expression(body["lexpr"]), self.expression(body["rexpr"]))
            case "OP_ANY" | "OP_ALL" if (link := _as_sublink(expression_kind, name, body)) is not None:
                return self._sublink(link)
            case "OP_ANY" | "OP_ALL":
                quantified = f"{name} {expression_kind[3:].lower()}"
                return operator(quantified, self.expression(body["lexpr"]), self.expression(body["rexpr"]))
            case "SIMILAR":
                similar = operator("similar", self.expression(body["lexpr"]), self.expression(body["rexpr"]))
                return negation(similar) if name.startswith("!") else similar
        return self._between(expression_kind.lower().replace("_", " "), body)

    def _plain_operation(self, name: str, body: Node) -> Node:
        if "lexpr" not in body:
            right = self.expression(body["rexpr"])
            minus: Node = {"A_Expr": {"kind": "AEXPR_OP", "name": [{"String": {"sval": "-"}}], "rexpr": right}}
            return minus if name == "-" else operator(name, right)
        if name in NEGATED_OPERATORS:
            return negation(self._binary("OP", NEGATED_OPERATORS[name], body))
        if name in PLAIN_OPERATORS:
            return self._binary("OP", name, body)
        return operator(name, self.expression(body["lexpr"]), self.expression(body["rexpr"]))

    def _binary(self, expression_kind: str, name: str, body: Node) -> Node:
        right = body["rexpr"]
        return {
            "A_Expr": {
                "kind": f"AEXPR_{expression_kind}",
                "name": [{"String": {"sval": name}}],
                "lexpr": self.expression(body["lexpr"]),
                "rexpr": self.listed(right) if kind(right)[0] == "List" else self.expression(right),
            }
        }

    def _between(self, name: str, body: Node) -> Node:
        others = self.all(kind(body["rexpr"])[1], "items")
        plain = operator(
            name.removeprefix("not ").replace(" sym", " symmetric"), self.expression(body["lexpr"]), *others
        )
        return negation(plain) if name.startswith("not ") else plain

    def _sort_item(self, body: Node) -> Node:
        if body.get("useOp"):
            raise NotSupported("ORDER BY … USING is not supported over protected tables")
        descending = body.get("sortby_dir") == "SORTBY_DESC"
        nulls = body.get("sortby_nulls", "SORTBY_NULLS_DEFAULT")
        if nulls == "SORTBY_NULLS_DEFAULT":
            nulls = "SORTBY_NULLS_FIRST" if descending else "SORTBY_NULLS_LAST"
        direction = "SORTBY_DESC" if descending else "SORTBY_DEFAULT"
        return {"SortBy": {"node": self.expression(body["node"]), "sortby_dir": direction, "sortby_nulls": nulls}}

    def _sublink(self, body: Node) -> Node:
        link = str(body["subLinkType"]).removesuffix("_SUBLINK")
        query: Json = {"SelectStmt": self.select(kind(body["subselect"])[1])}
        if link in ("EXISTS", "EXPR"):
            return {"SubLink": {"subLinkType": f"{link}_SUBLINK", "subselect": query}}
        scalar: Node = {"SubLink": {"subLinkType": "EXPR_SUBLINK", "subselect": query}}
        if link not in ("ANY", "ALL"):
            return operator("array", scalar)
        name = (strings(body.get("operName")) or ("=",))[-1]
        argument = self.expression(body["testexpr"])
        if link == "ANY" or name not in OPPOSITES:
            return self._compared_with(argument, name, link.lower(), query, scalar)
        return negation(self._compared_with(argument, OPPOSITES[name], "any", query, scalar))

    def _compared_with(self, argument: Json, name: str, link: str, query: Json, scalar: Node) -> Node:
        if (link, name) == ("any", "="):
            return {"SubLink": {"subLinkType": "ANY_SUBLINK", "testexpr": argument, "subselect": query}}
        return operator(f"{name} {link}", argument, scalar)

    def _call(self, body: Node) -> Node:
        names = strings(body.get("funcname"))
        if len(names) == 2 and names[0] == "pg_catalog":
            names = names[1:]
        arguments = positional(names[-1], items(body, "args"))
        if len(names) > 2 or names[0] in (*SPECIAL_CALLS, RESERVED) or body.get("func_variadic") or arguments is None:
            return self.opaque(".".join(names), {"args": body.get("args"), "over": body.get("over")})
        return {
            "FuncCall": some(
                funcname=self.names([{"String": {"sval": name}} for name in names]),
                funcformat="COERCE_EXPLICIT_CALL",
                args=[self.expression(argument) for argument in arguments],
                agg_order=self.order(items(body, "agg_order")),
                agg_filter=self.optional(body, "agg_filter"),
                over=self._window(body.get("over")),
                agg_within_group=body.get("agg_within_group"),
                agg_star=body.get("agg_star"),
                agg_distinct=body.get("agg_distinct"),
            )
        }

    def _window(self, over: Json) -> Node | None:
        """OVER, spelled out: the frame's text and offsets, then the partition."""
        if not isinstance(over, dict):
            return None
        base: Node = {}
        if reference := over.get("name") or over.get("refname"):
            base = self.window(str(reference))
        partition = items(base, "partitionClause") or items(over, "partitionClause")
        order = items(base, "orderClause") or items(over, "orderClause")
        frame = base if over.get("name") else over
        return some(
            partitionClause=[
                text(frame_text(frame)),
                *(self.expression(offset) for offset in frame_offsets(frame)),
                *(self.expression(node) for node in partition),
            ],
            orderClause=self.order(order),
            frameOptions=DEFAULT_FRAME,
        )

    def opaque(self, name: str, body: Node) -> Node:
        """Something that the planner has no word for, around what it is made of."""
        return operator(OPAQUE.get(name, name), *(self.expression(part) for part in parts(body)))


_STRICT = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def by_columns(expression_kind: str, name: str, body: Node) -> Node | None:
    """(a, b) = (1, 2) is a = 1 AND b = 2; None where no rows of one length are compared."""
    left = _compared_columns(body.get("lexpr"))
    if expression_kind == "IN":
        rows = [_compared_columns(item) for item in items(kind(body["rexpr"])[1], "items")]
        if not left or any(len(row) != len(left) for row in rows):
            return None
        node = _joined("OR_EXPR", [_compared("=", left, row) for row in rows])
        return node if name == "=" else negation(node)
    right = _compared_columns(body.get("rexpr"))
    if not left or len(left) != len(right) or name not in ("=", "<>", *_STRICT):
        return None
    return _compared(name, left, right)


def _compared_columns(node: Json) -> list[Json]:
    """Of a plain row; rows in rows would be written twice at every level."""
    name, body = kind(node)
    columns = items(body, "args") if name == "RowExpr" else []
    return [] if any(kind(column)[0] == "RowExpr" for column in columns) else columns


def _compared(name: str, left: list[Json], right: list[Json]) -> Node:
    pairs = list(zip(left, right, strict=True))
    if name not in _STRICT:
        return _joined("AND_EXPR" if name == "=" else "OR_EXPR", [_operation(name, *pair) for pair in pairs])
    node = _operation(name, *pairs[-1])
    for pair in reversed(pairs[:-1]):  # the first pair that differs decides
        further = _joined("AND_EXPR", [_operation("=", *pair), node])
        node = _joined("OR_EXPR", [_operation(_STRICT[name], *pair), further])
    return node


def _operation(name: str, left: Json, right: Json) -> Node:
    return {"A_Expr": {"kind": "AEXPR_OP", "name": [{"String": {"sval": name}}], "lexpr": left, "rexpr": right}}


def _joined(word: str, parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else {"BoolExpr": {"boolop": word, "args": [*parts]}}


def _as_sublink(expression_kind: str, name: str, body: Node) -> Node | None:
    """x = ANY (ARRAY(SELECT …)) is x IN (SELECT …), and <> ALL is NOT IN. Subqueries in x would be numbered last."""
    link, array = kind(body["rexpr"])
    is_equal = (expression_kind, name) in (("OP_ANY", "="), ("OP_ALL", "<>"))
    if (
        not is_equal
        or link != "SubLink"
        or array.get("subLinkType") != "ARRAY_SUBLINK"
        or holders(body["lexpr"], "SubLink")
    ):
        return None
    operation: Node = {"operName": [{"String": {"sval": name}}]}
    link_type = f"{expression_kind.removeprefix('OP_')}_SUBLINK"
    return {"subLinkType": link_type, "testexpr": body["lexpr"], "subselect": array["subselect"]} | operation


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
