"""A statement bound: which of its SELECTs are rows of units, which are private blocks, and what is computed outside.

A block is an aggregate over protected rows whose keys do not tell the unit. Everything above a block is the twin's;
everything below one is a relation whose every row belongs to one unit.
"""

from itertools import chain

from rules.algebra.nodes import Node
from rules.algebra.outer_public_rows import check_aggregate, check_key
from rules.algebra.unit_facts import filtered, per_unit, projected, tells_unit
from rules.bind.answers_inside import has_answer
from rules.bind.correlated_subquery import Correlated, check_left_out, links_of
from rules.bind.expression import Binding, Leaf
from rules.bind.from_clause import bind_from, is_public, leaf_of
from rules.bind.group_by import distinct_keys, keys_of, output_of
from rules.bind.inner_answers import InnerQuery
from rules.bind.not_joined import recursion_refusal
from rules.bind.scope import ROW_HINT, RowsSelected, Scope, UnknownName, single, takes_size
from rules.bind.set_operations import set_of_rows, shows_unit, unite
from rules.bind.state import BindState, BoundSource, Ctes, FoundBlock, Outer
from rules.bind.subquery import with_subqueries
from rules.bind.subquery_shape import conditions_of_joins, hoisted
from rules.bind.unit_aggregates import unit_aggregate
from rules.bind.walk_syntax import above, aggregates, column_name, first_table, has_window, made_of, subqueries, windows
from rules.bind.where import bind_beside_public, bind_where, laterals_last, split_laterals
from rules.bind.windows import first_of_each, with_windows
from rules.frozen import replace
from rules.functions.function import Needed
from rules.refusal import NotAllowed, NotSupported, pointing_at
from rules.sql import syntax as s
from rules.values.expression import Column, Constant, Expression, Literal, Operand

DISTINCT_HINT = "Remove DISTINCT, or select the unit column too."
_ON_HINT = "Put the unit column first, as in DISTINCT ON (customer_id), or group by the values and count."
_SETS_HINT = (
    "Leave the unit column out of the grouping sets, or group by it in a subquery of its own, without other sets."
)


def bind_query(state: BindState, query: s.Query, ctes: Ctes) -> BoundSource | Outer:
    match query:
        case s.Select():
            return _bind_select(state, query, _with_ctes(query.ctes, ctes, recursive=query.recursive))
        case s.SetOperation():
            return _bind_set_operation(state, query, _with_ctes(query.ctes, ctes, recursive=query.recursive))
        case s.Values():
            _visit(state, ctes, query.rows)
            return Outer()


def _with_ctes(written: tuple[s.Cte, ...], seen: Ctes, *, recursive: bool) -> Ctes:
    names = frozenset(cte.name for cte in written if recursive)
    known, later = {name: cte for name, cte in seen.known.items() if name not in names}, seen.recursive | names
    for cte in written:
        known[cte.name] = cte, Ctes({**known}, later)
        later -= {cte.name}
    return Ctes(known, later)


def _bind_set_operation(state: BindState, operation: s.SetOperation, ctes: Ctes) -> BoundSource | Outer:
    sides = state.query(operation.left, ctes), state.query(operation.right, ctes)
    rows = [side for side in sides if isinstance(side, BoundSource) and side.node.facts.unit is not None]
    if not rows:
        _visit(state, ctes, operation.order_by, operation.limit, operation.offset)
        return Outer()
    if len(rows) < 2 and ctes.recursive:
        raise recursion_refusal()
    is_plain = operation.kind == "union" and operation.all
    if not is_plain and (operation.all or len(rows) < 2 or not all(map(shows_unit, rows))):
        message = f"{operation.kind.upper()} over protected rows would compare rows of different units"
        hint = "Select the unit column in each branch, use UNION ALL, or aggregate each branch first."
        raise NotSupported(message, hint=hint, about=operation.kind.upper())
    if operation.limit is not None or operation.offset is not None or len(rows) < 2:
        hint = "Aggregate each branch first, as in SELECT count(*) FROM … UNION ALL SELECT count(*) FROM …."
        about = first_table(operation.right if isinstance(sides[0], Outer) else operation.left)
        raise NotAllowed("the result of UNION would contain protected rows", hint=hint, about=about)
    if is_plain:
        return unite(rows[0], rows[1], state.context.setting, state.fresh)
    with pointing_at(operation.kind.upper()):
        return set_of_rows(operation.kind, rows[0], rows[1], state.context.setting, state.fresh)


