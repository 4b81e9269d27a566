"""Queries of sqlglot's as the planner's, clause by clause and operator by operator."""

import re
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from rules.frozen import replace
from rules.refusal import NotSupported, Refusal, TooComplex
from rules.sql import syntax as s
from rules.sql.normalize import RESERVED
from rules.sql.normalize.to_text import MARK

DIALECT = Postgres()


MOST_BRACKETS: Final = 500  # within each other; 2,250 end a process that runs the compiled parser on a stack of 8 MiB
_NAME_OR_BRACKET = re.compile(r'"(?:[^"]|"")*"|[()]')


def parsed(text: str) -> exp.Expression:
    """The one statement of a text as sqlglot sees it."""
    if text.count("(") > MOST_BRACKETS:
        # Refuse a text whose brackets, which stand around each operation, would be too many calls within calls.
        depth = 0
        for sign in _NAME_OR_BRACKET.findall(text):
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if depth > MOST_BRACKETS:
                raise TooComplex(f"the statement has more than {MOST_BRACKETS} operations within each other")
    try:
        trees = DIALECT.parse(text)
    except (SqlglotError, ValueError, RecursionError):
        trees = []
    if len(trees) != 1 or trees[0] is None:
        raise NotSupported("this statement cannot be planned", hint="Rewrite the statement in simpler SQL.")
    return trees[0]


def take(node: exp.Expression, *names: str) -> list[Any]:
    """The named arguments of a node; any other that is set is not understood."""
    set_arguments = {
        name for name, value in node.args.items() if value is not None and value is not False and value != []
    }
    if not set_arguments <= set(names):
        raise strange(node)
    return [node.args.get(name) for name in names]


def strange(node: object) -> Refusal:
    """The refusal of what has no place in the planner's syntax."""
    name = node.key if isinstance(node, exp.Expression) else "this expression"
    return NotSupported(f"{name.upper()} is not supported over protected tables in this form")


def identifier(node: exp.Identifier) -> str:
    """A name; all are quoted."""
    if not isinstance(node, exp.Identifier) or not node.args.get("quoted"):
        raise strange(node)
    return str(node.this)


def listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
    exp.NullSafeNEQ: "is distinct from",
    exp.NullSafeEQ: "is not distinct from",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
    exp.Like: "like",
    exp.ILike: "ilike",
}
NEGATIONS = {"is null": "is not null", "is true": "is not true", "is false": "is not false"}
SIGNS = frozenset(("<>", "<", "<=", ">", ">="))
Inside = tuple[Sequence[exp.Expression], bool, Sequence[exp.Ordered]]  # arguments, DISTINCT, ORDER BY
KINDS: dict[type[exp.Expression], Any] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
SIDES: dict[str, Any] = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


