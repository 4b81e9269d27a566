"""Expressions of sqlglot's as the planner's, operator by operator."""

from abc import ABC, abstractmethod

from sqlglot import exp

from rules.sql import syntax as s
from rules.sql.parse.dialect import listed, strange, take

CLOCKS = frozenset(("current_date", "current_timestamp", "localtimestamp", "current_time", "localtime"))
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
TYPES = {
    "INT": "integer",
    "BIGINT": "bigint",
    "SMALLINT": "smallint",
    "DECIMAL": "numeric",
    "DOUBLE": "double precision",
    "FLOAT": "real",
    "TEXT": "text",
    "VARCHAR": "character varying",
    "CHAR": "character",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp without time zone",
    "TIMESTAMPTZ": "timestamp with time zone",
    "TIME": "time without time zone",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "NAME": "name",
}


class Expressions(ABC):
    """Converts expressions; queries inside them are handed to the subclass."""

    @abstractmethod
    def query(self, node: object) -> s.Query: ...

    def expression(self, node: object, named: dict[str, exp.Window] | None = None) -> s.Expression:
        """Any expression; `named` are the windows of the WINDOW clause."""
        match node:
            case exp.Paren():
                (inner,) = take(node, "this")
                return self.expression(inner, named)
            case exp.Column():
                return self._column(node)
            case exp.Star():
                take(node)
                return s.Star()
            case exp.Literal() | exp.Boolean() | exp.Null() | exp.Parameter():
                return _leaf(node)
            case exp.Cast():
                argument, to = take(node, "this", "to")
                return s.Cast(self.expression(argument, named), type_text(to))
            case exp.Case():
                return self._case(node, named)
            case exp.Anonymous() | exp.Dot() | exp.Filter() | exp.WithinGroup() | exp.Window():
                return self._call(node, named)
            case exp.Array():
                (items, _) = take(node, "expressions", "value_constructor")
                return s.Array(tuple(self.expression(item, named) for item in listed(items)))
            case exp.Exists():
                (query,) = take(node, "this")
                return s.Exists(self.query(query))
            case exp.Subquery():
                return s.ScalarQuery(self.query(node))
        return self._operator(node, named)

    def _operator(self, node: object, named: dict[str, exp.Window] | None) -> s.Expression:
        match node:
            case exp.Neg():
                (argument,) = take(node, "this")
                return s.Operator("-", (self.expression(argument, named),))
            case exp.Not():
                (argument,) = take(node, "this")
                return _negated(self.expression(argument, named))
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                return self._between(node)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() if _is_quantified(node):
                return self._quantified(node)
            case exp.Expression() if type(node) in BINARY:
                left, right, negate, _, _ = take(node, "this", "expression", "negate", "safe", "typed")
                operation = s.Operator(
                    BINARY[type(node)], (self.expression(left, named), self.expression(right, named))
                )
                return _negated(operation) if negate else operation
        raise strange(node)

    def _column(self, node: exp.Column) -> s.Expression:
        name, table, schema = take(node, "this", "table", "db")
        parts = tuple(identifier(part) for part in (schema, table) if part is not None)
        if isinstance(name, exp.Star):
            return s.Star(parts)
        if not parts and not name.args.get("quoted") and name.name.lower() in CLOCKS:
            return s.Call(name.name.lower())
        return s.Name((*parts, identifier(name)))

    def _case(self, node: exp.Case, named: dict[str, exp.Window] | None) -> s.Case:
        operand, branches, default = take(node, "this", "ifs", "default")
        pairs = [take(branch, "this", "true") for branch in listed(branches)]
        return s.Case(
            operand=None if operand is None else self.expression(operand, named),
            branches=tuple((self.expression(when, named), self.expression(then, named)) for when, then in pairs),
            default=None if default is None else self.expression(default, named),
        )

    def _is(self, node: exp.Is) -> s.Expression:
        argument, value = take(node, "this", "expression")
        match value:
            case exp.Null():
                return s.Operator("is null", (self.expression(argument),))
            case exp.Boolean():
                return s.Operator("is true" if value.this else "is false", (self.expression(argument),))
        raise strange(node)

    def _in(self, node: exp.In) -> s.Expression:
        argument, items, query = take(node, "this", "expressions", "query")
        if query is not None:
            return s.InQuery(self.expression(argument), self.query(query))
        return s.InList(self.expression(argument), tuple(self.expression(item) for item in listed(items)))

    def _between(self, node: exp.Between) -> s.Expression:
        argument, low, high = (self.expression(part) for part in take(node, "this", "low", "high"))
        return s.Operator("between", (argument, low, high))

    def _quantified(self, node: exp.Binary) -> s.Expression:
        left, right = take(node, "this", "expression")
        argument = self.expression(left)
        (array,) = take(right, "this") if isinstance(right, exp.Any | exp.All) else listed(right.expressions)
        is_all = isinstance(right, exp.All) or right.name.upper() == "ALL"
        if isinstance(array, exp.Query):
            if type(node) is exp.EQ and not is_all:
                return s.InQuery(argument, self.query(array))
            if type(node) is exp.NEQ and is_all:
                return s.InQuery(argument, self.query(array), negated=True)
            raise strange(node)
        return s.Quantified(BINARY[type(node)], argument, self.expression(array), is_all)

    def _call(self, node: exp.Expression, named: dict[str, exp.Window] | None) -> s.Call:
        """A call with what stands around it: schema, FILTER, WITHIN GROUP, OVER, from the outside in."""
        over = condition = None
        within: tuple[s.OrderItem, ...] = ()
        if isinstance(node, exp.Window):
            node, over = self._over(node, named or {})
        if isinstance(node, exp.Filter):
            node, where = take(node, "this", "expression")
            (inside,) = take(where, "this")
            condition = self.expression(inside)
        if isinstance(node, exp.WithinGroup):
            node, order = take(node, "this", "expression")
            within = self.order(order, named)
        schema = None
        if isinstance(node, exp.Dot):
            owner, node = take(node, "this", "expression")
            schema = identifier(owner)
        if not isinstance(node, exp.Anonymous):
            raise strange(node)
        return self._plain_call(node, schema, condition, within, over)

    def _plain_call(
        self,
        node: exp.Anonymous,
        schema: str | None,
        condition: s.Expression | None,
        within: tuple[s.OrderItem, ...],
        over: s.Window | None,
    ) -> s.Call:
        name, arguments = take(node, "this", "expressions")
        arguments, distinct = list(listed(arguments)), False
        order: tuple[s.OrderItem, ...] = ()
        if arguments and isinstance(arguments[-1], exp.Order):
            last, items = take(arguments[-1], "this", "expressions")
            order = tuple(self._ordered(item, None) for item in items)
            arguments[-1] = last
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            (arguments,) = take(arguments[0], "expressions")
            distinct = True
        star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
        return s.Call(
            name=identifier(name) if isinstance(name, exp.Identifier) else str(name).lower(),
            arguments=() if star else tuple(self.expression(argument) for argument in arguments),
            schema=None if schema == "pg_catalog" else schema,
            star=star,
            distinct=distinct,
            filter=condition,
            order_by=order,
            within_group=within,
            over=over,
        )

    def _over(self, node: exp.Window, named: dict[str, exp.Window]) -> tuple[exp.Expression, s.Window]:
        call, alias, partition, order, spec, over = take(node, "this", "alias", "partition_by", "order", "spec", "over")
        if over not in (None, "OVER"):
            raise strange(node)
        if alias is not None:
            if alias.name not in named or partition or order or spec:
                raise strange(node)
            _, window = self._over(exp.Window(this=call, **_definition(named[alias.name])), {})
            return call, window
        frame = "" if spec is None else frame_text(spec)
        parts = tuple(self.expression(part) for part in listed(partition))
        return call, s.Window(parts, self.order(order, None), frame)

    def order(self, node: exp.Order | None, named: dict[str, exp.Window] | None) -> tuple[s.OrderItem, ...]:
        if node is None:
            return ()
        (items,) = take(node, "expressions")
        return tuple(self._ordered(item, named) for item in items)

    def _ordered(self, node: exp.Expression, named: dict[str, exp.Window] | None) -> s.OrderItem:
        if not isinstance(node, exp.Ordered):
            raise strange(node)
        argument, descending, nulls_first = take(node, "this", "desc", "nulls_first")
        nulls = None if bool(nulls_first) == bool(descending) else bool(nulls_first)
        return s.OrderItem(self.expression(argument, named), bool(descending), nulls)


