"""Expressions of a query over public tables, printed node by node: what has no place here is refused.

Functions, operators, types and collations are those of pg_catalog that the real database is asked for.
None of them reads a table, a setting or a file that its arguments do not hold, changes anything, waits, runs a text as
SQL, or makes much out of little (repeat, lpad, generate_series, array_agg): memory there is everybody's.
"""

import re
from abc import ABC, abstractmethod
from typing import Final

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


class PublicExpressions(ABC):
    """Prints the expressions of one query; the queries inside them are handed to the subclass."""

    @abstractmethod
    def query(self, body: Node) -> str: ...

    @abstractmethod
    def parameter(self, number: int) -> str: ...

    @abstractmethod
    def enum(self, names: tuple[str, ...]) -> str | None: ...

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
        raise unknown(_spoken(name))

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


_SORT: Final = ("node", "sortby_dir", "sortby_nulls")


def _spoken(name: str) -> str:
    """The name of a node as words: XmlExpr, which no SQL has, is "this expression (XmlExpr)"."""
    return f"this expression ({name})" if name else "this expression"
