"""Check that the views of the rules can be read, by planning a count over each."""

from collections.abc import Iterable, Iterator

from rules.bind.scope import UnknownName
from rules.catalog import Catalog, Table, TableName
from rules.kernel.render import qualified
from rules.planner.passes.inline_views import defined
from rules.planner.plan import Request
from rules.planner.planner import plan
from rules.planner.tables import tables_in
from rules.policy.check import check_policy
from rules.policy.check_citus import check_citus
from rules.policy.finding import Finding, by_severity, error
from rules.policy.model import Policy, table_name
from rules.policy.yaml_source import dotted
from rules.refusal import Refusal

_HINT = "name its tables in the rules file, and remove the view"


def check_all(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Everything worth saying about rules over this catalog, errors first."""
    views = [finding for text in policy.tables for finding in _check(text, policy, catalog)]
    return by_severity([*check_policy(policy, catalog), *views, *check_citus(policy, catalog)])


def _check(text: str, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    rules, view = policy.tables[text], catalog.find_table(table_name(text))
    if not rules.view or view is None or view.kind != "view":
        return
    path = dotted(("tables", text))
    missing = sorted(str(name) for name in _tables(view) if policy.find_table(name) is None)
    if missing:
        hint = f"name {', '.join(missing)} too: a view is protected as its tables are"
        yield error(path, f"the view reads {', '.join(missing)}, which the rules file does not name", hint)
        return
    request = Request(f"SELECT count(*) FROM {qualified(view.name)}", (), delta=policy.statement_delta())
    try:
        plan(request, policy, catalog)
    except UnknownName as refusal:
        yield _unreadable(path, refusal, _hidden_of(view, policy, catalog))
    except Refusal as refusal:
        yield error(path, f"the definition of the view is refused: {refusal.message}", refusal.hint or _HINT)


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
