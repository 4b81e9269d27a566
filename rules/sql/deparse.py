"""The planner's syntax as text again, as `rules.sql.normalize` spells it: only to be compared with what was read."""

from rules.sql import syntax as s
from rules.sql.normalize import RESERVED
from rules.sql.normalize.to_text import literal, quoted

SIGNS = frozenset("+ - * / % ^ || = <> < <= > >= ~ ~*".split())
WORDS = frozenset(("and", "or", "like", "ilike", "is distinct from", "is not distinct from"))
POSTFIX = frozenset(("is null", "is true", "is false"))
NEGATED = {"is not null": "is null", "is not true": "is true", "is not false": "is false"}


def print_query(query: s.Query) -> str:
    match query:
        case s.Values(rows):
            return "VALUES " + ", ".join(f"({_list(row)})" for row in rows)
        case s.SetOperation():
            every = " ALL" if query.all else ""
            operation = f"({print_query(query.left)}) {query.kind}{every} ({print_query(query.right)})"
            return _with(query) + operation + _tail(query)
        case s.Select():
            return _with(query) + _select(query) + _tail(query) + (" FOR UPDATE" if query.locking else "")


def _with(query: s.Select | s.SetOperation) -> str:
    if not query.ctes:
        return ""
    recursive = "RECURSIVE " if query.recursive else ""
    ctes = (f"{quoted(cte.name)}{_columns(cte.columns)} AS ({print_query(cte.query)})" for cte in query.ctes)
    return f"WITH {recursive}{', '.join(ctes)} "


def _select(query: s.Select) -> str:
    distinct = (
        f"DISTINCT ON ({_list(query.distinct_on)}) " if query.distinct_on else "DISTINCT " if query.distinct else ""
    )
    items = [f'{query.index} AS "{RESERVED}"', *map(_item, query.items)]
    text = f"SELECT {distinct}{', '.join(items)}"
    if query.source is not None:
        text += f" FROM {_source(query.source)}"
    if query.where is not None:
        text += f" WHERE {print_expression(query.where)}"
    if query.group_by:
        text += " GROUP BY " + ", ".join(map(_group, query.group_by))
    if query.having is not None:
        text += f" HAVING {print_expression(query.having)}"
    return text


def _tail(query: s.Select | s.SetOperation) -> str:
    text = _order(query.order_by)
    if query.limit is not None:
        text += f" LIMIT {print_expression(query.limit)}"
    if query.offset is not None:
        text += f" OFFSET {print_expression(query.offset)}"
    return text


def _item(item: s.Item) -> str:
    alias = f" AS {quoted(item.alias)}" if item.alias is not None else ""
    return print_expression(item.expression) + alias


def _group(element: s.Expression | s.GroupingSets) -> str:
    if isinstance(element, s.GroupingSets):
        return f"GROUPING SETS ({', '.join(f'({_list(expressions)})' for expressions in element.sets)})"
    return print_expression(element)


def _source(source: s.Source) -> str:
    match source:
        case s.TableSource(name, schema, alias, columns):
            table = quoted(name) if schema is None else f"{quoted(schema)}.{quoted(name)}"
            return table + _alias(alias, columns)
        case s.QuerySource(query, alias, columns, lateral):
            return f"{'LATERAL ' if lateral else ''}({print_query(query)}){_alias(alias, columns)}"
        case s.FunctionSource(call, alias, columns):
            return print_expression(call) + _alias(alias, columns)
        case s.Join():
            return _join(source)


def _join(join: s.Join) -> str:
    words = f"{'NATURAL ' if join.natural else ''}{join.kind.upper()} JOIN"
    condition = ""
    if join.on is not None:
        condition = f" ON {print_expression(join.on)}"
    elif join.using:
        condition = f" USING ({', '.join(map(quoted, join.using))})"
    right = _source(join.right)
    if isinstance(join.right, s.Join):
        right = f"({right})"
    return f"{_source(join.left)} {words} {right}{condition}"


