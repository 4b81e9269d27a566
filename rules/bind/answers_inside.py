"""Answers that a query of public rows compares with, as its text tells: they come first, so the twin computes it."""

from rules.bind.scope import PlannerContext
from rules.bind.state import Ctes
from rules.bind.walk_syntax import aggregates, parts
from rules.sql import syntax as s


def has_answer(select: s.Select, context: PlannerContext, ctes: Ctes) -> bool:
    """Tell whether an aggregate of protected rows stands as a value in a SELECT over public ones, at any depth.

    Only what is sure is told. To bind such a SELECT as a relation would be in vain, once more for each depth.
    """
    for part in parts((select.items, select.where)):
        match part:
            case s.ScalarQuery(query=s.Select(ctes=()) as query) if aggregates(query.items):
                if _is_protected(query.source, context, ctes):
                    return True
            case s.Select(ctes=()) if not _is_protected(part.source, context, ctes) and has_answer(part, context, ctes):
                return True
    return False


def _is_protected(source: s.Source | None, context: PlannerContext, ctes: Ctes) -> bool:
    """Tell whether a protected table stands in FROM by its own name."""
    match source:
        case s.Join(left=left, right=right):
            return _is_protected(left, context, ctes) or _is_protected(right, context, ctes)
        case s.TableSource(schema=schema, name=name) if schema is not None or not ctes.hides(name):
            table = context.find_table(schema, name)
            return table is not None and context.policy.is_protected(table.name)
    return False
