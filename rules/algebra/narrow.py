"""Narrow the domains of a Filter's rows by its condition, and those of CASE branch by branch.

A column has in a branch only the values for which the branch's test is true.
After a LEFT JOIN a partner's column that is not NULL says that the join's condition was met: in
CASE WHEN best.city IS NOT NULL THEN city ELSE 'Others' END over … LEFT JOIN best ON best.city = city, a city is one of
the best. Without this every city would be a group, most of them of nobody.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from rules.algebra.nodes import Facts, Filter, Gathered, Join, Node, Project, SemiJoin, Windowed
from rules.frozen import frozen, replace
from rules.values import domain
from rules.values.domain import Domain, Range, Values
from rules.values.expression import MIRRORED, Apply, Column, Constant, Expression, columns_in, conjuncts
from rules.values.types import equality
from rules.values.value import DAY

_WHOLE_DOUBLES = 2**53  # below this every whole number is a double of its own


@frozen
class Implied:
    """An implication: where one of these columns is not NULL, that column equals one that has these values."""

    partners: frozenset[int]
    column: int
    values: Values


def narrowed(columns: tuple[Column, ...], holding: Expression) -> tuple[Column, ...]:
    """The columns as they are in the rows for which a condition is true.

    The conjuncts are taken one after the other; what one of them does not say, the type and the source still do.
    """
    known = {column.id: column for column in columns}
    for conjunct in conjuncts(holding):
        for number in never_null(conjunct):
            if number in known and known[number].nullable:
                known[number] = replace(known[number], nullable=False)
        known |= _equated(conjunct, known)
        if (excluded := _excluded(conjunct)) is not None and excluded[0] in known:
            known[excluded[0]] = _without(known[excluded[0]], excluded[1])
        allowed = _domain_where_true(conjunct)
        if allowed is not None and allowed[0] in known:
            column = known[allowed[0]]
            known[column.id] = replace(column, domain=met(column, allowed[1]))
    return tuple(known[column.id] for column in columns)


def is_told(condition: Expression) -> bool:
    """Return whether a condition on one column stands in the column's domain where it holds."""
    return _domain_where_true(condition) is not None or _excluded(condition) is not None


def _equated(conjunct: Expression, known: dict[int, Column]) -> dict[int, Column]:
    """x = y: each is one of the other's values, where these are listed."""
    match conjunct:
        case Apply(name="=", arguments=(Column(id=first), Column(id=second))) if {first, second} <= known.keys():
            one, two = known[first], known[second]
            if _have_one_scale(one, two):
                pairs = ((one, two), (two, one))
                return {
                    column.id: replace(column, domain=met(column, of.domain))
                    for column, of in pairs
                    if isinstance(of.domain, Values)
                }
    return {}


def met(column: Column, allowed: Domain) -> Domain:
    """Of doubles nothing finer than a range is kept; steps come from the type. NaN passes where no number is left."""
    met = domain.intersect(column.domain, allowed)
    if isinstance(allowed, Range) and isinstance(column.domain, Range):
        if isinstance(met, Range):
            return Range(met.low, met.high, column.domain.step)
        return column.domain if column.type.kind in ("numeric", "float") else met
    return met


def never_null(condition: Expression, *, holds: bool = True) -> Iterable[int]:
    """Columns that cannot be NULL where this is true, or where it is false: those of strict conditions on them."""
    match condition:
        case Column(id=number):
            return (number,)
        case Apply(name="not", arguments=(inner,)):
            return never_null(inner, holds=not holds)
        case Apply(name="in" | "not in" as name, arguments=(tested, *items)):
            # One equal item decides: where x is 1, x IN (y, 1) is true and x NOT IN (y, 1) false, whatever y is.
            strict = (tested, *items) if holds == (name == "not in") else (tested,)
        case Apply(name="is not null" | "is null" as name, arguments=arguments) if holds == (name == "is not null"):
            strict = arguments
        case Apply(strict=True, arguments=arguments):
            strict = arguments
        case _:
            return ()
    return tuple(expression.id for expression in strict if isinstance(expression, Column))


def _domain_where_true(conjunct: Expression) -> tuple[int, Domain] | None:
    """A column and a domain that holds all values for which the conjunct is true."""
    match conjunct:
        case Column(type=sql_type, id=number) if sql_type.kind == "boolean":
            return number, Values((True,))
        case Apply(name="not", arguments=(Column(type=sql_type, id=number),)) if sql_type.kind == "boolean":
            return number, Values((False,))
        case Apply(name="is null", arguments=(Column(id=number),)):
            return number, Values(())
        case Apply(name=name, arguments=(Column() as column, Constant() as constant)) if name in MIRRORED:
            return _compared(column, name, constant)
        case Apply(name=name, arguments=(Constant() as constant, Column() as column)) if name in MIRRORED:
            return _compared(column, MIRRORED[name], constant)
        case Apply(name="in", arguments=(Column() as column, *items)):
            return _listed(column, items)
        case Apply(name="or", arguments=arguments):
            return _either(arguments)
        case Apply(name="and", arguments=arguments):
            return _together(arguments)
    return None


