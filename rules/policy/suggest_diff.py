"""What rules need since the schema changed: what to take out, what to look at, and a draft of what is new."""

from collections.abc import Iterator

from rules.catalog import Catalog
from rules.policy.freeze import Seen, find_unseen
from rules.policy.model import Policy, table_name
from rules.policy.suggest import Draft, find_ways
from rules.policy.suggest_columns import as_key, column_line

NOTHING = "# nothing: the rules fit the schema\n"


def suggest_changes(policy: Policy, catalog: Catalog, seen: Seen | None) -> str:
    """Lines to merge into a rules file, as YAML with comments; without a lock file all other tables are new."""
    return (
        "".join([*_gone(policy, catalog), *_appeared(policy, catalog, seen), *_others(policy, catalog, seen)])
        or NOTHING
    )


def _gone(policy: Policy, catalog: Catalog) -> Iterator[str]:
    for text, rules in policy.tables.items():
        table = catalog.find_table(table_name(text))
        if table is None:
            yield f"# take out {as_key(text)}: there is no such table any more\n"
            continue
        for name in rules.columns:
            if table.find_column(name) is None:
                yield f"# take out {as_key(text)}.columns.{as_key(name)}: there is no such column any more\n"


def _appeared(policy: Policy, catalog: Catalog, seen: Seen | None) -> Iterator[str]:
    """Columns that are hidden until the schema is locked again, and what may be said of them."""
    unseen = () if seen is None else find_unseen(policy, catalog, seen)
    for text in dict.fromkeys(each.table for each in unseen):
        table = catalog.find_table(table_name(text))
        yield f"  {as_key(text)}:\n"
        for each in (each for each in unseen if each.table == text):
            column = None if table is None else table.find_column(each.column)
            yield f"      # {each.column or 'the whole table'} {each.change}: hidden until noisegate lock\n"
            if table is not None and column is not None and not policy.tables[text].public:
                yield column_line(column, table, of_units=policy.unit == f"{text}.{_unit_column(policy)}")


def _others(policy: Policy, catalog: Catalog, seen: Seen | None) -> Iterator[str]:
    """Tables of which the rules say nothing, and which nobody has seen."""
    known = frozenset() if seen is None else frozenset(seen.others)
    unit_text, _, key = policy.unit.rpartition(".")
    unit = catalog.find_table(table_name(unit_text)) if unit_text else None
    if unit is None:
        return
    draft = Draft.of(catalog, unit.name, find_ways(catalog, unit.name, key))
    for table in sorted(catalog.tables, key=draft.place):
        if policy.find_table(table.name) is None and str(table.name) not in known:
            yield from draft.lines(table)


def _unit_column(policy: Policy) -> str:
    return policy.unit.rpartition(".")[2]