def print_expression(node: s.Expression) -> str:
    match node:
        case s.Name(parts):
            return ".".join(map(quoted, parts))
        case s.Star(qualifier):
            return ".".join((*map(quoted, qualifier), "*"))
        case s.Constant(kind, text):
            match kind:
                case "string":
                    return literal(text)
                case "number":
                    return f"({text})" if text.startswith("-") else text
            return text.upper() or "NULL"
        case s.Operator(name, arguments):
            return _operator(name, arguments)
        case s.Call():
            return _call(node)
        case s.Case():
            return _case(node)
        case s.Parameter() | s.Cast() | s.Array() | s.Quantified():
            return _reserved(node)
    return _with_query(node)


def _with_query(node: s.InList | s.InQuery | s.Exists | s.ScalarQuery) -> str:
    match node:
        case s.InList(argument, items, negated):
            inner = f"({print_expression(argument)} IN ({_list(items)}))"
        case s.InQuery(argument, query, negated, "="):
            inner = f"({print_expression(argument)} IN ({print_query(query)}))"
        case s.InQuery(argument, query, negated, sign):
            inner = _operator(f"{sign} any", (argument, s.ScalarQuery(query)))
        case s.Exists(query):
            return f"(EXISTS ({print_query(query)}))"
        case s.ScalarQuery(query):
            return f"({print_query(query)})"
    return f"(NOT {inner})" if negated else inner


def _case(node: s.Case) -> str:
    operand = "" if node.operand is None else f" {print_expression(node.operand)}"
    whens = (f" WHEN {print_expression(when)} THEN {print_expression(then)}" for when, then in node.branches)
    default = "" if node.default is None else f" ELSE {print_expression(node.default)}"
    return f"CASE{operand}{''.join(whens)}{default} END"


def _operator(name: str, arguments: tuple[s.Expression, ...]) -> str:
    texts = [print_expression(argument) for argument in arguments]
    if name in NEGATED:
        return f"(NOT ({texts[0]} {NEGATED[name]}))"
    if name in POSTFIX:
        return f"({texts[0]} {name})"
    if (name in SIGNS or name in WORDS) and len(texts) == 2:
        return f"({texts[0]} {name} {texts[1]})"
    if name in ("-", "not") and len(texts) == 1:
        return f"({name} {texts[0]})"
    return f"{quoted(RESERVED)}.{quoted(name)}({', '.join(texts)})"


def _reserved(node: s.Parameter | s.Cast | s.Array | s.Quantified) -> str:
    match node:
        case s.Cast(argument, type_name):
            return _operator("cast", (argument, s.Constant("string", type_name)))
        case s.Parameter(number):
            return _operator("$", (s.Constant("number", str(number)),))
        case s.Array(items):
            return _operator("array", items)
        case s.Quantified(operator, argument, array, every):
            return _operator(f"{operator} {'all' if every else 'any'}", (argument, array))


def _call(call: s.Call) -> str:
    owner = "" if call.schema is None else f"{quoted(call.schema)}."
    inside = "*" if call.star else f"{'DISTINCT ' if call.distinct else ''}{_list(call.arguments)}"
    text = f"{owner}{quoted(call.name)}({inside}{_order(call.order_by)})"
    if call.within_group:
        text += f" WITHIN GROUP ({_order(call.within_group).lstrip()})"
    if call.filter is not None:
        text += f" FILTER (WHERE {print_expression(call.filter)})"
    if call.over is not None:
        parts = (s.Constant("string", call.over.frame), *call.over.offsets, *call.over.partition_by)
        text += f" OVER (PARTITION BY {_list(parts)}{_order(call.over.order_by)})"
    return text


def _order(items: tuple[s.OrderItem, ...]) -> str:
    return f" ORDER BY {', '.join(map(_ordered, items))}" if items else ""


def _ordered(item: s.OrderItem) -> str:
    nulls_first = item.descending if item.nulls_first is None else item.nulls_first
    direction = " DESC" if item.descending else ""
    return f"{print_expression(item.expression)}{direction} NULLS {'FIRST' if nulls_first else 'LAST'}"


def _list(nodes: tuple[s.Expression, ...]) -> str:
    return ", ".join(map(print_expression, nodes))


def _alias(alias: str | None, columns: tuple[str, ...]) -> str:
    return "" if alias is None else f" AS {quoted(alias)}{_columns(columns)}"


def _columns(columns: tuple[str, ...]) -> str:
    return f"({', '.join(map(quoted, columns))})" if columns else ""
