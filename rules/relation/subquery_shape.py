"""What a subquery is made of, as it is written: rows, the first of them, aggregates, conditions and tests."""

from dataclasses import replace

from rules.refusal import NotAllowed
from rules.relation.rows_left import MOST_ROWS
from rules.relation.scope import Scope
from rules.relation.walk_syntax import aggregates, conjuncts, has_window, parts
from rules.sql import syntax as s

Test = s.Exists | s.InQuery
Written = s.ScalarQuery | s.Exists | s.InQuery


def has_subquery(given: s.Expression) -> bool:
    return any(isinstance(part, Written) for part in parts(given))


def hoisted(given: s.Select) -> s.Select:
    """The same SELECT with the subqueries of its inner joins' conditions in WHERE, where they mean the same."""
    source, moved = _without_subqueries(given.source)
    if not moved:
        return given
    return replace(given, source=source, where=_all_of((*conjuncts(given.where), *moved)))


def _without_subqueries(given: s.Source | None) -> tuple[s.Source | None, tuple[s.Expression, ...]]:
    if not isinstance(given, s.Join) or given.kind not in ("inner", "cross"):
        return given, ()
    left, first = _without_subqueries(given.left)
    right, second = _without_subqueries(given.right)
    assert left is not None and right is not None
    kept = tuple(each for each in conjuncts(given.on) if not has_subquery(each))
    moved = tuple(each for each in conjuncts(given.on) if has_subquery(each))
    on = _all_of(kept) if moved else given.on
    return replace(given, left=left, right=right, on=on), (*first, *second, *moved)


def _all_of(conditions: tuple[s.Expression, ...]) -> s.Expression:
    match conditions:
        case ():
            return s.Constant("boolean", "true")
        case (only,):
            return only
    return s.Operator("and", conditions)


def is_more(query: s.Select, most: int | None = 1) -> bool:
    """Whether a subquery is more than aggregates, or rows, of FROM and WHERE; of rows the first may be chosen."""
    limit = number_of(query.limit)
    first = limit is not None and (most is None or limit <= most) and not aggregates(query.items)
    limited = (query.limit is not None and not first) or query.offset is not None
    chosen = query.group_by or query.having or query.distinct or query.distinct_on or query.locking
    return bool(limited or chosen or has_window(query.items))


def number_of(given: s.Expression | None) -> int | None:
    """A positive whole number of the text."""
    match given:
        case s.Constant("number", text) if text.isdigit() and 0 < int(text) <= MOST_ROWS:
            return int(text)
    return None


def is_computed(query: s.Select) -> bool:
    """Whether more is done than choosing rows."""
    if query.locking:
        raise NotAllowed("row locks tell of protected rows")
    chosen = query.distinct or query.distinct_on or query.limit is not None or query.offset is not None
    return bool(query.group_by or query.having or aggregates(query.items) or chosen or has_window(query.items))


def depends(query: s.Select, scope: Scope) -> bool:
    """Whether a name in it means something outside."""
    names = (part for part in parts((query.items, query.where, query.order_by)) if isinstance(part, s.Name))
    return any(scope.find(name.parts) is None for name in names)


def sorted_conditions(where: s.Expression | None) -> tuple[tuple[s.Expression, ...], tuple[tuple[Test, bool], ...]]:
    """The plain conditions, and the tests by subquery with whether NOT stands before them."""
    plain: list[s.Expression] = []
    tests: list[tuple[Test, bool]] = []
    for each in conjuncts(where):
        match each:
            case s.Exists() | s.InQuery():
                tests.append((each, False))
            case s.Operator(name="not", arguments=((s.Exists() | s.InQuery()) as inner,)):
                tests.append((inner, True))
            case _:
                plain.append(each)
    return tuple(plain), tuple(tests)
