"""Freeze the schema that the rules were written for: what appears later is hidden until somebody has looked at it.

A column that is added to a table would be there for analysts with no act of the DBA. So a lock file beside the rules
names the columns that were seen, with their types, and the texts of views.
"""

from collections.abc import Iterator

import yaml
from pydantic import ValidationError

from rules.catalog import Catalog, Table, TableName
from rules.frozen import frozen
from rules.policy.finding import Finding, warning
from rules.policy.logins import Model
from rules.policy.model import ColumnRules, Policy, TableRules, table_name
from rules.policy.rules_yaml import dotted

HEADER = """\
# Written by "noisegate lock": the columns that the rules were written for. Other columns are hidden from analysts.
# Keep it next to the rules and under version control; write it again when you have reviewed new columns.
"""
_VIEWS = ("view", "materialized view")


class SeenTable(Model):
    """One table as it was seen."""

    kind: str
    columns: dict[str, str]  # and their types
    definition: str | None = None  # of a view, and of the views below it
    children: tuple[str, ...] | None = None  # by INHERITS: their rows are given out with its own


class Seen(Model):
    """All tables that the rules named."""

    tables: dict[str, SeenTable]
    others: tuple[str, ...] = ()  # tables of the database that they did not name


@frozen
class Unseen:
    """Something that is not as it was seen, and is hidden for that."""

    table: str
    column: str  # "": the whole table
    change: str

    @property
    def place(self) -> str:
        return f"{self.table}.{self.column}" if self.column else self.table

    def finding(self, lock: str, rules: str, *, is_locked: bool = True) -> Finding:
        """For `check`, and for the log: without a lock file it is hidden for as long as nobody reads the rules."""
        path = dotted(("tables", self.table, "columns", self.column) if self.column else ("tables", self.table))
        if not is_locked:
            words = f"{self.change} since the rules were read: it is hidden from analysts until they are read again"
            return warning(path, f"{words}, for there is no {lock}", f"review it, then run noisegate lock {rules}")
        hint = f"once you have reviewed it, run noisegate lock {rules}"
        return warning(path, f"{self.change} since {lock} was written: it is hidden from analysts", hint)


def see(policy: Policy, catalog: Catalog) -> Seen:
    """Return what there is now of the tables that the rules name."""
    named_tables = ((text, catalog.find_table(table_name(text))) for text in sorted(policy.tables))
    others = sorted(str(table.name) for table in catalog.tables if policy.find_table(table.name) is None)
    tables = {text: _seen(table, catalog) for text, table in named_tables if table is not None}
    return Seen(tables=tables, others=tuple(others))


def find_unseen(policy: Policy, catalog: Catalog, seen: Seen) -> tuple[Unseen, ...]:
    """Find columns and tables that differ from the lock. A column that the rules name counts as reviewed."""
    return tuple(unseen for text, rules in policy.tables.items() for unseen in _unseen(text, rules, catalog, seen))


def hide_unseen(policy: Policy, catalog: Catalog, seen: Seen) -> Policy:
    """The rules with all of that hidden, and with it whatever rests on a table that is hidden."""
    unseen = find_unseen(policy, catalog, seen)
    if not unseen:
        return policy
    gone = _with_dependents({table_name(late.table) for late in unseen if not late.column}, policy, catalog)
    tables = {text: rules for text, rules in policy.tables.items() if table_name(text) not in gone}
    for late in unseen:
        if late.column and late.table in tables:
            rules = tables[late.table]
            columns = rules.columns | {late.column: ColumnRules(hidden=True)}
            tables[late.table] = rules.model_copy(update={"columns": columns})
    return policy.model_copy(update={"tables": tables})


def as_text(seen: Seen) -> str:
    """The lock file."""
    tree = seen.model_dump(exclude_none=True, mode="json")
    body: str = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return HEADER + body


def from_text(text: str) -> Seen:
    """A lock file; raises ValueError where it is none."""
    try:
        return Seen.model_validate(yaml.safe_load(text))
    except (yaml.YAMLError, ValidationError) as error:
        raise ValueError("this is no lock file") from error


