"""A tree in its one spelling as text that leaves nothing to a parser's taste: names quoted, operations in brackets.

Such trees (`rules.sql.normalize`) hold few kinds of nodes; PostgreSQL's own printer would leave out quotes and
brackets that another parser needs.
"""

from rules.sql.tree import Json, Node, items, kind, strings

SET_OPERATIONS = {"SETOP_UNION": "UNION", "SETOP_INTERSECT": "INTERSECT", "SETOP_EXCEPT": "EXCEPT"}
JOINS = {"JOIN_INNER": "JOIN", "JOIN_LEFT": "LEFT JOIN", "JOIN_RIGHT": "RIGHT JOIN", "JOIN_FULL": "FULL JOIN"}
OPERATIONS = {"AEXPR_DISTINCT": "IS DISTINCT FROM", "AEXPR_NOT_DISTINCT": "IS NOT DISTINCT FROM"}
WORDS = {"AEXPR_LIKE": "LIKE", "AEXPR_ILIKE": "ILIKE", "AEXPR_IN": "IN"} | OPERATIONS
MARK = "()"  # ends the name of each function, so that a parser takes none for one of its own: "upper()"("name")
CHAINED = frozenset(("+", "||"))  # a chain of one of these needs no brackets


def spell(node: Json) -> str:
    """One expression."""
    name, body = kind(node)
    match name:
        case "ColumnRef":
            return ".".join(_name_or_star(field) for field in items(body, "fields"))
        case "A_Const":
            return _constant(body)
        case "FuncCall":
            return _call(body)
        case "A_Expr":
            return f"({_operation(body)})"
        case "BoolExpr":
            return _boolean(body)
        case "NullTest":
            return f"({spell(body['arg'])} IS NULL)"
        case "BooleanTest":
            return f"({spell(body['arg'])} {str(body['booltesttype']).replace('_', ' ')})"
        case "CaseExpr":
            return _case(body)
        case "SubLink":
            return _sublink(body)
    assert name in ("List", "RowExpr"), f"{name} is not spelled"
    return f"({_comma(items(body, 'items' if name == 'List' else 'args'))})"


def spell_query(node: Json) -> str:
    """One query: a wrapped SelectStmt."""
    return _query(kind(node)[1])


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _comma(nodes: list[Json]) -> str:
    return ", ".join(map(spell, nodes))


def _names(nodes: list[Json]) -> str:
    return ", ".join(map(quoted, strings(nodes)))


def _name_or_star(field: Json) -> str:
    name, body = kind(field)
    return "*" if name == "A_Star" else quoted(str(body.get("sval", "")))


def _constant(body: Node) -> str:
    match body:
        case {"isnull": True}:
            return "NULL"
        case {"ival": dict() as value}:
            number = int(str(value.get("ival", 0)))
            return f"({number})" if number < 0 else str(number)
        case {"fval": dict() as value}:
            number_text = str(value.get("fval", ""))
            return f"({number_text})" if number_text.startswith("-") else number_text
        case {"boolval": dict() as value}:
            return "TRUE" if value.get("boolval") else "FALSE"
        case {"sval": dict() as value}:
            return literal(str(value.get("sval", "")))
    raise AssertionError("this constant is not spelled")


def _operation(body: Node) -> str:
    (name,) = strings(body["name"])
    operation = str(body["kind"])
    right = spell(body["rexpr"])
    if "lexpr" not in body:
        return f"{name} {right}"
    left = spell(body["lexpr"])
    if name in CHAINED and operation == "AEXPR_OP" and _is_chain(body["lexpr"], name):
        left = left[1:-1]
    return f"{left} {WORDS.get(operation, name)} {right}"


def _is_chain(node: Json, name: str) -> bool:
    kind_, body = kind(node)
    return kind_ == "A_Expr" and body["kind"] == "AEXPR_OP" and "lexpr" in body and strings(body["name"]) == (name,)


def _boolean(body: Node) -> str:
    parts = [spell(argument) for argument in items(body, "args")]
    if body["boolop"] == "NOT_EXPR":
        return f"(NOT {parts[0]})"
    return f"({(' AND ' if body['boolop'] == 'AND_EXPR' else ' OR ').join(parts)})"


def _case(body: Node) -> str:
    operand = f" {spell(body['arg'])}" if "arg" in body else ""
    branches = "".join(
        f" WHEN {spell(when['expr'])} THEN {spell(when['result'])}" for _, when in map(kind, items(body, "args"))
    )
    default = f" ELSE {spell(body['defresult'])}" if "defresult" in body else ""
    return f"CASE{operand}{branches}{default} END"


def _sublink(body: Node) -> str:
    query = f"({spell_query(body['subselect'])})"
    match body["subLinkType"]:
        case "EXISTS_SUBLINK":
            return f"(EXISTS {query})"
        case "ANY_SUBLINK":
            return f"({spell(body['testexpr'])} IN {query})"
    return query


def _call(body: Node) -> str:
    *schema, function = strings(body["funcname"])
    name = ".".join(map(quoted, (*schema, function + MARK)))
    arguments = "*" if body.get("agg_star") else _comma(items(body, "args"))
    distinct = "DISTINCT " if body.get("agg_distinct") else ""
    order = _order(body, "agg_order")
    within = f" WITHIN GROUP ({order.strip()})" if body.get("agg_within_group") else ""
    condition = f" FILTER (WHERE {spell(body['agg_filter'])})" if "agg_filter" in body else ""
    return f"{name}({distinct}{arguments}{'' if within else order}){within}{condition}{_over(body.get('over'))}"


