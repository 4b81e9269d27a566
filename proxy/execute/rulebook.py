"""The rules in force, swapped as a whole on reload: policy, catalog, what follows from both; and who asks by them."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from proxy.engines.engine import Readable
from proxy.execute.meanings import Meanings
from proxy.execute.synopses import CubeState
from rules.accounting.budgets import Budgets, budgets_of
from rules.catalog import Catalog, TableName
from rules.kernel.ground import Ground
from rules.policy.model import Policy, table_name
from rules.replay import Kernel
from rules.sql.session_settings import SettingLimits
from rules.sql.statement import RelationName
from rules.sql.system_views import SCHEMA, VIRTUAL


@dataclass(frozen=True, slots=True)
class Rulebook:
    """One generation of rules."""

    policy: Policy
    catalog: Catalog
    generation: int
    budgets: Budgets
    closed: frozenset[TableName]  # what nobody reads on the twin: protected tables, and virtual relations
    meanings: Meanings
    kernel: Kernel  # over these tables: what plans are replayed by
    limits: SettingLimits  # of one statement
    readable: Readable  # what of public tables exists for analysts

    @classmethod
    def of(cls, policy: Policy, catalog: Catalog, generation: int) -> "Rulebook":
        closed = {table_name(text) for text, rules in policy.tables.items() if not rules.public}
        closed |= {TableName(SCHEMA, name) for name in VIRTUAL}
        kernel = Kernel(Ground(policy, catalog))
        return cls(
            *(policy, catalog, generation, budgets_of(policy), frozenset(closed), Meanings(policy, catalog), kernel),
            *(_limits(policy), Readable.of(policy, catalog)),
        )

    def limits_of(self, analyst: str) -> SettingLimits:
        """The limits of a statement of one analyst."""
        previews = self.policy.previews_of(analyst)
        return self.limits if previews == self.limits.previews else replace(self.limits, previews=previews)

    def may_mean_closed(self, relation: RelationName) -> bool:
        """Return whether a name as it is written can mean such a table, whatever the search path is."""
        return any(table.name == relation.name and relation.schema in (None, table.schema) for table in self.closed)


@dataclass(frozen=True, slots=True)
class StatementContext:
    """`deadline` is on the event loop's clock."""

    analyst: str
    session: str
    rulebook: Rulebook
    time_zone: str
    deadline: float
    statement: str = ""  # its fingerprint
    shape: str = ""  # its text without constants
    is_inner: bool = False  # whether another statement needs the answer
    cubes: tuple[CubeState, ...] = ()  # that stand; they serve who has paid for them
    once_since: datetime | None = None  # nothing is charged where the account was charged since then
    is_first: bool = False  # whether the rest of its statement is answered after it


def _limits(policy: Policy) -> SettingLimits:
    delta, defaults = policy.statement_delta() if policy.budget.delta else Decimal(0), policy.defaults
    bounds = defaults.epsilon, defaults.max_epsilon, delta, defaults.least_epsilon
    hides_few, previews = policy.min_units is not None, policy.previews
    return SettingLimits(
        *bounds, policy.group_size, hides_few=hides_few, empty_groups=policy.empty_groups, previews=previews
    )
