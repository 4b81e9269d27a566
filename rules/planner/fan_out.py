"""Count how many public rows one protected row meets: by how much a join with public tables multiplies rows.

The twin counts them, over public rows alone. It is advice, as every number of rows: a cap is made of it, and the kernel
enforces the cap after the join, whatever the public tables hold by then.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from math import ceil, isqrt, prod

from rules.algebra.cover import Cover, cover_of, is_over, types_of
from rules.algebra.narrow import narrowed
from rules.algebra.nodes import (
    Filter,
    Gathered,
    Join,
    KnownRows,
    Node,
    PerUnit,
    Project,
    Scan,
    SemiJoin,
    Union,
    Windowed,
    below,
)
from rules.bind.inner_answers import InnerQuery
from rules.bind.scope import PlannerContext
from rules.catalog import TableName
from rules.frozen import frozen, replace
from rules.functions.function import Needed
from rules.planner.public_query import NO_READER
from rules.planner.public_rows import PublicTables
from rules.refusal import NotAllowed, TooComplex
from rules.sql.limits import check_size
from rules.values.domain import Values, contains
from rules.values.expression import Apply, Column, Constant, Expression, all_of, conjuncts, ids_in
from rules.values.types import equality
from rules.values.value import Span

MOST_PUBLIC_ROWS = 100_000  # that one row may meet: as many as a public table has in the twin, if nobody allows more


@frozen
class FanOut:
    """How many public rows the values of a key meet: at most, on average, and the average of their squares."""

    most: int = 1
    mean: Fraction = Fraction(1)
    square: Fraction = Fraction(1)

    def times(self, other: "FanOut") -> "FanOut":
        """Return how many rows both meet together, as if the one said nothing of the other."""
        return FanOut(self.most * other.most, self.mean * other.mean, self.square * other.square)

    def rows_of(self, rows: int) -> int:
        """How many rows so many rows usually become, with a margin of 1.3 standard deviations of their number.

        Example:
            >>> FanOut(3, Fraction(11, 10), Fraction(121, 100) + Fraction(9, 100)).rows_of(50)
            58
        """
        variance = max(self.square - self.mean**2, Fraction(0)) * rows
        margin = Fraction(isqrt(int(variance * 169 * _FINE**2 / 100)), _FINE)
        return min(rows * self.most, ceil(self.mean * rows + margin))


_FINE = 1_000


def find_fan_out(node: Node, context: PlannerContext) -> FanOut | None:
    """The product over all joins with public rows; None where some are not counted.

    Raises Needed where the twin has to be asked.
    """
    conditions, product = cover_of(node).conditions, FanOut()
    for public, protected, tie in _public_sides(node):
        partners = _partners(public, protected, (*conditions, *conjuncts(tie)), context)
        if partners is None:
            return None
        product = product.times(partners)
    return product


def _public_sides(node: Node) -> Iterator[tuple[Node, Node, Expression]]:
    """The public relations that rows of units are joined with, one by one, what they are joined with, and by what.

    An outer join's condition is none of all its rows, but it holds of every two rows that meet.
    """
    match node:
        case Join(left=left, right=right, condition=tie) if (left.facts.unit is None) != (right.facts.unit is None):
            public, protected = (left, right) if left.facts.unit is None else (right, left)
            yield public, protected, tie
            yield from _public_sides(protected)
        case Join(left=left, right=right):
            yield from chain(_public_sides(left), _public_sides(right))
        case Filter(source=source) | Project(source=source) | Windowed(source=source):
            yield from _public_sides(source)
        case SemiJoin(source=source) | Gathered(source=source):
            yield from _public_sides(source)


def _partners(
    public: Node, protected: Node, conditions: tuple[Expression, ...], context: PlannerContext
) -> FanOut | None:
    """How many public rows have one value of the columns that the join equates.

    What is equal to a column of a table that is joined later is not known yet: that table may multiply the rows.
    """
    own = cover_of(public)
    numbers, known = ({column.id for column in node.facts.columns} for node in (public, protected))
    fixed = {number for condition in conditions for number in _equated(condition, numbers, known)}
    if any(key <= fixed for key in public.facts.keys):
        return FanOut()
    if isinstance(public, KnownRows):
        public = _chosen(public, conditions)
        computed = [each for condition in conditions for each in _computed(condition, numbers, known)]
        images = (_alike(_most_with_one_image(public, each)) for each in computed)
        return min((_known_alike(public, fixed), *images), key=lambda fan_out: fan_out.most)
    if own.partners or own.computed or not own.public or not _is_whole(public):
        return None
    if context.find_unread(scan.table for scan in own.public) is not None:
        return None
    read = context.read_there(scan.table for scan in own.public)
    sql = _count_sql(own, conditions, fixed, on_real=bool(read))
    try:
        check_size(sql)
    except TooComplex:
        return None
    return _counted_rows(sql, read, context)


def size_of(public: Node, context: PlannerContext) -> int:
    """At most so many rows a public relation has, by the sizes of its tables.

    Raises Needed where the twin has to be asked, a Refusal where nobody can be.
    """
    match public:
        case Scan(table=table):
            if context.find_unread((table,)) is not None:
                words = "can be joined by its key alone: the proxy does not hold its rows, so it cannot count them"
                raise NotAllowed(f'public table "{table}" {words}', hint=NO_READER, about=table.name)
            read = context.read_there((table,))
            return _counted_rows(_count_sql(cover_of(public), (), set(), on_real=bool(read)), read, context).most
        case KnownRows(rows=rows):
            return max(1, len(rows))
        case Join(left=left, right=right):
            for one in (left, right):
                own = {column.id for column in one.facts.columns}
                if any(key <= own for key in public.facts.keys):  # each of its rows meets one of the other side
                    return size_of(one, context)
            return (size_of(left, context) + 1) * (size_of(right, context) + 1)
        case Union(branches=branches):
            return sum(size_of(branch, context) for branch in branches)
    return size_of(below(public)[0], context)


def _counted_rows(sql: str, read: tuple[TableName, ...], context: PlannerContext) -> FanOut:
    inner = InnerQuery(use="groups", sql=sql, tables=read)
    released = next((inner_answer for inner_answer in context.released if inner_answer.inner == inner), None)
    if released is None:
        raise Needed(inner)
    most, mean, square = released.rows[0] if released.rows else (None, None, None)
    if most is None or mean is None or square is None or int(most) == 0:
        return FanOut()
    return FanOut(int(most), Fraction(mean), Fraction(square))


def _chosen(known: KnownRows, conditions: tuple[Expression, ...]) -> KnownRows:
    """The rows that conditions on a column of theirs leave."""
    columns = narrowed(known.facts.columns, all_of(conditions))
    rows = (row for row in known.rows if all(map(_can_be, columns, row)))
    return replace(known, rows=tuple(rows))


def _can_be(column: Column, constant: Constant) -> bool:
    if constant.text is None:
        return column.nullable
    return constant.value is None or isinstance(constant.value, Span) or contains(column.domain, constant.value)


def _alike(rows: int) -> FanOut:
    """Every value meets so many rows."""
    return FanOut(rows, Fraction(rows), Fraction(rows**2))


def _known_alike(known: KnownRows, fixed: set[int]) -> FanOut:
    places = [place for place, column in enumerate(known.facts.columns) if column.id in fixed]
    alike = Counter(tuple(row[place].text for place in places) for row in known.rows).values()
    if not alike:
        return FanOut()
    squares = sum(count**2 for count in alike)
    return FanOut(max(alike), Fraction(sum(alike), len(alike)), Fraction(squares, len(alike)))


def _most_with_one_image(known: KnownRows, computed: Expression) -> int:
    """The most rows with one value of an expression: all that its values do not tell apart may have the same."""
    places = [place for place, column in enumerate(known.facts.columns) if column.id in ids_in(computed)]
    values = Counter(tuple(row[place].text for place in places) for row in known.rows)
    images = _images(computed)
    if not 0 < images <= len(values):
        return max(1, len(known.rows))
    return max(values.values()) * (len(values) - images + 1)


def _images(computed: Expression) -> int:
    """How many values an expression has over all rows; 0 where its domain may have more than they make."""
    match computed:
        case Column(domain=Values(items=items)):
            return len(items)
        case Apply(name=name, arguments=(argument, *rest), domain=Values(items=items)) if name in _ONE_BY_ONE:
            return len(items) if _images(argument) and not ids_in(*rest) else 0
    return 0


_ONE_BY_ONE = frozenset(("cast", "date_trunc", "to_char", "within"))  # each value of a list becomes one of another


def _is_whole(node: Node) -> bool:
    """Return whether a relation is nothing but rows of tables that meet, and conditions of them."""
    match node:
        case Scan():
            return True
        case Filter(source=source):
            return _is_whole(source)
        case Join(kind="inner", left=left, right=right):
            return _is_whole(left) and _is_whole(right)
    return False


def _equated(condition: Expression, own: set[int], known: set[int]) -> Iterator[int]:
    """The own column that is equal to something computed of known columns, or to a constant."""
    match condition:
        case Apply(name="=", arguments=(one, two)):
            for column, other in ((one, two), (two, one)):
                if isinstance(column, Column) and column.id in own and ids_in(other) <= known:
                    yield from (column.id,) if equality(column.type, other.type) == "same" else ()


def _computed(condition: Expression, own: set[int], known: set[int]) -> Iterator[Expression]:
    """What is computed of own columns and equal to something computed of known ones."""
    match condition:
        case Apply(name="=", arguments=(one, two)) if equality(one.type, two.type) == "same":
            for made, other in ((one, two), (two, one)):
                if ids_in(made) and ids_in(made) <= own and ids_in(other) <= known:
                    yield made


def _count_sql(own: Cover, conditions: tuple[Expression, ...], fixed: set[int], *, on_real: bool) -> str:
    readable = {number for scan in own.public for number in types_of(scan)}
    within = tuple(
        dict.fromkeys(condition for condition in (*own.conditions, *conditions) if is_over(condition, readable))
    )
    keys = sorted(fixed & readable)
    used = sorted(ids_in(*within) | set(keys))
    names = {number: f"c{place}" for place, number in enumerate(used, start=1)}
    rows = PublicTables(own.public, within, on_real=on_real).sql(keys, names)
    grouped = ", ".join(names[number] for number in keys)
    there = (
        f" WHERE {' AND '.join(f'{names[number]} IS NOT NULL' for number in keys)} GROUP BY {grouped}" if keys else ""
    )
    shown = "max(n)::text AS k0, avg(n)::text AS k1, avg(n::numeric * n)::text AS k2"
    return f"SELECT {shown} FROM (SELECT count(*) AS n FROM ({rows}) AS t{there}) AS m"


def check_fan_out(node: Node, context: PlannerContext) -> None:
    """Refuse a relation that makes too many rows of one.

    Raises Needed where the twin has to be asked.
    """
    _rows_of_one(node, cover_of(node).conditions, context)


def _rows_of_one(node: Node, conditions: tuple[Expression, ...], context: PlannerContext) -> int:
    """At most so many rows are made of one protected row: a product over all joins with public rows."""
    match node:
        case Filter(source=source) | Project(source=source) | Windowed(source=source):
            return _rows_of_one(source, conditions, context)
        case PerUnit(source=source):
            return _rows_of_one(source, cover_of(source).conditions, context)
        case Join(left=left, right=right):
            sides, tied = ((left, right), (right, left)), (*conditions, *conjuncts(node.condition))
            return _checked(prod(_factor(side, other, tied, context) for side, other in sides))
        case SemiJoin(source=source, other=other) | Gathered(source=source, other=other):
            rows = _rows_of_one(source, conditions, context)
            _checked(rows * _rows_to_search(source, other, node.condition, context))
            return rows
        case Union(branches=branches):
            parts = [branch for branch in branches if branch.facts.unit is not None]
            return _checked(sum(_rows_of_one(part, cover_of(part).conditions, context) for part in parts))
    return 1


def _factor(side: Node, other: Node, conditions: tuple[Expression, ...], context: PlannerContext) -> int:
    if side.facts.unit is not None:
        return _rows_of_one(side, conditions, context)
    if other.facts.unit is None:
        return 1  # public rows alone: their number is counted where a protected row meets them
    partners = _partners(side, other, conditions, context)
    return size_of(side, context) if partners is None else partners.most


def _rows_to_search(source: Node, other: Node, condition: Expression, context: PlannerContext) -> int:
    """Return what is looked through for one row. One public table alone multiplies nothing."""
    if other.facts.unit is not None:
        return _rows_of_one(other, cover_of(other).conditions, context)
    return _factor(other, source, (condition,), context) if _is_joined(other) else 1


def _is_joined(node: Node) -> bool:
    return not isinstance(node, Scan) and (isinstance(node, Join) or any(map(_is_joined, below(node))))


def _checked(rows: int) -> int:
    if rows > MOST_PUBLIC_ROWS:
        raise TooComplex(
            f"one protected row would meet {rows:,} rows of public tables, and {MOST_PUBLIC_ROWS:,} are allowed",
            hint="Join public tables by columns that are equal, or by fewer rows of them.",
        )
    return rows
