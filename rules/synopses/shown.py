"""The tables of a synopsis as analysts see them: the real ones, with the columns that were measured and their keys."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rules.catalog import Catalog, Column, ForeignKey, Table, TableName, TypeName
from rules.synopses.plan import PlannedColumn, PlannedPartner, PlannedTable, SynopsisPlan
from rules.synopses.references import ShownReference, references_of

COMMENT = "synthetic rows; not data"
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


@dataclass(frozen=True, slots=True)
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
    number = wrap.replace("{0}", _quoted(column.origin[1]))
    return f"array_position(ARRAY[{kept}]::integer[], ({number})::integer) - 1"


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
        condition for column in table.columns for condition in _of_type(column.type, _quoted(column.name), catalog)
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
    to = f"{_quoted(target.schema)}.{_quoted(target.name)}"
    return f"FOREIGN KEY ({_quoted(key.columns[0])}) REFERENCES {to} ({_quoted(key.target_columns[0])})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
