"""Add to the most frequent refusals a statement that is answered instead.

A query for rows, or for a group of each customer, becomes a count of them; one that collects names becomes a count of
each name. A statement is put into a hint only if it can be planned.
"""

from collections.abc import Callable

from rules.aggregates.recipes import ValuesCollected
from rules.bind.scope import RowsSelected
from rules.refusal import NotAllowed, Refusal
from rules.sql.grammar import Json, Node, deparse, items, kind, strings

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
    """How many groups there are."""
    inner: Node = {name: body for name, body in query.items() if name not in _ORDER}
    source: Json = {"RangeSubselect": {"subquery": {"SelectStmt": inner}, "alias": {"aliasname": "t"}}}
    return _text({"targetList": [_item(_count())], "fromClause": [source]})


def _count_of(query: Node) -> str:
    """How many rows there are, under the same conditions."""
    kept = {name: query[name] for name in _SOURCES if name in query}
    return _text({"targetList": [_item(_count())], **kept})


def _values_of(query: Node) -> str:
    """The values that an aggregate would have collected, each with how many rows have it."""
    calls = [kind(kind(each)[1].get("val")) for each in items(query, "targetList")]
    found = [body for name, body in calls if name == "FuncCall" and strings(body.get("funcname"))[-1] in _COLLECTING]
    arguments = items(found[0], "args") if found else []
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