class Queries:
    """One conversion."""

    def query(self, node: object) -> s.Query:
        match node:
            case exp.Select():
                return self._select(node)
            case exp.Union() | exp.Intersect() | exp.Except():
                return self._set_operation(node)
            case exp.Subquery():
                (inner,) = take(node, "this")
                return self.query(inner)
            case exp.Values():
                (rows,) = take(node, "expressions")
                return s.Values(tuple(tuple(self.expression(cell) for cell in row.expressions) for row in rows))
        raise strange(node)

    def _select(self, node: exp.Select) -> s.Select:
        with_, distinct, items, from_, joins, where, group, having, order, limit, offset, locks = take(
            node,
            *("with_", "distinct", "expressions", "from_", "joins", "where", "group", "having"),
            *("order", "limit", "offset", "locks"),
        )
        ctes, recursive = self._ctes(with_)
        index, *rest = map(self._item, listed(items))
        is_distinct, distinct_on = self._distinct(distinct)
        return s.Select(
            index=_index(index),
            items=tuple(rest),
            source=self._sources(from_, joins),
            where=self._condition(where),
            group_by=self._group(group),
            having=self._condition(having),
            distinct=is_distinct,
            distinct_on=distinct_on,
            order_by=self.order(order),
            limit=self._limit(limit),
            offset=self._limit(offset),
            locking=bool(locks),
            ctes=ctes,
            recursive=recursive,
        )

    def _set_operation(self, node: exp.SetOperation) -> s.SetOperation:
        with_, left, right, distinct, order, limit, offset = take(
            node, "with_", "this", "expression", "distinct", "order", "limit", "offset"
        )
        ctes, recursive = self._ctes(with_)
        return s.SetOperation(
            kind=KINDS[type(node)],
            all=not distinct,
            left=self.query(left),
            right=self.query(right),
            order_by=self.order(order),
            limit=self._limit(limit),
            offset=self._limit(offset),
            ctes=ctes,
            recursive=recursive,
        )

    def _ctes(self, node: exp.With | None) -> tuple[tuple[s.Cte, ...], bool]:
        if node is None:
            return (), False
        ctes, recursive = take(node, "expressions", "recursive")
        lowered = []
        for cte in ctes:
            query, alias = take(cte, "this", "alias")
            name, columns = take(alias, "this", "columns")
            lowered.append(s.Cte(identifier(name), self.query(query), tuple(map(identifier, listed(columns)))))
        return tuple(lowered), bool(recursive)

    def _distinct(self, node: exp.Distinct | None) -> tuple[bool, tuple[s.Expression, ...]]:
        if node is None:
            return False, ()
        (on,) = take(node, "on")
        if on is None:
            return True, ()
        return True, self._columns(on)

    def _item(self, node: exp.Expression) -> s.Item:
        if isinstance(node, exp.Alias):
            inner, alias = take(node, "this", "alias")
            return s.Item(self.expression(inner), identifier(alias))
        return s.Item(self.expression(node))

    def _condition(self, node: exp.Where | exp.Having | None) -> s.Expression | None:
        return None if node is None else self.expression(*take(node, "this"))

    def _limit(self, node: exp.Limit | exp.Offset | None) -> s.Expression | None:
        return None if node is None else self.expression(*take(node, "expression"))

    # FROM: the one spelling has no commas there

    def _sources(self, from_: exp.From | None, joins: object) -> s.Source | None:
        if from_ is None:
            return None
        (first,) = take(from_, "this")
        return self._joined(self._source(first), joins)

    def _joined(self, source: s.Source, joins: object) -> s.Source:
        for join in listed(joins):
            source = self._join(join, source)
        return source

    def _join(self, node: exp.Join, left: s.Source) -> s.Join:
        right, side, kind, on, using, method = take(node, "this", "side", "kind", "on", "using", "method")
        if (kind or "") not in ("", "CROSS") or (method or "") not in ("", "NATURAL"):
            raise strange(node)
        return s.Join(
            kind="cross" if kind == "CROSS" else SIDES[side or ""],
            left=left,
            right=self._source(right),
            on=None if on is None else self.expression(on),
            using=tuple(identifier(name) for name in listed(using)),
            natural=method == "NATURAL",
        )

    def _source(self, node: object) -> s.Source:
        match node:
            case exp.Table():
                return self._table(node)
            case exp.Subquery(this=exp.Table()) | exp.Subquery(this=exp.Subquery()) if node.this.args.get("joins"):
                return self._source(*take(node, "this"))  # a join in brackets: sqlglot hangs it on its first table
            case exp.Subquery():
                query, alias, joins = take(node, "this", "alias", "joins")
                return self._joined(s.QuerySource(self.query(query), *_alias(alias)), joins)
            case exp.Values():
                rows, alias = take(node, "expressions", "alias")
                return s.QuerySource(self.query(exp.Values(expressions=rows)), *_alias(alias))
            case exp.Lateral():
                query, alias = take(node, "this", "alias")
                return s.QuerySource(self.query(query), *_alias(alias), lateral=True)
        raise strange(node)

    def _table(self, node: exp.Table) -> s.Source:
        name, schema, alias, joins = take(node, "this", "db", "alias", "joins")
        label, columns = _alias(alias)
        if isinstance(name, exp.Identifier):
            owner = None if schema is None else identifier(schema)
            return self._joined(s.TableSource(identifier(name), owner, label, columns), joins)
        call = self.expression(name if schema is None else exp.Dot(this=schema, expression=name))
        if isinstance(call, s.Operator):
            call = s.Call(call.name, call.arguments, schema=RESERVED)
        if not isinstance(call, s.Call):
            raise strange(node)
        return self._joined(s.FunctionSource(call, label, columns), joins)

    # GROUP BY: plain, or one list of sets

    def _group(self, node: exp.Group | None) -> tuple[s.Expression | s.GroupingSets, ...]:
        if node is None:
            return ()
        plain, sets = take(node, "expressions", "grouping_sets")
        expressions: list[s.Expression | s.GroupingSets] = []
        for item in (*listed(plain), *listed(sets)):
            if isinstance(item, exp.GroupingSets):
                (inner,) = take(item, "expressions")
                expressions.append(s.GroupingSets(tuple(map(self._columns, inner))))
            else:
                expressions.append(self.expression(item))
        return tuple(expressions)

    def _columns(self, node: exp.Expression) -> tuple[s.Expression, ...]:
        if isinstance(node, exp.Tuple):
            return tuple(map(self.expression, node.expressions))
        return (self.expression(node),)

    # expressions

    def expression(self, node: object) -> s.Expression:
        match node:
            case exp.Paren():
                return self.expression(*take(node, "this"))
            case exp.Column(this=exp.Filter() as filtered):  # of a function with its schema
                call, where = take(filtered, "this", "expression")
                _, schema = take(node, "this", "table")
                return self._call(exp.Filter(this=exp.Dot(this=schema, expression=call), expression=where))
            case exp.Column() | exp.Star():
                return _column(node)
            case exp.Literal() | exp.Boolean() | exp.Null():
                match node:
                    case exp.Literal():
                        return s.Constant("string" if node.is_string else "number", node.this)
                    case exp.Boolean():
                        return s.Constant("boolean", "true" if node.this else "false")
                return s.Constant("null")
            case exp.Case():
                operand, branches, default = take(node, "this", "ifs", "default")
                pairs = [take(branch, "this", "true") for branch in listed(branches)]
                return s.Case(
                    operand=None if operand is None else self.expression(operand),
                    branches=tuple((self.expression(when), self.expression(then)) for when, then in pairs),
                    default=None if default is None else self.expression(default),
                )
            case exp.Anonymous() | exp.Dot() | exp.Filter() | exp.WithinGroup() | exp.Window():
                return self._call(node)
            case exp.Exists():
                return s.Exists(self.query(*take(node, "this")))
            case exp.Subquery():
                return s.ScalarQuery(self.query(node))
        return self._operator(node)

    def _operator(self, node: object) -> s.Expression:
        match node:
            case exp.Neg():
                return _minus(self.expression(*take(node, "this")))
            case exp.Not():
                return _negated(self.expression(*take(node, "this")))
            case exp.Is():
                argument, value = take(node, "this", "expression")
                match value:
                    case exp.Null():
                        return s.Operator("is null", (self.expression(argument),))
                    case exp.Boolean():
                        return s.Operator("is true" if value.this else "is false", (self.expression(argument),))
                raise strange(node)
            case exp.In():
                return self._in(node)
            case exp.Expression() if type(node) in BINARY:
                left, right, _, _ = take(node, "this", "expression", "safe", "typed")
                return s.Operator(BINARY[type(node)], (self.expression(left), self.expression(right)))
        raise strange(node)

    def _in(self, node: exp.In) -> s.Expression:
        argument, items, query = take(node, "this", "expressions", "query")
        if query is not None:
            return s.InQuery(self.expression(argument), self.query(query))
        return s.InList(self.expression(argument), tuple(self.expression(item) for item in listed(items)))

    def _call(self, node: exp.Expression) -> s.Expression:
        """A call with what stands around it, from the outside in: OVER, FILTER, WITHIN GROUP, its schema."""
        window = within = condition = None
        if isinstance(node, exp.Window):
            window, node = node, node.this
        if isinstance(node, exp.Filter):
            node, where = take(node, "this", "expression")
            (condition,) = take(where, "this")
        if isinstance(node, exp.WithinGroup):
            node, within = take(node, "this", "expression")
        schema, name, call = bare_call(node)
        arguments, distinct, order = call
        written = s.Call(
            name=name,
            arguments=tuple(self.expression(argument) for argument in arguments if not isinstance(argument, exp.Star)),
            schema=schema,
            star=any(isinstance(argument, exp.Star) for argument in arguments),
            distinct=distinct,
            filter=None if condition is None else self.expression(condition),
            order_by=tuple(map(self._ordered, order)),
            within_group=self.order(within),
            over=None if window is None else self._over(window),
        )
        return special(written) if schema == RESERVED else written

    def _over(self, node: exp.Window) -> s.Window:
        """The first entries of PARTITION BY are the frame's text and its offsets (`rules.sql.normalize`)."""
        _, partition, order, over = take(node, "this", "partition_by", "order", "over")
        frame, *parts = map(self.expression, listed(partition))
        if over != "OVER" or not isinstance(frame, s.Constant):
            raise strange(node)
        offsets = frame.text.count("$")
        return s.Window(tuple(parts[offsets:]), self.order(order), frame.text, tuple(parts[:offsets]))

    def order(self, node: exp.Order | None) -> tuple[s.OrderItem, ...]:
        if node is None:
            return ()
        (items,) = take(node, "expressions")
        return tuple(map(self._ordered, items))

    def _ordered(self, node: exp.Ordered) -> s.OrderItem:
        inner, descending, nulls_first = take(node, "this", "desc", "nulls_first")
        descending, nulls_first = bool(descending), bool(nulls_first)
        return s.OrderItem(self.expression(inner), descending, None if nulls_first == descending else nulls_first)


