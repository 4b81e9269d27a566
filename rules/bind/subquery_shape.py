"""Take subqueries apart as they are written: rows, aggregates, conditions, tests, and the meaning of their names."""

from rules.algebra.unit_facts import MOST_ROWS
from rules.bind.expression import Leaf
from rules.bind.scope import Scope
from rules.bind.walk_syntax import aggregates, conjuncts, has_window, parts
from rules.frozen import replace
from rules.refusal import NotAllowed, NotSupported
from rules.sql import syntax as s
from rules.values.expression import Column, Operand

Test = s.Exists | s.InQuery
Written = s.ScalarQuery | s.Exists | s.InQuery


def has_subquery(expression: s.Expression) -> bool:
    return any(isinstance(part, Written) for part in parts(expression))


def hoisted(select: s.Select) -> s.Select:
    """The same SELECT with the subqueries of its inner joins' conditions in WHERE, where they mean the same."""
    source, moved = _without_subqueries(select.source)
    if not moved:
        return select
    return replace(select, source=source, where=_all_of((*conjuncts(select.where), *moved)))


def _without_subqueries(source: s.Source | None) -> tuple[s.Source | None, tuple[s.Expression, ...]]:
    if not isinstance(source, s.Join) or source.kind not in ("inner", "cross"):
        return source, ()
    left, first = _without_subqueries(source.left)
    right, second = _without_subqueries(source.right)
    assert left is not None and right is not None
    kept = tuple(conjunct for conjunct in conjuncts(source.on) if not has_subquery(conjunct))
    moved = tuple(conjunct for conjunct in conjuncts(source.on) if has_subquery(conjunct))
    on = _all_of(kept) if moved else source.on
    return replace(source, left=left, right=right, on=on), (*first, *second, *moved)


def conditions_of_joins(source: s.Source | None) -> tuple[s.Expression, ...]:
    """Return what stands in ON, in the order of the text."""
    if not isinstance(source, s.Join):
        return ()
    own = () if source.on is None else (source.on,)
    return (*conditions_of_joins(source.left), *conditions_of_joins(source.right), *own)


def _all_of(conditions: tuple[s.Expression, ...]) -> s.Expression:
    match conditions:
        case ():
            return s.Constant("boolean", "true")
        case (only,):
            return only
    return s.Operator("and", conditions)


def is_more(query: s.Select, most: int | None = 1) -> bool:
    """Tell whether a subquery is more than aggregates, or rows, of FROM and WHERE; the first row may be chosen."""
    limit = number_of(query.limit)
    first = limit is not None and (most is None or limit <= most) and not aggregates(query.items)
    limited = (query.limit is not None and not first) or query.offset is not None
    chosen = query.group_by or query.having or query.distinct or query.distinct_on or query.locking
    return bool(limited or chosen or has_window(query.items))


def number_of(expression: s.Expression | None) -> int | None:
    """A positive whole number of the text."""
    match expression:
        case s.Constant("number", text) if text.isdigit() and 0 < int(text) <= MOST_ROWS:
            return int(text)
    return None


def kept_by_exists(query: s.Select) -> s.Select:
    """The query of EXISTS without what leaves a row wherever there is one, as PostgreSQL's simplify_EXISTS_query."""
    if query.offset is not None:
        return query
    limit = query.limit if number_of(query.limit) is None else None
    return replace(query, distinct=False, distinct_on=(), limit=limit)


def is_computed(query: s.Select) -> bool:
    """Return whether more is done than choosing rows."""
    if query.locking:
        raise NotAllowed("row locks would reveal protected rows")
    chosen = query.distinct or query.distinct_on or query.limit is not None or query.offset is not None
    return bool(query.group_by or query.having or aggregates(query.items) or chosen or has_window(query.items))


def depends(query: s.Select, scope: Scope) -> bool:
    """Return whether a name in it means something outside."""
    names = (part for part in parts((query.items, query.where, query.order_by)) if isinstance(part, s.Name))
    return any(scope.find(name.parts) is None for name in names)


def sorted_conditions(where: s.Expression | None) -> tuple[tuple[s.Expression, ...], tuple[tuple[Test, bool], ...]]:
    """The plain conditions, and the tests by subquery with whether NOT stands before them."""
    plain: list[s.Expression] = []
    tests: list[tuple[Test, bool]] = []
    for conjunct in conjuncts(where):
        match conjunct:
            case s.Exists() | s.InQuery():
                tests.append((conjunct, False))
            case s.Operator(name="not", arguments=((s.Exists() | s.InQuery()) as inner,)):
                tests.append((inner, True))
            case _:
                plain.append(conjunct)
    return tuple(plain), tuple(tests)


def calls_leaf(values: dict[s.Call, Column]) -> Leaf:
    """In what is computed from aggregates, names mean nothing: the subquery has one row."""

    def leaf(expression: s.Expression) -> Operand | None:
        if isinstance(expression, s.Name):
            message = f'column "{expression.parts[-1]}" must be used in an aggregate'
            raise NotSupported(message, hint="Move it out of the subquery.")
        return values.get(expression) if isinstance(expression, s.Call) else None

    return leaf


def either_leaf(scope: Scope, columns: dict[int, Column], outer: Scope, outside: dict[int, Column]) -> Leaf:
    """In a correlated subquery a name is first looked for inside, then outside."""

    def leaf(expression: s.Expression) -> Operand | None:
        if isinstance(expression, Written):
            subquery = scope.find_subquery(expression)
            return None if subquery is None else columns[subquery]
        if not isinstance(expression, s.Name):
            return None
        number = scope.find(expression.parts)
        if number is not None:
            return columns[number]
        number = outer.find(expression.parts)
        if number is None:
            raise scope.refuse(expression.parts)
        if number not in outside:
            raise NotSupported(f'column "{expression.parts[-1]}" must appear in GROUP BY or be used in an aggregate')
        return outside[number]

    return leaf