def _excluded(conjunct: Expression) -> tuple[int, Values] | None:
    """Values that a column does not have where the conjunct is true: x <> 1, x NOT IN (1, 2), the same OR x IS NULL."""
    match conjunct:
        case Apply(name="<>", arguments=(Column() as column, Constant() as constant)):
            return _one_of(column, [constant])
        case Apply(name="<>", arguments=(Constant() as constant, Column() as column)):
            return _one_of(column, [constant])
        case Apply(name="not in", arguments=(Column() as column, *items)):
            return _one_of(column, items)
        case Apply(name="not", arguments=(Apply(name="=" | "in", arguments=(Column() as column, *items)),)):
            return _one_of(column, items)
        case Apply(name="or", arguments=(inner, Apply(name="is null", arguments=(Column(id=number),)))):
            excluded = _excluded(inner)
            return excluded if excluded is not None and excluded[0] == number else None
    return None


def _one_of(column: Column, items: list[Expression]) -> tuple[int, Values] | None:
    listed = _listed(column, items)
    return (listed[0], listed[1]) if listed is not None and isinstance(listed[1], Values) else None


def _without(column: Column, excluded: Values) -> Column:
    """Only what is listed can be left out; of a range nothing is."""
    left = [
        Values(tuple(item for item in domain.items if item not in excluded.items))
        if isinstance(domain, Values)
        else domain
        for domain in (column.domain, column.declared)
    ]
    return replace(column, domain=left[0], declared=left[1])


def _together(arguments: tuple[Expression, ...]) -> tuple[int, Domain] | None:
    """x >= 1 AND x < 9 inside an OR: what they say of the column that all speak of."""
    allowed = [arm for arm in map(_domain_where_true, arguments) if arm is not None]
    if not allowed or len({number for number, _ in allowed}) != 1:
        return None
    held = allowed[0][1]
    for _, arm in allowed[1:]:
        held = domain.intersect(held, arm)
    return allowed[0][0], held


def _compared(column: Column, name: str, constant: Constant) -> tuple[int, Domain] | None:
    item = _on_scale(column, constant)
    if not _comparable(column, constant) or item is None:
        return None
    if name == "=":
        return column.id, domain.values(_that_can_be(column, (item,)))
    if not isinstance(item, Fraction):
        return None
    below = name in ("<", "<=")
    inside = _inside(item, name, column)
    return column.id, Range(None, inside) if below else Range(inside, None)


def _on_scale(column: Column, constant: Constant) -> Fraction | str | bool | None:
    """The constant on the column's scale: of dates, noon lies between two of them."""
    item = constant.value
    if column.type.kind == "date" and constant.type.kind == "timestamp" and isinstance(item, Fraction):
        return item / DAY
    return item if isinstance(item, Fraction | str | bool) else None


def _that_can_be(column: Column, items: Iterable[Fraction | str | bool]) -> Iterable[Fraction | str | bool]:
    """No date is noon."""
    is_date = column.type.kind == "date"
    return (item for item in items if not (is_date and isinstance(item, Fraction) and item.denominator > 1))


def _inside(bound: Fraction, name: str, column: Column) -> Fraction:
    """x < 10 is x <= 9 on whole numbers, and a moment less on timestamps."""
    step = column.domain.step if isinstance(column.domain, Range) else None
    if column.type.is_time:
        step = domain.ONE  # a day, or a microsecond
    if step is None or column.type.kind == "float":
        return bound
    below = (bound / step).__ceil__() - 1 if name == "<" else (bound / step).__floor__()
    above = (bound / step).__floor__() + 1 if name == ">" else (bound / step).__ceil__()
    return step * (below if name in ("<", "<=") else above)


def _comparable(column: Column, constant: Constant) -> bool:
    """Instants and local times are different scales, and a double is compared inexactly."""
    if column.type.is_number and constant.type.is_number:
        return column.type.kind != "float" and _is_exact(constant)
    if (column.type.kind, constant.type.kind) == ("date", "timestamp"):
        return True
    return column.type.kind == constant.type.kind  # a character(n) is read without the blanks that do not count


def _is_exact(constant: Constant) -> bool:
    """Beside a double whole numbers are rounded: beyond 2^53 many equal one. A real is not what was written."""
    if constant.type.kind != "float":
        return True
    is_small = isinstance(constant.value, Fraction) and abs(constant.value) < _WHOLE_DOUBLES
    return is_small and constant.type.base == "float8"