def _column(node: exp.Column | exp.Star) -> s.Name | s.Star:
    if isinstance(node, exp.Star):
        take(node)
        return s.Star()
    name, table, schema = take(node, "this", "table", "db")
    qualifier = tuple(identifier(part) for part in (schema, table) if part is not None)
    return s.Star(qualifier) if isinstance(name, exp.Star) else s.Name((*qualifier, identifier(name)))


def _minus(argument: s.Expression) -> s.Expression:
    """PostgreSQL's grammar too takes the sign of a number into the constant."""
    match argument:
        case s.Constant("number", text) if not text.startswith("-"):
            return s.Constant("number", f"-{text}")
    return s.Operator("-", (argument,))


def _negated(inner: s.Expression) -> s.Expression:
    """NOT, drawn into what has a negated form of its own."""
    match inner:
        case s.InList(argument, items, False):
            return s.InList(argument, items, negated=True)
        case s.InQuery(negated=False):
            return replace(inner, negated=True)
        case s.Operator(name, arguments) if name in NEGATIONS:
            return s.Operator(NEGATIONS[name], arguments)
    return s.Operator("not", (inner,))


def bare_call(node: exp.Expression) -> tuple[str | None, str, Inside]:
    """Schema, name, and what stands in the brackets."""
    schema = None
    if isinstance(node, exp.Dot):
        owner, node = take(node, "this", "expression")
        schema = identifier(owner)
    if not isinstance(node, exp.Anonymous):
        raise strange(node)
    name, arguments = take(node, "this", "expressions")
    function = identifier(name)
    if not function.endswith(MARK):
        raise strange(node)
    return schema, function.removesuffix(MARK), _inside(list(listed(arguments)))


