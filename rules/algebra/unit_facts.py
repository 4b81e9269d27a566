"""Move facts through nodes: whose rows they are, how many one unit can have, which columns tell the unit.

Every node but a Scan is made here. A join, union or grouping of which nothing is known is refused. No declared
number is believed: `proved` comes from unique keys alone. Groups and windows over the rows of one unit are rendered
with the unit in front of their keys, whether or not these are known to tell it.
"""

from collections.abc import Iterable, Mapping
from itertools import islice, pairwise

from rules.algebra.narrow import narrowed, refined
from rules.algebra.nodes import (
    Aggregate,
    Facts,
    Filter,
    Gathered,
    Join,
    JoinKind,
    KnownRows,
    Node,
    PerUnit,
    Project,
    Rows,
    SemiJoin,
    Union,
    Unit,
    Window,
    WindowCall,
    Windowed,
)
from rules.algebra.outer_public_rows import after_filter, after_join, check_computed, check_whole
from rules.algebra.plain_conditions import plain_condition
from rules.algebra.same_unit import COUNT_HINT, check_linked, equalities, tied
from rules.frozen import frozen, replace
from rules.refusal import NotAllowed, NotSupported
from rules.values import domain
from rules.values.domain import ANYTHING, TRUTHS, Domain, Values
from rules.values.expression import Apply, Column, Constant, Expression, conjuncts, ids_in, is_collated, is_true
from rules.values.types import BOOLEAN, Type, equality, find_common

MOST_KEYS = 32  # of one relation: fewer proofs are sound, too many take too long


def known(rows: tuple[tuple[Constant, ...], ...], columns: tuple[Column, ...], keys: frozenset[frozenset[int]]) -> Node:
    """Rows that were released before: as public as the analyst's own constants."""
    return KnownRows(rows, Facts(columns, keys=keys))


def filtered(source: Node, holding: Expression) -> Node:
    """Rows for which a condition is true."""
    holding = plain_condition(holding)
    if is_true(holding):
        return source
    facts = _left_alone(source, source.facts, holding)
    absent = after_filter(facts.absent, holding)
    columns = narrowed(facts.columns, holding)
    return Filter(source, holding, fewer(replace(facts, columns=columns, absent=absent), holding))


def _is_absent(conjunct: Expression, never_null: set[int]) -> bool:
    match conjunct:
        case Apply(name="is null", arguments=(Column(id=number),)):
            return number in never_null
    return False


def _left_alone(source: Node, facts: Facts, holding: Expression) -> Facts:
    """The facts of rows that pass: where an outer join found no partner for any of them, each stands there once.

    That is so where a column of the other side is NULL that has no NULLs of its own.
    """
    match source:
        case Filter(source=below) | Project(source=below):
            return _left_alone(below, facts, holding)
        case Join(kind="left", left=kept, right=other) | Join(kind="right", left=other, right=kept):
            never_null = {column.id for column in other.facts.columns if not column.nullable}
            if any(_is_absent(conjunct, never_null) for conjunct in conjuncts(holding)):
                keys, determined = facts.keys | kept.facts.keys, facts.determined | kept.facts.determined
                return replace(facts, rows=kept.facts.rows, keys=keys, determined=determined)
    return facts


def projected(
    source: Node, computed: tuple[tuple[int, Expression], ...], declared: Mapping[int, Domain] | None = None
) -> Node:
    """Computed columns beside the source's own. What follows from determined columns is determined.

    Something is declared of totals alone.
    """
    if not computed:
        return source
    facts = source.facts
    computed = tuple((number, refined(expression, source)) for number, expression in computed)
    bounds = declared or {}
    columns = tuple(
        Column(
            *(number, expression.type, expression.domain, bounds.get(number, ANYTHING), expression.nullable),
            collated=is_collated(expression),
            total=number in bounds,
        )
        for number, expression in computed
    )
    determined = {number for number, expression in computed if facts.unit and ids_in(expression) <= facts.determined}
    absent = {number for number, expression in computed if check_computed(expression, facts.absent)}
    shares = {number for number, expression in computed if is_share(expression, facts.shares)}
    made = replace(
        facts,
        columns=(*facts.columns, *columns),
        determined=facts.determined | determined,
        shares=facts.shares | shares,
        absent=facts.absent | absent,
    )
    return Project(source, computed, made)


