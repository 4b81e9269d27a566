"""Bound the rows that a unit has: of joins, of a unique key whose columns have few values; and what they add up to."""

from rules.algebra.nodes import Facts, JoinKind, Rows
from rules.frozen import replace
from rules.values import domain
from rules.values.domain import Values
from rules.values.expression import Apply, Column, Constant, Expression, conjuncts, ids_in
from rules.values.types import Type, equality

MOST_ROWS = 1000  # that a key's values are worth counting for


def fewer(facts: Facts, holding: Expression) -> Facts:
    """Return what a condition says of a unit's rows: of row_number() = 1 there is one, of id = (its largest id) too."""
    if facts.unit is None:
        return facts
    determined, keys = _settled(facts, holding), facts.keys | _keys_left(facts)
    left = _rows_left(facts, determined)
    if left is None:
        return replace(facts, keys=keys, determined=determined)
    rows = Rows(*(left if limit is None else min(limit, left) for limit in (facts.rows.proved, facts.rows.cap)))
    every = frozenset(column.id for column in facts.columns)
    return replace(facts, keys=keys, rows=rows, determined=every if rows.proved == 1 else determined)


def _settled(facts: Facts, holding: Expression) -> frozenset[int]:
    """The columns that have one value for all rows of a unit, with those that equal something made of such columns.

    5.0 and 5.000 are equal, and two groups by their texts: so only where equal values are one and the same.
    """
    determined = facts.determined
    for conjunct in conjuncts(holding):
        match conjunct:
            case Apply(name="=", arguments=(one, two)) if equality(one.type, two.type) == "same":
                for column, other in ((one, two), (two, one)):
                    if isinstance(column, Column) and (ids := ids_in(other)) and ids <= determined:
                        determined |= {column.id} if _has_one_spelling(column.type) else set()
    return determined


def _has_one_spelling(sql_type: Type) -> bool:
    return sql_type.kind not in ("float", "interval") and (sql_type.kind != "numeric" or sql_type.scale is not None)


def _rows_left(facts: Facts, determined: frozenset[int]) -> int | None:
    """Return how many rows of one unit a unique key leaves whose other columns have few values; None where none does.

    Columns that the unit determines have one value there.
    """
    columns = {column.id: column for column in facts.columns}
    keys = ([columns[number] for number in key] for key in facts.keys)
    sizes = (_size(key, determined) for key in keys)
    return min((size for size in sizes if size is not None), default=None)


def _size(columns: list[Column], alone: frozenset[int] = frozenset()) -> int | None:
    """Return how many values the columns have together; a NULL is equal to none, so any number of rows may have it."""
    size = 1
    for column in columns:
        if column.nullable:
            return None
        if column.id in alone:
            continue
        values = domain.number_of_items(column.domain, MOST_ROWS)
        if values is None:
            return None
        # NaN has any precision and passes x >= 9; only a list of values leaves it out
        size *= max(1, values + (column.type.kind == "numeric" and not isinstance(column.domain, Values)))
    return size if size <= MOST_ROWS else None


def _keys_left(facts: Facts) -> frozenset[frozenset[int]]:
    """The keys without the columns that have but one value: where rn = 1 is left, {unit, rn} is {unit}."""
    in_keys = frozenset().union(*facts.keys)
    alone = frozenset(column.id for column in facts.columns if column.id in in_keys and _size([column]) == 1)
    return frozenset(key - alone for key in facts.keys if key & alone and key - alone)


_OF_SHARES = frozenset(("+", "-", "coalesce", "greatest", "least"))
_OF_ONE_SHARE = frozenset(("abs", "cast", "clamp", "double", "exact", "negative", "seen", "*"))


def is_share(expression: Expression, shares: frozenset[int]) -> bool:
    """Tell whether all rows of a unit add up to no more than the bound of one row, as what it is made of does.

    It is advice: the kernel caps the total of a unit by that bound.
    """
    match expression:
        case Column(id=number):
            return number in shares
        case Constant(text=text, value=value):
            return text is None or value == 0
        case Apply(name="case", arguments=arguments):
            return all(is_share(chosen, shares) for chosen in (*arguments[1:-1:2], *arguments[-1:]))
        case Apply(name="/", arguments=(dividend, Constant())):
            return is_share(dividend, shares)
        case Apply(name=name, arguments=arguments) if name in _OF_SHARES:
            return all(is_share(argument, shares) for argument in arguments)
        case Apply(name=name, arguments=arguments) if name in _OF_ONE_SHARE:
            computed = [argument for argument in arguments if not isinstance(argument, Constant)]
            return len(computed) == 1 and is_share(computed[0], shares)
    return False


def joined_rows(kind: JoinKind, one: Facts, two: Facts, *, left_unique: bool, right_unique: bool) -> Rows:
    """Rows of one unit, for `proved` and `cap` alike."""
    if one.unit is None or two.unit is None:
        protected, unique = (one, right_unique) if one.unit else (two, left_unique)
        return protected.rows if unique or (one.unit is None and two.unit is None) else Rows()

    def count(first: int | None, second: int | None) -> int | None:
        match kind:
            case "inner" | "left":
                narrow, wide = (first if right_unique else None), _product(first, second)
                if kind == "inner" and left_unique and second is not None:
                    narrow = second if narrow is None else min(narrow, second)
                return narrow if narrow is not None else wide if kind == "inner" else _most(first, wide)
            case "right":
                return second if left_unique else _most(second, _product(first, second))
            case "full":
                total = sum_of(first, second)
                return total if left_unique or right_unique else _most(_product(first, second), total)

    return Rows(count(one.rows.proved, two.rows.proved), count(one.rows.cap, two.rows.cap))


def _product(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first * second


def sum_of(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _most(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else max(first, second)
