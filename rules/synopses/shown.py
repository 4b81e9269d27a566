"""The tables of a synopsis as analysts see them: the real ones, with the columns that were measured and their keys.

Beside the foreign key by which its rows are linked a table has others, of which a synopsis counts nothing: each refers
to a row that is there. What follows from the keys is kept: the customer of a payment is that of its order, and the
address of an order is one of its customer's. Where nothing follows, a column that may be NULL is, and one that may not
refers to any row, all alike likely.
"""

import re
from collections.abc import Iterator, Sequence

from rules.catalog import Catalog, Column, ForeignKey, Table, TableName, TypeName
from rules.frozen import frozen, replace
from rules.kernel.expressions import quoted_name
from rules.kernel.render import qualified
from rules.synopses.plan import PlannedColumn, PlannedPartner, PlannedTable, SynopsisPlan

COMMENT = "synthetic rows; not data"
ROW = "s"  # stands for the row that refers
_VALUE = re.compile(r"\bVALUE\b")  # as PostgreSQL prints what a domain's CHECK is about


def shown_tables(plan: SynopsisPlan) -> tuple[Table, ...]:
    """All of them, in the order of the plan."""
    return tuple(_shown(table, plan) for table in plan.tables)


def links_of(plan: SynopsisPlan) -> tuple[tuple[str, TableName, str] | None, ...]:
    """For each table the column that refers to another one, that table, and its key."""
    return tuple(
        None
        if table.link is None
        else (table.link.column, _name(plan.tables[table.link.parent], plan), table.link.target_column)
        for table in plan.tables
    )


@frozen
class ShownPartner:
    """A column that refers to public rows, and how the rows of the fit and public ones are told to be alike."""

    column: str
    is_required: bool  # NOT NULL
    target: TableName
    target_column: str
    places: tuple[int, ...]  # of columns of the fit
    bins: tuple[str, ...]  # SQL over a public row: the numbers of the same bins


def partners_of(plan: SynopsisPlan) -> tuple[tuple[ShownPartner, ...], ...]:
    """For each table the columns that refer to public rows."""
    return tuple(tuple(_partner(partner, table) for partner in table.partners) for table in plan.tables)


def _partner(planned: PlannedPartner, table: PlannedTable) -> ShownPartner:
    column = table.table.find_column(planned.column)
    assert column is not None, "the catalog has the columns of a foreign key"
    bins = tuple(_bin_of(table.columns[place]) for place in planned.places)
    names = planned.column, column.not_null, planned.target, planned.target_column
    return ShownPartner(*names, planned.places, bins)


def _bin_of(column: PlannedColumn) -> str:
    """The number of a row's bin, as the fit counts them: by the text that counted it."""
    _, wrap = column.binned.bins.read()
    kept = ", ".join(map(str, column.binned.numbers))
    number = wrap.replace("{0}", quoted_name(column.origin[1]))
    return f"array_position(ARRAY[{kept}]::integer[], ({number})::integer) - 1"


@frozen
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


def condition_of(definition: str) -> str:
    """The condition of a CHECK, as PostgreSQL prints the constraint.

    Example:
        >>> condition_of("CHECK ((price >= 0)) NOT VALID")
        '((price >= 0))'
    """
    return definition.removeprefix("CHECK ").removesuffix(" NOT VALID").removesuffix(" NO INHERIT")


def domain_conditions(table: Table, catalog: Catalog) -> tuple[str, ...]:
    """Return what the domains of a table's columns ask of their values, domains below them included."""
    return tuple(
        condition for column in table.columns for condition in _of_type(column.type, quoted_name(column.name), catalog)
    )


def _of_type(kind: TypeName, name: str, catalog: Catalog) -> Iterator[str]:
    domain = next((domain for domain in catalog.domains if domain.name == TableName(kind.schema, kind.name)), None)
    if domain is None:
        return
    if domain.not_null:
        yield f"({name} IS NOT NULL)"
    for check in domain.checks:
        if check.proves:
            yield _VALUE.sub(lambda _: name, condition_of(check.definition))
    yield from _of_type(domain.type, name, catalog)


def _name(table: PlannedTable, plan: SynopsisPlan) -> TableName:
    return TableName(plan.name, table.table.name.name)


def _shown(planned: PlannedTable, plan: SynopsisPlan) -> Table:
    real = planned.table
    made = [part.column for part in planned.keys]
    linked = [] if planned.link is None else [planned.link.column]
    listed = [column.shown_as for column in planned.columns if column.shown_as is not None]
    partners = [partner.column for partner in planned.partners]
    names = tuple(dict.fromkeys([*made, *linked, *partners, *listed]))
    references = references_of(planned, plan)
    every = {*names, *(reference.column.name for reference in references)}
    columns = tuple(_plain(column) for column in real.columns if column.name in every)
    checks = tuple(check for check in real.checks if check.proves and set(check.columns) <= set(names))
    keys = tuple(key for key in real.keys if key.primary and made and set(key.columns) <= set(names))
    foreign_keys = _foreign_keys(planned, plan, real.foreign_keys, references)
    return Table(_name(planned, plan), "table", columns, keys, foreign_keys, checks, COMMENT)


def _plain(column: Column) -> Column:
    """A column of a copy: nothing fills it by itself."""
    return replace(column, default=None, identity="", generated="", comment=None)


def _foreign_keys(
    planned: PlannedTable, plan: SynopsisPlan, keys: Sequence[ForeignKey], references: Sequence[ShownReference]
) -> tuple[ForeignKey, ...]:
    linked = []
    if planned.link is not None:
        real = next(key for key in keys if key.columns == (planned.link.column,))
        linked.append((real, _name(plan.tables[planned.link.parent], plan)))
    targets = [*linked, *((reference.key, reference.target) for reference in references)]
    return tuple(replace(key, target=target, definition=_definition(key, target)) for key, target in targets)


def _definition(key: ForeignKey, target: TableName) -> str:
    here, there = quoted_name(key.columns[0]), quoted_name(key.target_columns[0])
    return f"FOREIGN KEY ({here}) REFERENCES {qualified(target)} ({there})"