def joined(
    kind: JoinKind, left: Node, right: Node, holding: Expression, *, number: int, inner_where: Iterable[Expression] = ()
) -> Node:
    """A join of two relations; `inner_where` may link the units too where no rows are extended with NULLs.

    `number` is free for the unit of a full join, which is the left one's or the right one's.
    """
    one, two = left.facts, right.facts
    if _keeps_public_rows(kind, one, two):
        return _with_absent(left, right, holding, number)
    links = (*conjuncts(holding), *(inner_where if kind == "inner" else ()))
    is_tied = False
    if one.unit is None or two.unit is None:
        unit = one.unit or two.unit
    else:
        holding, links, is_tied = tied(holding, links, one, two)
        unit = two.unit if kind == "right" else one.unit
    equal = equalities(links, one, two)
    left_unique = _is_unique(one, {first for first, _ in equal} | _pinned(links, one, two))
    right_unique = _is_unique(two, {second for _, second in equal} | _pinned(links, two, one))
    rows = joined_rows(kind, one, two, left_unique=left_unique, right_unique=right_unique)
    facts = _merged(kind, one, two, unit, rows, left_unique=left_unique, right_unique=right_unique)
    facts = replace(
        facts,
        columns=narrowed(facts.columns, holding) if kind == "inner" else facts.columns,
        determined=facts.determined | _found_by_determined(kind, one, two, equal, holding),
        absent=after_join(kind, one, two, holding),
    )
    if kind == "inner":
        facts = fewer(facts, holding)
    made = Join(kind, left, right, holding, facts, tied=is_tied)
    return made if kind != "full" or unit is None else _with_either_unit(made, one, two, number)


def _with_either_unit(made: Join, one: Facts, two: Facts, number: int) -> Node:
    assert one.unit is not None and two.unit is not None
    if one.unit.column is None or two.unit.column is None:
        raise NotSupported("FULL JOIN of a table without a primary key is not supported")
    first, second = one.column(one.unit.column), two.column(two.unit.column)
    common = (find_common([first.type, second.type]) or first.type).plain()
    only = frozenset([number])
    facts = replace(
        made.facts,
        columns=(*made.facts.columns, Column(number, common, nullable=False)),
        unit=Unit(one.unit.kind, number),
        aliases=one.unit_columns | two.unit_columns,
        determined=only,
        determinants=frozenset([only]),
    )
    return replace(made, facts=facts, either=number)


def _keeps_public_rows(kind: JoinKind, one: Facts, two: Facts) -> bool:
    """Return whether public rows stay that have no protected partner, which would tell that there is none."""
    if (one.unit is None) == (two.unit is None):
        return False
    if kind == "full":
        hint = "Use LEFT JOIN, or aggregate the protected table first and join the public table to the result."
        raise NotAllowed("FULL JOIN of protected and public tables would reveal protected rows", hint=hint)
    return (kind == "left" and one.unit is None) or (kind == "right" and two.unit is None)


def _with_absent(left: Node, right: Node, holding: Expression, number: int) -> Node:
    """The inner join, whose public columns are known no better than before: all their groups are asked for."""
    public, protected = (left, right) if left.facts.unit is None else (right, left)
    check_whole(public.facts)
    check_whole(protected.facts)
    made = joined("inner", left, right, holding, number=number)
    kept = {column.id: column for column in public.facts.columns}
    columns = tuple(kept.get(column.id, column) for column in made.facts.columns)
    absent = frozenset(column.id for column in protected.facts.columns)
    return replace(made, facts=replace(made.facts, columns=columns, absent=absent))


def _pinned(links: tuple[Expression, ...], facts: Facts, other: Facts) -> set[int]:
    """Columns that a conjunct makes equal to something computed from the other side's row."""
    own, others = ({column.id for column in side.columns} for side in (facts, other))
    pinned: set[int] = set()
    for link in links:
        match link:
            case Apply(name="=", arguments=(one, two)):
                for column, computed in ((one, two), (two, one)):
                    if not isinstance(column, Column) or column.id not in own:
                        continue
                    known = ids_in(computed)
                    if known and known <= others and equality(column.type, computed.type) == "same":
                        pinned.add(column.id)
    return pinned


def _is_unique(facts: Facts, columns: set[int]) -> bool:
    return any(key <= columns for key in facts.keys)


