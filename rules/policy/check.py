"""A policy against the real catalog: what cannot be kept, what a DBA should know, and what analysts will see.

No data are read. An error stops the start; a warning is printed; a note explains a consequence in plain words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from rules.catalog import SERVERS, Catalog, Column, Table, TableName
from rules.policy.column_kind import kind_of, misfit
from rules.policy.model import ColumnRules, Policy, TableRules, table_name
from rules.policy.yaml_source import dotted


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    path: str  # in the rules file: tables.orders.unit
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.path}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def check_policy(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Everything worth saying about this policy over this catalog, errors first."""
    found = [*_database(policy, catalog), *_noise(policy), *_analysts(policy), *_unit(policy, catalog)]
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        path = dotted(("tables", text))
        if table is None:
            names = sorted(str(each.name) for each in catalog.tables)
            found.append(_error(path, "no such table in the database", _nearest(text, names)))
        elif rules.view:
            found.extend(_view(path, table))
        elif rules.public:
            found.extend(_public(path, table, policy, catalog))
        else:
            found.extend(_protected(path, table, rules, policy, catalog))
    return by_severity(found)


def by_severity(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first."""
    return tuple(sorted(found, key=lambda each: list(Severity).index(each.severity)))


def _database(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    if catalog.encoding == "SQL_ASCII":
        yield _error("database", "its encoding is SQL_ASCII: text in it has no certain meaning", "convert it to UTF8")
    yield from _server(catalog.version // 10_000)
    if any(name == "noisegate" for name, _ in catalog.schemas):
        yield _error("database", 'it has a schema "noisegate", which is the name of our own', "rename that schema")
    if policy.budget.delta == 0:
        yield _note("budget.delta", "0: only groups known from the rules are shown, none that are found in the data")
    least, many = policy.defaults.least_epsilon, " (more where zCDP grants them)" if policy.budget.delta else ""
    statements = f"{policy.budget.epsilon // least:,f} of it{many} use up a period's budget"
    yield _note("defaults.min_epsilon", f"{least:f}: no statement may ask for less ε, and {statements}")
    if policy.previews == "synthetic":
        yield _note("previews", "synthetic: SELECT … LIMIT shows made-up rows; only a NOTICE tells so")


def _server(version: int) -> Iterator[Finding]:
    """Whether what we run there has been seen not to fail there."""
    known = f"{SERVERS[0]} to {SERVERS[-1]}"
    if version > SERVERS[-1]:
        words = f"it is PostgreSQL {version}, newer than this release knows: what is run over protected rows was"
        yield _error("database", f"{words} never tried there", f"upgrade Noisegate; {known} are served")
    elif version < SERVERS[0]:
        yield _error("database", f"it is PostgreSQL {version}, which is too old", f"{known} are served")
    elif version in _LAST_FIXES:
        words = f"it is PostgreSQL {version}, which gets no fixes after {_LAST_FIXES[version]}"
        yield _warning("database", words, "upgrade the database")


_LAST_FIXES = {13: "November 2025", 14: "November 2026"}


def _noise(policy: Policy) -> Iterator[Finding]:
    """Gaussian noise has no pure ε, so that only zCDP grants it, which converts ρ to ε by half of a budget's δ."""
    if policy.noise == "laplace":
        return
    budgets = [("budget.delta", policy.budget.delta)]
    for name, analyst in policy.analysts.items():
        budgets += [(dotted(("analysts", name, "delta")), analyst.delta)] if analyst.delta is not None else []
    for path, delta in budgets:
        if delta == 0:
            yield _error(path, "0: nothing with Gaussian noise could be granted", "give it a δ, or noise: laplace")
    words = (
        "gaussian: less noise where a person is in many groups, and no pure ε: once an account has paid for a count or "
        "a sum, Σρ with δ grants what it asks, no longer Σε, so that fewer statements of a large ε fit"
    )
    yield _warning("noise", words)


def _analysts(policy: Policy) -> Iterator[Finding]:
    for name, analyst in policy.analysts.items():
        path = dotted(("analysts", name))
        if name.startswith(("pg_", "_ng")) or name in ("public", "none", "postgres", "noisegate", "noisegate_owner"):
            yield _error(path, "this name cannot be a role of PostgreSQL's", "choose another name")
        elif len(name.encode()) > 63 or not name:
            yield _error(path, "a role's name has 1 to 63 bytes")
        if analyst.epsilon is not None and analyst.epsilon > policy.budget.epsilon:
            yield _warning(path, f"epsilon {analyst.epsilon} is above the whole budget's {policy.budget.epsilon}")


def _unit(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    if policy.unit == "row":
        return
    text, _, column = policy.unit.rpartition(".")
    table = catalog.find_table(table_name(text)) if text else None
    if table is None or table.find_column(column) is None:
        yield _error("unit", f'"{policy.unit}" is not a column of the database', 'write it as "customers.id", or "row"')
    elif not policy.is_protected(table.name):
        yield _error("unit", f"{table.name} holds the units, so it must be a protected table here")
    elif not table.is_unique((column,)):
        yield _error("unit", f"{policy.unit} is not proved unique", "make it the primary key")


def _view(path: str, table: Table) -> Iterator[Finding]:
    if table.kind != "view":
        yield _error(path, f"it is no view but a {table.kind}", "say whose rows it holds")
        return
    yield _note(path, "view: read as the query that defines it, whose tables are protected as they are")


def _public(path: str, table: Table, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    for key in table.foreign_keys:
        if policy.is_protected(key.target):
            message = f"it refers to {key.target}, which is protected: its rows tell of protected ones"
            yield _error(path, message, "give it a unit, or leave it out")
    if table.kind in ("view", "materialized view"):
        yield _error(path, f"the rows of a {table.kind} may come from protected tables", "name its tables instead")
    if table.row_security and not catalog.bypasses_row_security:
        yield _warning(path, "row security hides some of its rows from us, and so from analysts")
    yield _note(path, "public: every row of it can be read")


def _protected(path: str, table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    yield from _kind(path, table, catalog)
    if policy.unit == "row":
        if not any(key.primary for key in table.keys):
            yield _warning(path, "without a primary key its rows have no identity: they can be counted, not joined")
        if rules.unit is not None:
            yield _error(f"{path}.unit", "the unit is the row, so a table needs none")
    else:
        yield from _path_to_unit(path, table, rules, policy, catalog)
    yield from _auto(path, rules)
    for name, column_rules in rules.columns.items():
        column = table.find_column(name)
        here = f"{path}.columns.{name}"
        if column is None:
            names = sorted(each.name for each in table.columns)
            yield _error(here, f"{table.name} has no such column", _nearest(name, names))
        else:
            yield from _column(here, column, column_rules)


def _auto(path: str, rules: TableRules) -> Iterator[Finding]:
    if rules.rows_auto:
        words = f"how many rows of a unit count is chosen privately for each query, up to {rules.rows_per_unit:,}"
        yield _note(f"{path}.rows_per_unit", f"auto: {words}, for a fifth of ε or less")
    if rules.sum_per_unit:
        words = "how much of a unit's sums counts is chosen privately for each query"
        yield _note(f"{path}.sum_per_unit", f"auto: {words}, for a fifth of ε or less")


def _kind(path: str, table: Table, catalog: Catalog) -> Iterator[Finding]:
    if table.kind in ("view", "materialized view"):
        hint = "write it as view, and name its tables" if table.kind == "view" else "name its tables"
        yield _error(path, f"a {table.kind} cannot be protected: what it does to a unit's rows is not known", hint)
    if table.kind == "partition":
        yield _error(path, "it is a partition", "name the partitioned table, which covers it")
    if table.row_security and not catalog.bypasses_row_security:
        yield _error(path, "row security applies to our role, and a policy may read other rows", "grant BYPASSRLS")
    if table.has_children:
        children = "inheritance children" if table.kind == "table" else "partitions that are foreign tables"
        yield _warning(path, f"it has {children}: no key of it proves that rows are unique")


def _path_to_unit(path: str, table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    if rules.unit is None:
        hint = "name the column that says whose row this is, or write the table as public"
        yield _error(path, "a protected table needs a unit", hint)
        return
    step = rules.unit_step()
    column = table.find_column(step.column)
    here = f"{path}.unit"
    if column is None:
        names = sorted(each.name for each in table.columns)
        yield _error(here, f'{table.name} has no column "{step.column}"', _nearest(step.column, names))
        return
    if rules.columns.get(step.column, ColumnRules()).hidden:
        yield _note(here, "the unit's column is hidden: analysts cannot join or count by it")
    if not column.not_null:
        yield _warning(here, f'"{step.column}" can be null: rows without a unit are never counted')
    if step.target is not None:
        yield from _step(here, table, step.column, step.target, step.target_column, policy, catalog)
    elif not (table.is_unique((step.column,)) or rules.rows_per_unit):
        hint = "rows_per_unit: 40 counts at most 40 rows of each unit"
        yield _warning(path, "rows_per_unit is not given: analysts must set noisegate.rows_per_unit themselves", hint)
    yield from _other_ways(here, table, step.column, policy)


def _step(
    here: str, table: Table, column: str, target: TableName, target_column: str, policy: Policy, catalog: Catalog
) -> Iterator[Finding]:
    parent = catalog.find_table(target)
    if parent is None or parent.find_column(target_column) is None:
        yield _error(here, f"{target}.{target_column} is not a column of the database")
        return
    if not policy.is_protected(target):
        yield _error(here, f"{target} is on the way to the unit, so it must be a protected table here")
    if not parent.is_unique((target_column,)):
        yield _error(here, f"{target}.{target_column} is not proved unique, so a row could have two units")
    keys = (key for key in table.foreign_keys if key.columns == (column,) and key.target == target)
    if not any(key.proves for key in keys):
        yield _warning(here, f"no valid foreign key from {column} to {target}: rows that refer to none are not counted")
    if _in_a_circle(table.name, policy):
        yield _error(here, "the way to the unit comes back to where it began")


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
        yield _warning(
            here, f"its rows refer to other units too, by {others}: only that of {column} is protected by them"
        )


def _column(here: str, column: Column, rules: ColumnRules) -> Iterator[Finding]:
    if rules.hidden:
        yield _note(here, "hidden: it does not exist for analysts")
        return
    kind = kind_of(column.type)
    for value in (*(rules.values or ()), rules.lower, rules.upper):
        if value is not None and (wrong := misfit(value, column.type)):
            yield _error(here, wrong)
    if rules.sum_per_unit is not None and kind not in ("integer", "number", "float"):
        yield _error(f"{here}.sum_per_unit", f"{column.type.sql} is not summed", "sums are of numbers")
    if rules.lower is not None and kind not in ("integer", "number", "float", "date", "timestamp"):
        yield _error(here, f"{column.type.sql} has no bounds", "bounds are for numbers, dates and timestamps")
    if rules.values is not None and not column.deterministic:
        yield _error(here, "its collation calls different texts equal, so its values cannot be listed")
    if rules.values is not None and kind == "float":
        yield _error(here, "values of a floating-point column cannot be listed", "give lower and upper")


def _nearest(word: str, names: list[str]) -> str:
    close = get_close_matches(word, names, n=1)
    return f'did you mean "{close[0]}"?' if close else ""


def _error(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.ERROR, path, message, hint)


def _warning(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.WARNING, path, message, hint)


def _note(path: str, message: str, hint: str = "") -> Finding:
    return Finding(Severity.NOTE, path, message, hint)
