"""Public rows that keep their place without a protected partner: calendars, categories, "products without orders".

public LEFT JOIN protected … GROUP BY public keys asks for every public group, an empty one too. Which public row has no
partner depends on protected rows, so these rows are never made: the join runs as an inner one, and a group of nobody
gets its 0 and its noise as any other. That is the same answer as long as nothing is computed from the rows left out,
where every column of the protected side (the *absent* ones) would be NULL. This module sees to it.
"""

from rules.algebra.narrow import never_null
from rules.algebra.nodes import Facts, JoinKind
from rules.refusal import NotSupported
from rules.values.expression import Apply, Column, Constant, Expression, conjuncts, ids_in

HINT = "Group by public columns, count a column of the protected table instead of *, and move its conditions to ON."

# Operations that are NULL when an argument is.


def after_filter(absent: frozenset[int], holding: Expression) -> frozenset[int]:
    """The absent columns once a condition has been applied; none when it leaves no row without partner."""
    for conjunct in conjuncts(holding):
        if absent & set(never_null(conjunct)):
            return frozenset()
        if absent & ids_in(conjunct):
            raise _refusal()
    return absent


def after_join(kind: JoinKind, one: Facts, two: Facts, holding: Expression) -> frozenset[int]:
    """The absent columns of a join with rows that have some already."""
    if not (one.absent or two.absent):
        return frozenset()
    if kind == "inner":
        return after_filter(one.absent | two.absent, holding)
    kept, extended = (two, one) if kind == "right" else (one, two)
    links = any((kept.absent | extended.absent) & set(never_null(conjunct)) for conjunct in conjuncts(holding))
    if kind == "full" or (not links and (extended.absent or kept.absent & ids_in(holding))):
        raise _refusal()
    if not kept.absent:
        return frozenset()
    return kept.absent | {column.id for column in extended.columns} if links else kept.absent


def check_whole(facts: Facts) -> None:
    """Refuse outer public rows where a unit's rows are looked at together: none may be missing."""
    if facts.absent:
        raise _refusal()


def check_key(key: Expression, absent: frozenset[int]) -> None:
    """A group must be told by the public side."""
    if ids_in(key) & absent:
        raise _refusal()


def check_computed(expression: Expression, absent: frozenset[int]) -> bool:
    """Return whether a computed column is one more absent one; one that would have a value there is refused."""
    if not ids_in(expression) & absent:
        return False
    if not is_null_without(expression, absent):
        raise _refusal()
    return True


def check_aggregate(
    name: str, expressions: tuple[Expression, ...], condition: Expression | None, absent: frozenset[int]
) -> None:
    """An aggregate must not see the rows that are left out."""
    if condition is not None and is_untrue_without(condition, absent):
        return
    if not any(
        is_null_without(expression, absent) or (name == "sum" and _is_zero_without(expression, absent))
        for expression in expressions
    ):
        raise _refusal()


def is_null_without(expression: Expression, absent: frozenset[int]) -> bool:
    """Return whether an expression is NULL when all absent columns are."""
    match expression:
        case Column(id=number):
            return number in absent
        case Constant(text=text):
            return text is None
        case Apply(name="case", arguments=(*branches, default)):
            return _takes_default(branches, absent) and is_null_without(default, absent)
        case Apply(name="coalesce" | "greatest" | "least", arguments=arguments):
            return all(is_null_without(argument, absent) for argument in arguments)
        case Apply(name="nullif", arguments=(first, *_)):
            return is_null_without(first, absent)
        case Apply(name="in" | "not in" | "listed", arguments=(tested, *_)):
            return is_null_without(tested, absent)
        case Apply(strict=True, arguments=arguments):
            return any(is_null_without(argument, absent) for argument in arguments)
    return False


def is_untrue_without(expression: Expression, absent: frozenset[int]) -> bool:
    """Return whether a condition does not hold when all absent columns are NULL."""
    match expression:
        case Apply(name="and", arguments=arguments):
            return any(is_untrue_without(argument, absent) for argument in arguments)
        case Apply(name="or", arguments=arguments):
            return all(is_untrue_without(argument, absent) for argument in arguments)
        case Apply(name="is not null", arguments=(inner,)):
            return is_null_without(inner, absent)
    return is_null_without(expression, absent)


def _is_zero_without(expression: Expression, absent: frozenset[int]) -> bool:
    """Return whether it adds nothing to a sum."""
    match expression:
        case Constant(value=value):
            return value == 0
        case Apply(name="case", arguments=(*branches, default)):
            return _takes_default(branches, absent) and _is_zero_without(default, absent)
        case Apply(name="coalesce", arguments=(*others, last)):
            return all(is_null_without(other, absent) for other in others) and _is_zero_without(last, absent)
        case Apply(name="cast", arguments=(inner,)):
            return _is_zero_without(inner, absent)
    return is_null_without(expression, absent)


def _takes_default(branches: list[Expression], absent: frozenset[int]) -> bool:
    return all(is_untrue_without(test, absent) for test in branches[::2])


def _refusal() -> NotSupported:
    return NotSupported("an outer join that keeps unmatched public rows would reveal protected rows", hint=HINT)
