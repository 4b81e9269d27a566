"""The planner's syntax tree as SQL again, fully parenthesised: only to be compared with what was read."""

from rules.sql import syntax as s

KEYWORDS = {"coalesce", "nullif", "greatest", "least", "grouping"}
CLOCKS = {"current_date", "current_timestamp", "localtimestamp", "current_time", "localtime"}
POSTFIX = ("is null", "is not null", "is true", "is not true", "is false", "is not false")


def print_query(query: s.Query) -> str:
    match query:
        case s.Values(rows):
            return "VALUES " + ", ".join(f"({_list(row)})" for row in rows)
        case s.SetOperation():
            every = " ALL" if query.all else ""
            operation = f"({print_query(query.left)}) {query.kind}{every} ({print_query(query.right)})"
            return _with(query) + operation + _tail(query)
        case s.Select():
            return _with(query) + _select(query) + _tail(query)


def _with(query: s.Select | s.SetOperation) -> str:
    if not query.ctes:
        return ""
    recursive = "RECURSIVE " if query.recursive else ""
    ctes = (f"{_name(cte.name)}{_columns(cte.columns)} AS ({print_query(cte.query)})" for cte in query.ctes)
    return f"WITH {recursive}{', '.join(ctes)} "


def _select(query: s.Select) -> str:
    distinct = (
        f"DISTINCT ON ({_list(query.distinct_on)}) " if query.distinct_on else "DISTINCT " if query.distinct else ""
    )
    text = f"SELECT {distinct}" + ", ".join(map(_item, query.items))
    if query.source is not None:
        text += f" FROM {print_source(query.source)}"
    if query.where is not None:
        text += f" WHERE {print_expression(query.where)}"
    if query.group_by:
        text += " GROUP BY " + ", ".join(map(_group, query.group_by))
    if query.having is not None:
        text += f" HAVING {print_expression(query.having)}"
    return text


def _tail(query: s.Select | s.SetOperation) -> str:
    text = f" ORDER BY {_order(query.order_by)}" if query.order_by else ""
    if query.limit is not None:
        text += f" LIMIT {print_expression(query.limit)}"
    if query.offset is not None:
        text += f" OFFSET {print_expression(query.offset)}"
    return text


def _item(item: s.Item) -> str:
    alias = f" AS {_name(item.alias)}" if item.alias is not None else ""
    return print_expression(item.expression) + alias


def _group(element: s.Expression | s.GroupingSets) -> str:
    if isinstance(element, s.GroupingSets):
        return f"GROUPING SETS ({', '.join(f'({_list(each)})' for each in element.sets)})"
    return print_expression(element)


def print_source(source: s.Source) -> str:
    match source:
        case s.TableSource(name, schema, alias, columns):
            table = _name(name) if schema is None else f"{_name(schema)}.{_name(name)}"
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
        condition = f" USING ({', '.join(map(_name, join.using))})"
    return f"({print_source(join.left)} {words} {print_source(join.right)}{condition})"


def print_expression(node: s.Expression) -> str:  # noqa: C901  (one line a node)
    match node:
        case s.Name(parts):
            return ".".join(map(_name, parts))
        case s.Star(qualifier):
            return ".".join((*map(_name, qualifier), "*"))
        case s.Constant(kind, text):
            return _text(text) if kind == "string" else "NULL" if kind == "null" else text
        case s.Parameter(number):
            return f"${number}"
        case s.Cast(argument, type_name):
            return f"CAST({print_expression(argument)} AS {type_name})"
        case s.Operator():
            return f"({_operator(node)})"
        case s.Call():
            return _call(node)
        case s.Case(operand, branches, default):
            whens = (f"WHEN {print_expression(when)} THEN {print_expression(then)}" for when, then in branches)
            head = "" if operand is None else print_expression(operand)
            tail = "" if default is None else f"ELSE {print_expression(default)}"
            return f"CASE {head} {' '.join(whens)} {tail} END"
        case s.InList(argument, items, negated):
            return f"({print_expression(argument)} {'NOT ' if negated else ''}IN ({_list(items)}))"
        case s.InQuery(argument, query, negated):
            return f"({print_expression(argument)} {'NOT ' if negated else ''}IN ({print_query(query)}))"
        case s.Exists(query):
            return f"EXISTS ({print_query(query)})"
        case s.ScalarQuery(query):
            return f"({print_query(query)})"
        case s.Array(items):
            return f"ARRAY[{_list(items)}]"
        case s.Quantified(operator, argument, array, every):
            word = "ALL" if every else "ANY"
            return f"({print_expression(argument)} {operator} {word} ({print_expression(array)}))"


def _operator(node: s.Operator) -> str:
    arguments = [print_expression(argument) for argument in node.arguments]
    if node.name in POSTFIX:
        return f"{arguments[0]} {node.name}"
    if node.name == "between":
        return f"{arguments[0]} BETWEEN {arguments[1]} AND {arguments[2]}"
    if len(arguments) == 1:
        return f"{node.name} {arguments[0]}"
    return f" {node.name} ".join(arguments)


def _call(call: s.Call) -> str:
    if call.name in CLOCKS:
        return call.name
    name = call.name if call.name in KEYWORDS else _name(call.name)
    owner = "" if call.schema is None else f"{_name(call.schema)}."
    inside = "*" if call.star else f"{'DISTINCT ' if call.distinct else ''}{_list(call.arguments)}"
    if call.order_by:
        inside += f" ORDER BY {_order(call.order_by)}"
    text = f"{owner}{name}({inside})"
    if call.within_group:
        text += f" WITHIN GROUP (ORDER BY {_order(call.within_group)})"
    if call.filter is not None:
        text += f" FILTER (WHERE {print_expression(call.filter)})"
    if call.over is not None:
        text += f" OVER ({_window(call.over)})"
    return text


def _window(window: s.Window) -> str:
    parts = [f"PARTITION BY {_list(window.partition_by)}"] if window.partition_by else []
    parts += [f"ORDER BY {_order(window.order_by)}"] if window.order_by else []
    return " ".join([*parts, window.frame])


def _order(items: tuple[s.OrderItem, ...]) -> str:
    return ", ".join(map(_ordered, items))


def _ordered(item: s.OrderItem) -> str:
    nulls = "" if item.nulls_first is None else f" NULLS {'FIRST' if item.nulls_first else 'LAST'}"
    return print_expression(item.expression) + (" DESC" if item.descending else "") + nulls


def _list(nodes: tuple[s.Expression, ...]) -> str:
    return ", ".join(map(print_expression, nodes))


def _alias(alias: str | None, columns: tuple[str, ...]) -> str:
    return "" if alias is None else f" AS {_name(alias)}{_columns(columns)}"


def _columns(columns: tuple[str, ...]) -> str:
    return f"({', '.join(map(_name, columns))})" if columns else ""


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
