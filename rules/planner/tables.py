"""Which tables the names of a statement mean, as the session's search path resolves them."""

from dataclasses import dataclass

from rules.bind.scope import PlannerContext
from rules.catalog import Table, TableName
from rules.planner.plan import PreviewRows, TemporaryView
from rules.planner.relations import tables_in
from rules.sql.grammar import Node

Columns = tuple[tuple[str, str], ...]  # name and type


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables by the names that a statement gives them."""

    context: PlannerContext
    temporary: tuple[TemporaryView, ...] = ()  # of the session
    previews: tuple[PreviewRows, ...] = ()  # synthetic rows in place of tables

    def find(self, schema: str | None, name: str) -> Table | None:
        """Find a table that the rules name."""
        for each in (schema,) if schema is not None else self.context.search_path:
            if (table := self.context.catalog.find_table(TableName(each, name))) and self.context.policy.find_table(
                table.name
            ):
                return table
        return None

    def find_protected(self, schema: str | None, name: str) -> Table | None:
        table = self.find(schema, name)
        return table if table is not None and self.context.policy.is_protected(table.name) else None

    def find_preview(self, table: Table) -> PreviewRows | None:
        """Find the synthetic rows of a table."""
        return next((each for each in self.previews if each.table == table.name), None)

    def find_view(self, schema: str | None, name: str) -> Table | None:
        """Find a view that is read as its definition. Temporary ones hide tables of their names."""
        for view in self.temporary:
            if view.name == name and schema in (None, "pg_temp", view.schema):
                return Table(TableName(view.schema, name), "view", (), definition=view.definition)
        table = self.find(schema, name)
        rules = None if table is None else self.context.policy.find_table(table.name)
        return table if rules is not None and rules.view else None

    def find_columns(self, schema: str | None, name: str) -> Columns | None:
        """List the visible columns of a protected table; None for any other table."""
        table = self.find_protected(schema, name)
        if table is None:
            return None
        rules = self.context.policy.find_table(table.name)
        assert rules is not None
        return tuple((column.name, column.type.sql) for column in table.columns if not rules.hides(column))

    def are_read(self, tree: Node) -> bool:
        """Say whether a statement reads a protected table."""
        return any(self.find_protected(schema, name) is not None for schema, name in tables_in(tree))
