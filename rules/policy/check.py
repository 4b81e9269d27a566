"""A policy against the real catalog: what cannot be kept, what a DBA should know, and what analysts will see.

No data are read. An error stops the start; a warning is printed; a note explains a consequence in plain words.
"""

from collections.abc import Iterator

from rules.catalog import SERVERS, Catalog, Column, Table, TableName
from rules.encoding import find_codec, find_missing
from rules.policy.check_budget import check_budgets
from rules.policy.check_public import TRUSTED, check_public, exposure_of
from rules.policy.check_randomized import check_randomized
from rules.policy.column_kind import kind_of, misfit
from rules.policy.exposure import keys_with_partitions
from rules.policy.finding import Finding, by_severity, error, nearest, note, warning
from rules.policy.model import ColumnRules, Policy, TableRules, table_name
from rules.policy.yaml_source import dotted


def check_policy(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Everything worth saying about this policy over this catalog, errors first."""
    found = [*_database(policy, catalog), *check_budgets(policy), *_unit(policy, catalog)]
    exposure = exposure_of(policy, catalog)
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        path = dotted(("tables", text))
        if table is None:
            names = sorted(str(each.name) for each in catalog.tables)
            found.append(error(path, "no such table in the database", nearest(text, names)))
        elif rules.view:
            found.extend(_view(path, table))
        elif rules.public:
            found.extend(check_public(path, table, rules, exposure, catalog))
        else:
            found.extend(_protected(path, table, rules, policy, catalog))
    return by_severity(found)


def _database(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    yield from _encoding(catalog.encoding)
    yield from _server(catalog.version // 10_000)
    if any(name == "noisegate" for name, _ in catalog.schemas):
        yield error("database", 'it has a schema "noisegate", which is the name of our own', "rename that schema")
    if policy.budget.delta == 0:
        yield note("budget.delta", "0: only groups known from the rules are shown, none that are found in the data")
    least, many = policy.defaults.least_epsilon, " (more where zCDP grants them)" if policy.budget.delta else ""
    statements = f"{policy.budget.epsilon // least:,f} of it{many} use up a period's budget"
    yield note("defaults.min_epsilon", f"{least:f}: no statement may ask for less ε, and {statements}")
    if policy.previews == "synopsis" and not policy.synopses:
        yield warning("previews", "synopsis: there is none, so previews are refused", "add synopses")
    if policy.previews == "synthetic":
        yield note("previews", "synthetic: SELECT … LIMIT shows made-up rows; only a NOTICE tells so")


def _encoding(encoding: str) -> Iterator[Finding]:
    """Elsewhere not every letter has a code or a capital, and a failure on the rows with such letters tells of them."""
    if encoding == "SQL_ASCII":
        yield error("database", "its encoding is SQL_ASCII: text in it has no certain meaning", "convert it to UTF8")
    elif find_codec(encoding) is None:
        yield error("database", f"its encoding is {encoding}, which cannot be read here", "convert it to UTF8")
    elif encoding != "UTF8":
        words = "ascii, lower, upper, initcap, ILIKE, and constants that it cannot hold"
        yield note("database", f"its encoding is {encoding}, not UTF8: over protected rows {words} are refused")


def _server(version: int) -> Iterator[Finding]:
    """Whether what we run there has been seen not to fail there."""
    known = f"{SERVERS[0]} to {SERVERS[-1]}"
    if version > SERVERS[-1]:
        words = f"it is PostgreSQL {version}, newer than this release knows: what is run over protected rows was"
        yield error("database", f"{words} never tried there", f"upgrade Noisegate; {known} are served")
    elif version < SERVERS[0]:
        yield error("database", f"it is PostgreSQL {version}, which is too old", f"{known} are served")
    elif version in _LAST_FIXES:
        words = f"it is PostgreSQL {version}, which gets no fixes after {_LAST_FIXES[version]}"
        yield warning("database", words, "upgrade the database")


_LAST_FIXES = {13: "November 2025", 14: "November 2026"}


def _unit(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    if policy.unit == "row":
        return
    text, _, column = policy.unit.rpartition(".")
    table = catalog.find_table(table_name(text)) if text else None
    if table is None or table.find_column(column) is None:
        yield error("unit", f'"{policy.unit}" is not a column of the database', 'write it as "customers.id", or "row"')
    elif not policy.is_protected(table.name):
        yield error("unit", f"{table.name} holds the units, so it must be a protected table here")
    elif not table.is_unique((column,)):
        yield error("unit", f"{policy.unit} is not proved unique", "make it the primary key")


def _view(path: str, table: Table) -> Iterator[Finding]:
    if table.kind != "view":
        yield error(path, f"it is no view but a {table.kind}", "say whose rows it holds")
        return
    yield note(path, "view: read as the query that defines it, whose tables are protected as they are")


def _protected(path: str, table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    yield from _kind(path, table, catalog)
    yield from _reading(path, table, rules)
    if policy.unit == "row":
        if not any(key.primary for key in table.keys):
            yield warning(path, "without a primary key its rows have no identity: they can be counted, not joined")
        if rules.unit is not None:
            yield error(f"{path}.unit", "the unit is the row, so a table needs none")
    else:
        yield from _path_to_unit(path, table, rules, policy, catalog)
    yield from _auto(path, rules)
    for name, column_rules in rules.columns.items():
        column = table.find_column(name)
        here = f"{path}.columns.{name}"
        if column is None:
            names = sorted(each.name for each in table.columns)
            yield error(here, f"{table.name} has no such column", nearest(name, names))
        else:
            yield from _column(here, column, column_rules)
            yield from _unwritable(here, column_rules, catalog.encoding)


_SAVED = (
    "a number in its place, if it is within twice of the best, saves up to two thirds of the error of fewer than 4 "
    "groups"
)


def _reading(path: str, table: Table, rules: TableRules) -> Iterator[Finding]:
    """Reading a row must not fail: that it did would tell of it, exactly and for nothing."""
    if table.foreign and rules.foreign is None:
        words = "it has rows on another server, where reading them may fail, and a failure tells of a row"
        yield error(path, words, TRUSTED)
    elif table.foreign:
        words = (
            "foreign: trusted: should a row on the other server not be readable, a statement over it fails after its "
            "charge, which tells exactly whether it met that row; it is then the analyst's last"
        )
        yield warning(path, words)
    elif rules.foreign is not None:
        yield warning(f"{path}.foreign", "none of its rows are on another server, so this says nothing")
    for column in table.columns:
        if column.generated == "v" and not rules.columns.get(column.name, ColumnRules()).hidden:
            words = f'"{column.name}" is computed when it is read, which can fail on a row'
            yield warning(path, f"{words}: it does not exist for analysts", "make it STORED")


def _auto(path: str, rules: TableRules) -> Iterator[Finding]:
    if rules.rows_auto:
        words = f"how many rows of a unit count is chosen privately for each query, up to {rules.rows_per_unit:,}"
        yield note(f"{path}.rows_per_unit", f"auto: {words}, for a tenth to a third of ε", _SAVED)
    if rules.sum_per_unit:
        words = "how much of a unit's sums counts is chosen privately for each query"
        yield note(f"{path}.sum_per_unit", f"auto: {words}, for a tenth to a third of ε")


def _kind(path: str, table: Table, catalog: Catalog) -> Iterator[Finding]:
    if table.kind in ("view", "materialized view"):
        hint = "write it as view, and name its tables" if table.kind == "view" else "name its tables"
        yield error(path, f"a {table.kind} cannot be protected: what it does to a unit's rows is not known", hint)
    if table.kind == "partition":
        yield error(path, "it is a partition", "name the partitioned table, which covers it")
    if table.row_security and not catalog.bypasses_row_security:
        yield error(path, "row security applies to our role, and a policy may read other rows", "grant BYPASSRLS")
    if table.has_children:
        children = "inheritance children" if table.kind == "table" else "partitions that are foreign tables"
        yield warning(path, f"it has {children}: no key of it proves that rows are unique")


def _path_to_unit(path: str, table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    if rules.unit is None:
        hint = "name the column that says whose row this is, or write the table as public"
        yield error(path, "a protected table needs a unit", hint)
        return
    step = rules.unit_step()
    column = table.find_column(step.column)
    here = f"{path}.unit"
    if column is None:
        names = sorted(each.name for each in table.columns)
        yield error(here, f'{table.name} has no column "{step.column}"', nearest(step.column, names))
        return
    if column.generated == "v":
        yield error(here, f'"{step.column}" is computed when it is read, which can fail on a row', "make it STORED")
    if rules.columns.get(step.column, ColumnRules()).hidden:
        yield note(here, "the unit's column is hidden: analysts cannot join or count by it")
    if not column.not_null:
        yield warning(here, f'"{step.column}" can be null: rows without a unit are never counted')
    if step.target is not None:
        yield from _step(here, table, step.column, step.target, step.target_column, policy, catalog)
    elif not (table.is_unique((step.column,)) or rules.rows_per_unit):
        words = "rows_per_unit is not given: how many rows of a unit count is chosen privately for each query"
        yield warning(path, words, _SAVED)
    yield from _other_ways(here, table, step.column, policy)


def _step(
    here: str, table: Table, column: str, target: TableName, target_column: str, policy: Policy, catalog: Catalog
) -> Iterator[Finding]:
    parent = catalog.find_table(target)
    if parent is None or parent.find_column(target_column) is None:
        yield error(here, f"{target}.{target_column} is not a column of the database")
        return
    if not policy.is_protected(target):
        yield error(here, f"{target} is on the way to the unit, so it must be a protected table here")
    if not parent.is_unique((target_column,)):
        yield error(here, f"{target}.{target_column} is not proved unique, so a row could have two units")
    keys = (key for key in keys_with_partitions(table, catalog) if key.columns == (column,) and key.target == target)
    if not any(key.proves for key in keys):
        yield warning(here, f"no valid foreign key from {column} to {target}: rows that refer to none are not counted")
    if _in_a_circle(table.name, policy):
        yield error(here, "the way to the unit comes back to where it began")


def _in_a_circle(name: TableName, policy: Policy) -> bool:
    seen: set[TableName] = set()
    here: TableName | None = name
    while here is not None:
        if here in seen:
            return True
        seen.add(here)
        rules = policy.find_table(here)
        here = rules.unit_step().target if rules is not None and rules.unit is not None else None
    return False


def _other_ways(here: str, table: Table, column: str, policy: Policy) -> Iterator[Finding]:
    """A transfer has a sender and a receiver: only the declared one is protected by its row."""
    ways = [key for key in table.foreign_keys if policy.is_protected(key.target) and key.columns != (column,)]
    unit_table = table_name(policy.unit.rpartition(".")[0])
    if any(key.target == unit_table for key in ways):
        others = ", ".join(sorted({key.columns[0] for key in ways if key.target == unit_table}))
        yield warning(
            here, f"its rows refer to other units too, by {others}: only that of {column} is protected by them"
        )


def _column(here: str, column: Column, rules: ColumnRules) -> Iterator[Finding]:
    if rules.hidden:
        yield note(here, "hidden: it does not exist for analysts")
        return
    if rules.randomized is not None:
        yield from check_randomized(here, column, rules.randomized)
    kind = kind_of(column.type)
    for value in (*(rules.values or ()), rules.lower, rules.upper):
        if value is not None and (wrong := misfit(value, column.type)):
            yield error(here, wrong)
    if rules.sum_per_unit is not None and kind not in ("integer", "number", "float"):
        yield error(f"{here}.sum_per_unit", f"{column.type.sql} is not summed", "sums are of numbers")
    if rules.lower is not None and kind not in ("integer", "number", "float", "date", "timestamp"):
        yield error(here, f"{column.type.sql} has no bounds", "bounds are for numbers, dates and timestamps")
    if rules.values is not None and not column.deterministic:
        yield error(here, "its collation calls different texts equal, so its values cannot be listed")
    if rules.values is not None and kind == "float":
        yield error(here, "values of a floating-point column cannot be listed", "give lower and upper")


def _unwritable(here: str, rules: ColumnRules, encoding: str) -> Iterator[Finding]:
    """A value that no statement can ask for."""
    codec = find_codec(encoding)
    for value in rules.values or ():
        if codec is not None and find_missing(str(value), codec) is not None:
            words = f'"{value}" cannot be written in {encoding}, the encoding of the database: no row can have it'
            yield warning(here, f"{words}, and questions that list the values are refused", "leave it out")
