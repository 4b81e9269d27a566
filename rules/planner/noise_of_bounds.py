"""The noise that a bound of the rules costs, at the default ε and at bounds around it: by plans, without a row."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.kernel.render import qualified
from rules.kernel.replay import Kernel
from rules.planner.expected_error import ErrorPlanner, ExpectedError
from rules.policy.model import Policy, TableRules, table_name

_FACTORS = (Decimal("0.25"), Decimal(1), Decimal(4))
_MOST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class NoisePoint:
    """A bound, and how far noise moves what it bounds in most answers."""

    bound: Decimal
    error: Fraction
    is_own: bool  # the bound that the rules have


def noise_of_sum(policy: Policy, catalog: Catalog, table: str, column: str) -> tuple[NoisePoint, ...]:
    """Of the sum of a column, by the larger of its bounds; nothing where it has none or cannot be summed.

    `table` is a name as the rules write it.
    """
    rules = policy.tables[table]
    column_rules = rules.columns.get(column)
    if column_rules is None or column_rules.lower is None or column_rules.upper is None:
        return ()
    if isinstance(column_rules.lower, date) or isinstance(column_rules.upper, date):
        return ()
    lower, upper = Decimal(column_rules.lower), Decimal(column_rules.upper)
    sql = f'SELECT sum("{column.replace(chr(34), chr(34) * 2)}") FROM {qualified(table_name(table))}'

    def points() -> Iterator[NoisePoint]:
        for factor in _FACTORS:
            scaled = column_rules.model_copy(update={"lower": lower * factor, "upper": upper * factor})
            changed = rules.model_copy(update={"columns": {**rules.columns, column: scaled}})
            error = _error(policy, catalog, table, changed if factor != 1 else rules, sql)
            if error is not None:
                yield NoisePoint(max(abs(lower), abs(upper)) * factor, error, factor == 1)

    return _with_own(tuple(points()))


def noise_of_count(policy: Policy, catalog: Catalog, table: str) -> tuple[NoisePoint, ...]:
    """Of the number of rows, by how many of a unit count; nothing where the rules do not say."""
    rules = policy.tables[table]
    rows = rules.rows_per_unit
    if rows is None:
        return ()

    def points() -> Iterator[NoisePoint]:
        for bound in sorted({max(1, rows // 4), rows, min(_MOST_ROWS, rows * 4)}):
            changed = rules.model_copy(update={"rows_per_unit": bound})
            error = _error(policy, catalog, table, changed, f"SELECT count(*) FROM {qualified(table_name(table))}")
            if error is not None:
                yield NoisePoint(Decimal(bound), error, bound == rows)

    return _with_own(tuple(points()))


def _with_own(points: tuple[NoisePoint, ...]) -> tuple[NoisePoint, ...]:
    """All of them, if the rules' own bound is among them."""
    return points if any(point.is_own for point in points) else ()


def _error(policy: Policy, catalog: Catalog, table: str, given_rules: TableRules, sql: str) -> Fraction | None:
    changed = policy.model_copy(update={"tables": {**policy.tables, table: given_rules}})
    epsilon = policy.defaults.epsilon
    planner = ErrorPlanner(changed, catalog, Kernel(Ground(changed, catalog)), (epsilon,))
    error = planner.ask("", sql)
    return error.errors.get(epsilon) if isinstance(error, ExpectedError) else None
