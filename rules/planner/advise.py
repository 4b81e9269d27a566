"""Complete refusals before they are sent: the position in the text, a statement to ask instead, columns to join by.

A query for rows, or for a group of each customer, becomes a count of them; one that collects names becomes a count of
each name. A statement is put into a hint only if it can be planned. A refusal points at what it quotes, or else at what
it is about: names are looked for in PostgreSQL's tree of the text, SQL words among its tokens. The first place of a
name is taken; a word that stands there more than once points nowhere.
"""

import re
from collections.abc import Callable, Iterator

from rules.aggregates.recipes import ValuesCollected
from rules.algebra.same_unit import CROSS_UNIT_HINT
from rules.bind.scope import RowsSelected
from rules.catalog import Table
from rules.policy.model import Policy
from rules.refusal import NotAllowed, Refusal
from rules.sql.grammar import deparse
from rules.sql.limits import tokens
from rules.sql.tree import Json, Node, items, kind, strings, walk

_LONGEST = 400  # characters of a statement in a hint
_ORDER = ("sortClause", "limitCount", "limitOffset", "lockingClause", "distinctClause")
_SOURCES: tuple[str, ...] = ("withClause", "fromClause", "whereClause")
_COLLECTING = frozenset(("string_agg", "array_agg", "json_agg", "jsonb_agg"))


def advised(refusal: Refusal, statement: Node, unit: str, is_planned: Callable[[str], bool]) -> Refusal:
    """Return the refusal with a statement to use instead, where there is one."""
    name, query = kind(statement)
    if not isinstance(refusal, NotAllowed) or name != "SelectStmt" or items(query, "valuesLists") or "larg" in query:
        return refusal
    text, message, words = "", refusal.message, refusal.hint
    if isinstance(refusal, RowsSelected) and items(query, "groupClause"):
        text, message = _counting(query), f"grouping by {unit} would show single units"
        words = "Aggregate over these groups instead:"
    elif isinstance(refusal, RowsSelected):
        text = _count_of(query)
    elif isinstance(refusal, ValuesCollected):
        text = _values_of(query)
    if not text or len(text) > _LONGEST or not is_planned(text):
        return refusal
    hint = f"{words} {text}" if words.endswith(":") else f"{words} For example: {text}"
    made = NotAllowed(message, detail=refusal.detail, hint=hint, position=refusal.position)
    made.about = refusal.about
    return made


def _counting(query: Node) -> str:
    """Return how many groups there are."""
    inner: Node = {name: body for name, body in query.items() if name not in _ORDER}
    source: Json = {"RangeSubselect": {"subquery": {"SelectStmt": inner}, "alias": {"aliasname": "t"}}}
    return _text({"targetList": [_item(_count())], "fromClause": [source]})


def _count_of(query: Node) -> str:
    """Return how many rows there are, under the same conditions."""
    kept = {name: query[name] for name in _SOURCES if name in query}
    return _text({"targetList": [_item(_count())], **kept})


def _values_of(query: Node) -> str:
    """The values that an aggregate would have collected, each with how many rows have it."""
    calls = [kind(kind(target)[1].get("val")) for target in items(query, "targetList")]
    nodes = [body for name, body in calls if name == "FuncCall" and strings(body.get("funcname"))[-1] in _COLLECTING]
    arguments = items(nodes[0], "args") if nodes else []
    if not arguments or items(query, "groupClause"):
        return ""
    kept = {name: query[name] for name in _SOURCES if name in query}
    return _text({"targetList": [_item(arguments[0]), _item(_count())], **kept, "groupClause": [arguments[0]]})


def _text(body: Node) -> str:
    return deparse({"SelectStmt": {**body, "limitOption": "LIMIT_OPTION_DEFAULT", "op": "SETOP_NONE"}})


def _item(value: Json) -> Json:
    return {"ResTarget": {"val": value}}


def _count() -> Json:
    return {"FuncCall": {"funcname": [{"String": {"sval": "count"}}], "agg_star": True}}


QUOTED = re.compile(r'"([^"]+)"')


def find_position(refusal: Refusal, tree: Node, text: str) -> int | None:
    """Characters from 1; None when the refusal names nothing that stands in the text.

    Example:
        >>> from rules.sql.grammar import parse
        >>> text = "SELECT a, foo(b) FROM t LIMIT 3"
        >>> (piece,) = parse(text)
        >>> find_position(Refusal('the function "foo" is not supported'), piece.tree, text)
        11
        >>> find_position(Refusal("rows are not given out", about="LIMIT"), piece.tree, text)
        25
    """
    quoted = QUOTED.search(refusal.message)
    for name in (quoted[1].removesuffix("(…)").rpartition(".")[2] if quoted else "", refusal.about):
        places = [place for node in walk(tree) if (place := _place(node, name)) is not None] if name else []
        if places:
            return len(text.encode()[: min(places)].decode("utf-8", "replace")) + 1
    words = [start for word, start in tokens(text) if word.upper() == refusal.about] if refusal.about else []
    return words[0] + 1 if len(words) == 1 else None


def _place(node: Node, name: str) -> int | None:
    """The byte where a function, a column, a table or a constant of this name begins."""
    location = node.get("location", 0)
    return location if name in _names(node) and isinstance(location, int) and location >= 0 else None


def _names(node: Node) -> tuple[Json, ...]:
    """Return what a node that has a place in the text is called."""
    whole = strings(node.get("funcname")) or strings(node.get("fields"))
    if whole:
        return whole[-1:]
    alias, constant = node.get("alias"), node.get("sval")
    if "relname" in node:
        return node["relname"], alias.get("aliasname") if isinstance(alias, dict) else None
    return (constant.get("sval"),) if isinstance(constant, dict) else ()


FindTable = Callable[[str | None, str], Table | None]

_MOST = 6  # tables that a hint names


def with_unit_columns(refusal: Refusal, statement: Node, policy: Policy, find: FindTable) -> Refusal:
    """The refusal, with where each protected table of the statement has its unit."""
    if not isinstance(refusal, NotAllowed) or refusal.hint != CROSS_UNIT_HINT:
        return refusal
    columns = tuple(dict.fromkeys(_unit_columns(statement, policy, find)))
    if not 1 < len(columns) <= _MOST:
        return refusal
    hint = f"{CROSS_UNIT_HINT} Their units are {', '.join(columns[:-1])} and {columns[-1]}."
    made = NotAllowed(refusal.message, detail=refusal.detail, hint=hint, position=refusal.position)
    made.about = refusal.about
    return made


def _unit_columns(statement: Node, policy: Policy, find: FindTable) -> Iterator[str]:
    """A column that is hidden does not exist for analysts, so it is not named."""
    for body in (node["RangeVar"] for node in walk(statement) if isinstance(node.get("RangeVar"), dict)):
        assert isinstance(body, dict)
        schema = body.get("schemaname")
        table = find(None if schema is None else str(schema), str(body.get("relname")))
        rules = None if table is None else policy.find_table(table.name)
        if table is None or rules is None or rules.unit is None:
            continue
        step = rules.unit_step()
        column = next((column for column in table.columns if column.name == step.column), None)
        if column is None or rules.hides(column):
            continue
        shown = kind({"Alias": body.get("alias")})[1].get("aliasname") or body.get("relname")
        yield f"{shown}.{step.column}" + ("" if step.target is None else f" (through {step.target})")
