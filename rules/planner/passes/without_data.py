"""Statements that are answered without the data: those that have no row, or read none, and previews. They cost nothing.

Tools send the first to learn the columns of a table: every protected table in them becomes a sub-select of the same
columns and no rows. Previews are rows with a LIMIT, asked for to show what a table looks like. No protected row is
given out: by the rules (`previews:`) such a statement is refused, has no rows, or has made-up ones, from the catalog
or from a synopsis.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import count

from rules.bind.table import scan
from rules.catalog import Table
from rules.functions.function import Needed
from rules.planner.find_blocks import find_blocks, is_aggregate
from rules.planner.plan import PreviewRows
from rules.planner.tables import Tables, replace_relations, source, tables_in
from rules.refusal import Refusal
from rules.sql.grammar import parse
from rules.sql.lower import query_from
from rules.sql.normalize.to_text import quoted
from rules.sql.selects import numbered, query_of
from rules.sql.tree import Index, Json, Node, copied, items, kind, strings, walk
from rules.values import domain
from rules.values.domain import Domain, Range
from rules.values.expression import Column
from rules.values.types import Type
from rules.values.value import DAY, Value, text_of

NOTICES = {
    "empty": "rows of protected tables cannot be returned, so this preview is empty",
    "synopsis": "the rows of this preview are synthetic: those of a synopsis, see noisegate.synopses",
    "synthetic": "the rows of this preview are synthetic: made from the schema and the rules, not from the data",
}
_ABOVE_WHERE = (
    "targetList", "havingClause", "sortClause", "distinctClause", "limitCount", "limitOffset", "groupClause",
)  # fmt: skip
_NOT_ROWS = ("groupClause", "havingClause", "distinctClause", "lockingClause", "intoClause", "valuesLists")
_ROWS = 100
_LISTED = 1000  # values that are taken one by one
_STEPS = 1000  # into which a range is divided
_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)  # none divides 100: columns do not repeat together
_HOUR = DAY // 24
_EXAMPLES = {"date": "2024-01-01", "timestamp": "2024-01-01 00:00:00", "timestamptz": "2024-01-01 00:00:00+00"}


def empty_queries(index: Index, tables: Tables) -> Node:
    """Replace every protected table in a statement that has no row, or reads none."""
    tree = index.tree
    query = query_of(tree)
    if query is None or not _has_no_rows(query):
        return tree

    def empty(schema: str | None, name: str) -> Node | None:
        columns = tables.find_columns(schema, name)
        if columns is None:
            return None
        nulls = ", ".join(f"NULL::{of} AS {quoted(column)}" for column, of in columns)
        return source(f"(SELECT {nulls} WHERE false) AS {quoted(name)}")

    return replace_relations(tree, empty)


def _has_no_rows(query: Node) -> bool:
    """Find LIMIT 0, or a WHERE that is false for every row, at the top of the statement."""
    name, body = kind(query)
    if name != "SelectStmt":
        return False
    if _integer(body.get("limitCount")) == 0:
        return True
    if body.get("op") != "SETOP_NONE" or not _is_never(body.get("whereClause")):
        return False
    above = [node for clause in _ABOVE_WHERE for node in walk(body.get(clause))]
    has_rows = any(is_aggregate(node) for node in above) or "groupClause" in body
    return not (has_rows and any("SubLink" in node for node in above))


def _is_never(node: Json) -> bool:
    """Return whether a condition is false for every row, from its constants alone."""
    name, body = kind(node)
    match name:
        case "A_Const":
            return "boolval" in body and not kind(node)[1]["boolval"]
        case "BoolExpr" if body.get("boolop") == "AND_EXPR":
            return any(map(_is_never, items(body, "args")))
        case "A_Expr" if body.get("kind") == "AEXPR_OP":
            return _differs(strings(body.get("name")), _integer(body.get("lexpr")), _integer(body.get("rexpr")))
    return False


def _differs(operator: tuple[str, ...], left: int | None, right: int | None) -> bool:
    if left is None or right is None:
        return False
    match operator:
        case ("=",):
            return left != right
        case ("<>",):
            return left == right
    return False


def _integer(node: Json) -> int | None:
    """An integer constant; the JSON leaves out a zero."""
    name, body = kind(node)
    value = body.get("ival") if name == "A_Const" else None
    if not isinstance(value, dict):
        return None
    number = value.get("ival", 0)
    return number if isinstance(number, int) else None


def previews(index: Index, tables: Tables) -> Node:
    """Put rows that are none of the data's in place of those that a preview asks for."""
    tree, context = index.tree, tables.context
    query = query_of(tree)
    if context.policy.previews == "refuse" or query is None or not _is_preview(query, tables):
        return tree
    if context.policy.previews == "synopsis" and not _have_rows(tree, tables):
        return tree
    if context.policy.previews == "empty":
        tree = _with_limit_zero(tree)

    def instead(schema: str | None, name: str) -> Node | None:
        table = tables.find_protected(schema, name)
        if table is None:
            return None
        rows = tables.find_preview(table)
        return source(f"{_made_up(table, tables) if rows is None else _shown(table, rows, tables)} AS {quoted(name)}")

    return replace_relations(tree, instead)