def _inside(arguments: list[exp.Expression]) -> Inside:
    """sqlglot hangs ORDER BY on the last argument, and DISTINCT around all of them."""
    order: Sequence[exp.Ordered] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        last, order = take(arguments[-1], "this", "expressions")
        arguments[-1] = last
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        (inner,) = take(arguments[0], "expressions")
        return inner, True, order
    return arguments, False, order


def special(call: s.Call) -> s.Expression:
    """Return what is no function in PostgreSQL's grammar: parameters, casts, arrays, = ANY, other signs."""
    match call.name, call.arguments:
        case "$", (s.Constant("number", number),):
            return s.Parameter(int(number))
        case "cast", (argument, s.Constant("string", type_name)):
            return s.Cast(argument, type_name)
        case "array", items if not any(isinstance(item, s.ScalarQuery) for item in items):
            return s.Array(items)
    name, _, word = call.name.rpartition(" ")
    if word in ("any", "all") and name and len(call.arguments) == 2:
        argument, array = call.arguments
        if isinstance(array, s.ScalarQuery) and word == "any" and name in SIGNS:
            return s.InQuery(argument, array.query, sign=name)
        return s.Quantified(name, argument, array, all=word == "all")
    return s.Operator(call.name, call.arguments)


def _index(item: s.Item) -> int:
    """A SELECT's number is the first entry of its list."""
    match item:
        case s.Item(s.Constant("number", text), alias) if alias == RESERVED:
            return int(text)
    raise strange(item)


def _alias(node: exp.TableAlias | None) -> tuple[str | None, tuple[str, ...]]:
    if node is None:
        return None, ()
    name, columns = take(node, "this", "columns")
    return (None if name is None else identifier(name)), tuple(map(identifier, listed(columns)))
