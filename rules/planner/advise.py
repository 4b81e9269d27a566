"""Complete refusals before they are sent: the position in the text, a statement to ask instead, columns to join by.

A query for rows, or for a group of each customer, becomes a count of them; one that collects names becomes a count of
each name. A statement is put into a hint only if it can be planned. A refusal points at what it quotes, or else at what
it is about: names are looked for in PostgreSQL's tree of the text, SQL words and constants among its tokens. The first
place of a name is taken, of a column the first in the call that the refusal is about; a word that stands there more
than once points nowhere.
"""

import re
from collections.abc import Callable, Iterator

from rules.aggregates.recipes import ValuesCollected
from rules.algebra.same_unit import CROSS_UNIT_HINT
from rules.bind.correlated_subquery import CORRELATED_HINT, EXISTS_HINT, PLACE_HINT
from rules.bind.scope import RowsSelected, UnknownName
from rules.catalog import Table
from rules.policy.model import Policy
from rules.refusal import NotAllowed, NotSupported, Refusal
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
    text, message, words, about = "", refusal.message, refusal.hint, refusal.about
    if isinstance(refusal, RowsSelected) and items(query, "groupClause"):
        text, message, about = _counting(query), f"these groups would show single units of {unit}", "GROUP"
        words = "Aggregate over these groups instead:"
    elif isinstance(refusal, RowsSelected):
        text = _count_of(query)
    elif isinstance(refusal, ValuesCollected):
        text = _values_of(query)
    if not text or len(text) > _LONGEST or not is_planned(text):
        return refusal
    hint = f"{words} {text}" if words.endswith(":") else f"{words} For example: {text}"
    return NotAllowed(message, detail=refusal.detail, hint=hint, position=refusal.position, about=about)


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
    named = tuple(quoted[1].removesuffix("(…)").split(".")) if quoted else ()
    calls = [node for node in walk(tree) if strings(node.get("funcname"))[-1:] == (refusal.about,)]
    tries = [(parts, roots) for parts in (named, named[-1:]) for roots in (calls, [tree])]
    for parts, inside in (*tries, ((refusal.about,), [tree])):
        nodes = (node for root in inside for node in walk(root)) if any(parts) else iter(())
        places = [place for node in nodes if (place := _place(node, parts)) is not None]
        if places:
            return _characters(text, min(places))
    words = [start for word, start in tokens(text) if refusal.about in (word, word.upper())] if refusal.about else []
    return words[0] + 1 if len(words) == 1 else None


def _characters(text: str, place: int) -> int:
    """A byte of the text as the number of a character, from 1."""
    return len(text.encode()[:place].decode("utf-8", "replace")) + 1


def _place(node: Node, parts: tuple[str, ...]) -> int | None:
    """The byte where a function, a column, a table or a constant begins whose name ends so."""
    location = node.get("location", 0)
    is_it = any(name[-len(parts) :] == parts for name in _names(node))
    return location if is_it and isinstance(location, int) and location >= 0 else None


def _names(node: Node) -> tuple[tuple[Json, ...], ...]:
    """Return what a node that has a place in the text is called, each name with what stands before it."""
    whole = strings(node.get("funcname")) or strings(node.get("fields"))
    if whole:
        return (whole,)
    alias, constant = node.get("alias"), node.get("sval")
    if "relname" in node:
        aliased = alias.get("aliasname") if isinstance(alias, dict) else None
        return (node.get("schemaname"), node["relname"]), (aliased,)
    return ((constant.get("sval"),),) if isinstance(constant, dict) else ()


def with_outer_columns(refusal: Refusal, statement: Node, text: str) -> Refusal:
    """The refusal of a column in a subquery that belongs to a query around it: it says so, and points at the column.

    PostgreSQL has read the statement before: the column is there.
    """
    quoted = QUOTED.search(refusal.message)
    is_unknown = isinstance(refusal, UnknownName) and quoted is not None
    named = quoted[1] if is_unknown and quoted else refusal.about if refusal.hint in _OF_CORRELATED else ""
    place = _find_outer(statement, tuple(named.split(".")), frozenset(), frozenset()) if named else None
    if place is None:
        return refusal
    refusal.position = refusal.position or _characters(text, place)
    if not is_unknown:
        return refusal
    message = f'column "{named}" of the outer query is not supported at this place in a subquery'
    hint = refusal.hint if refusal.hint == EXISTS_HINT else CORRELATED_HINT
    if "." not in named and not all(map(_OF_UNKNOWN_COLUMNS.isdisjoint, walk(statement))):
        hint = f"Write its table before it, as in t.{named}. {hint}"
    return NotSupported(message, hint=hint, position=refusal.position)


_OF_CORRELATED = (CORRELATED_HINT, PLACE_HINT)
_OF_UNKNOWN_COLUMNS = frozenset(("CommonTableExpr", "RangeSubselect"))  # which a bare name is taken to be of


def _find_outer(node: Json, column: tuple[str, ...], around: frozenset[str], own: frozenset[str]) -> int | None:
    """The byte of a column in a query with these items of FROM that is of one of those around it."""
    if isinstance(node, list):
        return next((at for child in node if (at := _find_outer(child, column, around, own)) is not None), None)
    if not isinstance(node, dict):
        return None
    name, body = kind(node)
    if name == "ColumnRef":
        is_it = strings(body.get("fields")) == column and bool(around) and around.issuperset(column[-2:-1])
        return _place(body, column) if is_it else None
    if name == "SelectStmt":
        within = frozenset(item for source in items(body, "fromClause") for item in _items_of_from(source))
        return _find_outer(list(body.values()), column, around | own, within)
    return _find_outer(list(node.values()), column, around, own)


def _items_of_from(source: Json) -> Iterator[str]:
    """The names by which columns of an item of FROM may be called."""
    name, body = kind(source)
    if name == "JoinExpr":
        yield from _items_of_from(body.get("larg"))
        yield from _items_of_from(body.get("rarg"))
    alias = body.get("alias")
    named = alias.get("aliasname") if isinstance(alias, dict) else body.get("relname")
    if isinstance(named, str):
        yield named


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
