"""The rules in force: policy, catalog, and what follows from both. Swapped as a whole on reload."""

import hashlib
from dataclasses import dataclass

from rules.catalog import Catalog, TableName
from rules.ledger.book import Budgets, budgets_of
from rules.policy.model import Policy, table_name


@dataclass(frozen=True, slots=True)
class Rulebook:
    """One generation of rules."""

    policy: Policy
    catalog: Catalog
    generation: int
    budgets: Budgets
    protected: frozenset[TableName]
    fingerprint: str  # equal when answers mean the same: budgets and passwords are left out

    @classmethod
    def of(cls, policy: Policy, catalog: Catalog, generation: int) -> "Rulebook":
        protected = frozenset(table_name(text) for text, rules in policy.tables.items() if not rules.public)
        return cls(policy, catalog, generation, budgets_of(policy), protected, _fingerprint(policy, catalog))

    def names_protected(self, name: str) -> bool:
        """Whether a table of this name, in whatever schema, is protected."""
        return any(table.name == name for table in self.protected)


def _fingerprint(policy: Policy, catalog: Catalog) -> str:
    meaning = policy.model_dump_json(include={"unit", "tables", "group_size", "groups_limit"})
    tables = repr((catalog.database, catalog.tables, catalog.enums, catalog.domains))
    return hashlib.sha256(f"{meaning}\n{tables}".encode()).hexdigest()
