"""A first rules file from the catalog alone: what it proves is used, what it cannot know is left to the DBA."""

from collections.abc import Iterator
from difflib import get_close_matches

from rules.catalog import Catalog, Column, Table, TableName
from rules.policy.column_kind import kind_of

HEADER = """\
# A draft from the catalog of {database}: no row was read. Go through it from top to bottom.
# Tables that are not named here do not exist for analysts.
database: ${{NOISEGATE_DATABASE}}
unit: {unit}
tables:
"""
FOOTER = """\
budget:                      # what all analysts together may learn
  epsilon: 20
  delta: 0                   # 1e-6 would also show groups that are found in the data, once they are large
  per: ever                  # or day, week, month
defaults: {epsilon: 0.1, max_epsilon: 1}
analysts:
  ada: {password: "${ADA_VERIFIER}", epsilon: 5}   # "noisegate password" makes the verifier
"""


def suggest_rules(catalog: Catalog, unit_table: TableName) -> str:
    """A rules file with the rows of `unit_table` as units, as YAML with comments."""
    paths = _paths(catalog, unit_table)
    unit = catalog.find_table(unit_table)
    if unit is None:
        close = get_close_matches(str(unit_table), [str(table.name) for table in catalog.tables], n=1)
        raise ValueError(f"there is no table {unit_table}" + (f"; did you mean {close[0]}?" if close else ""))
    if (key := _single_key(unit)) is None:
        raise ValueError(f"{unit_table} has no primary key of one column, so its rows cannot be units")
    lines = [HEADER.format(database=catalog.database, unit=f"{unit_table}.{key}")]
    for table in sorted(catalog.tables, key=lambda each: (each.name not in paths, each.name)):
        if table.kind in ("table", "partitioned"):
            lines.extend(_table(table, key if table.name == unit_table else paths.get(table.name)))
    return "".join(lines) + FOOTER


def _single_key(table: Table) -> str | None:
    primary = next((key for key in table.keys if key.primary and len(key.columns) == 1), None)
    return primary.columns[0] if primary else None


def _paths(catalog: Catalog, unit_table: TableName) -> dict[TableName, str]:
    """How each table that leads to the units by foreign keys names them, the shortest way first."""
    paths = {unit_table: ""}
    frontier = [unit_table]
    while frontier:
        reached = {
            table.name: _way(table, target, unit_table)
            for target in frontier
            for table in catalog.tables
            if table.name not in paths and _way(table, target, unit_table)
        }
        paths |= reached
        frontier = list(reached)
    return paths


def _way(table: Table, target: TableName, unit_table: TableName) -> str:
    for key in table.foreign_keys:
        if key.target == target and len(key.columns) == 1 and key.proves:
            step = f"{key.columns[0]} -> {target}.{key.target_columns[0]}"
            return key.columns[0] if target == unit_table else step
    return ""


def _table(table: Table, unit: str | None) -> Iterator[str]:
    if unit is None:
        yield f"  # {table.name}: public     # if nothing in it is about people\n"
        return
    yield f"  {table.name}:\n    unit: {unit}\n"
    if not table.is_unique((unit,)):
        yield "    rows_per_unit: auto up to 1000   # how many rows of one unit count: chosen privately, or a number\n"
    names = {column for key in table.keys if key.primary for column in key.columns}
    names |= {column for key in table.foreign_keys for column in key.columns}
    lines = [line for column in table.columns if column.name not in names and (line := _column(column, table, unit))]
    if lines:
        yield "    # columns:\n"
        yield from lines


def _column(column: Column, table: Table, unit: str) -> str:
    if column.name == unit or column.type.labels:
        return ""
    match kind_of(column.type):
        case "integer" | "number" | "float":
            checked = any(column.name in check.columns and check.proves for check in table.checks)
            unless = ", unless its CHECK says them" if checked and kind_of(column.type) == "integer" else ""
            return (
                f"      # {column.name}: {{lower: 0, upper: 100}}   # {column.type.sql}: a sum needs bounds{unless}\n"
            )
        case "date" | "timestamp":
            return (
                f"      # {column.name}: {{lower: 2000-01-01, upper: 2030-12-31}}     # to group by month without δ\n"
            )
        case "text":
            return f"      # {column.name}: hidden     # or its values, to group by it: {{values: [a, b, c]}}\n"
    return ""
