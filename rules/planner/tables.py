"""The tables that a statement names: as its search path resolves them, and with other rows put in their place."""

from collections.abc import Callable, Iterable

from rules.bind.scope import PlannerContext
from rules.catalog import Table, TableName
from rules.frozen import frozen
from rules.planner.plan import PreviewRows, TemporaryView
from rules.refusal import NotSupported
from rules.sql.grammar import parse
from rules.sql.tree import Index, Json, Node, holders, items, kind, strings
from rules.twin_types import TEXT, is_on_twin, usable_types

Columns = tuple[tuple[str, str], ...]  # name and type
TableSpelled = tuple[str | None, str]  # a table as a statement names it: its schema, if that is written, and its name


@frozen
class Tables:
    """Tables by the names that a statement gives them."""

    context: PlannerContext
    temporary: tuple[TemporaryView, ...] = ()  # of the session
    previews: tuple[PreviewRows, ...] = ()  # synthetic rows in place of tables

    def find(self, schema: str | None, name: str) -> Table | None:
        """Find a table that the rules name."""
        return self.context.find_table(schema, name)

    def find_protected(self, schema: str | None, name: str) -> Table | None:
        table = self.find(schema, name)
        return table if table is not None and self.context.policy.is_protected(table.name) else None

    def find_preview(self, table: Table) -> PreviewRows | None:
        """Find the synthetic rows of a table."""
        return next((preview for preview in self.previews if preview.table == table.name), None)

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
        return self.columns_on_twin(table)

    def columns_on_twin(self, table: Table) -> Columns:
        """List the visible columns of a table of the rules, with the types that they have on the twin."""
        rules, usable = self.context.policy.find_table(table.name), usable_types(self.context.catalog)
        assert rules is not None, "only tables that the rules name are found"
        shown = (column for column in table.columns if not rules.hides(column))
        return tuple((column.name, (column.type if is_on_twin(column.type, usable) else TEXT).sql) for column in shown)

    def are_read(self, tree: Node) -> bool:
        """Say whether a statement reads a protected table."""
        return self.have_protected(tables_in(tree))

    def have_protected(self, names: Iterable[TableSpelled]) -> bool:
        """Say whether one of these names is that of a protected table."""
        return any(self.find_protected(schema, name) is not None for schema, name in names)


Find = Callable[[str | None, str], Node | None]  # what stands in place of a table, by its schema and name; None: it


def tables_in(tree: Node) -> set[TableSpelled]:
    """Every table that a tree names; names of CTEs left out where they are in scope."""
    tables: set[TableSpelled] = set()
    _note(tree, frozenset(), tables)
    return tables


def tables_of(index: Index) -> set[TableSpelled]:
    """The same, without another walk where the tree has no CTEs."""
    if not _APART.isdisjoint(index.words):
        return tables_in(index.tree)
    tables = {_table(body) for body in index.bodies("RangeVar")}
    return tables.union(*map(_table_of_column, index.bodies("ColumnRef")))


def source(text: str) -> Node:
    """An item of FROM."""
    (piece,) = parse(f"SELECT FROM {text}")
    (node,) = items(kind(piece.tree)[1], "fromClause")
    assert isinstance(node, dict)
    return node


def _table(body: Node) -> TableSpelled:
    schema = body.get("schemaname")
    return None if schema is None else str(schema), str(body.get("relname"))


def _table_of_column(body: Node) -> tuple[TableSpelled, ...]:
    """The table of a column that is named with its schema."""
    fields = items(body, "fields")
    if len(fields) <= 2:
        return ()
    schema, relation = strings(fields[-3:-1])
    return ((schema, relation),)


def _note(node: Json, hidden: frozenset[str], tables: set[TableSpelled]) -> None:
    """Tables, and those that columns name with their schema."""
    waiting = [node]
    while waiting:
        tree = waiting.pop()
        if type(tree) is list:
            waiting += tree
        elif type(tree) is not dict:
            continue
        elif "RangeVar" in tree and isinstance(body := tree["RangeVar"], dict):
            if (named := _table(body))[0] is not None or named[1] not in hidden:
                tables.add(named)
        elif "ColumnRef" in tree and isinstance(body := tree["ColumnRef"], dict):
            tables.update(_table_of_column(body))
        elif "withClause" in tree or "lockingClause" in tree:
            clause = tree.get("withClause")
            inside = _note_ctes(clause, hidden, tables) if isinstance(clause, dict) else hidden
            _note([child for key, child in tree.items() if key not in _APART], inside, tables)
        else:
            waiting += tree.values()


