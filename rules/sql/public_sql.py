"""Print a query over public tables for the real database, from PostgreSQL's tree, by an allow-list of its nodes.

A table becomes the SELECT of its visible columns, so a hidden one is not there for *, NATURAL or a row as a whole
either. A CTE has a name of ours, which no relation has: where it is out of scope nothing else is read in its place.
Functions, operators, types and collations are those of pg_catalog, printed with its name, that the real database is
asked for. None of them reads a table, a setting or a file that its arguments do not hold, changes anything, waits, runs
a text as SQL, or makes much out of little (repeat, lpad, generate_series, array_agg): memory there is everybody's.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rules.catalog import TableName
from rules.frozen import frozen
from rules.refusal import NotSupported
from rules.sql.normalize.nodes import frame_offsets, frame_text
from rules.sql.normalize.to_text import literal, quoted
from rules.sql.tree import PLACES, Json, Node, items, kind, strings, type_of_cast

_AGGREGATES = """
avg bit_and bit_or bool_and bool_or corr count covar_pop covar_samp every max min mode percentile_cont percentile_disc
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop
stddev_samp sum var_pop var_samp variance
"""
_WINDOWS = """
cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_NUMBERS = """
abs acos acosd asin asind atan atan2 atan2d atand cbrt ceil ceiling cos cosd cot cotd degrees div exp floor gcd lcm ln
log log10 min_scale mod pi power radians round scale sign sin sind sqrt tan tand trim_scale trunc width_bucket
"""
_TEXTS = """
ascii bit_length btrim char_length character_length chr concat concat_ws initcap left length like_escape lower ltrim md5
normalize octet_length overlay position quote_ident quote_literal regexp_count regexp_instr regexp_like regexp_match
regexp_replace regexp_split_to_array regexp_substr replace reverse right rtrim sha224 sha256 sha384 sha512
similar_to_escape split_part starts_with string_to_array strpos substr substring to_ascii to_hex translate upper
convert_to decode encode
"""
_TIMES = """
age date_bin date_part date_trunc extract isfinite justify_days justify_hours justify_interval make_date
make_interval make_time make_timestamp make_timestamptz now overlaps statement_timestamp timezone to_char to_date
to_number to_timestamp transaction_timestamp
"""
_SEARCH = """
numnode phraseto_tsquery plainto_tsquery querytree setweight strip to_tsquery to_tsvector ts_rank ts_rank_cd
websearch_to_tsquery
"""
_VALUES = """
array_length array_lower array_ndims array_position array_positions array_remove array_to_string array_upper cardinality
bit_count daterange get_bit get_byte int4range int8range isempty numrange tsrange tstzrange
jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_each
jsonb_each_text jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_object_keys jsonb_path_exists
jsonb_path_match jsonb_path_query_first jsonb_typeof json_array_elements json_array_elements_text json_array_length
json_each json_each_text json_extract_path json_extract_path_text json_object_keys json_typeof lower_inc lower_inf
num_nonnulls num_nulls to_json to_jsonb unnest upper_inc upper_inf broadcast family host hostmask masklen netmask
network
"""

FUNCTIONS: Final = frozenset(" ".join((_AGGREGATES, _WINDOWS, _NUMBERS, _TEXTS, _TIMES, _SEARCH, _VALUES)).split())
OPERATORS: Final = frozenset(
    "+ - * / % ^ |/ ||/ @ & | # ~ << >> || = <> != < <= > >= ~~ !~~ ~~* !~~* ~* !~ !~* ^@ @@ @> <@ && -|- &< &> "
    "-> ->> #> #>> ? ?| ?& @? << <<= >>= && !!".split()
)
TYPES: Final = frozenset(
    "bool int2 int4 int8 numeric float4 float8 text varchar bpchar char name date time timetz timestamp timestamptz "
    "interval uuid bytea json jsonb tsvector tsquery inet cidr macaddr bit varbit money int4range int8range numrange "
    "daterange tsrange tstzrange".split()
)
COLLATIONS: Final = frozenset(("C", "POSIX", "default", "ucs_basic"))
CLOCKS: Final = {
    "SVFOP_CURRENT_DATE": "CURRENT_DATE",
    "SVFOP_CURRENT_TIME": "CURRENT_TIME",
    "SVFOP_CURRENT_TIMESTAMP": "CURRENT_TIMESTAMP",
    "SVFOP_LOCALTIME": "LOCALTIME",
    "SVFOP_LOCALTIMESTAMP": "LOCALTIMESTAMP",
}

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|-?\.[0-9]+([eE][+-]?[0-9]+)?")
_BOOLEAN_TESTS: Final = {
    f"IS_{negated}{value}": f"IS {negated.replace('_', ' ')}{value}"
    for negated in ("", "NOT_")
    for value in ("TRUE", "FALSE", "UNKNOWN")
}
_BETWEEN: Final = {
    "AEXPR_BETWEEN": "BETWEEN",
    "AEXPR_NOT_BETWEEN": "NOT BETWEEN",
    "AEXPR_BETWEEN_SYM": "BETWEEN SYMMETRIC",
    "AEXPR_NOT_BETWEEN_SYM": "NOT BETWEEN SYMMETRIC",
}
_SIMILAR: Final = {"AEXPR_LIKE", "AEXPR_ILIKE", "AEXPR_SIMILAR", "AEXPR_OP"}
_SUBLINKS: Final = {"EXISTS_SUBLINK": "EXISTS ", "EXPR_SUBLINK": "", "ARRAY_SUBLINK": "ARRAY"}
HINT: Final = (
    "Your DBA can raise --max-public-rows: of tables that the proxy holds itself any SQL of PostgreSQL is answered."
)


