"""Previews: rows with a LIMIT, which tools ask for to show what a table looks like.

No protected row is given out. By the rules (`previews:`) such a statement is refused, has no rows, or has made-up ones.
Whichever it is, it costs nothing.
"""

from collections.abc import Callable, Iterator
from itertools import count

from rules.catalog import Table
from rules.refusal import Refusal
from rules.relation.released import AnswerFirst
from rules.relation.scan import scan
from rules.relation.scope import World
from rules.rewrite.cut import is_aggregate
from rules.rewrite.find_blocks import find_blocks
from rules.rewrite.made_up import made_up, quoted
from rules.rewrite.relations import replace_relations, source, tables_in
from rules.sql.grammar import Json, Node, kind, parse, walk
from rules.sql.parse import query_from
from rules.sql.selects import numbered

FindTable = Callable[[str | None, str], Table | None]  # of the protected ones

NOTICES = {
    "empty": "rows of protected tables are not given out, so this preview is empty",
    "synthetic": "the rows of this preview are made up from the schema and the rules; none of them is in the data",
}
_NOT_ROWS = ("groupClause", "havingClause", "distinctClause", "lockingClause", "intoClause", "valuesLists")


def is_preview(query: Node, find_table: FindTable, world: World) -> bool:
    """Whether a statement asks for rows of units, and for no more than so many."""
    name, body = kind(query)
    if name != "SelectStmt" or body.get("op") != "SETOP_NONE" or body.get("limitCount") is None:
        return False
    if any(body.get(clause) for clause in _NOT_ROWS):
        return False
    above = [node for clause in ("targetList", "sortClause") for node in _own(body.get(clause))]
    return not any(map(is_aggregate, above)) and _reads_units(body, find_table, world)


def _own(node: Json) -> Iterator[Node]:
    """The nodes of an expression, without those of its subqueries."""
    if isinstance(node, list):
        for child in node:
            yield from _own(child)
    elif isinstance(node, dict) and "SubLink" not in node:
        yield node
        for child in node.values():
            yield from _own(child)


def _reads_units(body: Node, find_table: FindTable, world: World) -> bool:
    """Whether FROM is rows of units: a count over it would be private, or refused for the way in which they meet."""
    (piece,) = parse("SELECT count(*)")
    counted: Node = kind(piece.tree)[1] | {
        clause: body[clause] for clause in ("fromClause", "withClause") if clause in body
    }
    whole: Node = {"SelectStmt": counted}
    try:
        sites = find_blocks(query_from(whole), world)
    except (Refusal, AnswerFirst):
        below = list(walk({clause: body.get(clause) for clause in ("fromClause", "withClause")}))
        groups = any(is_aggregate(node) or any(node.get(clause) for clause in _NOT_ROWS) for node in below)
        return not groups and any(find_table(*table) is not None for table in tables_in(whole))
    bodies = numbered(whole)
    return any(bodies[site.select_index] is counted for site in sites)


def preview(tree: Node, query: Node, find_table: FindTable, world: World) -> Node:
    """The statement over rows that are none of the data's."""
    if world.policy.previews == "empty":
        (piece,) = parse("SELECT LIMIT 0")
        kind(query)[1]["limitCount"] = kind(piece.tree)[1]["limitCount"]

    def instead(schema: str | None, name: str) -> Node | None:
        table = find_table(schema, name)
        return None if table is None else source(f"{_made_up(table, world)} AS {quoted(name)}")

    return replace_relations(tree, instead)


def _made_up(table: Table, world: World) -> str:
    rules = world.policy.find_table(table.name)
    assert rules is not None, "only tables that the rules name are found"
    numbers = count(1)
    found, shown = scan(table, rules, world.policy, world.catalog, lambda: next(numbers))
    columns = {column.id: column for column in found.facts.columns}
    return made_up(table, tuple(columns[number] for _, number in shown))