def _with_limit_zero(tree: Node) -> Node:
    made = copied(tree)
    query = query_of(made)
    assert query is not None
    (piece,) = parse("SELECT LIMIT 0")
    kind(query)[1]["limitCount"] = kind(piece.tree)[1]["limitCount"]
    return made


def _is_preview(query: Node, tables: Tables) -> bool:
    """Return whether a statement asks for rows of units, and for no more than so many."""
    name, body = kind(query)
    if name != "SelectStmt" or body.get("op") != "SETOP_NONE" or body.get("limitCount") is None:
        return False
    if any(body.get(clause) for clause in _NOT_ROWS):
        return False
    above = [node for clause in ("targetList", "sortClause") for node in _own(body.get(clause))]
    return not any(map(is_aggregate, above)) and _reads_units(body, tables)


def _own(node: Json) -> Iterator[Node]:
    """The nodes of an expression, without those of its subqueries."""
    if isinstance(node, list):
        for child in node:
            yield from _own(child)
    elif isinstance(node, dict) and "SubLink" not in node:
        yield node
        for child in node.values():
            yield from _own(child)


def _reads_units(body: Node, tables: Tables) -> bool:
    """Tell whether FROM is rows of units: a count over it would be private, or refused for how they meet."""
    (piece,) = parse("SELECT count(*)")
    counted: Node = kind(piece.tree)[1] | {
        clause: body[clause] for clause in ("fromClause", "withClause") if clause in body
    }
    whole: Node = {"SelectStmt": counted}
    try:
        sites = find_blocks(query_from(whole), tables.context)
    except (Refusal, Needed):
        below = list(walk({clause: body.get(clause) for clause in ("fromClause", "withClause")}))
        groups = any(is_aggregate(node) or any(node.get(clause) for clause in _NOT_ROWS) for node in below)
        return not groups and tables.are_read(whole)
    bodies = numbered(whole)
    return any(bodies[site.select_index] is counted for site in sites)


def _have_rows(tree: Node, tables: Tables) -> bool:
    """Return whether each protected table that is read has synthetic rows that this analyst may read."""
    protected = (tables.find_protected(schema, name) for schema, name in tables_in(tree))
    return all(tables.find_preview(table) is not None for table in protected if table is not None)


def _shown(table: Table, rows: PreviewRows, tables: Tables) -> str:
    """Some rows of a synopsis, with NULL for the columns that it has not."""
    items = [
        quoted(name) if name in rows.columns else f"NULL::{of} AS {quoted(name)}"
        for name, of in tables.columns_on_twin(table)
    ]
    place = f"{quoted(rows.source.schema)}.{quoted(rows.source.name)}"
    order = f" ORDER BY {', '.join(map(quoted, rows.order))}" if rows.order else ""
    return f"(SELECT {', '.join(items)} FROM {place}{order} LIMIT {_ROWS})"


def _made_up(table: Table, tables: Tables) -> str:
    context, types = tables.context, dict(tables.columns_on_twin(table))
    rules = context.policy.find_table(table.name)
    assert rules is not None, "only tables that the rules name are found"
    numbers = count(1)
    made, shown = scan(table, rules, context.policy, context.catalog, lambda: next(numbers))
    columns = {column.id: column for column in made.facts.columns}
    return _made_up_rows(table, tuple(columns[number] for _, number in shown), types)


