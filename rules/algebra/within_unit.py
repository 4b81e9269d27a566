"""Move facts through computations over the rows of one unit: its groups, and windows over its rows.

Both are rendered with the unit in front of their keys, whether or not these are known to tell it.
"""

from rules.algebra.nodes import Aggregate, Facts, Node, PerUnit, Rows, Window, WindowCall, Windowed
from rules.algebra.outer_public_rows import check_whole
from rules.algebra.unit_facts import tells_unit
from rules.frozen import frozen, replace
from rules.refusal import NotSupported
from rules.values.expression import Column, Expression, ids_in, is_collated


def per_unit(
    source: Node, keys: tuple[tuple[int, Expression], ...], aggregates: tuple[tuple[int, Aggregate, Column], ...]
) -> Node:
    """One row for each unit and keys. Keys that the unit determines leave one row of each unit."""
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
        rows=Rows(1, 1) if by_unit else facts.rows,
        keys=frozenset([frozenset([unit, *numbers])] + ([numbers] if tells_unit(facts, bound) else [])),
        determined=frozenset(column.id for column in columns) if by_unit else frozenset(determined),
        determinants=frozenset([frozenset([unit])]) | _carried(facts, plain),
        aliases=frozenset(plain[number] for number in facts.aliases & plain.keys()),
        steps=tuple(replace(step, column=plain[step.column]) for step in facts.steps if step.column in plain),
        anchors=tuple(replace(step, column=plain[step.column]) for step in facts.anchors if step.column in plain),
        shares=frozenset(number for number, _, column in aggregates if column.name in _SHARED_OUT),
    )
    return PerUnit(source, keys, tuple((number, aggregate) for number, aggregate, _ in aggregates), made)


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
