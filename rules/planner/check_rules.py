"""Check rules over a catalog: what the file alone says, the views that it names, and how Citus distributes the tables.

A view can be read if a count over it can be planned. Over distributed tables some statements cross the network, and
some would fail.
"""

from collections.abc import Iterable, Iterator

from rules.bind.scope import UnknownName
from rules.catalog import Catalog, Distribution, Table, TableName
from rules.kernel.render import qualified
from rules.planner.passes.inline_sources import defined
from rules.planner.plan import Request
from rules.planner.planner import plan
from rules.planner.tables import tables_in
from rules.policy.check import check_policy
from rules.policy.finding import Finding, Severity, by_severity, error
from rules.policy.model import Policy, table_name
from rules.policy.rules_yaml import dotted
from rules.refusal import Refusal

_HINT = "name its tables in the rules file, and remove the view"

REPARTITION = "citus.enable_repartition_joins"


def check_all(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Everything worth saying about rules over this catalog, errors first."""
    views = [finding for text in policy.tables for finding in _check(text, policy, catalog)]
    return by_severity([*check_policy(policy, catalog), *views, *_check_citus(policy, catalog)])


def _check(text: str, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    rules, view = policy.tables[text], catalog.find_table(table_name(text))
    if not rules.view or view is None or view.kind != "view":
        return
    path = dotted(("tables", text))
    request = Request(f"SELECT count(*) FROM {qualified(view.name)}", (), delta=policy.statement_delta())
    try:
        missing = sorted(str(name) for name in _tables(view) if policy.find_table(name) is None)
        if not missing:
            plan(request, policy, catalog)
    except UnknownName as refusal:
        yield _unreadable(path, refusal, _hidden_of(view, policy, catalog))
    except Refusal as refusal:
        yield error(path, f"the definition of the view is refused: {refusal.message}", refusal.hint or _HINT)
    else:
        if missing:
            hint = f"name {', '.join(missing)} too: a view is protected as its tables are"
            yield error(path, f"the view reads {', '.join(missing)}, which the rules file does not name", hint)


def _unreadable(path: str, refusal: UnknownName, hidden: Iterable[tuple[TableName, str]]) -> Finding:
    """A view of SELECT * reads hidden columns too."""
    named = refusal.message.partition('"')[2].rpartition('"')[0]
    columns = sorted(f"{table}.{column}" for table, column in hidden if f".{named}".endswith(f".{column}"))
    if not columns:
        return error(path, f"the definition of the view is refused: {refusal.message}", _HINT)
    hint = "remove the view from the rules file, or define it without the column"
    return error(path, f"the view reads {' or '.join(columns)}, which the rules hide", hint)


def _hidden_of(view: Table, policy: Policy, catalog: Catalog) -> Iterator[tuple[TableName, str]]:
    """The hidden columns of the tables below a view."""
    for name in set(_tables(view)):
        rules, table = policy.find_table(name), catalog.find_table(name)
        if rules is not None and table is not None and rules.view:
            yield from _hidden_of(table, policy, catalog)
        elif rules is not None:
            yield from ((name, column) for column, column_rules in rules.columns.items() if column_rules.hidden)


def _tables(view: Table) -> Iterator[TableName]:
    for schema, name in tables_in(defined(view)):
        if schema not in (None, "pg_catalog"):
            yield TableName(str(schema), name)


def _check_citus(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """Yield what a distribution means for protected tables; nothing where there is no Citus."""
    if not catalog.is_citus:
        if any(name.startswith("citus.") for name in policy.engine_settings):
            words = "the database has no Citus, so settings of Citus have no effect"
            yield Finding(Severity.WARNING, "engine_settings", words)
        return
    yield Finding(Severity.NOTE, "database", "it is a coordinator of Citus: inner statements run on its workers")
    moved = []
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        if table is None or rules.public or rules.view:
            continue
        finding = _table(dotted(("tables", text)), table, policy, catalog)
        if finding is not None:
            yield finding
            moved += [text] if table.distribution is not None and table.distribution.kind == "distributed" else []
    if moved and policy.engine_settings.get(REPARTITION) != "on":
        words = f"joins of {', '.join(moved)} with other distributed tables may fail, before their charge or after it"
        hint = f"engine_settings: {{{REPARTITION}: on}} lets Citus move rows for them"
        yield Finding(Severity.WARNING, "engine_settings", words, hint)


def _table(path: str, table: Table, policy: Policy, catalog: Catalog) -> Finding | None:
    """Explain what is slow about one protected table; None: each unit's rows lie on one node, with its others."""
    distribution, anchor = table.distribution, _anchor(policy, catalog)
    column = _unit_column(table, policy)
    if distribution is None or distribution.kind == "local":
        words = "it is not distributed: one node reads it alone, and joins with distributed tables send its rows to all"
        return Finding(Severity.WARNING, path, words, _advice(table, column))
    if distribution.kind == "reference":
        return Finding(Severity.NOTE, path, "a reference table: each node has all of it, and one of them reads it")
    if column is None:
        by = f"distributed by {distribution.column}, and its unit is found through another table"
        words = f"{by}: units' rows are gathered by sending them between nodes"
        hint = "a column with the unit, and a distribution by it, would let each worker count its units alone"
        return Finding(Severity.WARNING, path, words, hint)
    if distribution.column != column:
        by = f"distributed by {distribution.column}, not by its unit ({column})"
        words = f"{by}: rows are sent between nodes to find units"
        return Finding(Severity.WARNING, path, words, _advice(table, column))
    if anchor is not None and anchor.kind == "distributed" and anchor.colocation != distribution.colocation:
        words = f"not co-located with {policy.unit.rpartition('.')[0]}: joins by the unit send rows between nodes"
        return Finding(Severity.WARNING, path, words, _advice(table, column, policy.unit.rpartition(".")[0]))
    return None


def _anchor(policy: Policy, catalog: Catalog) -> Distribution | None:
    """Return how the table of units is distributed."""
    text = policy.unit.rpartition(".")[0]
    table = catalog.find_table(table_name(text)) if text else None
    return None if table is None else table.distribution


def _unit_column(table: Table, policy: Policy) -> str | None:
    """The column that has the unit itself; None where the way to it goes through another table, or there is none."""
    rules = policy.find_table(table.name)
    if policy.unit == "row" or rules is None or rules.unit is None:
        return table.distribution.column if table.distribution is not None else None
    step = rules.unit_step()
    home: TableName | None = table_name(policy.unit.rpartition(".")[0])
    return step.column if step.target in (None, home) else None


def _advice(table: Table, column: str | None, other_table: str = "") -> str:
    if column is None:
        return ""
    colocated = f", colocate_with => '{other_table}'" if other_table else ""
    return f"SELECT create_distributed_table('{table.name}', '{column}'{colocated})"
