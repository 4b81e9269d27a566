"""Print a query over public tables for the real database, from PostgreSQL's tree, by an allow-list of its nodes.

A table becomes the SELECT of its visible columns, so a hidden one is not there for *, NATURAL or a row as a whole
either. Functions, operators, types and collations have pg_catalog before their names, and are on a list. A CTE has a
name of ours, which no relation has: where it is out of scope nothing else is read in its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rules.catalog import TableName
from rules.frozen import frozen
from rules.sql.normalize.to_text import quoted
from rules.sql.public_sql.expressions import PublicExpressions, check_keys, unknown
from rules.sql.tree import Json, Node, items, kind, strings

_JOINS = {"JOIN_INNER": "JOIN", "JOIN_LEFT": "LEFT JOIN", "JOIN_RIGHT": "RIGHT JOIN", "JOIN_FULL": "FULL JOIN"}
_OPERATIONS = {"SETOP_UNION": "UNION", "SETOP_INTERSECT": "INTERSECT", "SETOP_EXCEPT": "EXCEPT"}
_CLAUSES = (
    *("distinctClause", "targetList", "fromClause", "whereClause", "groupClause", "groupDistinct", "havingClause"),
    *("windowClause", "valuesLists", "sortClause", "limitOffset", "limitCount", "limitOption", "withClause"),
    *("op", "all", "larg", "rarg"),
)
_SETS = {"GROUPING_SET_SIMPLE": "", "GROUPING_SET_ROLLUP": "ROLLUP ", "GROUPING_SET_CUBE": "CUBE "}


@frozen
class ReadableTable:
    """A public table, and the columns of it that a query may see."""

    name: TableName
    columns: tuple[str, ...]


@frozen
class Printed:
    """A query for the real database, and the tables that it reads."""

    sql: str
    tables: tuple[TableName, ...]


FindTable = Callable[[str | None, str], ReadableTable]
FindEnum = Callable[[tuple[str, ...]], str | None]  # by the parts of its name: its name in full, in quotes


def print_public(query: Node, find_table: FindTable, find_enum: FindEnum, parameters: Sequence[str]) -> Printed:
    """Print a wrapped SelectStmt; `parameters` are constants with their types, as text."""
    name, body = kind(query)
    if name != "SelectStmt":
        raise unknown("this statement")
    printer = _Printer(find_table=find_table, find_enum=find_enum, parameters=parameters)
    sql = printer.query(body)
    return Printed(sql, tuple(sorted(printer.tables)))


def table_rows(table: ReadableTable) -> str:
    """SELECT of a table's visible columns."""
    columns = ", ".join(map(quoted, table.columns))
    return f"SELECT {columns} FROM {quoted(table.name.schema)}.{quoted(table.name.name)}"