def _merged(
    kind: JoinKind, one: Facts, two: Facts, unit: Unit | None, rows: Rows, *, left_unique: bool, right_unique: bool
) -> Facts:
    """An outer join erases the keys, NOT NULLs and dependencies of the side that it extends with NULLs."""
    left_kept, right_kept = kind in ("inner", "left"), kind in ("inner", "right")
    columns = (*_extended(one.columns, kept=left_kept), *_extended(two.columns, kept=right_kept))
    keys: set[frozenset[int]] = set()
    if right_unique and left_kept:
        keys |= one.keys
    if left_unique and right_kept:
        keys |= two.keys
    if kind == "inner" and not keys:  # else each pair holds one of these, and pairs of pairs would never end
        keys = set(islice((first | second for first in one.keys for second in two.keys), MOST_KEYS))
    both_protected = one.unit is not None and two.unit is not None
    determined = (one.determined if left_kept else frozenset()) | (two.determined if right_kept else frozenset())
    determinants = (one.determinants if left_kept else frozenset()) | (two.determinants if right_kept else frozenset())
    if kind == "inner" and not both_protected and unit is not None:
        determined = _followed(one, two, left_unique=left_unique, right_unique=right_unique)
    return Facts(
        columns=columns,
        unit=unit,
        rows=rows,
        keys=frozenset(keys),
        determined=frozenset(determined),
        determinants=frozenset(determinants),
        aliases=one.unit_columns | two.unit_columns,
        steps=(*one.steps, *two.steps),
        anchors=(*one.anchors, *two.anchors),
        refers=(*one.refers, *two.refers),
        shares=(one.shares if right_unique else frozenset()) | (two.shares if left_unique else frozenset()),
    )


def _followed(one: Facts, two: Facts, *, left_unique: bool, right_unique: bool) -> frozenset[int]:
    """A public row found through its key by a unit's only row is determined by the unit too."""
    protected, public, unique = (one, two, right_unique) if one.unit else (two, one, left_unique)
    if unique and protected.rows.proved == 1:
        return protected.determined | {column.id for column in public.columns}
    return protected.determined


def _found_by_determined(
    kind: JoinKind, one: Facts, two: Facts, equal: list[tuple[int, int]], holding: Expression
) -> frozenset[int]:
    """Public columns of the row that a key finds, where the key and all that is asked follow from the unit."""
    if kind not in ("inner", "left") or (one.unit is None) == (two.unit is None):
        return frozenset()
    protected, public = (one, two) if one.unit is not None else (two, one)
    pairs = equal if one.unit is not None else [(second, first) for first, second in equal]
    ids = frozenset(column.id for column in public.columns)
    is_same = kind == "inner" or ids_in(holding) - ids <= protected.determined
    key = {other for own, other in pairs if own in protected.determined}
    return ids if is_same and _is_unique(public, key) else frozenset()


def _extended(columns: tuple[Column, ...], *, kept: bool) -> tuple[Column, ...]:
    return columns if kept else tuple(replace(column, nullable=True, filled=False) for column in columns)


def semi_joined(source: Node, other: Node, holding: Expression, *, negated: bool, mark: int | None = None) -> Node:
    """EXISTS and NOT EXISTS of rows of the same unit; of public rows any condition will do."""
    facts, is_tied = source.facts, False
    if facts.unit is None and other.facts.unit is not None:
        raise NotAllowed("filtering public rows by protected rows would reveal protected rows", hint=COUNT_HINT)
    if facts.unit is not None and other.facts.unit is not None:
        holding, _, is_tied = tied(holding, tuple(conjuncts(holding)), facts, other.facts)
    check_whole(other.facts)
    if mark is None and not negated:
        absent = after_filter(facts.absent, holding)
        return SemiJoin(source, other, holding, negated, None, replace(facts, absent=absent), is_tied)
    if facts.absent & ids_in(holding):
        check_whole(facts)
    if mark is None:
        return SemiJoin(source, other, holding, negated, None, facts, is_tied)
    column = Column(mark, BOOLEAN, TRUTHS, nullable=False, name="exists")
    outer_ids = ids_in(holding) - {column.id for column in other.facts.columns}
    determined = facts.determined | {mark} if outer_ids <= facts.determined else facts.determined
    made = replace(facts, columns=(*facts.columns, column), determined=determined)
    return SemiJoin(source, other, holding, negated, mark, made, is_tied)


