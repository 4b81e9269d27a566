"""Stored generated columns: PostgreSQL computes them from their row, so bounds follow from those of its columns."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from rules.algebra.nodes import Scan
from rules.bind.expression import Binding
from rules.bind.scope import PlannerContext
from rules.bind.table import type_domain
from rules.bind.walk_syntax import parts
from rules.catalog import Table
from rules.refusal import Refusal
from rules.sql import syntax as s
from rules.sql.lower import parse_expression
from rules.values import domain
from rules.values.domain import ANYTHING, Range
from rules.values.expression import Column, Operand


def with_generated_bounds(node: Scan, table: Table, context: PlannerContext) -> Scan:
    """Declare bounds of generated columns to which the rules give none: a clamp makes them true, as declared ones."""
    definitions = {
        column.name: column.default
        for column in table.columns
        if column.generated == "s" and column.default is not None
    }
    if not definitions or table.has_children:
        return node
    columns = {column.name: column for column in node.facts.columns if column.name}

    def leaf(expression: s.Expression) -> Operand | None:
        return columns.get(expression.parts[-1]) if isinstance(expression, s.Name) else None

    reading = Binding(leaf, context, context.setting())
    made = tuple(_bounded(column, definitions.get(column.name), reading, columns) for column in node.facts.columns)
    return replace(node, facts=replace(node.facts, columns=made))


def _bounded(column: Column, definition: str | None, reading: Binding, columns: Mapping[str, Column]) -> Column:
    """Bounds of a type alone are none: a sum within them would be paid for and worth nothing."""
    written = None if definition is None or column.declared != ANYTHING else _read(definition)
    if written is None or not column.type.is_number:
        return column
    named = (part.parts[-1] for part in parts(written) if isinstance(part, s.Name))
    if any(name not in columns or not _has_bounds(columns[name]) for name in named):
        return column
    try:
        image = domain.range_of(reading.bind(written).domain)
    except Refusal:
        return column
    if image.low is None or image.high is None:
        return column
    scale = column.type.scale
    if scale is None:
        return replace(column, declared=Range(image.low, image.high))
    power = Fraction(10) ** scale  # what is stored is rounded to it
    return replace(column, declared=Range(floor(image.low * power) / power, ceil(image.high * power) / power))


def _has_bounds(column: Column) -> bool:
    """Return whether the rules or a CHECK say more than the column's type does."""
    return domain.range_of(column.declared).is_bounded or column.domain != type_domain(column.type)


@lru_cache(maxsize=1000)
def _read(definition: str) -> s.Expression | None:
    """Return what pg_get_expr says; None where the planner has no words for it."""
    try:
        return parse_expression(definition)
    except Refusal:
        return None