def changes_between(old: Seen, new: Seen) -> Iterator[str]:
    """Yield what a lock file says anew, a line each."""
    for text, table in new.tables.items():
        before = old.tables.get(text)
        if before is None:
            yield f"{text}: new"
            continue
        for column, kind in table.columns.items():
            if before.columns.get(column) != kind:
                was = before.columns.get(column)
                yield f"{text}.{column}: {kind}, " + (f"was {was}" if was else "new")
        yield from (f"{text}.{column}: gone" for column in before.columns if column not in table.columns)
        if (before.kind, before.definition) != (table.kind, table.definition):
            yield f"{text}: the {before.kind} is another one"
    yield from (f"{text}: gone" for text in old.tables if text not in new.tables)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stand as they are."""


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _string)


def _seen(table: Table, catalog: Catalog) -> SeenTable:
    columns = {column.name: column.type.sql for column in table.columns}
    children = tuple(_children(table, catalog)) or None
    return SeenTable(kind=table.kind, columns=columns, definition=_definition(table, catalog), children=children)


def _children(table: Table, catalog: Catalog) -> Iterator[str]:
    """Name the tables that inherit from a plain table. Partitions hold rows that were inserted into their parent."""
    if table.kind == "table":
        yield from sorted(str(child.name) for child in catalog.tables if table.name in child.parents)


def _definition(table: Table, catalog: Catalog) -> str | None:
    """The text of a view, and of all views that it reads: what it gives depends on all of them."""
    if table.kind not in _VIEWS:
        return None
    tables: dict[TableName, Table] = {}
    waiting = [table]
    while waiting:
        view = waiting.pop()
        if view.name not in tables and view.kind in _VIEWS:
            tables[view.name] = view
            waiting += [source for name in view.sources if (source := catalog.find_table(name)) is not None]
    below = sorted(name for name in tables if name != table.name)
    texts = [table.definition or "", *(f"-- {name}\n{tables[name].definition or ''}" for name in below)]
    return "\n".join(line.rstrip() for text in texts for line in text.splitlines())


def _unseen(text: str, rules: TableRules, catalog: Catalog, seen: Seen) -> Iterator[Unseen]:
    table, before = catalog.find_table(table_name(text)), seen.tables.get(text)
    if table is None:
        return
    if before is None:
        yield Unseen(text, "", "appeared or was named by the rules")
    elif before.kind != table.kind:
        yield Unseen(text, "", f"became a {table.kind} (it was a {before.kind})")
    elif before.definition != _definition(table, catalog):
        yield Unseen(text, "", "got another text as a view")
    elif more := set(_children(table, catalog)) - set(before.children or ()):
        yield Unseen(text, "", f"got the rows of {', '.join(sorted(more))} by inheritance")
    else:
        for column in table.columns:
            known, named = before.columns.get(column.name), rules.columns.get(column.name)
            if known is None and named is None:
                yield Unseen(text, column.name, f"appeared ({column.type.sql})")
            elif known not in (None, column.type.sql) and not (named is not None and named.hidden):
                yield Unseen(text, column.name, f"became {column.type.sql} (it was {known})")


def _with_dependents(gone: set[TableName], policy: Policy, catalog: Catalog) -> frozenset[TableName]:
    """Tables whose way to the unit leads through one that is hidden, and views that read one."""
    kept = {table_name(text) for text in policy.tables} - gone
    while more := {name for name in kept if _rests_on(name, gone, policy, catalog)}:
        gone, kept = gone | more, kept - more
    return frozenset(gone)


def _rests_on(name: TableName, gone: set[TableName], policy: Policy, catalog: Catalog) -> bool:
    table, rules = catalog.find_table(name), policy.find_table(name)
    if table is None or rules is None:
        return False
    target = rules.unit_step().target if rules.unit is not None else None
    return target in gone or (rules.view and any(source in gone for source in table.sources))
