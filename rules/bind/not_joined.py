"""Say why an item of FROM cannot stand beside protected rows, and what can be written instead."""

from typing import Final

from rules.bind.scope import PlannerContext
from rules.bind.state import Ctes
from rules.functions.registry import FUNCTIONS
from rules.refusal import NotSupported
from rules.sql import syntax as s

RELEASED_HINT: Final = "Aggregate the protected table in a subquery first, then join the two results."
_SYNTHETIC_HINT: Final = "Aggregate each, and join the answers."
_RECURSION_HINT: Final = "Aggregate protected rows in a CTE of their own, and let the recursion read its result."
_SETS_HINT: Final = "Count the rows that have an item, as in count(*) FILTER (WHERE 'x' = ANY (array_column))."
_HINTS: Final = {
    "generate_series": "Use constant ends, and compare in WHERE: … generate_series(1, 100) AS n WHERE n <= column.",
    "JSON_TABLE": "Put it into a subquery, FROM (SELECT * FROM JSON_TABLE(…)) AS j. Of a protected column, take values "
    "with -> and ->>.",
}
_WORDS: Final = {"JsonTable": "JSON_TABLE", "RangeTableFunc": "XMLTABLE"}  # what is written, by PostgreSQL's node


def refusal_of_item(source: s.Source | None, context: PlannerContext, ctes: Ctes) -> NotSupported:
    """For an item that neither is a table of the rules nor can be answered before protected rows are read."""
    match source:
        case s.FunctionSource(call=call):
            return _of_function(_WORDS.get(call.name, call.name))
        case s.TableSource(schema=None, name=name) if name in ctes.recursive:
            return recursion_refusal()
        case s.TableSource(name=name) if _is_synthetic(source, context):
            message = "synthetic rows cannot be joined with protected rows"
            return NotSupported(message, hint=_SYNTHETIC_HINT, about=name)
    message = "protected rows can be joined only with tables that the rules file names and with subqueries"
    about = source.name if isinstance(source, s.TableSource) else ""
    return NotSupported(message, hint=RELEASED_HINT, about=about)


def recursion_refusal() -> NotSupported:
    """For a recursion over rows of units: how deep it goes is not bounded."""
    return NotSupported("WITH RECURSIVE over protected rows is not supported", hint=_RECURSION_HINT, about="RECURSIVE")


def _of_function(name: str) -> NotSupported:
    if name in _WORDS.values():
        hint = _HINTS.get(name, f"Put it into a subquery, FROM (SELECT * FROM {name}(…)) AS t.")
        return NotSupported(f"{name} is not supported together with protected rows", hint=hint, about=name)
    if name == "from":
        message = "ROWS FROM and WITH ORDINALITY of columns of protected rows are not supported"
        return NotSupported(message, hint=_SETS_HINT)
    hint = _HINTS.get(name, "Use it in the select list or in WHERE." if name in FUNCTIONS else _SETS_HINT)
    return NotSupported(f'the function "{name}" of columns of protected rows is not supported in FROM', hint=hint)


def _is_synthetic(source: s.TableSource, context: PlannerContext) -> bool:
    """Tell whether a name means a table of a synopsis, which the real database does not have."""
    schemas = (source.schema,) if source.schema is not None else context.search_path
    return any(context.is_synthetic(schema, source.name) for schema in schemas)
