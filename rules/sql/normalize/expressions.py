"""Expressions in their one spelling, kind by kind of PostgreSQL's nodes."""

from abc import ABC, abstractmethod

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
    integer,
    negation,
    operator,
    parts,
    positional,
    some,
    text,
    type_text,
)
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


class NormalExpressions(ABC):
    """Spells expressions; the queries inside them are handed to the subclass."""

    @abstractmethod
    def select(self, body: Node) -> Node: ...

    @abstractmethod
    def window(self, name: str) -> Node: ...

    @abstractmethod
    def constant(self, spelled: Node) -> Node: ...

    @abstractmethod
    def names(self, written: list[Json]) -> list[Json]: ...

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
                return self._cast(body)
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

    def _cast(self, body: Node) -> Node:
        """A type's name is a constant: it may be longer than a name can be, and no parser has an idea of it."""
        printed = type_text(type_of_cast(body))
        argument = self.expression(body["arg"])
        return operator("cast", argument) if printed is None else operator("cast", argument, text(printed))

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
    left = _columns(body.get("lexpr"))
    if expression_kind == "IN":
        rows = [_columns(item) for item in items(kind(body["rexpr"])[1], "items")]
        if not left or any(len(row) != len(left) for row in rows):
            return None
        node = _joined("OR_EXPR", [_compared("=", left, row) for row in rows])
        return node if name == "=" else negation(node)
    right = _columns(body.get("rexpr"))
    if not left or len(left) != len(right) or name not in ("=", "<>", *_STRICT):
        return None
    return _compared(name, left, right)


def _columns(node: Json) -> list[Json]:
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