def _over(window: Json) -> str:
    if not isinstance(window, dict):
        return ""
    return f" OVER (PARTITION BY {_comma(items(window, 'partitionClause'))}{_order(window, 'orderClause')})"


def _order(body: Node, key: str) -> str:
    nodes = [kind(item)[1] for item in items(body, key)]
    return f" ORDER BY {', '.join(map(_order_item, nodes))}" if nodes else ""


def _order_item(body: Node) -> str:
    direction = " DESC" if body["sortby_dir"] == "SORTBY_DESC" else ""
    nulls = "FIRST" if body["sortby_nulls"] == "SORTBY_NULLS_FIRST" else "LAST"
    return f"{spell(body['node'])}{direction} NULLS {nulls}"


def _query(body: Node) -> str:
    clause = body.get("withClause")
    inner = _set_operation(body) if "larg" in body else _rows(body) if "valuesLists" in body else _select(body)
    text = (_with(clause) if isinstance(clause, dict) else "") + inner + _order(body, "sortClause")
    text += f" LIMIT {spell(body['limitCount'])}" if "limitCount" in body else ""
    text += f" OFFSET {spell(body['limitOffset'])}" if "limitOffset" in body else ""
    return text + (" FOR UPDATE" if "lockingClause" in body else "")


def _with(clause: Node) -> str:
    ctes = [kind(cte)[1] for cte in items(clause, "ctes")]
    texts = [
        f"{quoted(str(cte['ctename']))}{_columns(items(cte, 'aliascolnames'))} AS ({spell_query(cte['ctequery'])})"
        for cte in ctes
    ]
    return f"WITH {'RECURSIVE ' if clause.get('recursive') else ''}{', '.join(texts)} "


def _columns(names: list[Json]) -> str:
    return f"({_names(names)})" if names else ""


def _set_operation(body: Node) -> str:
    left, right = body["larg"], body["rarg"]
    assert isinstance(left, dict) and isinstance(right, dict)
    left_text = f"({_query(left)})"
    if left["op"] == body["op"] == "SETOP_UNION" and not left.keys() & {
        "sortClause",
        "withClause",
        "limitCount",
        "limitOffset",
    }:
        left_text = left_text[1:-1]
    operation = SET_OPERATIONS[str(body["op"])] + (" ALL" if body.get("all") else "")
    return f"{left_text} {operation} ({_query(right)})"


def _rows(body: Node) -> str:
    return f"VALUES {', '.join(map(spell, items(body, 'valuesLists')))}"


def _select(body: Node) -> str:
    text = f"SELECT {_distinct(items(body, 'distinctClause'))}{', '.join(map(_target, items(body, 'targetList')))}"
    if sources := items(body, "fromClause"):
        text += f" FROM {_source(sources[0])}"
    text += f" WHERE {spell(body['whereClause'])}" if "whereClause" in body else ""
    if groups := items(body, "groupClause"):
        text += f" GROUP BY {', '.join(map(_group, groups))}"
    return text + (f" HAVING {spell(body['havingClause'])}" if "havingClause" in body else "")


def _distinct(on: list[Json]) -> str:
    if not on:
        return ""
    return f"DISTINCT ON ({_comma(on)}) " if on[0] else "DISTINCT "


def _target(node: Json) -> str:
    _, target = kind(node)
    return spell(target["val"]) + (f" AS {quoted(str(target['name']))}" if "name" in target else "")


def _group(node: Json) -> str:
    name, body = kind(node)
    if name != "GroupingSet":
        return spell(node)
    if body["kind"] == "GROUPING_SET_EMPTY":
        return "()"
    return f"GROUPING SETS ({', '.join(map(_one_set, items(body, 'content')))})"


def _one_set(node: Json) -> str:
    return f"({spell(node)})" if kind(node)[0] not in ("GroupingSet", "RowExpr") else _group(node)


def _source(node: Json) -> str:
    name, body = kind(node)
    match name:
        case "RangeVar":
            schema = f"{quoted(str(body['schemaname']))}." if "schemaname" in body else ""
            only = "" if body.get("inh") else "ONLY "
            return only + schema + quoted(str(body["relname"])) + _alias(body)
        case "RangeSubselect":
            lateral = "LATERAL " if body.get("lateral") else ""
            return f"{lateral}({spell_query(body['subquery'])}){_alias(body)}"
        case "RangeFunction":
            (function,) = items(body, "functions")
            return spell(items(kind(function)[1], "items")[0]) + _alias(body)
    return _join(body)


def _join(body: Node) -> str:
    left, right = _source(body["larg"]), _source(body["rarg"])
    if kind(body["rarg"])[0] == "JoinExpr":
        right = f"({right})"
    condition = f" ON {spell(body['quals'])}" if "quals" in body else ""
    if using := items(body, "usingClause"):
        condition = f" USING ({_names(using)})"
    word = JOINS[str(body["jointype"])]
    if body.get("isNatural"):
        word = f"NATURAL {word}"
    elif not condition:
        word = "CROSS JOIN"
    return f"{left} {word} {right}{condition}"


def _alias(body: Node) -> str:
    alias = body.get("alias")
    if not isinstance(alias, dict):
        return ""
    return f" AS {quoted(str(alias['aliasname']))}{_columns(items(alias, 'colnames'))}"
