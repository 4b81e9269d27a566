"""Tables as the FROM clause of a statement reads them, and conditions over their columns, for rewriting."""

from rules.catalog import Column, Table
from rules.frozen import frozen, replace
from rules.planner.tables import Tables
from rules.sql.tree import Json, Node, items, kind, strings


@frozen
class TableRead:
    """A table, and what a query calls it."""

    alias: str
    table: Table

    def qualified(self, condition: Json) -> Json:
        """A condition in which the table's columns have its name before theirs; subqueries are left as they are."""
        if isinstance(condition, list):
            return [self.qualified(node) for node in condition]
        if not isinstance(condition, dict) or "SubLink" in condition:
            return condition
        if (column := self.column(column_of(condition))) is not None:
            return reference(self.alias, column.name)
        return {clause: self.qualified(node) for clause, node in condition.items()}

    def column(self, written: tuple[str, ...]) -> Column | None:
        """The table's own column of this name, which has no other table's before it."""
        return self.table.find_column(written[-1]) if written[:-1] in ((), (self.alias,)) and written else None


def reference(*names: str) -> Node:
    return {"ColumnRef": {"fields": [{"String": {"sval": name}} for name in names]}}


def table_of(source: Json, tables: Tables, ctes: frozenset[str]) -> Table | None:
    """A table that is read by itself, with its own names of columns, and those columns that analysts see."""
    name, body = kind(source)
    alias, schema, called = body.get("alias"), body.get("schemaname"), str(body.get("relname"))
    is_renamed = isinstance(alias, dict) and bool(alias.get("colnames"))
    if name != "RangeVar" or is_renamed or (schema is None and called in ctes):
        return None
    table = tables.find(schema if isinstance(schema, str) else None, called)
    rules = None if table is None else tables.context.policy.find_table(table.name)
    if table is None or rules is None:
        return None
    return replace(table, columns=tuple(column for column in table.columns if not rules.hides(column)))


def column_of(node: Json) -> tuple[str, ...]:
    return strings(kind(node)[1].get("fields")) if kind(node)[0] == "ColumnRef" else ()


def tells_rows(table: Table, name: str) -> bool:
    """Return whether a column tells the rows of a table apart, and each row has it."""
    column = table.find_column(name)
    return column is not None and column.not_null and table.is_unique([name])


def alias_of(source: Node) -> str:
    alias = source.get("alias")
    named = alias.get("aliasname") if isinstance(alias, dict) else None
    return str(named or source.get("relname") or "")


def conjuncts_of(condition: Json) -> list[Json]:
    name, body = kind(condition)
    if name == "BoolExpr" and body.get("boolop") == "AND_EXPR":
        return [conjunct for part in items(body, "args") for conjunct in conjuncts_of(part)]
    return [condition] if name else []
