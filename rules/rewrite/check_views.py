"""Whether the views that the rules name can be read: found by planning a count over each."""

from collections.abc import Iterator

from rules.catalog import Catalog, Table, TableName
from rules.policy.check import Finding, Severity, by_severity, check_policy
from rules.policy.model import Policy, table_name
from rules.policy.yaml_source import dotted
from rules.refusal import Refusal
from rules.relation.render import qualified
from rules.rewrite.pipeline import plan
from rules.rewrite.plan import Request
from rules.rewrite.relations import tables_in
from rules.rewrite.views import defined

_HINT = "name its tables, and leave the view out"


def check_all(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Everything worth saying about rules over this catalog, errors first."""
    views = [finding for text in policy.tables for finding in _check(text, policy, catalog)]
    return by_severity([*check_policy(policy, catalog), *views])


def _check(text: str, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    rules, view = policy.tables[text], catalog.find_table(table_name(text))
    if not rules.view or view is None or view.kind != "view":
        return
    path = dotted(("tables", text))
    missing = sorted(str(name) for name in _tables(view) if policy.find_table(name) is None)
    if missing:
        hint = f"name {', '.join(missing)} too: what a view gives is protected as its tables are"
        yield Finding(Severity.ERROR, path, f"it reads {', '.join(missing)}, of which the rules say nothing", hint)
        return
    request = Request(f"SELECT count(*) FROM {qualified(view.name)}", (), delta=policy.statement_delta())
    try:
        plan(request, policy, catalog)
    except Refusal as refusal:
        yield Finding(Severity.ERROR, path, f"its definition is refused: {refusal.message}", refusal.hint or _HINT)


def _tables(view: Table) -> Iterator[TableName]:
    for schema, name in tables_in(defined(view)):
        if schema not in (None, "pg_catalog"):
            yield TableName(str(schema), name)