def gathered(
    source: Node, other: Node, holding: Expression, made: tuple[tuple[int, Aggregate, Column], ...]
) -> Node:  # fmt: skip
    """Aggregates of the rows of the same unit that a condition ties to each row: one value for it, of that unit's."""
    facts = source.facts
    assert facts.unit is not None and other.facts.unit is not None
    check_linked(equalities(tuple(conjuncts(holding)), facts, other.facts), facts, other.facts)
    check_whole(other.facts)
    if facts.absent & ids_in(holding):
        check_whole(facts)
    columns = tuple(column for _, _, column in made)
    outer_ids = ids_in(holding) - {column.id for column in other.facts.columns}
    same = frozenset(column.id for column in columns) if outer_ids <= facts.determined else frozenset()
    held = replace(facts, columns=(*facts.columns, *columns), determined=facts.determined | same)
    return Gathered(source, other, holding, tuple((number, aggregate) for number, aggregate, _ in made), held)


def find_partner(source: Node, other: Node, holding: Expression, number: int, *, always: bool = False) -> Node | None:
    """Each row with the one row of another relation that belongs to it, or NULLs; None when there may be several.

    `always`: a foreign key says that there is one.
    """
    links = tuple(conjuncts(holding))
    equal = equalities(links, source.facts, other.facts)
    if not _is_unique(other.facts, {second for _, second in equal} | _pinned(links, other.facts, source.facts)):
        return None
    made = joined("inner" if always else "left", source, other, holding, number=number)
    ids = frozenset(column.id for column in other.facts.columns)
    if made.facts.unit is None or not ids_in(holding) - ids <= source.facts.determined:
        return made
    return replace(made, facts=replace(made.facts, determined=made.facts.determined | ids))  # the same for all rows


def united(
    branches: tuple[Node, ...], sources: tuple[tuple[int, ...], ...], columns: tuple[Column, ...], unit: int | None
) -> Node:
    """UNION ALL of rows of units of one kind: a unit's rows add up, keys and dependencies are gone."""
    for branch in branches:
        check_whole(branch.facts)
    for one, two in pairwise(branches):
        kinds = [branch.facts.unit.kind if branch.facts.unit else None for branch in (one, two)]
        if kinds[0] != kinds[1]:
            message = "UNION ALL of rows of different units is not supported over protected rows"
            raise NotSupported(message, hint="Aggregate each branch first, then combine the results with UNION ALL.")
    first = branches[0].facts.unit
    rows = branches[0].facts.rows
    for branch in branches[1:]:
        rows = Rows(sum_of(rows.proved, branch.facts.rows.proved), sum_of(rows.cap, branch.facts.rows.cap))
    facts = Facts(
        columns=columns,
        unit=None if first is None else Unit(first.kind, unit),
        rows=rows,
        determined=frozenset() if unit is None else frozenset([unit]),
        determinants=frozenset() if unit is None else frozenset([frozenset([unit])]),
    )
    return Union(branches, tuple(column.id for column in columns), sources, facts)


def tells_unit(facts: Facts, keys: tuple[Expression, ...]) -> bool:
    """Return whether rows with equal keys are surely of one unit; NULLs stand in one group, whosever they are."""
    plain = {key.id for key in keys if isinstance(key, Column) and not facts.column(key.id).nullable}
    return any(determinant <= plain for determinant in facts.determinants)