def _listed(column: Column, items: list[Expression]) -> tuple[int, Domain] | None:
    constants = [item for item in items if isinstance(item, Constant) and _comparable(column, item)]
    values = [item for item in (_on_scale(column, constant) for constant in constants) if item is not None]
    if len(constants) < len(items) or len(values) < len(
        [constant for constant in constants if constant.text is not None]
    ):
        return None
    return column.id, domain.values(_that_can_be(column, values))


def _either(arguments: tuple[Expression, ...]) -> tuple[int, Domain] | None:
    """x = 1 OR x = 2: only where every arm speaks of the same column."""
    allowed = [_domain_where_true(arm) for arm in _arms(arguments)]
    known = [arm for arm in allowed if arm is not None]
    if len(known) < len(allowed) or len({number for number, _ in known}) != 1:
        return None
    return known[0][0], domain.union_of([domain for _, domain in known])


def _arms(arguments: tuple[Expression, ...]) -> list[Expression]:
    """The arms of an OR, and of those that stand in it, in the order of the text."""
    waiting, arms = list(reversed(arguments)), []
    while waiting:
        match waiting.pop():
            case Apply(name="or", arguments=inside):
                waiting.extend(reversed(inside))
            case arm:
                arms.append(arm)
    return arms


def refined(expression: Expression, source: Node) -> Expression:
    """An expression over the rows of a relation, a CASE in it with no more values than its branches can give."""
    if not isinstance(expression, Apply):
        return expression
    if expression.name == "case":
        return _refined_case(expression, tuple(implied(source)))
    return expression


def implied(node: Node) -> Iterator[Implied]:
    """Yield what partners found by outer joins say of the rows that found them."""
    match node:
        case (
            Filter(source=source)
            | Project(source=source)
            | SemiJoin(source=source)
            | Gathered(source=source)
            | Windowed(source=source)
        ):
            yield from implied(source)
        case Join(kind=kind, left=left, right=right, condition=condition):
            yield from implied(left)
            yield from implied(right)
            if kind == "left":
                yield from _of_partners(left.facts, right.facts, condition)
            if kind == "right":
                yield from _of_partners(right.facts, left.facts, condition)


def _of_partners(kept: Facts, facts: Facts, condition: Expression) -> Iterator[Implied]:
    own = {column.id: column for column in kept.columns}
    partners = {column.id: column for column in facts.columns}
    for conjunct in conjuncts(condition):
        match conjunct:
            case Apply(name="=", arguments=(Column(id=one), Column(id=two))):
                for first, second in ((one, two), (two, one)):
                    if first in own and second in partners and _have_one_scale(own[first], partners[second]):
                        values = partners[second].domain
                        if isinstance(values, Values):
                            yield Implied(frozenset(partners), first, values)


def _have_one_scale(one: Column, two: Column) -> bool:
    """Return whether equal values are one value to the planner."""
    is_plain = one.type.kind == two.type.kind != "float" and one.type.base != "bpchar"
    return is_plain and equality(one.type, two.type) == "same"


def _refined_case(call: Apply, known: tuple[Implied, ...]) -> Apply:
    *branches, default = call.arguments
    refined: Domain = default.domain
    nullable = default.nullable
    for test, result in zip(branches[::2], branches[1::2], strict=True):
        columns = _columns_where(test, result, known)
        refined = domain.union(refined, _values(result, columns))
        nullable = nullable or _may_be_null(result, columns)
    return replace(call, domain=domain.intersect(call.domain, refined), nullable=call.nullable and nullable)


def _columns_where(test: Expression, result: Expression, known: tuple[Implied, ...]) -> dict[int, Column]:
    """The columns of a branch's result in the rows that it is taken for."""
    columns = {column.id: column for column in columns_in(result)}
    present = {number for conjunct in conjuncts(test) for number in never_null(conjunct)}
    for implied in known:
        if implied.column in columns and present & implied.partners:
            column = columns[implied.column]
            columns[implied.column] = replace(column, domain=met(column, implied.values), nullable=False)
    return {column.id: column for column in narrowed(tuple(columns.values()), test)}


def _values(result: Expression, columns: dict[int, Column]) -> Domain:
    match result:
        case Column(id=number, type=sql_type):
            held = columns[number].domain
            return held if isinstance(held, Values) or sql_type.kind not in ("numeric", "float") else result.domain
        case Apply(passes=True, arguments=(Column() as first, *_)):
            held = _values(first, columns)
            return domain.intersect(held, result.domain) if isinstance(held, Values) else result.domain
    return result.domain


def _may_be_null(result: Expression, columns: dict[int, Column]) -> bool:
    match result:
        case Column(id=number):
            return columns[number].nullable
        case Apply(name="listed", arguments=(Column(id=number), *_)):
            column = columns[number]
            is_listed = isinstance(column.domain, Values) and domain.is_within(column.domain, result.domain)
            return column.nullable or not is_listed
    return result.nullable
