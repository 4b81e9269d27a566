"""Expect the error of what analysts can ask of each table: by plans, without a row.

Nothing is measured and no row is read. Each line is a statement that is planned as it would be for an analyst; the
errors are those that EXPLAIN tells.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import groupby

from rules.catalog import Catalog, Table
from rules.frozen import frozen, replace
from rules.kernel.ground import Ground
from rules.kernel.render import qualified
from rules.mechanisms.additive import laws_of
from rules.mechanisms.noised_outputs import margin_of_output
from rules.mechanisms.release_plan import Block
from rules.planner.column_facts import ColumnFacts, column_facts
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.finding import Finding, warning
from rules.policy.model import Policy, TableRules, table_name
from rules.policy.rules_yaml import dotted
from rules.refusal import Refusal
from rules.release.empty_groups import Size, foreseen_sizes
from rules.replay import Kernel
from rules.values.types import type_of


@frozen
class ExpectedError:
    """One kind of statement, and the margin of its numbers at each ε."""

    words: str
    sql: str
    errors: Mapping[Decimal, Fraction]
    at_most: bool  # bounds are chosen, and the chosen ones may be lower
    by: str = ""  # the key that was asked for, where groups are listed
    sizes: Mapping[Decimal, Size] = field(default_factory=dict)  # that a group of it needs to be shown, at each ε


@frozen
class TableUse:
    """The uses of one table: what may be asked of it."""

    table: Table
    public: bool
    questions: tuple[ExpectedError, ...] = ()
    not_covered: tuple[str, ...] = ()
    is_only_counted: bool = False  # no column can be grouped or summed
    unbounded: tuple[str, ...] = ()  # columns that are summed within the range of their type alone

    def findings(self, policy: Policy) -> Iterator[Finding]:
        """Yield what of these uses is none."""
        path = dotted(("tables", next(text for text in policy.tables if table_name(text) == self.table.name)))
        if self.is_only_counted:
            words = "only its rows can be counted: no column can be grouped or summed"
            yield warning(path, words, "give columns bounds, or values, or the budget a delta")
        for name in self.unbounded:
            words = "without bounds its sums have noise as wide as the whole range of its type"
            yield warning(f"{path}.columns.{name}", words, "give its lower and upper")


_CHOSEN = "count of rows: its error is known where rows_per_unit is given; without it the cap is chosen by each query"

_FACTORS = (Decimal("0.25"), Decimal(1), Decimal(4))
_MOST_ROWS = 1_000_000


@frozen
class NoisePoint:
    """A bound, and how far noise moves what it bounds in most answers."""

    bound: Decimal
    error: Fraction
    is_own: bool  # the bound that the rules have


def expected_errors(policy: Policy, catalog: Catalog, epsilons: Sequence[Decimal]) -> Iterator[TableUse]:
    """All tables of the rules, in the order of their names."""
    planner = ErrorPlanner(policy, catalog, Kernel(Ground(policy, catalog)), tuple(epsilons))
    for _, group in groupby(column_facts(policy, catalog), key=lambda fact: fact.table.name):
        columns = list(group)
        table = columns[0].table
        useless = _is_only_counted(columns, policy), _unbounded(columns)
        if columns[0].is_public:
            yield TableUse(table, public=True)
            continue
        rows = planner.ask("count of rows", f"SELECT count(*) FROM {qualified(table.name)}")
        if isinstance(rows, Refusal):
            yield TableUse(table, public=False, not_covered=(f"count of rows: {rows.message}",))
        elif rows.at_most and _has_no_cap(table, policy):
            yield TableUse(table, False, (), (_CHOSEN,), *useless)
        else:
            expected_errors = [rows, *planner.counts(columns), *planner.sums(columns)]
            yield TableUse(table, False, tuple(expected_errors), tuple(_not_covered(columns, policy)), *useless)


@frozen
class ErrorPlanner:
    """Plans a statement at each ε."""

    policy: Policy
    catalog: Catalog
    kernel: Kernel
    epsilons: tuple[Decimal, ...]

    def ask(self, words: str, sql: str) -> ExpectedError | Refusal:
        """Return what it would be; one that needs rows of a public table first has no errors to tell."""
        errors: dict[Decimal, Fraction] = {}
        sizes: dict[Decimal, Size] = {}
        at_most = False
        for epsilon in self.epsilons:
            request = Request(
                sql,
                (),
                epsilon=epsilon,
                delta=self.policy.statement_delta(),
                empty_groups=self.policy.empty_groups,
            )
            try:
                made = plan(request, self.policy, self.catalog, self.kernel)
            except Refusal as refusal:
                return refusal
            if isinstance(made, Plan):
                at_most = at_most or any(block.ladders for block in made.blocks)
                margins = [_margin(block, self.policy) for block in made.blocks]
                if len(margins) == 1 and margins[0] is not None:
                    errors[epsilon] = margins[0]
                laws = [laws_of(block, group_size=self.policy.group_size) for block in made.blocks]
                for size in filter(None, foreseen_sizes(made.blocks, laws)):
                    sizes[epsilon] = size
        return ExpectedError(words, sql, errors, at_most, sizes=sizes)

    def counts(self, columns: Sequence[ColumnFacts]) -> Iterator[ExpectedError]:
        """Counts by what has known groups, which all have one error; and by what has to be found."""
        known = [(_quoted(column.column.name), column.column.name) for column in columns if column.groups == "known"]
        known += [_month(column) for column in columns if column.groups != "known" and _has_months(column)]
        column_factses = [column for column in columns if column.groups == "found" and not _has_months(column)]
        yield from self._counts_by(known, columns[0].table, "")
        if self.policy.budget.delta:
            keys = [(_quoted(column_facts.column.name), column_facts.column.name) for column_facts in column_factses]
            yield from self._counts_by(keys, columns[0].table, ", of groups that are large enough")

    def _counts_by(self, keys: Sequence[tuple[str, str]], table: Table, which: str) -> Iterator[ExpectedError]:
        words = f"count by {', '.join(name for _, name in keys)}{which}"
        for key, name in keys:
            error = self.ask(words, f"SELECT {key}, count(*) FROM {qualified(table.name)} GROUP BY {key}")
            if isinstance(error, ExpectedError) and error.errors:
                yield replace(error, by=name)
                return

    def sums(self, columns: Sequence[ColumnFacts]) -> Iterator[ExpectedError]:
        """One for each column with bounds."""
        for column in columns:
            if column.can_be_summed:
                sql = f"SELECT sum({_quoted(column.column.name)}) FROM {qualified(column.table.name)}"
                error = self.ask(f"sum of {column.column.name}", sql)
                if isinstance(error, ExpectedError):
                    yield error


def _is_only_counted(columns: Sequence[ColumnFacts], policy: Policy) -> bool:
    return not any(
        column.can_be_summed or column.groups == "known" or (column.groups == "found" and policy.budget.delta)
        for column in columns
        if not _is_key(column)
    )


def _unbounded(columns: Sequence[ColumnFacts]) -> tuple[str, ...]:
    """Numbers that are summed within all that their type holds; nobody sums those of keys."""
    numbers = [column for column in columns if column.can_be_summed and not _is_key(column)]
    return tuple(number.column.name for number in numbers if _has_range_of_type(number))


def _has_range_of_type(column: ColumnFacts) -> bool:
    """Return whether nothing narrows it: a smallint, or a numeric of so many digits."""
    if column.bounds.source != "catalog" or column.bounds.lower is None or column.bounds.upper is None:
        return False
    lower, upper, kind = Decimal(column.bounds.lower), Decimal(column.bounds.upper), type_of(column.column)
    if kind.base == "numeric" and kind.size is not None and kind.scale is not None:
        most = Decimal(1).scaleb(kind.size - kind.scale) - Decimal(1).scaleb(-kind.scale)
        return lower == -most and upper == most
    return kind.base == "int2" and lower == -32768 and upper == 32767


def _is_key(column: ColumnFacts) -> bool:
    keys = [key.columns for key in column.table.keys] + [key.columns for key in column.table.foreign_keys]
    return any(column.column.name in names for names in keys)


def _has_no_cap(table: Table, policy: Policy) -> bool:
    """Without one the ladder goes so far up that its end says nothing."""
    rules = policy.find_table(table.name)
    return rules is not None and rules.rows_per_unit is None


def _has_months(column: ColumnFacts) -> bool:
    return column.bounds.lower is not None and column.column.type.base in ("date", "timestamp", "timestamptz")


def _month(column: ColumnFacts) -> tuple[str, str]:
    return f"date_trunc('month', {_quoted(column.column.name)})", f"month of {column.column.name}"


def _not_covered(columns: Sequence[ColumnFacts], policy: Policy) -> Iterator[str]:
    """Yield what the DBA could add to."""
    numbers = [column for column in columns if column.column.type.base in ("numeric", "float4", "float8")]
    if unbounded := [number.column.name for number in numbers if not number.can_be_summed]:
        yield f"sums and averages of {', '.join(unbounded)}: no bounds"
    hidden = [column.column.name for column in columns if column.groups == "found" and column.bounds.lower is None]
    if hidden and not policy.budget.delta:
        yield f"groups by {', '.join(hidden)}: no values and no δ"


def _margin(block: Block, policy: Policy) -> Fraction | None:
    laws = laws_of(block, group_size=policy.group_size)
    margins = [margin_of_output(output, laws, block.level) for output in block.outputs]
    return margins[-1] if margins else None


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


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