def _made_up_rows(table: Table, columns: tuple[Column, ...], types: Mapping[str, str]) -> str:
    """A sub-select with these columns of a table and some made-up rows."""
    keys = {name for key in table.keys for name in key.columns}
    keys |= {name for key in table.foreign_keys for name in key.columns}
    items = (
        f"{_made_up_value(column, place, is_key=column.name in keys) or f'NULL::{types[column.name]}'}"
        f" AS {quoted(column.name)}"
        for place, column in enumerate(columns)
    )
    return f"(SELECT {', '.join(items)} FROM pg_catalog.generate_series(1, {_ROWS}) AS g(i))"


def _made_up_value(column: Column, place: int, *, is_key: bool) -> str:
    """The value in row i, or nothing where only NULL is sure to be one."""
    known = domain.intersect(column.domain, column.declared)
    turn = f"(g.i * {_PRIMES[place % len(_PRIMES)]} + {place})"
    if is_key and (numbered := _numbered(column.type)):
        return numbered
    items = domain.items_of(known, _LISTED)
    if items:
        return _pick(items, column.type, turn)
    return _between(known, column.type, turn) or _any(column, turn)


def _numbered(sql_type: Type) -> str:
    """A key's value: the number of the row."""
    match sql_type.kind:
        case "integer" | "numeric" | "text":
            return f"g.i::{sql_type.sql}"
        case "uuid":
            return "pg_catalog.md5(g.i::text)::uuid"
    return ""


def _pick(items: tuple[Value, ...], sql_type: Type, turn: str) -> str:
    texts = [text_of(item, sql_type) for item in items]
    listed = ", ".join(f"'{text.replace(chr(39), chr(39) * 2)}'" for text in texts if text is not None)
    return f"(ARRAY[{listed}]::{sql_type.plain().sql}[])[1 + {turn} % {len(texts)}]::{sql_type.sql}"


def _between(known: Domain, sql_type: Type, turn: str) -> str:
    """A value of a range, or nothing where it has no ends."""
    span = domain.range_of(known)
    if span.low is None or span.high is None:
        return ""
    size = _step(span, sql_type)
    count = int((span.high - span.low) / size) + 1
    low = text_of(size * -(-span.low // size) if sql_type.kind in ("integer", "numeric") else span.low, sql_type)
    if low is None:
        return ""
    match sql_type.kind:
        case "integer" | "numeric" | "float":
            return f"({low}::numeric + {turn} % {count} * {_decimal(size)})::{sql_type.sql}"
        case "date":
            return f"('{low}'::date + ({turn} % {count} * {int(size)})::integer)"
        case "timestamp" | "timestamptz":
            return f"('{low}'::{sql_type.sql} + {turn} % {count} * '{int(size) // _HOUR} hours'::interval)"
    return ""


def _step(span: Range, sql_type: Type) -> Fraction:
    """So large that there are some hundreds of values, and a multiple of what the type can hold."""
    assert span.low is not None and span.high is not None
    least = {"date": Fraction(1), "integer": Fraction(1)}.get(sql_type.kind, Fraction(1, 100))
    if sql_type.kind in ("timestamp", "timestamptz"):
        least = Fraction(_HOUR)
    elif sql_type.kind == "numeric" and sql_type.scale is not None:
        least = Fraction(10) ** -sql_type.scale
    return least * max(1, int((span.high - span.low) / _STEPS / least))


def _decimal(number: Fraction) -> str:
    return f"{number.numerator}::numeric" + (f" / {number.denominator}" if number.denominator > 1 else "")


def _any(column: Column, turn: str) -> str:
    sql_type = column.type
    match sql_type.kind:
        case "integer" | "numeric" | "float":
            return f"(1 + {turn} % 100)::{sql_type.sql}"
        case "text":
            return f"('{column.name.replace(chr(39), chr(39) * 2)} ' || g.i)::{sql_type.sql}"
        case "date":
            return f"('{_EXAMPLES[sql_type.kind]}'::date + g.i)"
        case "timestamp" | "timestamptz":
            return f"('{_EXAMPLES[sql_type.kind]}'::{sql_type.sql} + {turn} * '1 hour'::interval)"
        case "uuid":
            return _numbered(sql_type)
    return ""