def _bind_select(state: BindState, select: s.Select, ctes: Ctes) -> BoundSource | Outer:
    select = laterals_last(hoisted(select) if state.has_subqueries else select)
    base, laterals = split_laterals(select.source)
    tree = bind_from(state, base, ctes)
    if laterals and (isinstance(tree, Outer) or is_public(tree)):
        tree, laterals = bind_beside_public(state, select.source, ctes), ()
    if isinstance(tree, Outer):
        return _bind_outer(state, select, ctes)
    if is_public(tree):
        return _bind_public(state, select, ctes)
    if select.locking:
        raise NotAllowed("row locks would reveal protected rows", about="FOR")
    return _bind_over_rows(state, select, bind_where(state, select, tree, laterals, ctes), ctes)


def _bind_outer(state: BindState, select: s.Select, ctes: Ctes) -> Outer:
    _visit(state, ctes, *conditions_of_joins(select.source))
    _visit(state, ctes, select.items, select.where, select.group_by, select.having, select.distinct_on, select.order_by)
    _visit(state, ctes, select.limit, select.offset)
    return Outer()


def _visit(state: BindState, ctes: Ctes, *clauses: object) -> None:
    """Subqueries in what the twin computes: they may be answers, never rows."""
    for query in subqueries(clauses) if state.has_subqueries else ():
        bound = _subquery_above(state, query, ctes)
        if isinstance(bound, BoundSource) and bound.node.facts.unit is not None:
            message = "the subquery would return protected rows"
            raise NotAllowed(message, hint=ROW_HINT, about=first_table(query))


def _subquery_above(state: BindState, query: s.Query, ctes: Ctes) -> BoundSource | Outer:
    try:
        return state.query(query, ctes)
    except UnknownName:
        if isinstance(query, s.Select) and (links := links_of(query, state.context)):
            raise Needed(Correlated(query.index, links)) from None
        raise


def _bind_public(state: BindState, select: s.Select, ctes: Ctes) -> BoundSource | Outer:
    """Public rows are a relation that protected ones may join, where the planner understands them."""
    tree = bind_from(state, select.source, ctes)
    simple = not (select.group_by or select.having or select.distinct or select.distinct_on or select.limit)
    simple = simple and not (select.offset or aggregates(select.items) or has_window(select.items))
    simple = simple and not (state.has_subqueries and has_answer(select, state.context, ctes))
    if simple and not isinstance(tree, Outer):
        try:
            return _project_items(state, select, bind_where(state, select, tree, (), ctes))
        except (NotSupported, UnknownName):
            pass  # the twin has public rows and can compute what we cannot
        except Needed as needed:
            if not isinstance(needed.what, InnerQuery):
                raise
    return _bind_outer(state, select, ctes)


def _bind_over_rows(state: BindState, select: s.Select, source: BoundSource, ctes: Ctes) -> BoundSource | Outer:
    """Rows of units, one row for each of a unit's groups, or a block."""
    is_grouped = bool(select.group_by or select.having) or bool(aggregates(select.items, select.order_by))
    if not is_grouped and (select.distinct_on or not select.distinct):
        _check_rows(select)
        return _project_items(state, select, with_subqueries(state, source, (select.items, select.distinct_on), ctes))
    if not is_grouped and has_window(select.items):
        return _distinct_windows(state, select, with_subqueries(state, source, select.items, ctes))
    keys = keys_of(select, source.scope) if is_grouped else distinct_keys(select)
    flat, sets = keys
    inside = tuple(key.expression for key in flat)
    calls = aggregates(select.items, select.having, select.order_by)
    source = with_subqueries(state, source, (inside, calls), ctes)
    leaf = leaf_of(source)
    bound = tuple(state.reading(leaf).bind(key.expression) for key in flat)
    if source.node.facts.absent:
        _check_unmatched(state, select, source, bound)
    if flat and not sets and tells_unit(source.node.facts, bound):
        return _bind_per_unit(state, select, source, bound, ctes)
    if any(tells_unit(source.node.facts, tuple(bound[key] for key in one)) for one in sets):
        raise NotSupported("a grouping set with the unit column would be groups of single units", hint=_SETS_HINT)
    state.blocks.setdefault(select.index, FoundBlock(select, source, flat, not is_grouped, sets))
    if state.has_subqueries:
        _visit(state, ctes, *above(inside, select.items, select.having, select.order_by, select.limit, select.offset))
    return Outer()