_APART = frozenset(("withClause", "lockingClause"))  # FOR UPDATE OF t names an item of FROM, not a table


def _note_ctes(clause: Node, hidden: frozenset[str], tables: set[TableSpelled]) -> frozenset[str]:
    """Those inside a WITH clause; returns the names that hide tables after it."""
    ctes = items(clause, "ctes")
    names = [str(kind(cte)[1].get("ctename")) for cte in ctes]
    if clause.get("recursive"):
        hidden = hidden.union(names)
    for cte, name in zip(ctes, names, strict=True):
        _note(cte, hidden, tables)
        hidden |= {name}
    return hidden


def drop_unused_ctes(tree: Node) -> None:
    """Drop the CTEs that nothing reads, from a tree in place: PostgreSQL does not run them either.

    One that only a block read is part of that block now, and must not stay behind and read the empty twin.
    """
    for owner in reversed(holders(tree, "withClause")):  # inner ones first: each may be the last use of another
        clause = owner.pop("withClause")
        assert isinstance(clause, dict)
        ctes = {str(kind(cte)[1].get("ctename")): cte for cte in items(clause, "ctes")}
        used = _bare_names(owner) & ctes.keys()
        waiting = list(used)
        while waiting:
            more = (_bare_names(ctes[waiting.pop()]) & ctes.keys()) - used
            used |= more
            waiting += more
        if used:
            owner["withClause"] = clause | {"ctes": [cte for name, cte in ctes.items() if name in used]}


def _bare_names(node: Json) -> set[str]:
    """The names without a schema that stand for tables, or for CTEs around a tree."""
    return {name for schema, name in (tables_in(node) if isinstance(node, dict) else ()) if schema is None}


def replace_relations(tree: Node, find: Find) -> Node:
    """A copy of the tree with tables replaced; each keeps its alias, or its name."""
    replaced = _replace(tree, frozenset(), find)
    assert isinstance(replaced, dict)
    return replaced


def _replace(node: Json, hidden: frozenset[str], find: Find) -> Json:
    if isinstance(node, list):
        return [_replace(child, hidden, find) for child in node]
    if not isinstance(node, dict):
        return node
    name, body = kind(node)
    match name:
        case "RangeVar":
            return _relation(node, body, hidden, find)
        case "ColumnRef":
            return _column(node, body, find)
        case "LockingClause":  # the item of FROM that it names keeps its name
            return node
        case "RangeTableSample" if _replace(body["relation"], hidden, find) != body["relation"]:
            raise NotSupported(
                "TABLESAMPLE is not supported", hint="Use aggregates over all rows.", about="TABLESAMPLE"
            )
    clause = node.get("withClause")
    if not isinstance(clause, dict):
        return {key: _replace(child, hidden, find) for key, child in node.items()}
    ctes, hidden = _ctes(clause, hidden, find)
    rest = {key: _replace(child, hidden, find) for key, child in node.items() if key != "withClause"}
    return {"withClause": clause | {"ctes": ctes}, **rest}


def _ctes(clause: Node, hidden: frozenset[str], find: Find) -> tuple[list[Json], frozenset[str]]:
    """The CTEs of a WITH clause, each of which sees those before it, and the names that hide tables after it."""
    written = items(clause, "ctes")
    names = [str(kind(cte)[1].get("ctename")) for cte in written]
    if clause.get("recursive"):
        hidden = hidden.union(names)
    replaced: list[Json] = []
    for cte, name in zip(written, names, strict=True):
        replaced.append(_replace(cte, hidden, find))
        hidden |= {name}
    return replaced, hidden


def _relation(node: Node, body: Node, hidden: frozenset[str], find: Find) -> Json:
    schema, name = body.get("schemaname"), str(body.get("relname"))
    if schema is None and name in hidden:
        return node
    instead = find(None if schema is None else str(schema), name)
    if instead is not None and (alias := body.get("alias")):
        kind(instead)[1]["alias"] = alias
    return node if instead is None else instead


def _column(node: Node, body: Node, find: Find) -> Json:
    """A column that is named with the schema of a table that is no more: shop.public.orders.id becomes orders.id."""
    fields = items(body, "fields")
    if len(fields) < 3 or find(*strings(fields)[-3:-1]) is None:
        return node
    return {"ColumnRef": body | {"fields": fields[-2:]}}
