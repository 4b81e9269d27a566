"""A policy against the real catalog: what cannot be kept, what a DBA should know, and what analysts will see.

No data are read. An error stops the start; a warning is printed; a note explains a consequence in plain words.
"""

from collections.abc import Iterator
from math import exp

from rules.catalog import SERVERS, Catalog, Column, Table, TableName, find_codec, find_missing
from rules.policy.check_budget import check_budgets
from rules.policy.column_kind import kind_of, misfit, misfits
from rules.policy.exposure import TRUSTED, check_public, exposure_of, keys_with_partitions
from rules.policy.finding import Finding, by_severity, error, nearest, note, warning
from rules.policy.model import ColumnRules, Policy, TableRules, table_name
from rules.policy.rule_values import Randomized
from rules.policy.rules_yaml import dotted
from rules.values.types import equality, equality_of_key, type_of


def check_policy(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Everything worth saying about this policy over this catalog, errors first."""
    findings = [*_database(policy, catalog), *check_budgets(policy), *_unit(policy, catalog)]
    exposure = exposure_of(policy, catalog)
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        path = dotted(("tables", text))
        if table is None:
            others = (str(other.name) for other in catalog.tables if policy.find_table(other.name) is None)
            findings.append(error(path, "no such table in the database", nearest(text, sorted(others))))
        elif rules.view:
            findings.extend(_view(path, table))
        elif rules.public:
            findings.extend(check_public(path, table, rules, exposure, catalog))
            findings.extend(check_copied(path, table, rules))
        else:
            findings.extend(_protected(path, table, rules, policy, catalog))
        if table is not None:
            findings.extend(check_indexes(path, table, catalog))
            findings.extend(check_standby(path, table, catalog))
    return by_severity(findings)


def _database(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    yield from _encoding(catalog.encoding)
    yield from _server(catalog.version // 10_000)
    yield from check_overrides(catalog)
    if any(name == "noisegate" for name, _ in catalog.schemas):
        yield error("database", 'the name of its schema "noisegate" is reserved for the proxy', "rename that schema")
    if policy.budget.delta == 0:
        yield note(
            "budget.delta",
            "0: analysts see the groups that the rules or the catalog list, and none that are found in the data",
        )
    least, many = policy.defaults.least_epsilon, " (more where zCDP grants them)" if policy.budget.delta else ""
    statements = f"{policy.budget.epsilon // least:,f} such statements{many} use up a period's budget"
    yield note("defaults.min_epsilon", f"{least:f}: no statement may ask for less ε; {statements}")
    if policy.previews == "synopsis" and not policy.schemas:
        yield warning("previews", "synopsis: the rules define no synopsis, so previews are refused", "add synopses")
    if policy.previews == "synthetic":
        yield note("previews", "synthetic: SELECT … LIMIT shows made-up rows, and only a NOTICE says that they are")


def _encoding(encoding: str) -> Iterator[Finding]:
    """Elsewhere not every letter has a code or a capital, and a failure on the rows with such letters tells of them."""
    if encoding == "SQL_ASCII":
        yield error("database", "the encoding SQL_ASCII does not define the meaning of text", "convert it to UTF8")
    elif find_codec(encoding) is None:
        yield error("database", f"the encoding {encoding} cannot be read here", "convert it to UTF8")
    elif encoding != "UTF8":
        words = "ascii, lower, upper, initcap, ILIKE, and constants that it cannot hold"
        yield note("database", f"its encoding is {encoding}, not UTF8: over protected rows {words} are refused")


def _server(version: int) -> Iterator[Finding]:
    """Yield whether what we run there has been seen not to fail there."""
    known = f"{SERVERS[0]} to {SERVERS[-1]}"
    if version > SERVERS[-1]:
        words = f"PostgreSQL {version} is newer than this release, which was never tried with it"
        yield error("database", words, f"upgrade Noisegate; {known} are served")
    elif version < SERVERS[0]:
        yield error("database", f"PostgreSQL {version} is too old", f"{known} are served")
    elif version in _LAST_FIXES:
        words = f"PostgreSQL {version} gets no fixes after {_LAST_FIXES[version]}"
        yield warning("database", words, "upgrade the database")


_LAST_FIXES = {13: "November 2025", 14: "November 2026"}


def _unit(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    if policy.unit == "row":
        return
    text, _, column = policy.unit.rpartition(".")
    table = catalog.find_table(table_name(text)) if text else None
    if table is None or table.find_column(column) is None:
        columns = [f"{table.name}.{column.name}" for table in catalog.tables for column in table.columns]
        hint = nearest(policy.unit, columns) or 'write it as "customers.id", or "row"'
        yield error("unit", f'"{policy.unit}" is not a column of the database', hint)
    elif not policy.is_protected(table.name):
        yield error("unit", f"{table.name} holds the units, so the rules must protect it")
    elif not table.is_unique((column,)):
        yield error("unit", f"{policy.unit} is not proved unique", "make it the primary key")


def _view(path: str, table: Table) -> Iterator[Finding]:
    if table.kind != "view":
        yield error(path, f"it is not a view but a {table.kind}", "give it a unit")
        return
    yield note(path, "view: read as its defining query, over tables with their own protection")


def _protected(path: str, table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    yield from _kind(path, table, catalog)
    yield from check_reading(path, table, rules)
    if policy.unit == "row":
        if not any(key.primary for key in table.keys):
            yield warning(path, "without a primary key its rows have no identity: they can be counted, not joined")
        if rules.unit is not None:
            yield error(f"{path}.unit", "the unit is the row, so a table needs none")
    else:
        yield from _path_to_unit(path, table, rules, policy, catalog)
    yield from _foreign_keys(path, table, policy, catalog)
    yield from _auto(path, rules)
    for name, column_rules in rules.columns.items():
        column = table.find_column(name)
        here = f"{path}.columns.{name}"
        if column is None:
            names = sorted(column.name for column in table.columns)
            yield error(here, f"{table.name} has no such column", nearest(name, names))
        else:
            yield from _column(here, column, table, column_rules)
            yield from _unwritable(here, column_rules, catalog.encoding)


_SAVED = (
    "a number, if it is at most twice the best one and at least half of it, saves up to two thirds of the error of "
    "answers with fewer than 4 groups"
)


def _auto(path: str, rules: TableRules) -> Iterator[Finding]:
    if rules.rows_auto:
        words = f"the most rows of a unit that count are chosen privately for each query, up to {rules.rows_per_unit:,}"
        yield note(f"{path}.rows_per_unit", f"auto: {words}, for a tenth to a third of ε", _SAVED)
    if rules.sum_per_unit:
        words = "how much of a unit's sums counts is chosen privately for each query"
        yield note(f"{path}.sum_per_unit", f"auto: {words}, for a tenth to a third of ε")


def _kind(path: str, table: Table, catalog: Catalog) -> Iterator[Finding]:
    if table.kind in ("view", "materialized view"):
        hint = "declare it as view, and name its tables" if table.kind == "view" else "name its tables"
        yield error(path, f"a {table.kind} cannot be protected: its effect on the rows of a unit is not known", hint)
    if table.kind == "partition":
        yield error(path, "it is a partition", "name the partitioned table, which covers it")
    if table.row_security and not catalog.bypasses_row_security:
        yield error(path, "row security applies to our role, and a policy may read other rows", "grant BYPASSRLS")
    if table.has_children:
        children = "inheritance children" if table.kind == "table" else "partitions that are foreign tables"
        yield warning(path, f"it has {children}: no key of it proves that rows are unique")


def _path_to_unit(path: str, table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    if rules.unit is None:
        hint = "name the column with the unit of each row, or declare the table public"
        yield error(path, "a protected table needs a unit", hint)
        return
    step = rules.unit_step()
    here = f"{path}.unit"
    if (column := table.find_column(step.column)) is None:
        names = sorted(column.name for column in table.columns)
        hint = 'write "order_id -> orders.id"' if ">" in step.column else nearest(step.column, names)
        yield error(here, f'{table.name} has no column "{step.column}"', hint)
        return
    if column.unreadable:
        yield error(here, f'"{step.column}" {column.unreadable}', column.made_readable)
    if rules.columns.get(step.column, ColumnRules()).hidden:
        yield note(here, "the unit column is hidden: analysts cannot join by it or count it")
    if not column.not_null:
        yield warning(here, f'"{step.column}" can be null: rows without a unit are never counted')
    if step.target is not None:
        yield from _step(here, table, step.column, step.target, step.target_column, policy, catalog)
    else:
        yield from _other_equality(here, column, policy, catalog)
        yield from _other_key(here, table, step.column, policy, catalog)
        if not (table.is_unique((step.column,)) or rules.rows_per_unit):
            words = "rows_per_unit is not given: the most rows of a unit that count are chosen privately for each query"
            yield warning(path, words, _SAVED)
    yield from _other_ways(here, table, step.column, policy)
    yield from _other_unit(here, table, rules, policy, catalog)


def _other_unit(here: str, table: Table, rules: TableRules, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """The rows of a child are rows of its parents too, and a row has one unit."""
    for ancestor in catalog.ancestors_of(table):
        above = policy.find_table(ancestor.name)
        if above is not None and above.unit is not None and above.unit_step() != rules.unit_step():
            words = f"its rows are rows of {ancestor.name} too, and have another unit there"
            yield error(here, words, f'write "{above.unit}", as {ancestor.name} has it')


def _other_equality(here: str, column: Column, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """One customer would be several units where different values of the column are equal to one key."""
    key = policy.find_unit_key(catalog)
    if key is None or key is column:
        return
    equal = equality(type_of(column), type_of(key))
    if equal != "same":
        words = f'"{column.name}" is of type {column.type.sql} and {policy.unit} of type {key.type.sql}'
        hint = f'write "{column.name} -> {policy.unit}"' if equal == "coarser" else "give both the same type"
        yield error(here, f"{words}, which have different equalities: one unit could pass for several", hint)


def _foreign_keys(path: str, table: Table, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    for key in keys_with_partitions(table, catalog):
        target = catalog.find_table(key.target)
        if target is None or policy.find_table(key.target) is None or equality_of_key(key, table, catalog) == "same":
            continue
        own, other = (
            ", ".join(column.type.sql for name in names if (column := of.find_column(name)) is not None)
            for of, names in ((table, key.columns), (target, key.target_columns))
        )
        words = f"its foreign key {', '.join(key.columns)} joins {own} with {other}, which have different equalities"
        rest = "different values may refer to the same row, so a unique key of them bounds no unit's rows"
        yield warning(path, f"{words}: {rest}", "give both the same type")


def _other_key(here: str, table: Table, column: str, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """An order's number is no customer's, though both are integers: the foreign key says which it is."""
    for key in keys_with_partitions(table, catalog):
        rules = policy.find_table(key.target)
        if key.columns != (column,) or rules is None or rules.unit is None:
            continue
        way, target = rules.unit_step(), f"{key.target}.{key.target_columns[0]}"
        if way.target is not None or way.column != key.target_columns[0]:
            words = f'"{column}" refers to {target}, which is not the unit: {policy.unit} would not be protected'
            yield warning(here, words, f'write "{column} -> {target}"')


def _step(
    here: str, table: Table, column: str, target: TableName, target_column: str, policy: Policy, catalog: Catalog
) -> Iterator[Finding]:
    parent = catalog.find_table(target)
    if parent is None or parent.find_column(target_column) is None:
        columns = [f"{other.name}.{found.name}" for other in catalog.tables for found in other.columns]
        written = f"{target}.{target_column}"
        yield error(here, f"{written} is not a column of the database", nearest(written, columns))
        return
    if not policy.is_protected(target):
        yield error(here, f"{target} is on the path to the unit, so the rules must protect it too")
    if not parent.is_unique((target_column,)):
        yield error(here, f"{target}.{target_column} is not proved unique, so a row could have two units")
    own, found = table.find_column(column), parent.find_column(target_column)
    if own is not None and found is not None and equality(type_of(own), type_of(found)) == "none":
        words = f'"{column}" is of type {own.type.sql} and {target}.{target_column} of type {found.type.sql}'
        yield error(here, f"{words}: a row could belong to two units, or to none", "give both the same type")
    keys = (key for key in keys_with_partitions(table, catalog) if key.columns == (column,) and key.target == target)
    if not any(key.proves for key in keys):
        yield warning(here, f"no valid foreign key from {column} to {target}: rows that refer to none are not counted")
    if _in_a_circle(table.name, policy):
        yield error(here, "the path to the unit is a circle")


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


def _column(here: str, column: Column, table: Table, rules: ColumnRules) -> Iterator[Finding]:
    if rules.hidden:
        yield note(here, "hidden from analysts")
        return
    if rules.randomized is not None:
        yield from check_randomized(here, column, table, rules.randomized)
        if (index := rules.randomized.index) is not None and index == column.name:
            yield error(f"{here}.randomized.index", "the number of the hash function stands in a column of its own")
    kind = kind_of(column.type)
    declared = [value for value in (*(rules.values or ()), rules.lower, rules.upper) if value is not None]
    wrong = [words for value in declared if (words := misfit(value, column.type))]
    if not wrong and rules.lower is not None and rules.upper is not None:
        wrong = [words for words in (misfits(rules.lower, rules.upper, column.type),) if words]
    yield from (error(here, words) for words in wrong)
    if rules.sum_per_unit is not None and kind not in ("integer", "number", "float"):
        yield error(f"{here}.sum_per_unit", f"values of type {column.type.sql} cannot be summed", "remove it")
    if rules.lower is not None and kind not in ("integer", "number", "float", "date", "timestamp"):
        yield error(
            here, f"values of type {column.type.sql} have no bounds", "bounds are for numbers, dates and timestamps"
        )
    if rules.values is not None and not column.deterministic:
        yield error(here, "its collation treats different texts as equal, so its values cannot be listed")
    if rules.values is not None and kind == "float":
        yield error(here, "values of a floating-point column cannot be listed", "give lower and upper")


def _unwritable(here: str, rules: ColumnRules, encoding: str) -> Iterator[Finding]:
    """A value that no statement can ask for."""
    codec = find_codec(encoding)
    for value in rules.values or ():
        if codec is not None and find_missing(str(value), codec) is not None:
            words = f'"{value}" cannot be written in {encoding}, the encoding of the database: no row can have it'
            yield warning(here, f"{words}, and questions that list the values are refused", "leave it out")


_KINDS = {"k-ary": ("text", "enum", "integer"), "bit": ("boolean",), "mean": ("boolean",)}
_WANTED = {"k-ary": "a text, an enum or an integer", "bit": "boolean", "mean": "boolean"}


def check_randomized(here: str, column: Column, table: Table, randomized: Randomized) -> Iterator[Finding]:
    """Types, values, and advice: k-ary reports have less error where k < 3·e^ε + 2 (Wang et al. 2017)."""
    path, values = f"{here}.randomized", randomized.values or ()
    if randomized.by == "unary":
        if column.type.sql != f"bit({len(values)})":
            yield error(
                path, f"unary reports of {len(values)} values are of type bit({len(values)}), not {column.type.sql}"
            )
    elif randomized.by == "sketch":
        yield from _sketch(path, column, table, randomized)
    elif kind_of(column.type) not in _KINDS[randomized.by]:
        yield error(path, f"{randomized.by} reports are {_WANTED[randomized.by]}, not {column.type.sql}")
    elif randomized.by == "k-ary":
        yield from (error(path, wrong) for value in values if (wrong := misfit(value, column.type)))
    best = "k-ary" if len(values) < 3 * exp(float(randomized.epsilon)) + 2 else "unary"
    if randomized.by in ("k-ary", "unary") and best != randomized.by:
        words = f"for {len(values)} values at epsilon {randomized.epsilon:f} reports by {best} would have less error"
        yield note(path, words)
    word = "'a word'" if randomized.by == "sketch" else "…"
    yield note(
        path, f"analysts count reports; noisegate.estimate({column.name}, {word}) corrects for the randomization"
    )


def _sketch(path: str, column: Column, table: Table, randomized: Randomized) -> Iterator[Finding]:
    """The bits, and the column that says by which function they were set."""
    if column.type.sql != f"bit({randomized.width})":
        yield error(
            path, f"a sketch of {randomized.width} bits is of type bit({randomized.width}), not {column.type.sql}"
        )
    index = table.find_column(randomized.index or "")
    if index is None:
        yield error(f"{path}.index", f'{table.name} has no column "{randomized.index}"')
    elif index.type.base not in ("int2", "int4"):
        yield error(f"{path}.index", f"the number of a hash function is smallint or integer, not {index.type.sql}")


def check_reading(path: str, table: Table, rules: TableRules) -> Iterator[Finding]:
    """Reading a row must not fail: that it did would tell of it, exactly and for nothing."""
    if table.foreign and rules.foreign is None:
        words = "rows of it are on another server, where reading may fail, and a failure would reveal a row"
        yield error(path, words, TRUSTED)
    elif table.foreign:
        words = (
            "foreign: trusted: if a row on the other server cannot be read, a statement over it fails after its "
            "charge and reveals exactly that it met this row; it is then the analyst's last"
        )
        yield warning(path, words)
    elif rules.foreign is not None:
        yield warning(f"{path}.foreign", "no row of it is on another server, so this has no effect")
    for column in table.columns:
        if column.unreadable and not rules.columns.get(column.name, ColumnRules()).hidden:
            words = f'"{column.name}" {column.unreadable}'
            yield warning(path, f"{words}: it does not exist for analysts", column.made_readable)
        elif column.type.casts and not rules.hides(column):
            by = ", ".join(column.type.casts)
            words = f'"{column.name}" has a type that functions of the database cast or order ({by})'
            yield note(
                path, f"{words}: no statement calls them, so it can be counted and tested for NULL, nothing else"
            )
        elif column.type.is_ambiguous and not rules.hides(column):
            words = f'"{column.name}" is an enum with an implicit cast, so PostgreSQL has several operators for it'
            yield note(path, f"{words}: analysts compare its text", "make the cast again AS ASSIGNMENT")


def check_copied(path: str, table: Table, rules: TableRules) -> Iterator[Finding]:
    """Analysts query a copy of a public table. Columns whose type or collation the twin lacks are plain text there."""
    for column in table.columns:
        is_foreign = column.type.extension is not None and column.type.base != "enum"
        if (is_foreign or not column.deterministic) and not rules.hides(column):
            kind = column.type.sql if is_foreign else "text of a nondeterministic collation"
            words = f'"{column.name}" is {kind}: analysts query a copy that has it as plain text'
            advice = "hide it, or have analysts compare and group by lower() of it"
            yield warning(path, f"{words}, and only identical texts are equal there", advice)


def check_indexes(path: str, table: Table, catalog: Catalog) -> Iterator[Finding]:
    """Rows that are read while a unique index becomes valid may be planned as if they had its key.

    An index that was made by another version of its collation may miss rows, and hold no key that it is said to hold.
    """
    for name in table.outdated:
        words = f'its index "{name}" was made by another version of its collation: it may miss rows, and proves no key'
        advice = "REINDEX it, then ALTER DATABASE (or COLLATION) … REFRESH VERSION, as PostgreSQL's warning says"
        yield warning(path, words, advice)
    for part in catalog.tables:
        if part.unfinished and (part == table or table in catalog.ancestors_of(part)):
            whose = "its unique index" if part == table else f"of {part.name}, whose rows are in it, the unique index"
            advice = "wait until CREATE INDEX CONCURRENTLY has ended, or drop what it has left behind"
            for name in part.unfinished:
                words = (
                    f'{whose} "{name}" is not valid: until it is, statements over protected rows with it are refused'
                )
                yield warning(path, words, advice)


def check_standby(path: str, table: Table, catalog: Catalog) -> Iterator[Finding]:
    """A standby has no rows of UNLOGGED tables, and PostgreSQL refuses to read them there."""
    for part in catalog.tables:
        if part.missing and (part == table or table in catalog.ancestors_of(part)):
            whose = "it" if part == table else f"{part.name}, whose rows are in it,"
            words = f"{whose} is UNLOGGED, and this server is a standby: statements over it are refused"
            yield warning(path, words, "on the primary, ALTER TABLE … SET LOGGED; or let database name the primary")


def check_overrides(catalog: Catalog) -> Iterator[Finding]:
    """By PostgreSQL's own casts, operators and functions a statement of ours means what it does and fails on no row."""
    for name in catalog.overrides:
        words = f"{name} is not PostgreSQL's own, and may stand in for its own: it could fail on a row, and reveal it"
        is_cast = name.startswith("the cast")
        advice = (
            "drop it, or make it again WITH INOUT AS ASSIGNMENT"
            if is_cast
            else "drop it, move it elsewhere, or restore the original"
        )
        yield error("database", words, advice)