def _check_unmatched(state: BindState, select: s.Select, source: BoundSource, keys: tuple[Expression, ...]) -> None:
    """Public rows without protected partner must not be seen by any key or aggregate."""
    absent = source.node.facts.absent
    for key in keys:
        check_key(key, absent)
    binding = state.reading(leaf_of(source))
    for call in chain.from_iterable(map(made_of, aggregates(select.items, select.having, select.order_by))):
        arguments = (*call.arguments, *(order_item.expression for order_item in call.within_group))
        test = None if call.filter is None else binding.condition(call.filter)
        with pointing_at(call.name):
            check_aggregate(call.name, tuple(map(binding.bind, arguments)), test, absent)


def _project_items(state: BindState, select: s.Select, source: BoundSource) -> BoundSource:
    """A projection: renamed columns keep their numbers, computed ones get new ones."""
    return _projected(state, select, source.node, leaf_of(source), source.scope)


def _projected(state: BindState, select: s.Select, node: Node, leaf: Leaf, scope: Scope) -> BoundSource:
    check_left_out(select.order_by)
    node, leaf = _with_windows(state, node, leaf, windows(select.items))
    node = _first_of_each(state, select, node, leaf)
    binding = state.reading(leaf)
    names: list[tuple[str, int]] = []
    computed: list[tuple[int, Expression]] = []
    bare: list[bool] = []
    for item in select.items:
        if isinstance(item.expression, s.Star):
            names.extend(scope.star(item.expression.qualifier))
            bare.extend(scope.bare(item.expression.qualifier))
            continue
        bound = binding.bind(item.expression)
        number = bound.id if isinstance(bound, Column) else state.fresh()
        if not isinstance(bound, Column):
            computed.append((number, bound))
        names.append((item.alias or column_name(item.expression), number))
        bare.append(takes_size(item.expression, scope))
    return BoundSource(projected(node, tuple(computed)), single(None, tuple(names), bare=bare))


def _with_windows(state: BindState, node: Node, leaf: Leaf, calls: tuple[s.Call, ...]) -> tuple[Node, Leaf]:
    """The rows with their windows computed, and a reading in which each window is its column."""
    if not calls:
        return node, leaf
    node, numbers = with_windows(node, calls, state.reading(leaf), state.fresh)
    columns = {call: node.facts.column(number) for call, number in numbers.items()}
    return (
        node,
        lambda expression: (
            columns[expression] if isinstance(expression, s.Call) and expression in columns else leaf(expression)
        ),
    )


def _first_of_each(state: BindState, select: s.Select, node: Node, leaf: Leaf) -> Node:
    """DISTINCT ON keeps the rows whose row_number() over the same keys is 1."""
    if not select.distinct_on:
        return node
    binding = state.reading(leaf)
    keys = tuple(binding.bind(output_of(expression, select)) for expression in select.distinct_on)
    order = tuple(
        replace(order_item, expression=output_of(order_item.expression, select)) for order_item in select.order_by
    )
    if not tells_unit(node.facts, keys):
        message = "DISTINCT ON over rows of different units would return single protected rows"
        raise RowsSelected(message, hint=_ON_HINT, about="DISTINCT")
    return first_of_each(node, keys, order, binding, state.fresh())


def _bind_per_unit(
    state: BindState, select: s.Select, source: BoundSource, bound: tuple[Expression, ...], ctes: Ctes
) -> BoundSource:
    """GROUP BY that tells the unit: exact rows of one unit each, for a block above."""
    _check_rows(select)
    facts = source.node.facts
    if facts.unit is None or facts.unit.column is None:
        raise NotSupported("rows of a table without a primary key cannot be grouped by unit")
    numbers = [expression.id if isinstance(expression, Column) else state.fresh() for expression in bound]
    implied = _implied(select, source, bound)
    binding = state.reading(leaf_of(source))
    calls = aggregates(select.items, select.having)
    made = tuple(unit_aggregate(call, state.fresh(), binding, facts) for call in calls)
    pairs = tuple(dict(zip((*numbers, *(column.id for column in implied)), (*bound, *implied), strict=True)).items())
    node = per_unit(source.node, pairs, made)
    leaf = _grouped_leaf(node, dict(zip(calls, (number for number, _, _ in made), strict=True)), pairs, binding)
    grouped = BoundSource(node, replace(source.scope, subqueries=()))
    grouped = with_subqueries(state, grouped, (select.items, select.having), ctes, above_aggregates=True)
    node, leaf = grouped.node, _with_columns(grouped, leaf)
    if select.having is not None:
        node = filtered(node, state.reading(leaf).condition(select.having))
    made_rows = _projected(state, select, node, leaf, Scope())
    if select.distinct and not select.distinct_on:
        _check_distinct(made_rows)
    return made_rows


