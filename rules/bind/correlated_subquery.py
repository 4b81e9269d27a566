"""Scalar subqueries that depend on the row around them by equalities, and what a statement needs before its plan.

Of x > (SELECT avg(y) … WHERE a = outer.a) the inner query is answered first for all values of a, by GROUP BY a. Where
the row around it stands, the answer of its own a is looked up; a value that has no answer gets what an aggregate of no
rows gives. Binding ends at the first need, wherever it is met: such a subquery, an inner query, a literal that only
PostgreSQL reads. `known_or_needed` turns that into a value; the rest of the planner knows of no exception.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from rules.algebra.same_unit import COUNT_HINT
from rules.bind.inner_answers import InnerQuery, Links
from rules.bind.scope import PlannerContext
from rules.bind.walk_syntax import conjuncts, first_table, has_window, is_aggregate, parts
from rules.frozen import frozen
from rules.functions.function import Needed, UnreadLiterals
from rules.functions.registry import CLOCKS, FUNCTIONS
from rules.refusal import NotAllowed, NotSupported
from rules.sql import syntax as s

CORRELATED_HINT = (
    "Use = in the WHERE clause of the subquery, or write it as a CTE grouped by the columns it depends on, and join it."
)
EXISTS_HINT = (
    "Compare the aggregate itself, as in (SELECT count(*) FROM … WHERE a = outer.a) > 3, in place of EXISTS or IN."
)
_LEFT_OUT_HINT = "Leave it out: ORDER BY of a subquery and the select list of EXISTS mean nothing else."
COUNTS = frozenset(("count", "regr_count"))  # which are 0 of no rows, where other aggregates are NULL
GROUPED = "_ng_by"  # what such a subquery is called in FROM, once it is grouped by what it depends on
PLACE_HINT = "Move the subquery to WHERE, to ON of an inner join, or to the select list of a subquery in FROM."


@frozen
class Correlated:
    """A block for each row of a query around it: one block grouped by what it depends on says the same."""

    select: int
    links: Links


def links_of(query: s.Query, context: PlannerContext) -> Links:
    """The conditions by which a scalar subquery depends on the row around it; none when it does not."""
    if not isinstance(query, s.Select):
        return ()
    inside = _Inside.of(query, context)
    if not (outside := inside.find_lacking(_clauses(query))):
        return ()
    check_left_out(query.order_by)
    conditions = dict.fromkeys(conjuncts(query.where))
    links = tuple(link for condition in conditions if (link := inside.link(condition)) is not None)
    linking = [condition for condition, _ in links]
    rest = [condition for condition in conditions if condition not in linking]
    others = (query.items, query.group_by, query.having, query.order_by, rest)
    depends = inside.find_lacking(others)
    if links and not depends and not _is_one_aggregate(query):
        message = "a correlated subquery over protected rows must select a single aggregate"
        raise NotSupported(message, hint=COUNT_HINT)
    if not links or depends:
        message = "a correlated subquery over protected rows can refer to the outer query only by ="
        raise NotSupported(message, hint=CORRELATED_HINT, about=depends or outside)
    return links


def check_grouped(source: s.QuerySource) -> None:
    """Refuse a subquery that was grouped by what it depends on, and is rows of units all the same."""
    if source.alias == GROUPED:
        message = "the subquery would show numbers of single units: each row around it names one"
        hint = "Tie it to the row around it by a column that many units share."
        raise NotAllowed(message, hint=hint, about=first_table(source.query))


def check_alone(query: s.Query, context: PlannerContext) -> None:
    """An answer that comes first cannot depend on a row: as EXISTS in the ON of an outer join may."""
    if not isinstance(query, s.Select):
        return
    inside = _Inside.of(query, context)
    if outside := inside.find_lacking(_clauses(query)):
        raise NotSupported("a correlated subquery is not supported in this clause", hint=PLACE_HINT, about=outside)


def check_left_out(*clauses: object) -> None:
    """Refuse functions in clauses that are not read, ORDER BY of a subquery and the list of EXISTS, but listed ones.

    Any other may return a set, and the rows of PostgreSQL are then as many as its members.
    """
    for part in parts(clauses):
        if not isinstance(part, s.Call) or part.over is not None or is_aggregate(part):
            continue
        if part.schema is not None or not (part.name in FUNCTIONS or part.name in CLOCKS):
            message = f'the function "{part.name}" could return several rows or none for each protected row'
            raise NotSupported(message, hint=_LEFT_OUT_HINT, about=part.name)


def outside_of(links: Links) -> tuple[s.Expression, ...]:
    """Return the outer sides of the links of a correlated subquery."""
    return tuple(
        expression.arguments[inside_first] for expression, inside_first in links if isinstance(expression, s.Operator)
    )


def _is_one_aggregate(query: s.Select) -> bool:
    plain = not (query.ctes or query.group_by or query.having or query.distinct or query.distinct_on or query.locking)
    plain = plain and query.limit is None and query.offset is None and not has_window(query.items)
    return plain and len(query.items) == 1 and any(is_aggregate(part) for part in parts(query.items[0].expression))


def _clauses(query: s.Select) -> tuple[object, ...]:
    return (query.items, query.where, query.group_by, query.having, query.order_by)


@frozen
class _Inside:
    """The names that the inner query's own FROM brings."""

    tables: frozenset[str]
    columns: frozenset[str] | None  # None: not all are known here, so a bare name is taken for one of its own

    @classmethod
    def of(cls, query: s.Select, context: PlannerContext) -> "_Inside":
        tables: set[str] = set()
        columns: set[str] | None = set()
        for source in _sources(query.source):
            tables.add(source.alias or (source.name if isinstance(source, s.TableSource) else ""))
            known = _columns(source, context)
            columns = None if columns is None or known is None else columns | known
        return cls(frozenset(tables), None if columns is None else frozenset(columns))

    def lacks(self, name: s.Name) -> bool:
        """Return whether a name means something outside."""
        *qualifier, last = name.parts
        if qualifier:
            return qualifier[-1] not in self.tables
        return self.columns is not None and last not in self.columns

    def find_lacking(self, clauses: tuple[object, ...]) -> str:
        """The first name that means something outside; empty where there is none."""
        names = (part for part in parts(clauses) if isinstance(part, s.Name) and self.lacks(part))
        return ".".join(next(names, s.Name(())).parts)

    def link(self, condition: s.Expression) -> tuple[s.Expression, bool] | None:
        match condition:
            case s.Operator(name="=", arguments=(one, two)):
                sides = [self._side(expression) for expression in (one, two)]
                if sorted(sides, key=str) == ["inside", "outside"]:
                    return condition, sides[0] == "inside"
        return None

    def _side(self, expression: s.Expression) -> str | None:
        names = [part for part in parts(expression) if isinstance(part, s.Name)]
        lacking = [self.lacks(name) for name in names]
        if not names or any(isinstance(part, s.Select | s.SetOperation | s.Values) for part in parts(expression)):
            return None
        return "outside" if all(lacking) else None if any(lacking) else "inside"


def _sources(source: s.Source | None) -> list[s.TableSource | s.QuerySource | s.FunctionSource]:
    match source:
        case None:
            return []
        case s.Join(left=left, right=right):
            return [*_sources(left), *_sources(right)]
    return [source]


def _columns(source: s.TableSource | s.QuerySource | s.FunctionSource, context: PlannerContext) -> set[str] | None:
    if not isinstance(source, s.TableSource) or source.columns:
        return None
    if source.schema is None and source.name in context.ctes:
        return None
    table = context.find_table(source.schema, source.name)
    return None if table is None else {column.name for column in table.columns}


Need = InnerQuery | UnreadLiterals | Correlated
Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")


def known_or_needed(make: Callable[Arguments, Made]) -> Callable[Arguments, Made | Need]:
    """Return what a function makes, or the first thing that it needs."""

    @wraps(make)
    def made(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made | Need:
        try:
            return make(*args, **kwargs)
        except Needed as needed:
            match needed.what:
                case InnerQuery() | UnreadLiterals() | Correlated() as need:
                    return need
            raise

    return made