@dataclass(kw_only=True)
class _Printer(PublicExpressions):
    """One run over one query."""

    find_table: FindTable
    find_enum: FindEnum
    parameters: Sequence[str]
    tables: set[TableName] = field(default_factory=set)
    _ctes: list[tuple[str, str]] = field(default_factory=list)  # those in scope: their names, and ours
    _made: int = 0

    def parameter(self, number: int) -> str:
        if not 0 < number <= len(self.parameters):
            raise unknown(f"parameter ${number}")
        return self.parameters[number - 1]

    def enum(self, names: tuple[str, ...]) -> str | None:
        return self.find_enum(names)

    def query(self, body: Node) -> str:
        check_keys("this clause", body, *_CLAUSES)
        outside = len(self._ctes)
        text = self._with(body.get("withClause")) + self._body(body) + self._tail(body)
        del self._ctes[outside:]
        return text

    def _with(self, clause: Json) -> str:
        if not isinstance(clause, dict):
            return ""
        if check_keys("this WITH", clause, "ctes", "recursive").get("recursive"):
            raise unknown("WITH RECURSIVE")
        return f"WITH {', '.join(self._cte(kind(cte)[1]) for cte in items(clause, 'ctes'))} "

    def _cte(self, body: Node) -> str:
        check_keys("this CTE", body, "ctename", "aliascolnames", "ctematerialized", "ctequery")
        columns = _columns(strings(body.get("aliascolnames")))
        text = self._inner(body.get("ctequery"))
        self._made += 1
        ours = quoted(f"noisegate cte {self._made}")
        self._ctes.append((str(body.get("ctename")), ours))
        return f"{ours}{columns} AS {text}"

    def _inner(self, node: Json) -> str:
        name, body = kind(node)
        if name != "SelectStmt":
            raise unknown("a statement that writes")
        return f"({self.query(body)})"

    def _body(self, body: Node) -> str:
        if (operation := str(body.get("op", "SETOP_NONE"))) != "SETOP_NONE":
            left, right = (f"({self.query(side)})" for side in (body["larg"], body["rarg"]) if isinstance(side, dict))
            return f"{left} {_OPERATIONS[operation]}{' ALL' if body.get('all') else ''} {right}"
        if rows := items(body, "valuesLists"):
            return "VALUES " + ", ".join(f"({self.comma(kind(row)[1], 'items')})" for row in rows)
        text = f"SELECT {self._distinct(items(body, 'distinctClause'))}"
        text += ", ".join(self._target(kind(node)[1]) for node in items(body, "targetList"))
        if sources := items(body, "fromClause"):
            text += " FROM " + ", ".join(map(self._source, sources))
        if "whereClause" in body:
            text += f" WHERE {self.expression(body['whereClause'])}"
        if groups := items(body, "groupClause"):
            text += f" GROUP BY {'DISTINCT ' if body.get('groupDistinct') else ''}{', '.join(map(self._group, groups))}"
        if "havingClause" in body:
            text += f" HAVING {self.expression(body['havingClause'])}"
        if windows := items(body, "windowClause"):
            text += " WINDOW " + ", ".join(self._named_window(kind(node)[1]) for node in windows)
        return text

    def _tail(self, body: Node) -> str:
        text = f" ORDER BY {self.order(items(body, 'sortClause'))}" if items(body, "sortClause") else ""
        if "limitOffset" in body:
            text += f" OFFSET {self.expression(body['limitOffset'])}"
        if "limitCount" in body and not kind(body["limitCount"])[1].get("isnull"):
            ties = "WITH TIES" if body.get("limitOption") == "LIMIT_OPTION_WITH_TIES" else "ONLY"
            text += f" FETCH FIRST ({self.expression(body['limitCount'])}) ROWS {ties}"
        return text

    def _distinct(self, nodes: list[Json]) -> str:
        if not nodes:
            return ""
        on = [self.expression(node) for node in nodes if kind(node)[0]]
        return f"DISTINCT ON ({', '.join(on)}) " if on else "DISTINCT "

    def _target(self, body: Node) -> str:
        check_keys("this item", body, "name", "val")
        return self.expression(body.get("val")) + (f" AS {quoted(str(body['name']))}" if "name" in body else "")

    def _group(self, node: Json) -> str:
        name, body = kind(node)
        if name != "GroupingSet":
            return self.expression(node)
        form = str(check_keys("this grouping set", body, "kind", "content").get("kind"))
        if form == "GROUPING_SET_EMPTY":
            return "()"
        word = "GROUPING SETS " if form == "GROUPING_SET_SETS" else _SETS[form]
        return f"{word}({', '.join(map(self._group, items(body, 'content')))})"

    def _named_window(self, body: Node) -> str:
        inside = {key: value for key, value in body.items() if key != "name"}
        return f"{quoted(str(body.get('name')))} AS {self.window(inside)}"

    # FROM

    def _source(self, node: Json) -> str:
        name, body = kind(node)
        match name:
            case "RangeVar":
                return self._table(body)
            case "RangeSubselect":
                check_keys(name, body, "lateral", "subquery", "alias")
                lateral = "LATERAL " if body.get("lateral") else ""
                return f"{lateral}{self._inner(body.get('subquery'))}{self._alias(body.get('alias'))}"
            case "JoinExpr":
                return f"({self._join(body)})"
            case "RangeFunction":
                return self._function(check_keys(name, body, "lateral", "ordinality", "functions", "alias"))
        raise unknown("TABLESAMPLE" if name == "RangeTableSample" else "this item of FROM")

    def _table(self, body: Node) -> str:
        keys = "catalogname", "schemaname", "relname", "inh", "relpersistence", "alias"
        schema, name = check_keys("this table", body, *keys).get("schemaname"), str(body.get("relname"))
        if not body.get("inh"):
            raise unknown("ONLY")
        alias = self._alias(body.get("alias")) or f" AS {quoted(name)}"
        cte = next((ours for theirs, ours in reversed(self._ctes) if theirs == name), None)
        if schema is None and cte is not None:
            return cte + alias
        table = self.find_table(None if schema is None else str(schema), name)
        self.tables.add(table.name)
        return f"({table_rows(table)}){alias}"

    def _join(self, body: Node) -> str:
        check_keys("this join", body, "jointype", "isNatural", "larg", "rarg", "usingClause", "quals")
        left, right = self._source(body.get("larg")), self._source(body.get("rarg"))
        words = _JOINS.get(str(body.get("jointype")))
        if words is None:
            raise unknown("this join")
        if body.get("isNatural"):
            return f"{left} NATURAL {words} {right}"
        if using := strings(body.get("usingClause")):
            return f"{left} {words} {right} USING {_columns(using)}"
        if "quals" in body:
            return f"{left} {words} {right} ON {self.expression(body['quals'])}"
        return f"{left} CROSS JOIN {right}"

    def _function(self, body: Node) -> str:
        functions = items(body, "functions")
        parts = items(kind(functions[0])[1], "items")
        if len(functions) != 1 or kind(parts[0])[0] != "FuncCall" or parts[1]:
            raise unknown("this function in FROM")
        ordinality = " WITH ORDINALITY" if body.get("ordinality") else ""
        alias = self._alias(body.get("alias")) or f" AS {quoted(strings(kind(parts[0])[1].get('funcname'))[-1])}"
        return f"{'LATERAL ' if body.get('lateral') else ''}{self.expression(parts[0])}{ordinality}{alias}"

    def _alias(self, alias: Json) -> str:
        if not isinstance(alias, dict):
            return ""
        check_keys("this alias", alias, "aliasname", "colnames")
        return f" AS {quoted(str(alias.get('aliasname')))}{_columns(strings(alias.get('colnames')))}"


def _columns(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(quoted, names))})" if names else ""