def identifier(node: exp.Expression) -> str:
    """A name; canonical text quotes what is not lower case already."""
    if not isinstance(node, exp.Identifier):
        raise strange(node)
    name: str = node.name
    return name


def type_text(node: exp.DataType) -> str:
    """A type as PostgreSQL prints it."""
    if node.this == exp.DataType.Type.ARRAY:
        (inner,) = node.expressions
        return f"{type_text(inner)}[]"
    if node.this == exp.DataType.Type.USERDEFINED:
        return str(node.args["kind"])
    name = TYPES.get(str(node.this.name if isinstance(node.this, exp.DataType.Type) else ""))
    if name is None:
        raise strange(node)
    sizes = ", ".join(size.name for size in node.expressions)
    if not sizes:
        return name
    head, _, tail = name.partition(" with")  # timestamp(3) with time zone
    return f"{head}({sizes.replace(' ', '')})" + (f" with{tail}" if tail else "")


def frame_text(spec: exp.WindowSpec) -> str:
    kind, start, start_side, end, end_side = take(spec, "kind", "start", "start_side", "end", "end_side")
    edges = [(start, start_side), (end, end_side)]
    texts = [" ".join(str(part) for part in edge if part) for edge in edges]
    return f"{kind} BETWEEN {texts[0]} AND {texts[1] or 'CURRENT ROW'}"


def _leaf(node: exp.Expression) -> s.Constant | s.Parameter:
    match node:
        case exp.Literal():
            return s.Constant("string" if node.is_string else "number", node.this)
        case exp.Boolean():
            return s.Constant("boolean", "true" if node.this else "false")
        case exp.Parameter() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return s.Parameter(int(node.this.this))
        case exp.Null():
            return s.Constant("null")
    raise strange(node)


NEGATIONS = {"is null": "is not null", "is true": "is not true", "is false": "is not false"}


def _negated(inner: s.Expression) -> s.Expression:
    """NOT, drawn into what has a negated form of its own."""
    match inner:
        case s.InList(argument, items, False):
            return s.InList(argument, items, negated=True)
        case s.InQuery(argument, query, False):
            return s.InQuery(argument, query, negated=True)
        case s.Operator(name, arguments) if name in NEGATIONS:
            return s.Operator(NEGATIONS[name], arguments)
    return s.Operator("not", (inner,))


def _is_quantified(node: exp.Binary) -> bool:
    right = node.expression
    return isinstance(right, exp.Any | exp.All) or (
        isinstance(right, exp.Anonymous)
        and right.name.upper() in ("ANY", "ALL", "SOME")
        and len(right.expressions) == 1
    )


def _definition(window: exp.Window) -> dict[str, object]:
    """What a named window stands for."""
    _, partition, order, spec = take(window, "this", "partition_by", "order", "spec")
    return {"partition_by": partition, "order": order, "spec": spec, "over": "OVER"}