def _distinct_windows(state: BindState, select: s.Select, source: BoundSource) -> BoundSource:
    """SELECT DISTINCT over windows: the rows of each unit that differ in what is selected."""
    bound_source = _project_items(state, select, source)
    columns = [bound_source.node.facts.column(number) for _, number in bound_source.scope.star(())]
    if not tells_unit(bound_source.node.facts, tuple(columns)):
        message = "SELECT DISTINCT over window functions must include the unit column"
        raise NotSupported(message, hint=DISTINCT_HINT, about="DISTINCT")
    keys = dict.fromkeys((column.id, column) for column in columns)
    return BoundSource(per_unit(bound_source.node, tuple(keys), ()), bound_source.scope)


def _implied(select: s.Select, source: BoundSource, bound: tuple[Expression, ...]) -> tuple[Column, ...]:
    """Columns that follow from the unit may be selected beside its key, as PostgreSQL allows for a primary key."""
    facts = source.node.facts
    columns = {column.id: column for column in facts.columns}
    implied: dict[int, Column] = {}
    for name in _plain_names(select):
        number = source.scope.find(name.parts)
        if number in facts.determined and number is not None and columns[number] not in bound:
            implied[number] = columns[number]
    return tuple(implied.values())


def _plain_names(select: s.Select) -> tuple[s.Name, ...]:
    return tuple(item.expression for item in select.items if isinstance(item.expression, s.Name))


def _check_rows(select: s.Select) -> None:
    """Refuse clauses that would choose rows by the rows of other units."""
    if select.limit is not None or select.offset is not None:
        hint = "Select an aggregate such as count(*) or avg(x), and apply LIMIT to its result."
        message = "LIMIT and OFFSET would select single rows of a protected table"
        raise RowsSelected(message, hint=hint, about="LIMIT" if select.limit is not None else "OFFSET")
    if select.locking:
        raise NotAllowed("row locks would reveal protected rows", about="FOR")


def _check_distinct(made: BoundSource) -> None:
    """Groups of a unit that differ in nothing that is selected may be of several units."""
    shown = {number for _, number in made.scope.star(())}
    if not any(key <= shown for key in made.node.facts.keys):
        message = "SELECT DISTINCT over groups of each unit must include the unit column"
        raise NotSupported(message, hint=DISTINCT_HINT, about="DISTINCT")


def _with_columns(grouped: BoundSource, leaf: Leaf) -> Leaf:
    """Subqueries that became columns of groups are these; all else is read as before."""
    columns = {column.id: column for column in grouped.node.facts.columns}

    def found(expression: s.Expression) -> Operand | None:
        number = grouped.scope.find_subquery(expression)
        return leaf(expression) if number is None else columns[number]

    return found


def _grouped_leaf(
    node: Node, calls: dict[s.Call, int], keys: tuple[tuple[int, Expression], ...], inside: Binding
) -> Leaf:
    """In what is computed after grouping, keys and aggregates mean the columns of the groups."""
    columns = {column.id: column for column in node.facts.columns}

    def leaf(expression: s.Expression) -> Operand | None:
        if isinstance(expression, s.Call) and expression in calls:
            return columns[calls[expression]]
        if (
            aggregates(expression)
            or has_window(expression)
            or isinstance(expression, s.Star | s.Constant | s.Parameter)
        ):
            return None
        bound = inside.operand(expression)
        if isinstance(bound, Constant | Literal):
            return bound
        number = next((number for number, key in keys if key == bound), None)
        if number is None and isinstance(expression, s.Name):
            raise NotSupported(f'column "{expression.parts[-1]}" must appear in GROUP BY or be used in an aggregate')
        return None if number is None else columns[number]

    return leaf
