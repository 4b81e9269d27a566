"""Previews: rows with a LIMIT, which tools ask for to show what a table looks like.

No protected row is given out. By the rules (`previews:`) such a statement is refused, has no rows, or has made-up ones:
from the catalog, or from a synopsis.
Whichever it is, it costs nothing.
"""

from collections.abc import Iterator
from itertools import count

from rules.bind.scope import PlannerContext
from rules.bind.table import scan
from rules.catalog import Table
from rules.functions.context import Needed
from rules.planner.block_leaves import is_aggregate
from rules.planner.find_blocks import find_blocks
from rules.planner.plan import PreviewRows
from rules.planner.synthetic_rows import ROWS, made_up
from rules.planner.tables import Tables, replace_relations, source, tables_in
from rules.refusal import Refusal
from rules.sql.grammar import Json, Node, kind, parse, walk
from rules.sql.lower import query_from
from rules.sql.normalize.to_text import quoted
from rules.sql.selects import numbered, query_of
from rules.sql.tree import copied

NOTICES = {
    "empty": "rows of protected tables cannot be returned, so this preview is empty",
    "synopsis": "the rows of this preview are synthetic: those of a synopsis, see noisegate.synopses",
    "synthetic": "the rows of this preview are synthetic: made from the schema and the rules, not from the data",
}
_NOT_ROWS = ("groupClause", "havingClause", "distinctClause", "lockingClause", "intoClause", "valuesLists")


def previews(tree: Node, tables: Tables) -> Node:
    """Put rows that are none of the data's in place of those that a preview asks for."""
    query, context = query_of(tree), tables.context
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
        return source(f"{_made_up(table, context) if rows is None else _shown(table, rows, context)} AS {quoted(name)}")

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


def _shown(table: Table, rows: PreviewRows, context: PlannerContext) -> str:
    """Some rows of a synopsis, with NULL for the columns that it has not."""
    rules = context.policy.find_table(table.name)
    assert rules is not None, "only tables that the rules name are found"
    items = [
        quoted(column.name) if column.name in rows.columns else f"NULL::{column.type.sql} AS {quoted(column.name)}"
        for column in table.columns
        if not rules.hides(column)
    ]
    place = f"{quoted(rows.source.schema)}.{quoted(rows.source.name)}"
    order = f" ORDER BY {', '.join(map(quoted, rows.order))}" if rows.order else ""
    return f"(SELECT {', '.join(items)} FROM {place}{order} LIMIT {ROWS})"


def _made_up(table: Table, context: PlannerContext) -> str:
    rules = context.policy.find_table(table.name)
    assert rules is not None, "only tables that the rules name are found"
    numbers = count(1)
    made, shown = scan(table, rules, context.policy, context.catalog, lambda: next(numbers))
    columns = {column.id: column for column in made.facts.columns}
    return made_up(table, tuple(columns[number] for _, number in shown))
