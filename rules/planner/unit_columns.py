"""The hint of tables that are joined without their units, with the columns by which they would be."""

from collections.abc import Callable, Iterator

from rules.algebra.same_unit import CROSS_UNIT_HINT
from rules.catalog import Table
from rules.policy.model import Policy
from rules.refusal import NotAllowed, Refusal
from rules.sql.grammar import Node, kind, walk

FindTable = Callable[[str | None, str], Table | None]

_MOST = 6  # tables that a hint names


def with_unit_columns(refusal: Refusal, statement: Node, policy: Policy, find: FindTable) -> Refusal:
    """The refusal, with where each protected table of the statement has its unit."""
    if not isinstance(refusal, NotAllowed) or refusal.hint != CROSS_UNIT_HINT:
        return refusal
    found = tuple(dict.fromkeys(_unit_columns(statement, policy, find)))
    if not 1 < len(found) <= _MOST:
        return refusal
    hint = f"{CROSS_UNIT_HINT} Their units are {', '.join(found[:-1])} and {found[-1]}."
    made = NotAllowed(refusal.message, detail=refusal.detail, hint=hint, position=refusal.position)
    made.about = refusal.about
    return made


def _unit_columns(statement: Node, policy: Policy, find: FindTable) -> Iterator[str]:
    """A column that is hidden does not exist for analysts, so it is not named."""
    for body in (node["RangeVar"] for node in walk(statement) if isinstance(node.get("RangeVar"), dict)):
        assert isinstance(body, dict)
        schema = body.get("schemaname")
        table = find(None if schema is None else str(schema), str(body.get("relname")))
        rules = None if table is None else policy.find_table(table.name)
        if table is None or rules is None or rules.unit is None:
            continue
        step = rules.unit_step()
        column = next((each for each in table.columns if each.name == step.column), None)
        if column is None or rules.hides(column):
            continue
        shown = kind({"Alias": body.get("alias")})[1].get("aliasname") or body.get("relname")
        yield f"{shown}.{step.column}" + ("" if step.target is None else f" (through {step.target})")
