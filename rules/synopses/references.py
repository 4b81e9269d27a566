"""Foreign keys of a synopsis' rows beside the one by which they are linked: each refers to a row that is there.

A synopsis counts nothing of them. What follows from the keys is kept: the customer of a payment is that of its order,
and the address of an order is one of its customer's. Where nothing follows, a column that may be NULL is, and one that
may not refers to any row, all alike likely.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rules.catalog import Column, ForeignKey, TableName
from rules.kernel.expressions import quoted_name
from rules.kernel.render import qualified
from rules.synopses.plan import PlannedTable, SynopsisPlan

ROW = "s"  # stands for the row that refers


@dataclass(frozen=True, slots=True)
class ShownReference:
    """A column that refers to another synthetic table, and what tells to which of its rows."""

    column: Column
    key: ForeignKey  # of the real table
    target: TableName
    same: str = ""  # SQL: the key of the row that it is
    theirs: str = ""  # a column there that is `mine`, SQL: one of these rows it is
    mine: str = ""

    @property
    def target_column(self) -> str:
        return self.key.target_columns[0]


def references_of(planned: PlannedTable, plan: SynopsisPlan) -> tuple[ShownReference, ...]:
    """The foreign keys of a table into the synopsis, but for its link."""
    before = {table.table.name: table for table in plan.tables[: plan.tables.index(planned)]}
    taken = {part.column for part in planned.keys} | {column.shown_as for column in planned.columns}
    taken |= {partner.column for partner in planned.partners}
    taken |= set() if planned.link is None else {planned.link.column}
    made = []
    for key in planned.table.foreign_keys:
        column = planned.table.find_column(key.columns[0]) if len(key.columns) == 1 and key.proves else None
        target = before.get(key.target)
        if column is None or target is None or column.name in taken or column.generated:
            continue
        if [part.column for part in target.keys] == list(key.target_columns):
            taken.add(column.name)
            made.append(_reference(column, key, target, planned, plan))
    return tuple(made)


def _reference(
    column: Column, key: ForeignKey, target: PlannedTable, planned: PlannedTable, plan: SynopsisPlan
) -> ShownReference:
    """Of several keys to one table only the first tells of its own row; the others mean another: who referred whom."""
    name, above = _name(target, plan), dict(_above(planned, plan)) if column.name in planned.own else {}
    here, parent = plan.tables.index(target), None if target.link is None else target.link.parent
    if here in above:
        return ShownReference(column, key, name, same=above[here])
    if target.link is not None and parent in above:
        return ShownReference(column, key, name, theirs=target.link.column, mine=above[parent])
    return ShownReference(column, key, name)


def _above(planned: PlannedTable, plan: SynopsisPlan) -> Iterator[tuple[int, str]]:
    """The table whose row a row is linked to, the one that this is linked to, …, each with SQL for its key."""
    here, referring = planned, ""
    while here.link is not None:
        column = quoted_name(here.link.column)
        if not referring:
            referring = f"{ROW}.{column}"
        else:
            (key,) = here.keys
            rows = f"{qualified(_name(here, plan))} AS t"
            referring = f"(SELECT t.{column} FROM {rows} WHERE t.{quoted_name(key.column)} = {referring})"
        yield here.link.parent, referring
        here = plan.tables[here.link.parent]
        if len(here.keys) != 1:
            return


def _name(table: PlannedTable, plan: SynopsisPlan) -> TableName:
    return TableName(plan.name, table.table.name.name)