def unknown(what: str) -> NotSupported:
    """Refuse what the real database is not asked for."""
    words = f"{what} is not supported over a public table with more rows than the proxy holds"
    return NotSupported(words, hint=HINT, about=what)


def check_keys(name: str, body: Node, *known: str) -> Node:
    """Check that a node says nothing else than what is printed of it."""
    if not body.keys() <= {*known, *PLACES}:
        raise unknown(name)
    return body


_SORT: Final = ("node", "sortby_dir", "sortby_nulls")

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
class _Printer:
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

    # expressions

    def expression(self, node: Json) -> str:
        name, body = kind(node)
        match name:
            case "ColumnRef":
                return self._column(check_keys(name, body, "fields"))
            case "A_Const":
                return self._constant(body)
            case "ParamRef":
                number = check_keys(name, body, "number").get("number")
                return self.parameter(number if isinstance(number, int) else 0)
            case "TypeCast":
                check_keys(name, body, "arg", "typeName")
                return f"CAST({self.expression(body.get('arg'))} AS {self.type_name(type_of_cast(body))})"
            case "FuncCall":
                return self._call(body)
            case "A_Expr":
                return f"({self._operation(check_keys(name, body, 'kind', 'name', 'lexpr', 'rexpr'))})"
            case "SubLink":
                return f"({self._sublink(body)})"
            case "CaseExpr":
                return self._case(check_keys(name, body, "arg", "args", "defresult"))
        return self._other(name, body)

    def _other(self, name: str, body: Node) -> str:
        match name:
            case "BoolExpr":
                parts = self.list_of(check_keys(name, body, "boolop", "args"), "args")
                words = {"AND_EXPR": " AND ", "OR_EXPR": " OR "}.get(str(body.get("boolop")))
                return f"(NOT {parts[0]})" if words is None else f"({words.join(parts)})"
            case "NullTest":
                test = "IS NULL" if body.get("nulltesttype") == "IS_NULL" else "IS NOT NULL"
                return f"({self.expression(check_keys(name, body, 'arg', 'nulltesttype').get('arg'))} {test})"
            case "BooleanTest":
                test = _BOOLEAN_TESTS[str(check_keys(name, body, "arg", "booltesttype").get("booltesttype"))]
                return f"({self.expression(body.get('arg'))} {test})"
            case "CoalesceExpr":
                return f"COALESCE({self.comma(check_keys(name, body, 'args'), 'args')})"
            case "MinMaxExpr":
                word = "LEAST" if check_keys(name, body, "op", "args").get("op") == "IS_LEAST" else "GREATEST"
                return f"{word}({self.comma(body, 'args')})"
            case "GroupingFunc":
                return f"GROUPING({self.comma(check_keys(name, body, 'args'), 'args')})"
            case "A_ArrayExpr":
                return f"ARRAY[{self.comma(check_keys(name, body, 'elements'), 'elements')}]"
            case "RowExpr":
                return f"ROW({self.comma(check_keys(name, body, 'args', 'row_format'), 'args')})"
            case "SQLValueFunction" if body.get("op") in CLOCKS and body.get("typmod") == -1:
                return CLOCKS[str(body["op"])]
            case "CollateClause":
                return self._collated(check_keys(name, body, "arg", "collname"))
            case "A_Indirection":
                return self._subscripts(check_keys(name, body, "arg", "indirection"))
        raise unknown(f"this expression ({name})" if name else "this expression")

    def list_of(self, body: Node, key: str) -> list[str]:
        return [self.expression(item) for item in items(body, key)]

    def comma(self, body: Node, key: str) -> str:
        return ", ".join(self.list_of(body, key))

    def _column(self, body: Node) -> str:
        """A column by the name of its table in FROM, if by any: what stands there has no schema any more."""
        return ".".join("*" if field == "*" else quoted(field) for field in strings(body.get("fields"))[-2:])

    def _constant(self, body: Node) -> str:
        check_keys("a bit string", body, "isnull", "boolval", "ival", "fval", "sval")
        if body.get("isnull"):
            return "NULL"
        ((field_name, inner),) = ((key, each) for key, each in body.items() if key not in PLACES)
        value = inner.get(field_name) if isinstance(inner, dict) else None
        match field_name:
            case "boolval":
                return "TRUE" if value else "FALSE"
            case "ival" if value is None or isinstance(value, int):
                return f"({value or 0})"
            case "fval" if _NUMBER.fullmatch(str(value)):
                return f"({value})"
        return literal(str(value or ""))

    def type_name(self, node: Json) -> str:
        """A type of pg_catalog, or an enum."""
        body = node if isinstance(node, dict) else {}
        check_keys("this type", body, "names", "typmods", "typemod", "arrayBounds")
        names = strings(body.get("names"))
        enum = None if names[:1] == ("pg_catalog",) else self.enum(names)
        if enum is None and (len(names) > 2 or names[-1] not in TYPES or names[:-1] not in ((), ("pg_catalog",))):
            raise unknown(f"type {'.'.join(names)}")
        modifiers = [kind(modifier)[1].get("ival") for modifier in items(body, "typmods")]
        numbers = [str(modifier.get("ival", 0)) for modifier in modifiers if isinstance(modifier, dict)]
        if len(numbers) < len(modifiers) or (numbers and names[-1] == "interval"):
            raise unknown(f"this form of type {names[-1]}")
        printed = enum or f"pg_catalog.{quoted(names[-1])}"
        return printed + (f"({', '.join(numbers)})" if numbers else "") + "[]" * bool(items(body, "arrayBounds"))

    # functions

    def _call(self, body: Node) -> str:
        names = strings(body.get("funcname"))
        if names[:-1] not in ((), ("pg_catalog",)) or names[-1] not in FUNCTIONS:
            raise unknown(f"function {'.'.join(names)}")
        check_keys(
            f"this form of {names[-1]}", body,
            *("funcname", "args", "agg_order", "agg_filter", "over", "agg_within_group", "agg_star", "agg_distinct"),
            "funcformat",
        )  # fmt: skip
        inside = "*" if body.get("agg_star") else self.comma(body, "args")
        distinct = "DISTINCT " if body.get("agg_distinct") else ""
        order = f" ORDER BY {self.order(items(body, 'agg_order'))}" if items(body, "agg_order") else ""
        is_within = body.get("agg_within_group")
        text = f"pg_catalog.{quoted(names[-1])}({distinct}{inside}{'' if is_within else order})"
        text += f" WITHIN GROUP ({order.lstrip()})" if is_within else ""
        if "agg_filter" in body:
            text += f" FILTER (WHERE {self.expression(body['agg_filter'])})"
        over = body.get("over")
        return f"{text} OVER {self.window(over)}" if isinstance(over, dict) else text

    def window(self, body: Node) -> str:
        """Print what stands after OVER, or in the WINDOW clause."""
        check_keys(
            "this window", body,
            *("name", "refname", "partitionClause", "orderClause", "frameOptions", "startOffset", "endOffset"),
        )  # fmt: skip
        if "name" in body and "partitionClause" not in body and "orderClause" not in body and "refname" not in body:
            return quoted(str(body["name"]))
        parts = [quoted(str(body["refname"]))] if "refname" in body else []
        if items(body, "partitionClause"):
            parts.append(f"PARTITION BY {self.comma(body, 'partitionClause')}")
        if items(body, "orderClause"):
            parts.append(f"ORDER BY {self.order(items(body, 'orderClause'))}")
        frame = frame_text(body)
        for offset in frame_offsets(body):
            frame = frame.replace("$", self.expression(offset), 1)
        return f"({' '.join((*parts, frame)).rstrip()})"

    def order(self, nodes: list[Json]) -> str:
        return ", ".join(self._sorted(check_keys("this order", kind(node)[1], *_SORT)) for node in nodes)

    def _sorted(self, body: Node) -> str:
        if body.get("sortby_dir") == "SORTBY_USING":
            raise unknown("ORDER BY … USING")
        direction = {"SORTBY_ASC": " ASC", "SORTBY_DESC": " DESC"}.get(str(body.get("sortby_dir")), "")
        nulls = {"SORTBY_NULLS_FIRST": " NULLS FIRST", "SORTBY_NULLS_LAST": " NULLS LAST"}
        return self.expression(body.get("node")) + direction + nulls.get(str(body.get("sortby_nulls")), "")

    # operators

    def _operator(self, node: Json) -> str:
        names = strings(node)
        if names[:-1] not in ((), ("pg_catalog",)) or names[-1] not in OPERATORS:
            raise unknown(f"operator {'.'.join(names)}")
        return f"OPERATOR(pg_catalog.{names[-1]})"

    def _operation(self, body: Node) -> str:
        form, sign = str(body.get("kind")), self._operator(body.get("name")) if body.get("kind") not in _BETWEEN else ""
        left = self.expression(body["lexpr"]) if "lexpr" in body else ""
        right = body.get("rexpr")
        if form in _BETWEEN:
            low, high = self.list_of(kind(right)[1], "items")
            return f"{left} {_BETWEEN[form]} {low} AND {high}"
        if form == "AEXPR_IN":
            word = "IN" if strings(body.get("name")) == ("=",) else "NOT IN"
            return f"{left} {word} ({self.comma(kind(right)[1], 'items')})"
        value = self.expression(right)
        match form:
            case "AEXPR_OP_ANY" | "AEXPR_OP_ALL":
                return f"{left} {sign} {form.removeprefix('AEXPR_OP_')} ({value})"
            case "AEXPR_DISTINCT" | "AEXPR_NOT_DISTINCT":
                return f"{left} IS {'NOT ' if 'NOT' in form else ''}DISTINCT FROM {value}"
            case "AEXPR_NULLIF":
                return f"NULLIF({left}, {value})"
        if form not in _SIMILAR:
            raise unknown("this operator")
        return f"{left} {sign} {value}".lstrip()

    def _case(self, body: Node) -> str:
        operand = f" {self.expression(body['arg'])}" if "arg" in body else ""
        whens = [check_keys("CASE", kind(branch)[1], "expr", "result") for branch in items(body, "args")]
        branches = (
            f" WHEN {self.expression(branch['expr'])} THEN {self.expression(branch['result'])}" for branch in whens
        )
        default = f" ELSE {self.expression(body['defresult'])}" if "defresult" in body else ""
        return f"(CASE{operand}{''.join(branches)}{default} END)"

    def _collated(self, body: Node) -> str:
        names = strings(body.get("collname"))
        if names[-1] not in COLLATIONS or names[:-1] not in ((), ("pg_catalog",)):
            raise unknown(f"collation {'.'.join(names)}")
        return f"({self.expression(body.get('arg'))} COLLATE pg_catalog.{quoted(names[-1])})"

    def _subscripts(self, body: Node) -> str:
        printed = ""
        for each in items(body, "indirection"):
            name, place = kind(each)
            if name != "A_Indices":
                raise unknown("a field of a row")
            check_keys("this subscript", place, "is_slice", "lidx", "uidx")
            ends = [self.expression(place[key]) if key in place else "" for key in ("lidx", "uidx")]
            printed += f"[{':'.join(ends)}]" if place.get("is_slice") else f"[{ends[1]}]"
        return f"({self.expression(body.get('arg'))}){printed}"

    def _sublink(self, body: Node) -> str:
        check_keys("this subquery", body, "subLinkType", "testexpr", "operName", "subselect")
        link, query = str(body.get("subLinkType")), f"({self.query(kind(body.get('subselect'))[1])})"
        if link in _SUBLINKS:
            return _SUBLINKS[link] + query
        left = self.expression(body.get("testexpr"))
        if link == "ANY_SUBLINK" and "operName" not in body:
            return f"{left} IN {query}"
        if link not in ("ANY_SUBLINK", "ALL_SUBLINK"):
            raise unknown("this subquery")
        return f"{left} {self._operator(body.get('operName'))} {link.removesuffix('_SUBLINK')} {query}"


def _columns(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(quoted, names))})" if names else ""
