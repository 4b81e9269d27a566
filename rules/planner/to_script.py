"""The planner's relations as scripts of the kernel: what they do, without what is inferred of them.

Equalities of columns that unique keys share are told apart from the rest of a condition, so that the kernel can see by
which of them rows are of one unit.
"""

from rules.algebra import nodes as n
from rules.frozen import replace
from rules.kernel import script as k
from rules.kernel.keys import Bins, Found, Key, Listed
from rules.kernel.measures import Count, Distinct, DistinctSum, DistinctValues, Measure, Products, Sum, Units, Values
from rules.kernel.summand import Summand
from rules.values.expression import TRUE, Apply, Column, Constant, Expression, all_of, conjuncts
from rules.values.types import equality


def to_script(node: n.Node) -> k.Script:
    """The script that makes a relation."""
    match node:
        case n.Scan():
            return _scan(node)
        case n.KnownRows(rows=rows, facts=facts):
            columns = tuple((column.id, column.type) for column in facts.columns)
            return k.Values(columns, tuple(tuple(bare_constant(cell) for cell in row) for row in rows))
        case n.Filter(source=source, condition=condition):
            return k.Filter(to_script(source), bare(condition))
        case n.Project(source=source, computed=computed):
            return k.Project(to_script(source), _bare(computed))
        case n.Join():
            equal, rest = _split(node.condition, node.left, node.right)
            return k.Join(node.kind, to_script(node.left), to_script(node.right), equal, rest, node.either)
        case n.SemiJoin():
            equal, rest = _split(node.condition, node.source, node.other)
            return k.Semi(to_script(node.source), to_script(node.other), equal, rest, node.negated, node.mark)
        case n.PerUnit(source=source, keys=keys, aggregates=aggregates, facts=facts):
            return k.PerUnit(to_script(source), _keys(keys, facts), _calls(aggregates, facts))
        case n.Gathered():
            equal, rest = _split(node.condition, node.source, node.other)
            calls = _calls(node.aggregates, node.facts)
            return k.Correlated(to_script(node.source), to_script(node.other), equal, rest, calls)
        case n.Windowed():
            return _window(node)
        case n.Union():
            unit = None if node.facts.unit is None else node.facts.unit.column
            taken = tuple(zip(*node.sources, strict=True))
            made = tuple((column.id, column.type, pair) for column, pair in zip(node.facts.columns, taken, strict=True))
            return k.UnionAll(tuple(map(to_script, node.branches)), made, unit)


def _scan(node: n.Scan) -> k.Scan:
    """A unit that is no column of the table's own has a number, and no name."""
    named = tuple((number, name) for number, name in node.names if name)
    numbers = dict(named)
    unit = None if node.facts.unit is None else node.facts.unit.column
    return k.Scan(node.table, named, None if unit is None or unit in numbers else unit)


def _bare(computed: tuple[tuple[int, Expression], ...]) -> tuple[tuple[int, Expression], ...]:
    return tuple((number, bare(expression)) for number, expression in computed)


def _keys(keys: tuple[tuple[int, Expression], ...], facts: n.Facts) -> tuple[tuple[int, Expression], ...]:
    """The keys, and the unit that later nodes know: the kernel may go by another column that is equal to it."""
    made = _bare(keys)
    unit = None if facts.unit is None else facts.unit.column
    if unit is None or unit in dict(made):
        return made
    return ((unit, Column(unit, facts.column(unit).type)), *made)


def _calls(calls: tuple[tuple[int, n.Aggregate], ...], facts: n.Facts) -> tuple[tuple[int, k.Call], ...]:
    return tuple(
        (number, k.Call(aggregate.sql, tuple(map(bare, aggregate.arguments)), facts.column(number).type))
        for number, aggregate in calls
    )


def _window(node: n.Windowed) -> k.Window:
    order = tuple(k.SortKey(bare(order.expression), order.descending, order.nulls_first) for order in node.window.order)
    calls = _calls(tuple((number, call.function) for number, call in node.computed), node.facts)
    framed = tuple((*made, call.frame) for made, (_, call) in zip(calls, node.computed, strict=True))
    return k.Window(to_script(node.source), tuple(map(bare, node.window.partition)), order, framed)


def _split(holding: Expression, left: n.Node, right: n.Node) -> tuple[tuple[tuple[int, int], ...], Expression]:
    """Equal columns of the left and the right rows, and what else has to be true."""
    first, second = ({column.id: column.type for column in node.facts.columns} for node in (left, right))
    equal: list[tuple[int, int]] = []
    rest: list[Expression] = []
    for conjunct in conjuncts(holding):
        match conjunct:
            case Apply(name="=", sql="({0} = {1})", arguments=(Column(id=one), Column(id=two))):
                pair = (one, two) if one in first and two in second else (two, one)
                if pair[0] in first and pair[1] in second and equality(first[pair[0]], second[pair[1]]) == "same":
                    equal.append(pair)
                    continue
        rest.append(bare(conjunct))
    return tuple(dict.fromkeys(equal)), all_of(tuple(rest))


def bare_key(key: Key) -> Key:
    """A key without what is inferred of its values."""
    match key:
        case Listed(expressions=expressions, labels=labels):
            return Listed(tuple(map(bare, expressions)), labels)
        case Found(expression=expression):
            return Found(bare(expression))
        case Bins(summand=summand, width=width):
            return Bins(bare_summand(summand), width)


def bare_measure(measure: Measure) -> Measure:
    """A measure without what is inferred of its values."""
    match measure:
        case Count(condition=condition) | Units(condition=condition):
            return replace(measure, condition=bare(condition))
        case Distinct(expression=expression):
            return replace(measure, expression=bare(expression))
        case Products(first=first, second=second):
            return replace(measure, first=bare_summand(first), second=bare_summand(second))
        case Values(summand=summand) | Sum(summand=summand):
            return replace(measure, summand=bare_summand(summand))
        case DistinctValues(summand=summand) | DistinctSum(summand=summand):
            return replace(measure, summand=bare_summand(summand))


def bare_summand(summand: Summand) -> Summand:
    """A summand without what is inferred of its values."""
    return Summand(bare(summand.expression), summand.lattice)


def bare(expression: Expression) -> Expression:
    """An expression without what the planner inferred of it."""
    if isinstance(expression, Column):
        return Column(expression.id, expression.type)
    if isinstance(expression, Constant):
        return bare_constant(expression)
    return Apply("", expression.sql, tuple(map(bare, expression.arguments)), expression.type)


def bare_constant(constant: Constant) -> Constant:
    return TRUE if constant.value is True and constant == TRUE else Constant(constant.type, constant.text)
