"""SQL that works on the tables of the rules, with the error that each statement would have: found by planning it.

Every recipe follows from the rules and the catalog alone. One that the planner refuses is not among them.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby

from rules.catalog import Catalog, Table, TableName
from rules.frozen import frozen
from rules.kernel.ground import Ground
from rules.kernel.render import qualified
from rules.planner.column_facts import ColumnFacts, column_facts
from rules.planner.expected_error import ErrorPlanner
from rules.policy.model import Policy, table_name
from rules.refusal import Refusal
from rules.release.empty_groups import Size
from rules.replay import Kernel
from rules.sql.grammar import deparse, parse
from rules.sql.tree import walk

_TIMES = ("date", "timestamp", "timestamptz")


@frozen
class CookbookEntry:
    """One statement, for what it is good, and how far noise moves its numbers at the default ε."""

    title: str
    sql: str
    error: Fraction | None  # None: it depends on the data, or there is none
    at_most: bool = False
    exact: bool = False
    size: Size | None = None  # that a group needs to be shown


@frozen
class Chapter:
    """The recipes of one table."""

    table: Table
    public: bool
    columns: tuple[ColumnFacts, ...]
    recipes: tuple[CookbookEntry, ...]


def chapter(policy: Policy, catalog: Catalog, name: TableName, epsilon: Decimal) -> Chapter | None:
    """Return what can be asked of one table; None where analysts have none of that name."""
    facts = {
        key: list(group)
        for key, group in groupby(column_facts(policy, catalog), lambda column_facts: column_facts.table.name)
    }
    if name not in facts:
        return None
    columns = facts[name]
    table, public = columns[0].table, columns[0].is_public
    planner = ErrorPlanner(policy, catalog, Kernel(Ground(policy, catalog)), (epsilon,))
    entries = _public(table) if public else _protected(columns, facts, policy)
    recipes = (_recipe(planner, title, sql, epsilon, exact=public) for title, sql in entries)
    return Chapter(table, public, tuple(columns), tuple(recipe for recipe in recipes if recipe is not None))


def _recipe(planner: ErrorPlanner, title: str, sql: str, epsilon: Decimal, *, exact: bool) -> CookbookEntry | None:
    text = _short(sql)
    if exact:
        return CookbookEntry(title, text, None, exact=True)
    error = planner.ask(title, sql)
    if isinstance(error, Refusal):
        return None
    return CookbookEntry(title, text, error.errors.get(epsilon), error.at_most, size=error.sizes.get(epsilon))


def _short(sql: str) -> str:
    """As an analyst would write it: quotes only where they are needed, and no schema where it is the usual one.

    Example:
        >>> _short('SELECT "city", count(*) FROM "public"."customers" GROUP BY "city"')
        'SELECT city, count(*) FROM customers GROUP BY city'
    """
    tree = parse(sql)[0].tree
    for node in walk(tree):
        if node.get("schemaname") == "public":
            del node["schemaname"]
    return deparse(tree)


def _public(table: Table) -> Iterator[tuple[str, str]]:
    yield "Its rows, exactly", f"SELECT * FROM {qualified(table.name)} LIMIT 10"


def _protected(
    columns: Sequence[ColumnFacts], facts: dict[TableName, list[ColumnFacts]], policy: Policy
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """From the plain count to what most dashboards are made of."""
    table = columns[0].table
    name = qualified(table.name)
    yield "How many rows", f"SELECT count(*) FROM {name}"
    yield "How sure that number is", f"SELECT count(*), noisegate.margin(count(*)) FROM {name}"
    keys = [column for column in columns if _is_key(column)]
    sums = [column for column in columns if column.can_be_summed and not column.is_unit]
    for key in keys[:3]:
        column = _column(key)
        yield (
            f"Rows by {key.column.name}, the most frequent first",
            f"SELECT {column}, count(*) AS rows FROM {name} GROUP BY {column} ORDER BY rows DESC",
        )
    yield from _found_groups(columns, name, policy)
    yield from _times(columns, sums, name)
    for summed in sums[:3]:
        column = _column(summed)
        yield f"Sum of {summed.column.name}", f"SELECT sum({column}) FROM {name}"
        yield f"Mean of {summed.column.name}", f"SELECT avg({column}) FROM {name}"
        yield (
            f"Median of {summed.column.name}",
            f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY {column}) FROM {name}",
        )
        for key in keys[:1]:
            by = _column(key)
            yield (
                f"Mean of {summed.column.name} by {key.column.name}",
                f"SELECT {by}, avg({column}) FROM {name} GROUP BY {by}",
            )
    yield from _joined(table, facts, policy)


def _found_groups(columns: Sequence[ColumnFacts], name: str, policy: Policy) -> Iterator[tuple[str, str]]:
    """Groups that are found in the data need δ."""
    column_factses = [
        column for column in columns if column.groups == "found" and not (column.can_be_summed or _is_time(column))
    ]
    if policy.budget.delta:
        for key in column_factses[:1]:
            column = _column(key)
            yield (
                f"Rows by {key.column.name}, of groups that are large enough",
                f"SELECT {column}, count(*) FROM {name} GROUP BY {column}",
            )


def _times(columns: Sequence[ColumnFacts], sums: Sequence[ColumnFacts], name: str) -> Iterator[tuple[str, str]]:
    for time in [column for column in columns if _is_time(column) and column.bounds.lower is not None][:1]:
        month = f"date_trunc('month', {_column(time)})"
        yield (
            f"Rows by month of {time.column.name}",
            f"SELECT {month} AS month, count(*) FROM {name} GROUP BY month ORDER BY month",
        )
        for summed in sums[:1]:
            yield (
                f"Sum of {summed.column.name} by month of {time.column.name}",
                f"SELECT {month} AS month, sum({_column(summed)}) FROM {name} GROUP BY month ORDER BY month",
            )


def _joined(table: Table, facts: dict[TableName, list[ColumnFacts]], policy: Policy) -> Iterator[tuple[str, str]]:
    """Rows by a property of what they belong to, along the foreign keys of the rules."""
    rules = policy.find_table(table.name)
    if rules is None or rules.unit is None or rules.view:
        return
    step = rules.unit_step()
    unit, _, key = policy.unit.rpartition(".")
    parent, parent_key = (step.target, step.target_column) if step.target else (table_name(unit), key)
    if parent == table.name or parent not in facts or not parent_key:
        return
    for column in [fact for fact in facts[parent] if _is_key(fact)][:1]:
        yield (
            f"Rows by {column.column.name} of {parent.name}",
            f"SELECT p.{_column(column)}, count(*) FROM {qualified(table.name)} AS t JOIN {qualified(parent)} AS p "
            f"ON t.{_quoted(step.column)} = p.{_quoted(parent_key)} GROUP BY p.{_column(column)}",
        )


def _is_key(column: ColumnFacts) -> bool:
    """Return whether people group by it: its groups are listed, and it is more than a number between bounds."""
    is_listed = column.bounds.values is not None or not column.can_be_summed
    return column.groups == "known" and is_listed and not _is_time(column)


def _is_time(column: ColumnFacts) -> bool:
    return column.column.type.base in _TIMES


def _column(facts: ColumnFacts) -> str:
    return _quoted(facts.column.name)


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