def per_unit(
    source: Node, keys: tuple[tuple[int, Expression], ...], aggregates: tuple[tuple[int, Aggregate, Column], ...]
) -> Node:
    """One row for each unit and keys. Keys that the unit determines leave one row of each unit.

    Keys that refer to another table leave as many as the rules allow there, at most: orders, grouped from their lines.
    """
    facts = source.facts
    assert facts.unit is not None and facts.unit.column is not None
    check_whole(facts)
    unit = facts.unit.column
    by_unit = all(ids_in(expression) <= facts.determined for _, expression in keys)
    numbers, bound = frozenset(number for number, _ in keys), tuple(expression for _, expression in keys)
    key_columns = tuple(_key_column(number, expression) for number, expression in keys)
    columns = (
        facts.column(unit),
        *(column for column in key_columns if column.id != unit),
        *(column for _, _, column in aggregates),
    )
    plain = {expression.id: number for number, expression in keys if isinstance(expression, Column)}
    determined = {number for number, expression in keys if ids_in(expression) <= facts.determined} | {unit}
    made = Facts(
        columns=columns,
        unit=facts.unit,
        rows=Rows(1, 1) if by_unit else _grouped_rows(facts, bound),
        keys=frozenset([frozenset([unit, *numbers])] + ([numbers] if tells_unit(facts, bound) else [])),
        determined=frozenset(column.id for column in columns) if by_unit else frozenset(determined),
        determinants=frozenset([frozenset([unit])]) | _carried(facts, plain),
        aliases=frozenset(plain[number] for number in facts.aliases & plain.keys()),
        steps=tuple(replace(step, column=plain[step.column]) for step in facts.steps if step.column in plain),
        anchors=tuple(replace(step, column=plain[step.column]) for step in facts.anchors if step.column in plain),
        shares=frozenset(number for number, _, column in aggregates if column.name in _SHARED_OUT),
    )
    return PerUnit(source, keys, tuple((number, aggregate) for number, aggregate, _ in aggregates), made)


def _grouped_rows(facts: Facts, keys: tuple[Expression, ...]) -> Rows:
    """As many rows as the unit has in the table that the only other key than those of the unit refers to."""
    others = [key for key in keys if not ids_in(key) <= facts.determined]
    caps = [
        step.rows
        for step in (*facts.steps, *facts.anchors)
        if len(others) == 1 and isinstance(others[0], Column) and others[0].id == step.column
    ]
    known = [cap for cap in (facts.rows.cap, *caps) if cap is not None]
    return Rows(facts.rows.proved, min(known, default=None))


_SHARED_OUT = frozenset(("count", "sum"))  # each row of a unit is counted once, whatever the keys are


def _key_column(number: int, expression: Expression) -> Column:
    if expression.type.kind in ("other", "interval") and not expression.type.is_other_text:
        # Which of several equal documents, ranges or intervals stands for a group is up to the plan.
        message = (
            f"values of type {expression.type.sql} cannot be grouped, because equal values can differ in their text"
        )
        raise NotSupported(message, hint="Group by a text value in it, such as (document ->> 'key').")
    if isinstance(expression, Column):
        return replace(expression, id=number)
    collated = is_collated(expression)
    return Column(number, expression.type, expression.domain, nullable=expression.nullable, collated=collated)


def _carried(facts: Facts, plain: dict[int, int]) -> frozenset[frozenset[int]]:
    kept = [determinant for determinant in facts.determinants if determinant <= plain.keys()]
    return frozenset(frozenset(plain[number] for number in key) for key in kept)


@frozen
class Computed:
    """A window function and its column: whether it numbers the rows of its partition, whether all rows have it."""

    call: WindowCall
    column: Column
    is_key: bool = False
    is_same: bool = False


def windowed(source: Node, window: Window, made: tuple[Computed, ...]) -> Node:
    """Columns that follow from the rows of the unit; the partition tells it, and is rendered with it."""
    facts = source.facts
    assert facts.unit is not None and facts.unit.column is not None
    check_whole(facts)
    keys = set(facts.keys)
    for parts in (
        window.partition,
        tuple(expression for expression in window.partition if not ids_in(expression) <= facts.determined),
    ):
        if all(isinstance(part, Column) for part in parts):
            whole = ids_in(*parts) if parts == window.partition else ids_in(*parts) | {facts.unit.column}
            keys |= {whole | {computed.column.id} for computed in made if computed.is_key}
    held = replace(
        facts,
        columns=(*facts.columns, *(computed.column for computed in made)),
        keys=frozenset(keys),
        determined=facts.determined
        | {computed.column.id for computed in made if computed.is_same or facts.rows.proved == 1},
    )
    return Windowed(source, window, tuple((computed.column.id, computed.call) for computed in made), held)


def one_of_equals(expression: Expression, sql: str) -> str:
    """One of the values that are equal to this one and not identical, whichever of them comes first."""
    match expression.type.kind:
        case "numeric" if expression.type.scale is None or not isinstance(expression, Column):
            return f"trim_scale({sql})"
        case "float":
            # Without a cast back, which a number that was computed might not fit: real + real is real.
            is_real = isinstance(expression, Column) and expression.type.base == "float4"
            return f"({sql} + {'0::real' if is_real else '0.0'})"
        case _:
            return sql


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
